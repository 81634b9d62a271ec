"""The four files: there, well formed, traceable to results.csv, and safe whatever the ids are."""

import base64
import csv
import hashlib
import html
import json
import re
import struct
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, analyse
from evenhand.analysis.report import ReportContext, write_figures
from evenhand.analysis.report.blocks import Cell, Chart, Row, Table, csv_of
from evenhand.analysis.report.charts import PAGE, ROLES
from evenhand.analysis.report.files import markdown, sections_of, tex_of
from evenhand.analysis.report.sections.graders import verdicts_section
from evenhand.analysis.report.sections.methods import references
from evenhand.analysis.report.source import Source
from evenhand.analysis.results import RESULTS_COLUMNS, RESULTS_KEY
from evenhand.cli.main import main
from evenhand.study.tables.formats import guarded
from tests.analysis.make import analyse_labels
from tests.analysis.report.small_study import (
    SCALE,
    is_rounded_from,
    lines_of,
    parse,
    read_results,
    tables,
    unguarded,
)

NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
HEADINGS = [
    "The answer", "Human ceiling", "Per-sample agreement", "Overall agreement", "Direction",
    "Thresholds", "Corrected rates", "Bias audit", "Confidence filter", "Raters",
    "Disagreements worth reading", "Methods and provenance", "Appendix",
]  # fmt: skip


@pytest.mark.slow
def test_the_four_files_exist_and_parse(analysis, written):
    out = written(analysis)

    written_files = {path.name for path in out.iterdir()}
    assert written_files == {"report.html", "report.json", "report.md", "results.csv"}
    content = json.loads((out / "report.json").read_text("utf-8"))
    names = ["schema", "study", "methods", "results_text", "names", "verdicts", "results"]
    assert list(content) == names
    assert content["schema"] == 1
    assert [each["grader"] for each in content["verdicts"]] == [
        "provider:constant",
        "provider:hard",
        "provider:sure",
    ]
    assert list(content["results"][0]) == list(RESULTS_COLUMNS)
    assert len(content["results"]) == len(read_results(out)) == len(analysis.results)


def test_csv_and_json_keep_full_precision_and_null(analysis, written):
    out = written(analysis)
    in_json = json.loads((out / "report.json").read_text("utf-8"))["results"]

    undefined = 0
    for truth, text, row in zip(
        analysis.results.to_dict("records"), read_results(out), in_json, strict=True
    ):
        for name in ("estimate", "low", "high"):
            if np.isnan(truth[name]):
                undefined += 1
                assert text[name] == ""
                assert row[name] is None
            else:
                assert float(text[name]) == row[name] == truth[name]
    assert undefined > 0, "the example must have undefined statistics"


def test_every_number_in_the_page_is_in_results(analysis, written):
    out = written(analysis)
    rows, page = read_results(out), parse(out)

    assert len(page.cells) > 200
    for line, key, text in page.cells:
        row = rows[line - 2]
        assert [row[name] for name in RESULTS_KEY] == key
        for number in NUMBER.findall(text.replace("no item shared by two", "")):
            assert is_rounded_from(number, row), (number, text, row)
    assert not any(NUMBER.search(text) for text in page.bare_cells)


def test_every_number_in_markdown_tables_is_in_results(analysis, written):
    out = written(analysis)
    rows = read_results(out)
    seen = 0
    for line in (out / "report.md").read_text("utf-8").splitlines():
        cells = re.split(r"(?<!\\)\|", line)[1:-1] if line.startswith("|") else []
        sources = lines_of(cells[-1]) if cells else []
        for cell in cells[1:-1] if sources else []:
            # What was decided has no row here: how many pairs to label, the margin, a bound.
            decided = r"\([a-z ]+\)|label about \d+|margin of [\d.]+|up to [\d.]+ below"
            shown = re.sub(decided, "", cell)
            for number in NUMBER.findall(shown):
                seen += 1
                assert any(is_rounded_from(number, rows[at - 2]) for at in sources), line
    assert seen > 500


def test_sections_stand_in_reading_order(analysis, written):
    out = written(analysis)
    page = (out / "report.html").read_text("utf-8")
    text = (out / "report.md").read_text("utf-8")

    assert re.findall(r"<h2[^>]*>([^<]*)</h2>", page) == HEADINGS
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS


