"""The number of participants who reached each step, as a row of numbers."""

from __future__ import annotations

from evenhand.annotate_app.lead.parts.board import figures_row
from evenhand.annotate_app.lead.parts.counting import latest
from evenhand.annotate_app.plain_text import show
from evenhand.study import Study
from evenhand.study.session.funnel import funnel

_WORDS = {
    "entered": "Entered",
    "consented": "Consented",
    "passed": "Passed all steps before the first unit",
    "working": "Working",
    "done": "Done",
    "left": "Left or sent away",
    "excluded": "Excluded",
}


def show_funnel(study: Study) -> None:
    """Draw the number of participants at each step so far."""
    found = latest(study, funnel)
    show(figures_row([(_WORDS[stage], str(count)) for stage, count in found.stages]))
