"""Every number on the page, wherever it stands, comes from results.csv or is declared here.

Numbers in cells are held against the very row that they name in test_writing; here are the others:
sentences, footnotes, headings, pictures, prose.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse
from evenhand.analysis.bias.audit import BOUND
from evenhand.analysis.notes import TEXTS, WORDS
from evenhand.analysis.report import ReportContext, write_report
from evenhand.analysis.report.blocks import Answer, Cell, Chart, Items, Table
from evenhand.analysis.report.files import sections_of
from evenhand.analysis.report.sections.methods import references
from evenhand.analysis.report.source import Source, shown
from evenhand.analysis.results import RESULTS_KEY
from evenhand.analysis.statistics import statistics
from evenhand.analysis.verdicts.judge import limits_of
from tests.analysis.report.small_study import SCALE, is_rounded_from, read_results, tables, timed

NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")
PROSE = {"2.5", "95", "0", "5", f"{BOUND:g}", "90", "80"}
"""95% intervals; below 0; at most 5 units to read; the bias audit's bound, 90% CI, 80% power."""
VOID = {"meta", "br", "path", "rect", "line", "circle"}


@dataclass
class Texts(HTMLParser):
    """Every text of a page that holds a number, with the elements and classes around it."""

    open: list[str] = field(default_factory=list)
    found: list[tuple[list[str], str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(" ".join([tag, dict(attrs).get("class") or ""]))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop().split()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if NUMBER.search(data):
            self.found.append((list(self.open), data.strip()))

    def within(self, *words: str) -> list[str]:
        """Texts inside elements of these tags or classes, taken off the list."""
        inside = [
            (around, text)
            for around, text in self.found
            if set(words) & {word for each in around for word in each.split()}
        ]
        self.found = [each for each in self.found if each not in inside]
        return [text for _, text in inside]


@pytest.fixture(scope="module")
def rich_analysis() -> Analysis:
    ratings, units = timed()
    usage = pd.DataFrame(
        {"rater_id": ["provider:sure"], "rubric": ["R"], "attempts": [121], "cost_usd": [1.25]}
    )
    return analyse(
        ratings, units, [SCALE], resamples=100, slices=["topic"], facts=StudyFacts(usage=usage)
    )


@pytest.fixture(scope="module")
def report(rich_analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    units = {(each.rubric, each.unit_id) for each in rich_analysis.disagreements}
    context = ReportContext(
        "A study",
        facts={"seed": 7},
        rubric_titles={"R": "The rubric"},
        texts={unit: {"Response": "It took 4711 years."} for unit in units},
        remarks={unit: {"ann": "unclear: 0815"} for unit in units},
    )
    write_report(rich_analysis, context, out)
    return out


@pytest.mark.slow
def test_no_number_stands_loose(rich_analysis, report):
    rows = read_results(report)
    texts = Texts()
    texts.feed((report / "report.html").read_text("utf-8"))
    texts.within("head", "style", "script", "pre")
    assert texts.within("estimate", "interval"), "held against their rows in test_writing"
    texts.within("td")  # asides: the same cells
    quoted = set(texts.within("blockquote", "reason", "q"))
    [methods] = [text for text in quoted if text.startswith("On The rubric, 3")]
    assert set(NUMBER.findall(methods)) <= said_in_methods(rows)
    assert {"It took 4711 years.", "unclear: 0815"} <= quoted

    ids = {row["at"] for row in rows if row["statistic"] == "disagreement"}
    assert all(any(unit in text for unit in ids) for text in texts.within("unit", "quiet"))

    asked = {str(verdict["more_clusters"]) for verdict in rich_analysis.verdicts}
    counts = {row[name] for row in rows for name in ("n_units", "n_clusters")}
    for said in texts.within("advised"):
        assert set(NUMBER.findall(said)) <= asked | counts, said

    sentences = {verdict["sentence"]: verdict for verdict in rich_analysis.verdicts}
    assert set(texts.within("sentence")) == set(sentences)
    for sentence, verdict in sentences.items():
        assert_rests_on_evidence(sentence, verdict["evidence"], rows)

    notes = " ".join(row["note"] for row in rows)
    for footnote in texts.within("figcaption"):
        for number in NUMBER.findall(footnote):
            assert number in NUMBER.findall(notes) or footnote == "A 2025", footnote

    glossary = " ".join(f"{e.label} {e.name} {e.meaning} {e.source}" for e in statistics().values())
    for declared in texts.within("definitions"):
        of_study = declared in ("7", "0.5 (default)")  # its seed, a threshold in force
        assert of_study or set(NUMBER.findall(declared)) <= set(NUMBER.findall(glossary))
    names = {row[name] for row in rows for name in ("rater_a", "rater_b", "at")}
    names |= {number for name in names for number in NUMBER.findall(name)}
    names |= {shown(float(name), "threshold") for name in names if NUMBER.fullmatch(name)}
    for heading in texts.within("th"):
        assert set(NUMBER.findall(heading)) <= names, heading

    drawn = [text for text in texts.within("svg") if "." in text]
    ticks = {text for text in drawn if re.fullmatch(r"[−-]?\d\.\d\d?", text)}
    for text in set(drawn) - ticks:
        assert any(
            all(is_rounded_from(number, row) for number in NUMBER.findall(text)) for row in rows
        ), text

    for item in texts.within("items"):
        if item not in limits_of(rich_analysis.verdicts):
            assert_rests_on_named_rows(item, rows)

    left = {number for _, text in texts.found for number in NUMBER.findall(text)}
    assert left <= PROSE | set(NUMBER.findall(rich_analysis.rule)), texts.found


def said_in_methods(rows: list[dict[str, str]]) -> set[str]:
    """Years of its references, how many annotators and graders there are, units, and settings."""
    years = {key[-4:] for key in references()}
    counts = {row[name] for row in rows for name in ("n_units", "n_clusters")}
    return years | counts | {"2.5", "3", "95", "100", "0.1", "0.2", "0.5"} | {"99.65", "4"}


def assert_rests_on_named_rows(item: str, rows: list[dict[str, str]]) -> None:
    """A sentence that says "results.csv row 7" or "rows 7, 9" holds only what those rows hold; one
    on all slices, what any row of theirs holds, and how many they are."""
    said, _, lines = item.partition("results.csv row")
    named = [rows[int(line) - 2] for line in re.findall(r"\d+", lines)]
    if not named:
        named = [row for row in rows if row["statistic"].startswith("bias_slice")]
        said = re.sub(r"in \d+ of \d+ slices", "", said)
    notes = {number for row in named for number in NUMBER.findall(row["note"])}
    for number in NUMBER.findall(said):
        value = number.lstrip("+-")
        assert value in notes | PROSE or any(
            is_rounded_from(sign + value, row) for row in named for sign in ("", "-")
        ), (number, item)


def assert_rests_on_evidence(sentence, keys, rows):
    """Bounds and estimates of the rows that the verdict names, up to sign; counts; the margin."""
    by_key = {tuple(row[name] for name in list(row)[:6]): row for row in rows}
    evidence = [by_key[tuple(key)] for key in keys]
    people = str(len({row["rater_a"] for row in rows if row["statistic"] == "rater_agreement"}))
    # A projection, not a finding; how many of the evidence's rows; and the level of an interval,
    # which the note of its row has one-sided.
    said = re.sub(r"abel about \d+ more|in \d+ parts|in \d+ of \d+|[\d.]+% CI", "", sentence)
    notes = {number for row in evidence for number in NUMBER.findall(row["note"])}
    for number in NUMBER.findall(said):
        value = number.lstrip("+-")
        assert (
            value
            in {"95", "0.10", "90", people}
            | notes  # the interval, the margin, the coverage asked for
            or any(is_rounded_from(sign + value, row) for row in evidence for sign in ("", "-"))
            or any(is_percent_of(value, row) for row in evidence)
        ), (number, sentence)


def is_percent_of(text: str, row: dict[str, str]) -> bool:
    """Whether a percentage is a share of the row, or what is missing from it to all."""
    near = 0.5 * 10 ** -len(text.partition(".")[2])
    known = [100 * float(row[name]) for name in ("estimate", "low", "high") if row[name]]
    return any(abs(float(text) - each) <= near for share in known for each in (share, 100 - share))


@pytest.mark.slow
def test_markdown_says_the_same_numbers(rich_analysis, report):
    """Lines that are neither tables nor evidence hold only what the page's prose holds."""
    text = (report / "report.md").read_text("utf-8")
    rows = read_results(report)
    known = {number for row in rows for value in row.values() for number in NUMBER.findall(value)}
    for line in text.splitlines():
        if line.startswith(("|", "- **", "  - ", "- p0", "(", "#")):
            continue
        if line.startswith("- This may not hold"):
            assert line == f"- {rich_analysis.verdicts[0]['limits']}"
        elif line.startswith("- "):
            assert_rests_on_named_rows(line.replace("\\", ""), rows)
        elif line.startswith("On The rubric, kappa between"):
            for number in NUMBER.findall(line):
                assert number == "95" or any(is_rounded_from(number, row) for row in rows), line
        else:
            quoted = said_in_methods(rows) if line.startswith("On The rubric") else set()
            said = set(NUMBER.findall(line.replace("\\", "")))
            assert said <= known | PROSE | {"7", "90"} | quoted, line


def test_disagreements_show_texts_and_reasons_on_the_page_alone(report):
    page = (report / "report.html").read_text("utf-8")
    text = (report / "report.md").read_text("utf-8")

    assert page.count("It took 4711 years.") == 3, "units of a rubric, folded"
    own_page = (report / "disagreements.html").read_text("utf-8")
    assert own_page.count("It took 4711 years.") > 20
    assert '<a href="disagreements.html">' in page
    assert "It took 4711 years." not in text
    assert "unclear: 0815" in text
    assert "<details>" in page


def test_usage_stands_in_the_methods(report):
    text = (report / "report.md").read_text("utf-8")

    assert re.search(r"\| provider:sure \| 121 \| 1\.25 \|", text)


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_one_row_is_a_row_and_several_are_rows(report, file):
    named = re.findall(r"results\.csv (rows?) ([\d, -]+)\)", (report / file).read_text("utf-8"))
    several = {
        word: {not lines.isdigit() for said, lines in named if said == word}
        for word in ("row", "rows")
    }
    assert several == {"row": {False}, "rows": {True}}


# --- Answers: each section opens with what was found ----------------------------------------------
FIGURE = re.compile(r"(?<![\w.:=@-])[+-]?\d+(?:\.\d+)?(?![\w])")
FIRST = "verdicts"
"""Which is its own answer."""


NAMES = ("all", "people", "one of each", "alone", "agreed")


@pytest.fixture(scope="module")
def studies() -> dict[str, Analysis]:
    """With something for every section, and with next to nothing."""
    return dict(zip(NAMES, _studies(), strict=True))


def _studies() -> Iterator[Analysis]:
    ratings, units = timed(pairs=30)
    of_topics = {"slices": ["topic"], "groups": ["topic"]}
    yield analyse(ratings, units, [SCALE], resamples=40, **of_topics)
    people = ratings[ratings["rater_kind"] == "human"]
    models = ratings[ratings["rater_kind"] == "model"]
    yield analyse(people, units, [SCALE], resamples=20)
    two = ratings[ratings["rater_id"].isin(["ann", "provider:sure"])]
    yield analyse(two, units, [SCALE], resamples=20)
    alone = people[people["rater_id"] == "ann"].head(8)
    yield analyse(alone, None, [Scale("R", ("A", "B", "C"))], resamples=20)
    agreed = pd.concat([people.assign(label="C"), models])
    yield analyse(agreed, units, [SCALE], resamples=20)


@pytest.mark.slow
@pytest.mark.parametrize("study", NAMES)
def test_every_section_has_an_answer(studies, study):
    found = sections_of(Source(studies[study], ReportContext("A study")))
    assert len(found) >= 6
    for section in found:
        assert section.answers or section.id == FIRST, section.title
        for answer in section.answers:
            assert answer.plain.endswith("."), answer.plain
            assert not re.search(r"  |\.\.|\bnan\b|None(?!:)|\(\)", answer.plain), answer.plain


@pytest.mark.slow
@pytest.mark.parametrize("study", NAMES)
def test_every_number_of_an_answer_is_a_row(studies, study, written):
    rows = read_results(written(studies[study]))
    for section in sections_of(Source(studies[study], ReportContext("A study"))):
        for answer in section.answers:
            for cell in cells_of(answer):
                row = rows[cell.line - 2]
                assert tuple(row[name] for name in RESULTS_KEY) == cell.key
                for number in FIGURE.findall(f"{cell.text} {cell.interval}"):
                    assert is_rounded_from(number, row), answer.plain
            said = "".join(each for each in answer.pieces if isinstance(each, str))
            assert not FIGURE.search(said), answer.plain


def cells_of(answer: Answer) -> list[Cell]:
    return [each for each in answer.pieces if isinstance(each, Cell)]


@pytest.mark.slow
def test_answers_stand_on_the_page_with_their_rows(studies, written):
    page = (written(studies["all"]) / "report.html").read_text("utf-8")
    opened = re.findall(r'<ul class="answers">(.*?)</ul>', page, re.DOTALL)
    found = sections_of(Source(studies["all"], ReportContext("A study")))
    assert len(opened) == len([section for section in found if section.answers])
    shown = [int(line) for text in opened for line in re.findall(r'data-row="(\d+)"', text)]
    cells = [cell for s in found for answer in s.answers for cell in cells_of(answer)]
    assert shown == [cell.line for cell in cells]
    assert len(shown) > 12


@pytest.mark.slow
@pytest.mark.parametrize("study", NAMES)
def test_what_has_no_figure_says_why_in_words(studies, study):
    """No table, list or answer shows a code such as no_variation; notes of the rows hold some."""
    found = sections_of(Source(studies[study], ReportContext("A study")))
    blocks = [block for section in found for block in section.every_block()]
    shown = [table for each in blocks if isinstance(each, Chart | Table) for table in each.data]
    said = [cell.plain for table in shown for row in table.rows for cell in row.cells]
    said += [text for table in shown for _, text in table.footnotes]
    said += [item for each in blocks if isinstance(each, Items) for item in each.items]
    said += [answer.plain for section in found for answer in section.answers]
    codes = {code for code in (*TEXTS, *WORDS) if "_" in code}
    assert not [each for each in said if any(code in each for code in codes)]
    assert codes & {remark.text for row in studies[study].rows for remark in row["remarks"]}


@pytest.mark.slow
def test_the_same_answer_on_all_rubrics_is_given_once():
    ratings, units = tables(pairs=12)
    both = pd.concat([ratings, ratings.assign(rubric="S")])
    scales = [SCALE, Scale("S", SCALE.categories, affirmative=SCALE.affirmative, unit="pair")]
    units = units.drop(columns="subject")
    found = sections_of(
        Source(analyse(both, units, scales, resamples=20), ReportContext("A study"))
    )
    by_name = {section.id: section for section in found}
    [rates] = by_name["corrected-rates"].answers
    assert not rates.rubric
    assert [each.rubric for each in by_name["human-ceiling"].answers] == ["R", "S"]


@pytest.mark.slow
def test_what_nobody_decides_by_is_the_last_section(studies):
    *found, last = sections_of(Source(studies["all"], ReportContext("A study")))
    assert last.id == "appendix"
    titles = [part.title for part in last.parts]
    assert "Thresholds: R" in titles
    assert titles[-1] == "Statistics"
    assert not any(section.appendix for section in found)
