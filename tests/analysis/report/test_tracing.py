"""Every number on the page, wherever it stands, comes from results.csv or is declared here.

Numbers in cells are held against the very row that they name in test_files; here are the others:
sentences, footnotes, headings, pictures, prose; and the answers with which each section opens.
"""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse
from evenhand.analysis.bias.audit import BOUND
from evenhand.analysis.report.blocks import Cell, Items
from evenhand.analysis.report.files import sections_of
from evenhand.analysis.report.sections.methods import references
from evenhand.analysis.report.source import Source, format_number
from evenhand.analysis.results import RESULTS_KEY
from evenhand.analysis.statistics import NOTE_TEXTS, REPORT_TEXTS, statistics
from evenhand.analysis.verdicts.judge import limits_of
from tests.analysis.report.conftest import STUDY, blocks_of, data_tables
from tests.analysis.report.small_study import SCALE, is_rounded_from, read_results, tables, timed

NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")
PROSE = {"2.5", "95", "0", "5", f"{BOUND:g}", "90", "80"}
"""95% intervals; below 0; at most 5 units to read; the bias audit's bound, 90% CI, 80% power."""


class Texts(HTMLParser):
    """Every text of a page that holds a number, with the elements and classes around it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[set[str]] = []
        self.found: list[tuple[set[str], str]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag not in {"meta", "br", "path", "rect", "line", "circle"}:
            self.open.append({tag, *(dict(attrs).get("class") or "").split()})

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        while self.open and tag not in self.open.pop():
            pass

    def handle_data(self, data):
        if NUMBER.search(data):
            self.found.append((set().union(*self.open), data.strip()))

    def within(self, *words: str) -> list[str]:
        """Texts inside elements of these tags or classes, taken off the list."""
        inside = [text for around, text in self.found if around & {*words}]
        self.found = [each for each in self.found if not each[0] & {*words}]
        return inside


@pytest.fixture(scope="module")
def rich() -> Analysis:
    ratings, units = timed()
    used = {"rater_id": "provider:sure", "rubric": "R", "attempts": 121, "cost_usd": 1.25}
    facts = StudyFacts(usage=pd.DataFrame([used]))
    return analyse(ratings, units, [SCALE], resamples=100, slices=["topic"], facts=facts)


@pytest.fixture(scope="module")
def report(rich: Analysis, written: Callable[..., Path]) -> Path:
    units = {(each.rubric, each.unit_id) for each in rich.disagreements}
    texts = {unit: {"Response": "It took 4711 years."} for unit in units}
    remarks = {unit: {"ann": "unclear: 0815"} for unit in units}
    return written(rich, facts={"seed": 7}, texts=texts, remarks=remarks)


@pytest.mark.slow
def test_no_number_stands_loose(rich, report):
    rows = read_results(report)
    texts = Texts((report / "report.html").read_text("utf-8"))
    texts.within("head", "style", "script", "pre")
    assert texts.within("estimate", "interval"), "held against their rows in test_files"
    texts.within("td")  # asides: the same cells
    quoted = set(texts.within("blockquote", "reason", "q"))
    [methods] = [text for text in quoted if text.startswith("On The rubric, 3")]
    counts = {row[name] for row in rows for name in ("n_units", "n_clusters")}
    years, settings = {key[-4:] for key in references()}, {"3", "100", "0.1", "0.2", "0.5", "4"}
    assert set(NUMBER.findall(methods)) <= years | counts | settings | PROSE | {"99.65"}
    assert {"It took 4711 years.", "unclear: 0815"} <= quoted

    ids = {row["at"] for row in rows if row["statistic"] == "disagreement"}
    assert all(any(unit in text for unit in ids) for text in texts.within("unit", "quiet"))
    asked = {str(verdict["more_clusters"]) for verdict in rich.verdicts}
    for said in texts.within("advised"):
        assert set(NUMBER.findall(said)) <= asked | counts, said
    sentences = {verdict["sentence"]: verdict for verdict in rich.verdicts}
    assert set(texts.within("sentence")) == set(sentences)
    for sentence, verdict in sentences.items():
        assert_rests_on_evidence(sentence, verdict["evidence"], rows)

    notes = {number for row in rows for number in NUMBER.findall(row["note"])}
    for footnote in texts.within("figcaption"):
        assert set(NUMBER.findall(footnote)) <= notes, footnote
    glossary = " ".join(f"{e.label} {e.name} {e.meaning} {e.source}" for e in statistics().values())
    for declared in texts.within("definitions"):
        of_study = declared in ("7", "0.5 (default)")  # its seed, a threshold in force
        assert of_study or set(NUMBER.findall(declared)) <= set(NUMBER.findall(glossary))
    names = {row[name] for row in rows for name in ("rater_a", "rater_b", "at")}
    names |= {number for name in names for number in NUMBER.findall(name)}
    names |= {format_number(float(name), "threshold") for name in names if NUMBER.fullmatch(name)}
    for heading in texts.within("th"):
        assert set(NUMBER.findall(heading)) <= names, heading
    for text in {text for text in texts.within("svg") if "." in text}:
        if not re.fullmatch(r"[−-]?\d\.\d\d?", text):  # a tick
            numbers = NUMBER.findall(text)
            assert any(all(is_rounded_from(n, row) for n in numbers) for row in rows), text
    for item in texts.within("items"):
        if item not in limits_of(rich.verdicts):
            assert_rests_on_named_rows(item, rows)
    left = {number for _, text in texts.found for number in NUMBER.findall(text)}
    assert left <= PROSE | set(NUMBER.findall(rich.rule)), texts.found


def is_of(number, rows):
    """Whether a shown number is one of the rows' up to its sign."""
    return any(is_rounded_from(s + number.lstrip("+-"), row) for row in rows for s in ("", "-"))


