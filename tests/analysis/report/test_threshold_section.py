"""What the section on thresholds says of each kind of answer."""

from __future__ import annotations

import pytest

from evenhand.analysis import Analysis
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.notes import Code, Note, Remark, join_notes
from evenhand.analysis.report import ReportContext
from evenhand.analysis.report.blocks import Items, Table
from evenhand.analysis.report.sections.thresholds import section
from evenhand.analysis.report.source import Source
from evenhand.analysis.results import ResultRows

WHO = {"rater_a": "humans", "rater_b": "g", "subset": "all|binary"}


def _source(kind: Code, reason: Note, tuned: tuple[float, float, float], gain: float) -> Source:
    rows = ResultRows("tone")

    def add(statistic: str, found: Interval, at: str, note: Note = "") -> None:
        rows.add(statistic, found, (250, 250), **WHO, at=at, note=note)

    best = Interval(*tuned)
    advised = best if kind == "tuned" else Interval(0.5, best.low, best.high)
    add("threshold", best, "kappa")
    add("threshold_held_out_gain", Interval(gain, gain - 0.05, gain + 0.05), "kappa")
    add("threshold_recommended", advised, "kappa", join_notes(Remark(kind), reason, "against ann"))
    usual = Interval(0.3, 0.2, 0.4)
    add(
        "cohen_kappa_at_threshold",
        usual,
        "0.5",
        join_notes(Remark("default_threshold"), "against ann"),
    )
    if best.estimate != 0.5:
        add("cohen_kappa_at_threshold", Interval(0.6, 0.5, 0.7), repr(best.estimate))
    return Source.of(Analysis(list(rows.rows.values())), ReportContext("study", False, {}))


@pytest.mark.parametrize(
    ("kind", "reason", "tuned", "gain", "says"),
    [
        (
            "tuned",
            Remark("wins_held_out"),
            (0.12, 0.08, 0.2),
            0.25,
            "use 0.12 [0.08, 0.2] instead of 0.5; held out it gains +0.25 [+0.20, +0.30].",
        ),
        (
            "default",
            Remark("does_not_win_held_out"),
            (0.42, 0.3, 0.6),
            0.01,
            "keep 0.5. The best here is 0.42 [0.3, 0.6], but held out it gains "
            "+0.01 [-0.04, +0.06].",
        ),
        (
            "default",
            Remark("no_better_threshold"),
            (0.5, 0.4, 0.6),
            0.0,
            "keep 0.5; no other threshold is better.",
        ),
        (
            "not_identifiable",
            Remark("interval_too_wide"),
            (0.3, 0.1, 0.99),
            0.0,
            "keep 0.5. No best threshold can be identified here: its interval spans over half "
            "of the scale (0.3 [0.1, 0.99]).",
        ),
        (
            "not_identifiable",
            (Remark("few_clusters", (30,)), Remark("coarse_draws", (5, 0.1, 10))),
            (0.3, 0.1, 0.4),
            0.0,
            "keep 0.5. No best threshold can be identified here: fewer than 30 clusters. "
            "5 draws resolve steps of 1/5: a threshold of 0.1 needs 10 draws.",
        ),
    ],
)
def test_the_sentence_of_each_answer(
    kind: Code, reason: Note, tuned: tuple[float, float, float], gain: float, says: str
) -> None:
    found = section(_source(kind, reason, tuned, gain))
    assert found is not None
    blocks = list(found.every_block())
    sentences = next(block.items for block in blocks if isinstance(block, Items))
    assert sentences == (f"g, to match annotators by kappa: {says} (results.csv rows 4, 2, 3)",)
    table = next(block for block in blocks if isinstance(block, Table))
    cells = table.rows[1].cells
    assert cells[1].text == "0.30"
    assert cells[2].plain.startswith(f"{tuned[0]:g} [")