def test_what_is_left_out_is_named_with_the_reason(written):
    alone = pd.DataFrame(
        [
            {"unit_id": f"u{n}", "rater_id": "ann", "rater_kind": "human", "label": "xy"[n % 2]}
            for n in range(8)
        ]
    )
    out = written(analyse(alone, None, [Scale("", ("x", "y"))], resamples=50))
    text = (out / "report.md").read_text("utf-8")

    assert "No verdict: there is no grader to evaluate." in text
    assert "Not in this report: " in text
    assert "No overall scores, because no subject is known" in text
    assert "No thresholds, because no grader gave" in text
    assert "— no item shared by two" in text


def test_the_page_needs_nothing_from_outside(analysis, written):
    out = written(analysis)
    page, source = parse(out), (out / "report.html").read_text("utf-8")

    loading = {"img", "link", "iframe", "object", "embed", "base", "form"}
    assert not loading & {tag for tag, _ in page.tags}
    assert [given for tag, given in page.tags if tag == "script"] == [{}], "one, and its own"
    assert not re.search(r"https?:|url\(|@import", source)
    assert not [given for _, given in page.tags if "style" in given]
    assert not [name for _, given in page.tags for name in given if name.startswith("on")]
    policy = next(
        given["content"] for tag, given in page.tags if tag == "meta" and "http-equiv" in given
    )
    assert policy is not None
    digests = []
    for tag in ("style", "script"):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", source, re.DOTALL)
        digests.append(base64.b64encode(hashlib.sha256(content.encode()).digest()).decode())
    style, script = digests
    allowed = f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}';"
    assert policy == f"{allowed} base-uri 'none'; form-action 'none'"


def test_the_page_is_marked_up_for_everyone(analysis, written):
    out = written(analysis)
    page, source = parse(out), (out / "report.html").read_text("utf-8")
    tags = [tag for tag, _ in page.tags]

    assert ("html", {"lang": "en"}) in page.tags
    assert {"header", "nav", "main", "footer"} <= set(tags)
    assert tags.count("table") == tags.count("caption") > 0
    assert all("scope" in given for tag, given in page.tags if tag == "th")
    assert ("a", {"class": "skip", "href": "#main"}) in page.tags
    ids = [given["id"] for _, given in page.tags if "id" in given]
    assert len(ids) == len(set(ids))
    links = {given["href"] for tag, given in page.tags if tag == "a"}
    assert all(link[1:] in ids for link in links if link and link.startswith("#"))
    assert source.count('<a href="results.csv">') > tags.count("table")
    assert "prefers-color-scheme: dark" in source
    assert "@media print" in source


def test_verdicts_carry_a_word_not_only_a_colour(analysis, written):
    source = (written(analysis) / "report.html").read_text("utf-8")
    constant = next(each for each in analysis.verdicts if each["grader"] == "provider:constant")

    assert constant["verdict"] == "do_not_use"
    card = source[source.index('<article class="card do_not_use">') :].split("</article>")[0]
    assert "Do not use" in card
    assert html.escape(constant["sentence"], quote=False).replace("'", "&#39;") in card


@pytest.mark.slow
@pytest.mark.parametrize("synthetic", [True, False])
def test_synthetic_is_said_in_every_file(analysis, written, synthetic):
    out = written(analysis, synthetic=synthetic)
    page = (out / "report.html").read_text("utf-8")
    text = (out / "report.md").read_text("utf-8")
    content = json.loads((out / "report.json").read_text("utf-8"))
    captions = re.findall(r"<(?:caption|figcaption)[^>]*>([^<]*)", page)

    assert content["study"]["synthetic"] is synthetic
    assert ("<strong>Synthetic.</strong>" in page) is synthetic
    assert text.startswith("# A study: rater agreement" + " (synthetic)" * synthetic + "\n")
    assert captions
    assert not any("synthetic" in caption for caption in captions), "the page says so once"
    assert all(row["note"].endswith("synthetic") is synthetic for row in read_results(out))
    assert all(row["note"].endswith("synthetic") is synthetic for row in content["results"])