def assert_rests_on_named_rows(item, rows):
    """A sentence that says "results.csv row 7" or "rows 7, 9" holds only what those rows hold; one
    on all slices, what any row of theirs holds, and how many they are."""
    said, _, lines = item.partition("results.csv row")
    named = [rows[int(line) - 2] for line in re.findall(r"\d+", lines)]
    if not named:
        named = [row for row in rows if row["statistic"].startswith("bias_slice")]
        said = re.sub(r"in \d+ of \d+ slices", "", said)
    notes = {number for row in named for number in NUMBER.findall(row["note"])}
    for number in NUMBER.findall(said):
        assert number.lstrip("+-") in notes | PROSE or is_of(number, named), (number, item)


def assert_rests_on_evidence(sentence, keys, rows):
    """Bounds and estimates of the rows that the verdict names, up to sign; counts; the margin."""
    by_key = {tuple(row[name] for name in list(row)[:6]): row for row in rows}
    evidence = [by_key[tuple(key)] for key in keys]
    people = str(len({row["rater_a"] for row in rows if row["statistic"] == "rater_agreement"}))
    # A projection, not a finding; how many of the evidence's rows; and the level of an interval,
    # which the note of its row has one-sided.
    said = re.sub(r"abel about \d+ more|in \d+ parts|in \d+ of \d+|[\d.]+% CI", "", sentence)
    known = {number for row in evidence for number in NUMBER.findall(row["note"])}
    known |= {"95", "0.10", "90", people}  # the interval, the margin, the coverage asked for
    for number in NUMBER.findall(said):
        near = 0.5 * 10 ** -len(number.partition(".")[2])
        cells = [row[name] for row in evidence for name in ("estimate", "low", "high")]
        shares = [100 * float(cell) for cell in cells if cell]
        percents = [*shares, *(100 - each for each in shares)]
        is_percent = any(abs(abs(float(number)) - each) <= near for each in percents)
        is_known = number.lstrip("+-") in known or is_of(number, evidence)
        assert is_known or is_percent, (number, sentence)


@pytest.mark.slow
def test_disagreements_show_texts_and_reasons_on_the_page_alone(report):
    names = "report.html", "report.md", "disagreements.html"
    page, text, own = ((report / name).read_text("utf-8") for name in names)
    assert page.count("It took 4711 years.") == 3, "units of a rubric, folded"
    assert own.count("It took 4711 years.") > 20
    assert '<a href="disagreements.html">' in page
    assert "It took 4711 years." not in text
    assert "unclear: 0815" in text
    assert "<details>" in page
    assert re.search(r"\| provider:sure \| 121 \| 1\.25 \|", text), "usage"
    for file in (page, text):
        named = re.findall(r"results\.csv (rows?) ([\d, -]+)\)", file)
        several = {(word, not lines.isdigit()) for word, lines in named}
        assert several == {("row", False), ("rows", True)}


# Each section opens with what was found

