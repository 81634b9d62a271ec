"""The files of a report: there, well formed, traceable to results.csv, safe whatever the ids are;
and the paragraphs for a paper, held clause by clause against studies drawn at random.
"""

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
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis import Analysis, Scale, analyse
from evenhand.analysis.report import ReportContext, write_figures
from evenhand.analysis.report.blocks import Cell, Chart, Row, Table, csv_of
from evenhand.analysis.report.charts import PAGE, ROLES
from evenhand.analysis.report.files import markdown, tex_of
from evenhand.analysis.report.sections.graders import verdicts_section
from evenhand.analysis.report.sections.methods import paragraphs, references
from evenhand.analysis.report.source import Source
from evenhand.analysis.results import RESULTS_COLUMNS, RESULTS_KEY
from evenhand.study.tables.formats import guarded
from evenhand.texts import number_of
from tests.analysis.make import analyse_labels, noisy, ratings_of
from tests.analysis.report.conftest import blocks_of, data_tables
from tests.analysis.report.small_study import SCALE, is_rounded_from, parse, read_results, tables

NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def told_in(out: Path) -> dict:
    return json.loads((out / "report.json").read_text("utf-8"))


def text_in(out: Path, kind: str) -> str:
    return (out / f"report.{kind}").read_text("utf-8")


@pytest.mark.journey
def test_csv_and_json_keep_full_precision_and_null(analysis, written):
    out = written(analysis)
    files = {path.name for path in out.iterdir()}
    assert files == {"report.html", "report.json", "report.md", "results.csv"}
    content = told_in(out)
    names = ["schema", "study", "methods", "results_text", "names", "verdicts", "results"]
    assert list(content) == names
    assert content["schema"] == 1
    assert list(content["results"][0]) == list(RESULTS_COLUMNS)
    undefined, truths = 0, analysis.results.to_dict("records")
    for truth, text, row in zip(truths, read_results(out), content["results"], strict=True):
        for name in ("estimate", "low", "high"):
            if np.isnan(truth[name]):
                undefined += 1
                assert (text[name], row[name]) == ("", None)
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
    rows, seen = read_results(out), 0
    for line in text_in(out, "md").splitlines():
        cells = re.split(r"(?<!\\)\|", line)[1:-1] if line.startswith("|") else []
        named = re.findall(r"(\d+)(?:-(\d+))?", cells[-1]) if cells else []
        sources = [at for a, b in named for at in range(int(a), int(b or a) + 1)]
        for cell in cells[1:-1] if sources else []:
            # What was decided has no row here: how many pairs to label, the margin, a bound.
            decided = r"\([a-z ]+\)|label about \d+|margin of [\d.]+|up to [\d.]+ below"
            for number in NUMBER.findall(re.sub(decided, "", cell)):
                seen += 1
                assert any(is_rounded_from(number, rows[at - 2]) for at in sources), line
    assert seen > 500


def test_sentences_on_biases_name_their_rows(analysis, written):
    """Each says which rows it was read off, and its numbers are those rows' numbers."""
    out = written(analysis)
    results, text = read_results(out), text_in(out, "md")
    audit = text[text.index("## Bias audit") : text.index("## Raters")]
    told = re.findall(r"^- (.*) \(results\.csv rows ((?:\d+, )+\d+)\)$", audit, re.M)
    assert told
    for sentence, lines in told:
        row, p = (results[int(number) - 2] for number in lines.split(", "))
        assert p["statistic"] == row["statistic"] + "_p"
        values = [row["estimate"], row["low"], row["high"], p["estimate"]]
        said = set(re.findall(r"\d\.\d\d", sentence))
        assert said
        assert said <= {f"{abs(float(value)):.2f}" for value in values}


