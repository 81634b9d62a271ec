"""All that the pages show, as it was before, in the real app without a browser.

A change that is meant to alter it is written down by `python -m tests.annotate_app.test_golden` and
reviewed in the diff of `golden/`, where `~` stands for times, digests and what is drawn at random.
"""

import tempfile
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from evenhand.annotate_app import sites
from evenhand.annotate_app.app import make_app
from evenhand.annotate_app.lead.pages import PAGES
from evenhand.annotate_app.lead.parts import current_figures
from evenhand.annotate_app.logins import place_of
from evenhand.study import open_study
from harness.annotator import SUBJECT
from harness.led_study import led_study
from harness.visits import Visit, lead_query

pytestmark = pytest.mark.journey
GOLDEN = Path(__file__).with_name("golden")
CHOICES = {
    "Settings": ("settings_part",),
    "Texts": ("text", "text_in"),
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

OF_FIGURES = {"Overview", "Agreement", "Export", "Annotators", "Progress", "Disagreements"}
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
            visit.fill_in({name: [chosen] if are_pills else chosen}).run()
            add(chosen)
        visit.turn_to(title)
    for query in ONE.get(title, ()):
        visit.turn_to(title, query)
        add(query)
    return "\n".join(views).strip() + "\n"


def with_figures(visit: Visit, folder: Path) -> Visit:
    visit.turn_to("Overview")
    with open_study(folder) as study:
        while current_figures(study) is None:
            time.sleep(0.05)
    return visit


@pytest.mark.parametrize("title", [page.title for page in PAGES])
def test_every_page_of_the_leads_is_as_before(title: str, led: Path, window) -> None:
    visit = window(led, lead_query(led))
    if title in OF_FIGURES:
        with_figures(visit, led)
    assert every_view(visit, title) == (GOLDEN / f"{place_of(title)}.txt").read_text("utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        folder = led_study(Path(home) / "led", "led")
        site = sites.add_study(folder)
        with TestClient(make_app(), base_url="http://localhost") as client:
            visit = with_figures(Visit(client, site.path, lead_query(folder)), folder)
            for page in PAGES:
                file = GOLDEN / f"{place_of(page.title)}.txt"
                file.write_text(every_view(visit, page.title), "utf-8")
            visit.close()
