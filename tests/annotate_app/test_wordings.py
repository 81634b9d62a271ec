"""A trial of another wording, as a rater meets it: no unit hides whose words it is asked under."""

from itertools import pairwise

import pytest

from evenhand.rubrics.loading import parse_rubric
from evenhand.study import open_study
from evenhand.study.creation import declare_rewording
from harness.served import Served

pytestmark = pytest.mark.browser

OLD, NEW = "Compare the two responses by their length alone.", "Count the words of both."


@pytest.fixture(scope="module")
def served(make_study, serve_study) -> Served:
    folder = make_study(8, raters_per_unit=3)
    with open_study(folder) as study:
        file = folder / "rubrics" / "shorter.toml"
        text = file.read_text("utf-8").replace('"shorter"', '"shorter-2"', 1).replace(OLD, NEW)
        text = f'variant_of = "shorter"\n{text}'
        assert declare_rewording(study, parse_rubric(text, "shorter-2.toml"), text, 8) == 0
    return serve_study(folder)


def test_guidelines_that_were_closed_open_where_the_wording_changes(annotator, served):
    person = annotator("ann", served)
    guides = person.page.locator(".guides .guidelines")
    guides.get_by_text("Guidelines").click() if guides.get_attribute("open") is not None else None
    person.in_panel("!panel.querySelector('.guides .guidelines').open")
    seen = []
    for _ in range(8):
        words = guides.locator(".instructions").text_content().strip()
        changed = bool(seen) and seen[-1] != words
        assert (guides.get_attribute("open") is not None) == changed
        if changed:
            guides.locator("summary").click()
        seen.append(words)
        person.answer("R")
    assert sorted(seen) == sorted([OLD] * 4 + [NEW] * 4)
    assert sum(one != other for one, other in pairwise(seen)) == 1
