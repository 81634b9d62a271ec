"""Sentences say no more than their rows, and only what is sure beyond the bound is flagged."""

import pytest

from evenhand.analysis.bias.audit import findings, flagged, screening_sentence
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRows


def _rows(*given, counts=(400, 100)):
    rows = ResultRows("")
    for statistic, subset, at, interval, p in given:
        place = {"rater_a": "humans", "rater_b": "g", "subset": subset, "at": at}
        if statistic == "bias_order":
            place |= {"rater_a": "g", "rater_b": ""}
        rows.add(statistic, interval, counts, **place)
        if p is not None:
            rows.add(f"{statistic}_p", Interval.point(p), counts, **place)
    return rows


SIDE, LENGTH = ("bias_side", "all", "left>right"), ("bias_length", "all", "response_a_words")
NAN = float("nan")
FOUND = "by 0.20 (95% CI +0.15 to +0.25; corrected p 0.002; 400 items in 100 clusters)."


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (SIDE, "side of the pair: it leans to left rather than right"),
        (("bias_side", "partisan=True|binary", "left>right"),
         "side of the pair where partisan=True: it is more often affirmative on left than on"),
        (("bias_order", "all", ""), "order: it favours the side shown first, by 0.20"),
        (LENGTH, "it leans towards the longer response, for each doubling"),
        (("bias_length", "all|binary", "response_words"), "for each doubling of the response"),
        (("bias_self_preference", "all|binary", "meta"), "subjects of its own family (meta) than"),
        (("bias_slice", "topic=tax|binary", ""), "slice topic=tax: it is more often affirmative"),
    ],
)  # fmt: skip
def test_what_was_found(place, sentence):
    [found] = findings(_rows((*place, Interval(0.2, 0.15, 0.25), 0.002)).rows.values())
    assert found.status == "found"
    assert found.sentence.startswith("g, ")
    assert sentence in found.sentence
    assert found.sentence.endswith(FOUND)


OTHERWISE = {
    "the other way round": (
        *(SIDE, Interval(-0.2, -0.25, -0.15), 0.002, "found"),
        "it leans to right rather than left, beyond what annotators' labels explain, by 0.20",
    ),
    "nothing found says how much could be there": (
        *(SIDE, Interval(0.02, -0.04, 0.08), 0.4, "nothing_found"),
        "g, side of the pair: no bias detected (any bias is at most 0.08, 95% CI; 400 items in "
        "100 clusters).",
    ),
    "what could be there may be more than is tolerated": (
        *(SIDE, Interval(0.02, -0.04, 0.3), 0.4, None),
        "the sample is too small to exclude one of 0.1 (any bias is at most 0.30",
    ),
    # After correction the p is .2: not found, and the sentence does not say so either.
    "an interval without zero is not enough": (
        *(LENGTH, Interval(0.05, 0.01, 0.09), 0.2, "nothing_found", "any bias is at most 0.09"),
    ),
    "noise that may explain a shift is named": (
        ("bias_length", "all|binary", "response_words"),
        Interval(0.1, -0.05, 0.15, (Remark("noise_may_explain", (-0.01,)),)),
        *(0.7, "nothing_found"),
        "g, length: bias or noise, these labels do not say which. It is more often affirmative "
        "for each doubling of the response than annotators' labels explain, by +0.10 if all "
        "labels are equally noisy. If noise changes with the length as annotators' agreement does, "
        "the shift is -0.01 (95% CI of both -0.05 to +0.15; 400 items in 100 clusters).",
    ),
    "too few clusters": (
        *(SIDE, Interval(0.3, NAN, NAN, (Remark("too_few_clusters"),)), None, None),
        "g, side of the pair: inconclusive (too few clusters for an interval).",
    ),
    "annotators agree by chance": (
        *(SIDE, Interval(NAN, NAN, NAN, (Remark("people_agree_by_chance"),)), None, None),
        "inconclusive (annotators agree with one another no better than chance).",
    ),
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_what_is_said_of_a_shift(case):
    place, interval, p, status, sentence = OTHERWISE[case]
    [found] = findings(_rows((*place, interval, p)).rows.values())
    assert status is None or found.status == status
    assert sentence in found.sentence
    assert not sentence.startswith("g, ") or found.sentence == sentence


def test_only_what_lies_wholly_beyond_the_bound_is_flagged():
    rows = _rows(
        ("bias_side", "all", "a>b", Interval(0.2, 0.12, 0.28), 0.001),
        ("bias_length", "all", "response_a_words", Interval(0.2, 0.05, 0.35), 0.001),
        ("bias_order", "all", "", Interval(-0.3, -0.35, -0.25), 0.001),
        ("bias_slice", "topic=tax|binary", "", Interval(0.3, 0.2, 0.4), 0.2),
    )
    assert {one.row["statistic"] for one in flagged(rows, "g")} == {"bias_side", "bias_order"}
    assert {one.row["statistic"] for one in flagged(rows, "g", 0.2)} == {"bias_order"}
    assert flagged(rows, "someone else") == []


def test_slices_without_a_finding_share_a_sentence():
    rows = _rows(
        ("bias_slice", "topic=tax|binary", "", Interval(0.0, -0.1, 0.1), 0.9),
        ("bias_slice", "topic=war|binary", "", Interval(0.1, -0.1, 0.31), 0.3),
        (
            *("bias_slice", "topic=sea|binary", ""),
            *(Interval(0.1, NAN, NAN, (Remark("too_few_clusters"),)), None),
        ),
    )
    assert screening_sentence(findings(rows.rows.values())) == (
        "g, slices: no bias detected in 2 of 3 slices (any bias is at most 0.31, the bound for "
        "topic=war); 1 of 3 slices too small to tell."
    )