@pytest.mark.slow
def test_hostile_text_stays_text(hostile_analysis, written):
    evil = '"><img src=x onerror=alert(1)>'
    out = written(
        hostile_analysis, name=evil, facts={evil: evil}, notes=[evil], rubric_titles={"R": evil}
    )
    page, text = parse(out), (out / "report.md").read_text("utf-8")

    assert "img" not in {tag for tag, _ in page.tags}
    assert [given for tag, given in page.tags if tag == "script"] == [{}], "the page's own"
    assert "alert" not in page_script(out)
    assert not [name for _, given in page.tags for name in given if name.startswith("on")]
    assert not re.search(r"<(script|img)", text)
    assert not re.search(r"(?<!\\)!\[|(?<!\\)`", text)
    assert "# not a heading" not in [line.strip() for line in text.splitlines()]
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(blocks) > 5
    for block in blocks:
        widths = {len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block
    assert json.loads((out / "report.json").read_text("utf-8"))["study"]["name"] == evil


def page_script(out: Path) -> str:
    [script] = re.findall(r"<script>(.*?)</script>", (out / "report.html").read_text(), re.DOTALL)
    return script


@pytest.mark.slow
def test_no_cell_of_the_csv_is_a_formula(hostile_analysis, written):
    out = written(hostile_analysis)
    rows = read_results(out)

    numbers = {"n_units", "n_clusters", "estimate", "low", "high"}
    risky = tuple("=+-@\t\r\n")
    for row in rows:
        for name, cell in row.items():
            if name not in numbers and not NUMBER.fullmatch(cell):
                assert not cell.startswith(risky), (name, cell)
    truth = hostile_analysis.results
    for name in RESULTS_KEY:
        assert [unguarded(row[name]) for row in rows] == list(truth[name])
    assert any(row["estimate"].startswith("-") for row in rows), "negative numbers stay numbers"


@pytest.mark.slow
def test_text_of_the_study_reaches_report_json(analysis, written):
    out = written(analysis, facts={"seed": 7, "margin": 0.1}, notes=["12 labels set aside"])
    study = json.loads((out / "report.json").read_text("utf-8"))["study"]
    page = (out / "report.html").read_text("utf-8")

    assert study == {
        "name": "A study",
        "synthetic": False,
        "facts": {"seed": 7, "margin": 0.1},
        "notes": ["12 labels set aside", *analysis.notes],
        "recommendations": {
            "R": "No grader recommended yet for R: inconclusive even with ten times the "
            "pairs (provider:sure)."
        },
        "rubric_titles": {"R": "The rubric"},
        "thresholds": {"R": {"provider:sure": 0.5}},
        "threshold_origins": {"R": {"provider:sure": "default"}},
    }
    assert "<dt>margin</dt><dd>0.1</dd>" in page
    assert page.count("12 labels set aside") == 1, "a caveat is given once"


@pytest.mark.slow
def test_the_thresholds_in_force_are_named_with_whose_they_are(written):
    ratings, units = tables()
    scale = replace(SCALE, thresholds={"provider:sure": 0.25, "provider:hard": 0.1})
    out = written(analyse(ratings, units, [scale], resamples=20))
    study = json.loads((out / "report.json").read_text("utf-8"))["study"]
    assert study["thresholds"] == {"R": {"provider:sure": 0.25}}, "the other has hard labels"
    assert study["threshold_origins"] == {"R": {"provider:sure": "declared"}}
    shown = "<dt>threshold of provider:sure on The rubric</dt><dd>0.25 (declared)</dd>"
    assert shown in (out / "report.html").read_text("utf-8")


def test_sentences_on_biases_name_their_rows(analysis, written):
    """Each says which rows it was read off, and its numbers are those rows' numbers."""
    out = written(analysis)
    results = read_results(out)
    text = (out / "report.md").read_text("utf-8")
    audit = text[text.index("## Bias audit") : text.index("## Raters")]
    told = re.findall(r"^- (.*) \(results\.csv rows ((?:\d+, )+\d+)\)$", audit, re.M)
    assert told
    for sentence, lines in told:
        row, p = (results[int(number) - 2] for number in lines.split(", "))
        assert p["statistic"] == row["statistic"] + "_p"
        shown = [float(row[name]) for name in ("estimate", "low", "high")]
        shown.append(float(p["estimate"]))
        said = [abs(float(number)) for number in re.findall(r"\d\.\d\d", sentence)]
        assert said
        assert {f"{value:.2f}" for value in said} <= {f"{abs(value):.2f}" for value in shown}


@pytest.mark.slow
def test_a_pass_on_the_labels_is_marked_where_the_verdicts_fall_short(written):
    """A grader that labels as people do, with probabilities far too low for the threshold."""
    ratings, units = tables(graders=("sure", "hard", "constant"), pairs=400)
    own = ratings["rater_id"] == "sure"
    ratings.loc[own, "p_positive"] = 0.1 + 0.2 * (ratings.loc[own, "label"] == "C")
    found = analyse(ratings, units, [SCALE], resamples=100)
    assert {each["grader"]: each["verdict"] for each in found.verdicts}["sure"] == "can_replace"
    page = (written(found) / "report.html").read_text("utf-8")
    assert page.count("labels only: its binary labels fall short") == 1
    assert "Use sure for R, for its labels only" in page


def test_one_pair_of_kappas_and_everybody_counted(shared_data, tmp_path, capsys):
    """The figures of a crowd are the same wherever a report has them."""
    file, out = shared_data / "reading" / "92_crowd.csv", tmp_path / "report"
    assert main(["check", str(file), "--resamples", "200", "--out", str(out)]) == 0
    said, text = capsys.readouterr().out, (out / "report.md").read_text("utf-8")
    (verdict,) = json.loads((out / "report.json").read_text("utf-8"))["verdicts"]
    assert "kappa 0.42 vs 0.32" in verdict["sentence"]
    assert verdict["sentence"] in text
    assert "κ 0.42 vs 0.32" in text
    pairs = set(re.findall(r"(?:kappa|κ) (-?\d\.\d\d) vs (-?\d\.\d\d)", said + text))
    assert pairs == {("0.42", "0.32")}
    assert "Human agreement is kappa 0.32" in text
    assert re.search(r"Human agreement: κ 0.32 .*; 200 items\.", text)
    assert "20 annotators labelled 200 items" in text
    assert "margin was 0.1, or a quarter of the annotators' kappa if that is less" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.87 [0.81, 0.92]", r"0.87 \[0.81, 0.92\]"),
        ("-0.05", "-0.05"),
        ("two\nlines\r\nand\ttab", "two lines and tab"),
        ("# heading", r"\# heading"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("a_b*c*", r"a\_b\*c\*"),
        ("x:y@http://h/v1", r"x:y@http:\//h/v1"),
        ("&amp;", "&amp;amp;"),
        ("\\|", r"\\\|"),
    ],
)
def test_markdown(text, expected):
    assert markdown(text) == expected