def test_what_is_left_out_is_named_with_the_reason(written):
    alone = {"unit_id": [f"u{n}" for n in range(8)], "label": list("xy" * 4)}
    alone = pd.DataFrame(alone).assign(rater_id="ann", rater_kind="human")
    text = text_in(written(analyse(alone, None, [Scale("", ("x", "y"))], resamples=50)), "md")
    assert "No verdict: there is no grader to evaluate." in text
    assert "Not in this report: " in text
    assert "No overall scores, because no subject is known" in text
    assert "No thresholds, because no grader gave" in text
    assert "— no item shared by two" in text


def test_the_page_needs_nothing_from_outside(analysis, written):
    out = written(analysis)
    page, source = parse(out), text_in(out, "html")
    loading = {"img", "link", "iframe", "object", "embed", "base", "form"}
    assert not loading & {tag for tag, _ in page.tags}
    assert [given for tag, given in page.tags if tag == "script"] == [{}], "one, and its own"
    assert not re.search(r"https?:|url\(|@import", source)
    names = [name for _, given in page.tags for name in given]
    assert not [name for name in names if name == "style" or name.startswith("on")]
    digests = []
    for tag in ("style", "script"):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", source, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        digests.append(f"{tag}-src 'sha256-{digest}'; ")
    [policy] = [given["content"] for _, given in page.tags if "http-equiv" in given]
    own = "".join(digests)
    assert policy == f"default-src 'none'; {own}base-uri 'none'; form-action 'none'"


def test_the_page_is_marked_up_for_everyone(analysis, written):
    out = written(analysis)
    page, source = parse(out), text_in(out, "html")
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
    # A verdict has a word, not only a colour.
    constant = next(each for each in analysis.verdicts if each["grader"] == "provider:constant")
    assert constant["verdict"] == "do_not_use"
    card = source[source.index('<article class="card do_not_use">') :].split("</article>")[0]
    assert "Do not use" in card
    assert html.escape(constant["sentence"], quote=False).replace("'", "&#39;") in card


@pytest.mark.slow
@pytest.mark.parametrize("synthetic", [True, False])
def test_synthetic_is_said_in_every_file(analysis, written, synthetic):
    out = written(analysis, synthetic=synthetic)
    page, content = text_in(out, "html"), told_in(out)
    captions = re.findall(r"<(?:caption|figcaption)[^>]*>([^<]*)", page)
    assert content["study"]["synthetic"] is synthetic
    assert ("<strong>Synthetic.</strong>" in page) is synthetic
    title = "# A study: rater agreement" + " (synthetic)" * synthetic + "\n"
    assert text_in(out, "md").startswith(title)
    assert captions
    assert not any("synthetic" in caption for caption in captions), "the page says so once"
    for row in (*read_results(out), *content["results"]):
        assert row["note"].endswith("synthetic") is synthetic