FIGURE = re.compile(r"(?<![\w.:=@-])[+-]?\d+(?:\.\d+)?(?![\w])")


@pytest.fixture(scope="module")
def studies() -> dict[str, Analysis]:
    """With something for every section, and with next to nothing."""
    ratings, units = timed(pairs=30)
    of_topics = {"slices": ["topic"], "groups": ["topic"]}
    people = ratings[ratings["rater_kind"] == "human"]
    models = ratings[ratings["rater_kind"] == "model"]
    alone = people[people["rater_id"] == "ann"].head(8)
    parts = {
        "people": people,
        "one of each": ratings[ratings["rater_id"].isin(["ann", "provider:sure"])],
        "agreed": pd.concat([people.assign(label="C"), models]),
    }
    found = {name: analyse(part, units, [SCALE], resamples=20) for name, part in parts.items()}
    found["all"] = analyse(ratings, units, [SCALE], resamples=20, **of_topics)
    found["alone"] = analyse(alone, None, [Scale("R", ("A", "B", "C"))], resamples=20)
    return found


def cells_of(answer):
    return [each for each in answer.pieces if isinstance(each, Cell)]


@pytest.mark.slow
@pytest.mark.parametrize("study", ["all", "people", "one of each", "alone", "agreed"])
def test_every_section_has_an_answer_whose_numbers_are_rows(studies, study, written):
    rows = read_results(written(studies[study]))
    found = sections_of(Source(studies[study], STUDY))
    assert len(found) >= 6
    for section in found:
        assert section.answers or section.id == "verdicts", section.title  # its own answer
        for answer in section.answers:
            assert answer.plain.endswith("."), answer.plain
            assert not re.search(r"  |\.\.|\bnan\b|None(?!:)|\(\)", answer.plain), answer.plain
            for cell in cells_of(answer):
                row = rows[cell.line - 2]
                assert tuple(row[name] for name in RESULTS_KEY) == cell.key
                for number in FIGURE.findall(f"{cell.text} {cell.interval}"):
                    assert is_rounded_from(number, row), answer.plain
            said = "".join(each for each in answer.pieces if isinstance(each, str))
            assert not FIGURE.search(said), answer.plain
    # What has no figure says why in words, not by a code such as no_variation; rows' notes do.
    shown = data_tables(studies[study])
    said = [cell.plain for table in shown for row in table.rows for cell in row.cells]
    said += [text for table in shown for _, text in table.footnotes]
    said += [item for each in blocks_of(studies[study], Items) for item in each.items]
    said += [answer.plain for section in found for answer in section.answers]
    codes = {code for code in (*NOTE_TEXTS, *REPORT_TEXTS) if "_" in code}
    assert not [each for each in said if any(code in each for code in codes)]
    assert codes & {remark.text for row in studies[study].rows for remark in row["remarks"]}


@pytest.mark.slow
def test_answers_stand_on_the_page_with_their_rows_and_the_appendix_is_last(studies, written):
    page = (written(studies["all"]) / "report.html").read_text("utf-8")
    opened = re.findall(r'<ul class="answers">(.*?)</ul>', page, re.DOTALL)
    found = sections_of(Source(studies["all"], STUDY))
    assert len(opened) == len([section for section in found if section.answers])
    shown = [int(line) for text in opened for line in re.findall(r'data-row="(\d+)"', text)]
    cells = [cell for s in found for answer in s.answers for cell in cells_of(answer)]
    assert shown == [cell.line for cell in cells]
    assert len(shown) > 12
    *found, last = found
    assert last.id == "appendix"
    titles = [part.title for part in last.parts]
    assert "Thresholds: R" in titles
    assert titles[-1] == "Statistics"
    assert not any(section.appendix for section in found)


@pytest.mark.slow
def test_the_same_answer_on_all_rubrics_is_given_once():
    ratings, units = tables(pairs=12)
    both = pd.concat([ratings, ratings.assign(rubric="S")])
    scales = [SCALE, Scale("S", SCALE.categories, affirmative=SCALE.affirmative, unit="pair")]
    found = analyse(both, units.drop(columns="subject"), scales, resamples=20)
    by_name = {section.id: section for section in sections_of(Source(found, STUDY))}
    [rates] = by_name["corrected-rates"].answers
    assert not rates.rubric
    assert [each.rubric for each in by_name["human-ceiling"].answers] == ["R", "S"]
