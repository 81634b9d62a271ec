"""Figures and tables as files of their own: each can be read alone, whatever its texts hold."""

from __future__ import annotations

import csv
import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

from evenhand.analysis import Analysis
from evenhand.analysis.report import ReportContext, write_figures
from evenhand.analysis.report.blocks import Cell, Chart, Row, Table
from evenhand.analysis.report.charts import PAGE, ROLES
from evenhand.analysis.report.document import sections_of
from evenhand.analysis.report.sections.methods import references
from evenhand.analysis.report.tables import csv_of, tex_of
from evenhand.study.tables.formats import guarded

CONTEXT = ReportContext("A study", synthetic=True, rubric_titles={"R": "50% of _it_ & more"})
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def files(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("files") / "made"
    assert write_figures(analysis, CONTEXT, out) == len(list(out.iterdir()))
    return out


def blocks_of(analysis: Analysis) -> list[Chart | Table]:
    sections = sections_of(analysis, CONTEXT)
    found = [each for section in sections for each in section.every_block()]
    return [each for each in found if isinstance(each, Chart | Table)]


@pytest.mark.slow
def test_each_figure_and_table_has_its_files(analysis, files):
    expected = {"methods.md", "methods.tex", "references.bib"}
    for block in blocks_of(analysis):
        if isinstance(block, Chart):
            expected |= {f"{block.name}.svg", f"{block.name}.png"}
        for table in block.data:
            expected |= {f"{table.name}.csv", f"{table.name}.tex"}
    assert {path.name for path in files.iterdir()} == expected
    assert len([name for name in expected if name.endswith(".svg")]) > 5
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in expected)


@pytest.mark.slow
def test_each_figure_can_be_read_alone(analysis, files):
    for chart in blocks_of(analysis):
        if not isinstance(chart, Chart):
            continue
        text = (files / f"{chart.name}.svg").read_text("utf-8")
        root = ElementTree.fromstring(text)  # noqa: S314 - written just now
        said = " ".join(part for node in root.iter(f"{SVG}text") for part in node.itertext())
        for words in (chart.caption, chart.note):
            assert set(words.split()) <= set(said.split()), chart.caption
        assert "(synthetic)" in said
        assert "var(" not in text
        paints = {
            node.get(name)
            for node in root.iter()
            for name in ("fill", "stroke")
            if node.tag in (f"{SVG}path", f"{SVG}rect", f"{SVG}line")
        }
        assert paints & (set(ROLES.values()) - {PAGE, ROLES["rule"], ROLES["ink"]}), chart.caption


def test_each_png_has_the_size_of_its_svg_twice(files):
    for path in files.glob("*.png"):
        content = path.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        size = struct.unpack(">II", content[16:24])
        root = ElementTree.parse(path.with_suffix(".svg")).getroot()  # noqa: S314
        for pixels, name in zip(size, ("width", "height"), strict=True):
            assert pixels == pytest.approx(2 * float(root.get(name, "0")), abs=2)


def test_a_table_has_its_numbers_and_says_synthetic(analysis, files):
    for block in blocks_of(analysis):
        for table in block.data:
            with (files / f"{table.name}.csv").open(encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file))
            numbers = [row for row in table.rows if row.cells]
            assert len(rows) == len(numbers) + 1
            assert len({len(row) for row in rows}) == 1
            for given, row in zip(rows[1:], numbers, strict=True):
                assert given[-1].startswith("synthetic")
                shown = [part for cell in row.cells for part in (cell.text, cell.interval)]
                parts = [part for text in shown for part in text.strip("[]").split(", ") if part]
                assert {guarded(part) for part in parts} <= set(given)


def test_a_table_by_hand():
    rows = (
        Row("Group 1"),
        Row("=a_b", (Cell("0.50", "[-0.10, 0.90]", marks="a"), Cell("7", aside="of 9"))),
    )
    table = Table("κ at 5% & more", "Who", ("κ", "n#"), rows, (("a", "mean of {3}"),), "k")
    assert csv_of(table, synthetic=False).splitlines() == [
        'Group,Who,κ,"κ, low","κ, high",n#,Note',
        "Group 1,'=a_b,0.50,-0.10,0.90,7,n#: of 9",
    ]
    assert r"\caption{$\kappa$ at 5\% \& more (synthetic)}" in tex_of(table, synthetic=True)
    assert tex_of(table, synthetic=False).splitlines()[3:-1] == [
        r"\caption{$\kappa$ at 5\% \& more}",
        r"\label{tab:k}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"Who & $\kappa$ & n\# \\",
        r"\midrule",
        r"\multicolumn{3}{l}{\textit{Group 1}} \\",
        r"=a\_b & 0.50 {[}$-$0.10, 0.90]\textsuperscript{a} & 7 of 9 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip{\footnotesize \textsuperscript{a} mean of \{3\}.}",
    ]


@pytest.mark.slow
def test_hostile_texts_are_no_latex_and_no_formula(hostile_analysis, tmp_path):
    write_figures(hostile_analysis, CONTEXT, tmp_path)
    for path in tmp_path.glob("*.tex"):
        text = re.sub(r"\\[&%$#_{}\\]", "", path.read_text("utf-8"))  # escaped, line breaks
        assert not re.search(r"[#_~^]", text), path.name
        for line in text.splitlines()[1:]:
            assert "%" not in line, line
            assert line.count("{") == line.count("}"), line
            assert line.count("$") % 2 == 0, line
    for path in tmp_path.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            for cell in (cell for row in csv.reader(file) for cell in row):
                assert cell == guarded(cell) or cell.startswith("'"), (path.name, cell)
    for path in tmp_path.glob("*.svg"):
        assert not re.search(r"<(script|img)", path.read_text("utf-8"))


def test_the_methods_paragraph_cites_what_was_done(analysis, files):
    tex, bib = ((files / name).read_text("utf-8") for name in ("methods.tex", "references.bib"))
    cited = {key for keys in re.findall(r"\\citep\{(.*?)\}", tex) for key in keys.split(",")}
    assert cited == set(re.findall(r"@\w+\{(\w+),", bib))
    assert {"cohen1960", "field2007", "calderon2025", "dimitriadis2021"} <= cited
    assert "cohen1968" not in cited, "no category here is ordered"
    assert cited <= set(references())
    text = (files / "methods.md").read_text("utf-8")
    assert text.startswith("All labels are synthetic. For 50% of _it_ & more, 3 human raters")
    assert "200 bootstrap resamples of prompt pairs" not in text, "no study says what they are"
    assert "Cohen's kappa (Cohen 1960)." in text
    assert "[" not in text


def test_every_reference_has_what_a_bibliography_needs():
    for key, entry in references().items():
        assert key.endswith(re.findall(r"year = \{(\d{4})\}", entry)[0])
        assert all(f"{name} = {{" in entry for name in ("author", "title", "year")), key
        assert entry.count("{") == entry.count("}")