@pytest.mark.slow
def test_hostile_text_stays_text(hostile_analysis, written):
    evil = '"><img src=x onerror=alert(1)>'
    known = {"facts": {evil: evil}, "notes": [evil], "rubric_titles": {"R": evil}}
    out = written(hostile_analysis, name=evil, **known)
    page, text = parse(out), text_in(out, "md")
    assert "img" not in {tag for tag, _ in page.tags}
    assert [given for tag, given in page.tags if tag == "script"] == [{}], "the page's own"
    [script] = re.findall(r"<script>(.*?)</script>", text_in(out, "html"), re.DOTALL)
    assert "alert" not in script
    assert not [name for _, given in page.tags for name in given if name.startswith("on")]
    assert not re.search(r"<(script|img)|(?<!\\)!\[|(?<!\\)`", text)
    assert "# not a heading" not in [line.strip() for line in text.splitlines()]
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(blocks) > 5
    for block in blocks:
        assert len({len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, block
    assert told_in(out)["study"]["name"] == evil


@pytest.mark.slow
def test_no_cell_of_the_csv_is_a_formula(hostile_analysis, written):
    rows = read_results(written(hostile_analysis))
    numbers = {"n_units", "n_clusters", "estimate", "low", "high"}
    for name, cell in ((name, cell) for row in rows for name, cell in row.items()):
        if name not in numbers and not NUMBER.fullmatch(cell):
            assert not cell.startswith(tuple("=+-@\t\r\n")), (name, cell)
    for name in RESULTS_KEY:
        # One apostrophe stands where a formula would begin behind it.
        cells = [re.sub(r"^'(?='*[=+\-@\t\r\n])", "", row[name]) for row in rows]
        assert cells == list(hostile_analysis.results[name])
    assert any(row["estimate"].startswith("-") for row in rows), "negative numbers stay numbers"


@pytest.mark.slow
def test_what_the_study_says_and_thresholds_in_force_reach_the_files(analysis, written):
    out = written(analysis, facts={"seed": 7, "margin": 0.1}, notes=["12 labels set aside"])
    study, page = told_in(out)["study"], text_in(out, "html")
    assert study["name"] == "A study"
    assert study["facts"] == {"seed": 7, "margin": 0.1}
    assert study["notes"] == ["12 labels set aside", *analysis.notes]
    assert study["rubric_titles"] == {"R": "The rubric"}
    assert study["threshold_origins"] == {"R": {"provider:sure": "default"}}
    assert study["recommendations"]["R"].startswith("No grader recommended yet for R: inconclus")
    assert "<dt>margin</dt><dd>0.1</dd>" in page
    assert page.count("12 labels set aside") == 1, "a caveat is given once"

    scale = replace(SCALE, thresholds={"provider:sure": 0.25, "provider:hard": 0.1})
    out = written(analyse(*tables(), [scale], resamples=20))
    study = told_in(out)["study"]
    assert study["thresholds"] == {"R": {"provider:sure": 0.25}}, "the other has hard labels"
    assert study["threshold_origins"] == {"R": {"provider:sure": "declared"}}
    shown = "<dt>threshold of provider:sure on The rubric</dt><dd>0.25 (declared)</dd>"
    assert shown in text_in(out, "html")


@pytest.mark.slow
def test_a_pass_on_the_labels_is_marked_where_the_verdicts_fall_short(written):
    """A grader that labels as people do, with probabilities far too low for the threshold."""
    ratings, units = tables(graders=("sure", "hard", "constant"), pairs=400)
    own = ratings["rater_id"] == "sure"
    ratings.loc[own, "p_positive"] = 0.1 + 0.2 * (ratings.loc[own, "label"] == "C")
    found = analyse(ratings, units, [SCALE], resamples=50)
    assert {each["grader"]: each["verdict"] for each in found.verdicts}["sure"] == "can_replace"
    page = text_in(written(found), "html")
    assert page.count("labels only: its binary labels fall short") == 1
    assert "Use sure for R, for its labels only" in page


def test_markdown():
    for text, expected in (
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
    ):
        assert markdown(text) == expected


def test_the_first_page_names_the_best_grader_first():
    labels = {"ann": "yynnyynynn" * 12, "ben": "yynnyynyny" * 12}
    labels |= {"a-poor-grader": "ynyn" * 30, "good-grader": "yynnyynynn" * 12}
    scale = Scale("", ("y", "n"), affirmative=frozenset("y"))
    found = analyse_labels(labels, scale, ("a-poor-grader", "good-grader"), resamples=20)
    first = verdicts_section(Source(found, ReportContext("x"))).blocks[0]
    assert [name for name, _ in first.rows] == ["good-grader", "a-poor-grader"]


# Figures and tables as files of their own

CONTEXT = ReportContext("A study", synthetic=True, rubric_titles={"R": "50% of _it_ & more"})
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def files(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("files") / "made"
    assert write_figures(analysis, CONTEXT, out) == len(list(out.iterdir()))
    return out


@pytest.mark.slow
def test_each_figure_can_be_read_alone_and_has_its_files(analysis, files):
    expected = {"methods.md", "methods.tex", "references.bib"}
    for table in data_tables(analysis, CONTEXT):
        expected |= {f"{table.name}.csv", f"{table.name}.tex"}
    for block in blocks_of(analysis, Chart, CONTEXT):
        expected |= {f"{block.name}.svg", f"{block.name}.png"}
        text = (files / f"{block.name}.svg").read_text("utf-8")
        root = ElementTree.fromstring(text)  # noqa: S314 - written just now
        said = " ".join(part for node in root.iter(f"{SVG}text") for part in node.itertext())
        for words in (block.caption, block.note, "(synthetic)"):
            assert set(words.split()) <= set(said.split()), block.caption
        assert "var(" not in text
        shapes = [node for tag in ("path", "rect", "line") for node in root.iter(f"{SVG}{tag}")]
        paints = {node.get(name) for node in shapes for name in ("fill", "stroke")}
        assert paints & (set(ROLES.values()) - {PAGE, ROLES["rule"], ROLES["ink"]}), block.caption
        png = (files / f"{block.name}.png").read_bytes()
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        for pixels, name in zip(struct.unpack(">II", png[16:24]), ("width", "height"), strict=True):
            assert pixels == pytest.approx(2 * float(root.get(name, "0")), abs=2)
    assert {path.name for path in files.iterdir()} == expected
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in expected)
    assert len([name for name in expected if name.endswith(".svg")]) > 5


@pytest.mark.slow
def test_a_table_has_its_numbers_and_says_synthetic(analysis, files):
    for table in data_tables(analysis, CONTEXT):
        with (files / f"{table.name}.csv").open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        assert {len(row) for row in rows} <= {len(header)}
        for shown_row, row in zip(rows, [row for row in table.rows if row.cells], strict=True):
            assert shown_row[-1].startswith("synthetic")
            shown = [part for cell in row.cells for part in (cell.text, cell.interval)]
            parts = [part for text in shown for part in text.strip("[]").split(", ") if part]
            assert {guarded(part) for part in parts} <= set(shown_row)


def test_a_table_by_hand():
    cells = Cell("0.50", "[-0.10, 0.90]", marks="a"), Cell("7", aside="of 9")
    rows = Row("Group 1"), Row("=a_b", cells)
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


# The paragraphs for a paper


@pytest.mark.slow
def test_the_methods_paragraph_cites_what_was_done(files):
    tex, bib = ((files / name).read_text("utf-8") for name in ("methods.tex", "references.bib"))
    cited = {key for keys in re.findall(r"\\citep\{(.*?)\}", tex) for key in keys.split(",")}
    assert cited == set(re.findall(r"@\w+\{(\w+),", bib))
    assert {"cohen1960", "field2007", "calderon2025", "dimitriadis2021"} <= cited
    assert "cohen1968" not in cited, "no category here is ordered"
    text = (files / "methods.md").read_text("utf-8")
    assert text.startswith("All labels are synthetic. On 50% of _it_ & more, 3 annotators")
    assert "200 bootstrap resamples of prompt pairs" not in text, "no study says what they are"
    assert "Cohen's kappa (Cohen 1960)." in text
    assert "[" not in text
    for key, entry in references().items():
        assert key.endswith(re.findall(r"year = \{(\d{4})\}", entry)[0])
        assert all(f"{name} = {{" in entry for name in ("author", "title", "year")), key
        assert entry.count("{") == entry.count("}")


@st.composite
def studies(draw):
    """Ratings of up to three people and two graders, and what is declared of them."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    truth = rng.integers(0, 2, draw(st.sampled_from([5, 40, 90])))
    people = [f"h{n}" for n in range(draw(st.integers(0, 3)))]
    graders = [f"g{n}" for n in range(draw(st.integers(0 if people else 1, 2)))]
    labels = {name: noisy(rng, truth, 2, 0.9, draw(st.sampled_from([0, 0.3]))) for name in people}
    labels |= {name: noisy(rng, truth, 2, 0.85) for name in graders}
    stated = None
    if graders and draw(st.booleans()):
        stated = {graders[0]: np.where(truth == 0, 0.9, 0.05).tolist()}
    ratings = ratings_of(labels, graders, stated)
    if draw(st.booleans()) and people:  # asked, and not answered
        ratings.loc[ratings.index[ratings["rater_kind"] == "human"][0], "label"] = ""
    thresholds = {graders[0]: 0.1} if stated and draw(st.booleans()) else {}
    name = draw(st.sampled_from(["", "tone"]))
    scale = Scale(name, ("1", "2"), affirmative=frozenset("1"), thresholds=thresholds)
    reference = draw(st.sampled_from(["", *people[:1]])) if graders else ""
    rules = {"margin_share": draw(st.sampled_from([0.0, 0.2])), "reference": reference}
    return ratings, scale, stated, rules


@pytest.mark.slow
@settings(max_examples=15)
@given(studies())
def test_each_clause_is_there_only_if_it_happened(study):
    ratings, scale, stated, rules = study
    found = analyse(ratings, None, [scale], resamples=20, **rules)
    context = ReportContext("study", rubric_titles={"tone": "Tone [1]"})
    methods, *results = paragraphs(Source(found, context)).texts
    human = ratings["rater_kind"] == "human"
    given = ratings[human & (ratings["label"] != "")].groupby("unit_id")["rater_id"].nunique()
    people = sorted(set(ratings.loc[human, "rater_id"]))
    graders = sorted(set(ratings.loc[~human, "rater_id"]))
    who = f"{number_of(len(people), 'annotator')} labelled {number_of(len(given), 'item')}."
    assert (who in methods) == bool(people)
    both = int((given >= 2).sum())
    if len(people) > 1 and both == len(given):
        assert "Each item has labels from two or more annotators." in methods
    elif len(people) > 1:
        assert f"Of these, {number_of(both, 'item')} have labels from two" in methods
    else:
        assert "two or more annotators" not in methods
    assert ("left out 1 label that" in methods) == ((human & (ratings["label"] == "")).any())
    for name in graders:
        assert re.search(rf"\(LLM judges?\).*{name}", methods)
    assert ("grader" in methods.lower()) == bool(graders)  # baselines are none
    assert "audited for bias" not in methods, "no column here could be audited"
    if stated:
        declared = bool(scale.thresholds)
        assert ("from 0.1, a threshold set by hand" in methods) == declared
        assert ("from the rubric's threshold, 0.5" in methods) == (not declared)
    else:
        assert "count as affirmative" not in methods
    compared = found.results.query("statistic == 'human_ceiling_difference'")
    is_compared = compared[compared["rater_b"].isin(graders)]["estimate"].notna().any()
    margin = "20% of the annotators' kappa" if rules["margin_share"] else "margin was 0.1,"
    assert (margin in methods) == (is_compared and not rules["reference"])
    assert ("with the labels of h0" in methods) == bool(rules["reference"])
    deciding = [row["deciding"] for row in found.rows if row["deciding"] and row["deciding"].look]
    levels = {f"{1 - each.alpha:.2%} confidence" for each in deciding}
    assert set(re.findall(r"[\d.]+% confidence", methods)) <= levels
    assert ("Pocock" in methods) == bool(levels)
    told = " ".join(results)
    assert told.count("erdict") == len(found.verdicts)
    assert all(verdict["grader"] in told for verdict in found.verdicts)
    plain = [row for row in found.rows if not row["deciding"]]
    of_95 = {(f"{row['low']:z.2f}", f"{row['high']:z.2f}") for row in plain}
    assert set(re.findall(r"95% CI (\S+) to (\S+?)\)", told)) <= of_95
    among = found.results.query("statistic == 'cohen_kappa' and rater_a == 'humans'")
    among = among[(among["rater_b"] == "") & (among["subset"] == "all")]["estimate"].dropna()
    assert ("appa between annotators was" in told) == (len(among) == 1)
    assert all(f"was {estimate:z.2f}" in told for estimate in among)
    assert ("On Tone (1), " in methods) == (scale.name == "tone")