# --- Figures and tables as files of their own -----------------------------------------------------
CONTEXT = ReportContext("A study", synthetic=True, rubric_titles={"R": "50% of _it_ & more"})
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def files(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("files") / "made"
    assert write_figures(analysis, CONTEXT, out) == len(list(out.iterdir()))
    return out


def blocks_of(analysis: Analysis) -> list[Chart | Table]:
    sections = sections_of(Source(analysis, CONTEXT))
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
    assert text.startswith("All labels are synthetic. On 50% of _it_ & more, 3 annotators")
    assert "200 bootstrap resamples of prompt pairs" not in text, "no study says what they are"
    assert "Cohen's kappa (Cohen 1960)." in text
    assert "[" not in text


def test_every_reference_has_what_a_bibliography_needs():
    for key, entry in references().items():
        assert key.endswith(re.findall(r"year = \{(\d{4})\}", entry)[0])
        assert all(f"{name} = {{" in entry for name in ("author", "title", "year")), key
        assert entry.count("{") == entry.count("}")


def test_the_first_page_names_the_best_grader_first():
    labels = {"ann": "yynnyynynn" * 12, "ben": "yynnyynyny" * 12}
    labels |= {"a-poor-grader": "ynyn" * 30, "good-grader": "yynnyynynn" * 12}
    scale = Scale("", ("y", "n"), affirmative=frozenset("y"))
    found = analyse_labels(labels, scale, ("a-poor-grader", "good-grader"), resamples=100)
    first = verdicts_section(Source(found, ReportContext("x"))).blocks[0]
    assert [name for name, _ in first.rows] == ["good-grader", "a-poor-grader"]
