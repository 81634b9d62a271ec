"""All that the pages show, as it was before, in the real app without a browser.

A change that is meant to alter it is written down by `python -m tests.annotate_app.test_golden` and
reviewed in the diff of `golden/`, where `~` stands for times, digests and what is drawn at random.
"""

import json
import os
import time
from pathlib import Path

import pytest

from evenhand.annotate_app.lead import parts
from evenhand.annotate_app.lead.pages import PAGES
from evenhand.annotate_app.logins import place_of
from evenhand.study import open_study
from evenhand.study.lead.disagreements import sorted_cases
from harness.annotator import SUBJECT
from harness.studies import panel_study
from harness.visits import Visit, key_of, lead_query

pytestmark = pytest.mark.journey
GOLDEN, WRITES = Path(__file__).with_name("golden"), "EVENHAND_WRITES_GOLDEN"
CHOICES = {
    "Texts": ("text_in",),
    "Rubrics": ("rubric_name",),
    "Training and checks": ("training_kind",),
    "Items": ("Rubric", "Decided by", "Order"),
    "Disagreements": ("Rubric", "Grader", "Cause"),
    "New study": ("What annotators rate",),
}
"""Fields of the pages that choose what is shown; each choice is made."""
ONE = {
    "Annotators": ("one_rater=ben", "one_rater=dee"),
    "Items": (f"item=p0010|{SUBJECT}|",),
    "Adjudication": (f"unit=p0001|{SUBJECT}|a&rubric=refusal",),
}
"""What links to a page ask for."""

OF_FIGURES = ("Overview", "Agreement", "Export", "Annotators", "Progress", "Disagreements")
"""Pages that wait for the study's figures."""


def every_view(visit: Visit, title: str) -> str:
    """The page, then of each choice that it offers the lines that the page before did not have."""
    shown = visit.turn_to(title).text(sidebar=title == "Overview")
    views, seen = [shown], {*shown.splitlines()}

    def add(name: str) -> None:
        lines = visit.text().splitlines()
        views.append("\n".join([f"\n== {name}", *(line for line in lines if line not in seen)]))
        seen.update(lines)

    for name in CHOICES.get(title, ()):
        kind, _, parts = visit.field(name)
        are_pills = kind == "button_group"
        for option in parts["options"][1:]:
            chosen = option["content"] if are_pills else option
            visit.fill({name: [chosen] if are_pills else chosen}).run()
            add(chosen)
        visit.turn_to(title)
    for query in ONE.get(title, ()):
        visit.turn_to(title, query)
        add(query)
    return "\n".join(views).strip() + "\n"


def with_figures(visit: Visit, folder: Path) -> Visit:
    visit.turn_to("Overview")
    with open_study(folder) as study:
        while parts.current_figures(study) is None:
            time.sleep(0.05)
    return visit


def hold(name: str, text: str) -> None:
    """Compare a text with the one of this name, or write it down where that is wanted."""
    file = GOLDEN / f"{name}.txt"
    if os.environ.get(WRITES):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def test_a_new_study_has_nothing_to_show_yet(tmp_path: Path, window) -> None:
    folder = panel_study(tmp_path, 2).rename(tmp_path / "fresh")
    visit = window(folder, lead_query(folder))
    texts = [visit.turn_to(page.title).text() for page in PAGES if page.title not in OF_FIGURES]
    hold("fresh", "\n".join(texts))


@pytest.mark.parametrize("title", [page.title for page in PAGES if page.title != "Log"])
def test_every_page_of_the_leads_is_as_before(title: str, led: Path, window) -> None:
    visit = window(led, lead_query(led))
    if title in OF_FIGURES:
        with_figures(visit, led)
    hold(place_of(title), every_view(visit, title))


def test_a_disagreement_is_reviewed_and_taken_back(led: Path, window) -> None:
    visit = with_figures(window(led, lead_query(led)), led).turn_to("Disagreements")
    note = next(key_of(name) for _, kind, name, _ in visit.elements() if kind == "text_input")
    token = note.removeprefix("sorted.")
    at_once = [visit.event(f"{kind}-{token}") for kind in ("rubric_unclear", "grader_wrong")]
    first = visit.fill({note: " by length "}).run(*at_once).text()
    with open_study(led) as study:
        *_, case = sorted_cases(study)
    assert (case.kind, case.note, case.done_by) == ("rubric_unclear", "by length", "lead")
    visit.fill({"Cause": "Rubric allows both"}).run()
    hold("reviewed", first + visit.text())
    visit.press(f"back-{token}")
    with open_study(led) as study:
        assert len(sorted_cases(study)) == 1


def test_files_are_given_to_the_lead_and_their_downloads_logged(led: Path, window) -> None:
    visit = with_figures(window(led, lead_query(led)), led).turn_to("Export")
    titles = {"ratings.csv": "**Ratings** CSV", "report.json": "**Report** JSON"}
    tables = {name: visit.download(title) for name, title in titles.items()}
    assert b"p0001|secret-subject" in tables["ratings.csv"]
    assert json.loads(tables["report.json"])["schema"] == 1
    visit.download(titles["report.json"])
    log = visit.turn_to("Log").text()
    assert "ratings.csv" in log.partition("<details><summary>2 times since ")[2]


if __name__ == "__main__":
    os.environ[WRITES] = "1"
    names = ("test_golden.py", "test_acts.py", "test_ways.py")
    raise SystemExit(pytest.main(["-q", *(str(Path(__file__).with_name(name)) for name in names)]))
