"""Length, self-preference, parts of the sample, groups of people: what was put in is found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.analysis import Scale
from evenhand.analysis.bias import findings, flagged

RESPONSE = Scale("", ("no", "yes"), affirmative=frozenset({"yes"}), unit="response")
SEES_C = 0.8 * 0.65 + 0.2 / 3


@pytest.mark.slow
def test_length_of_the_sides(sample: Callable, audited: Callable, row_of: Callable) -> None:
    """Of the C a tenth goes to the longer side for every doubling: .1 x P(C) per doubling."""
    made = sample(1, pairs=500)
    words = made.rng.integers(60, 600, (len(made.units), 2))
    made.units[["response_a_words", "response_b_words"]] = words.astype(str)
    doublings = np.log2(words[:, 0] / words[:, 1])
    label = made.see(0.8)
    label = made.turned(label, "C", "A", 0.1 * np.maximum(doublings, 0))
    label = made.turned(label, "C", "B", 0.1 * np.maximum(-doublings, 0))
    made.rate("wordy", label)
    made.rate("fair", made.see(0.8))
    rows = audited(made)
    wordy, fair = (row_of(rows, "bias_length", rater) for rater in ("wordy", "fair"))
    assert wordy["low"] < 0.1 * SEES_C < wordy["high"]
    assert wordy["low"] > 0
    assert fair["low"] < 0 < fair["high"]


def test_length_of_a_response(responses: Callable, audited: Callable, row_of: Callable) -> None:
    """A twentieth more of the no turn to yes with every doubling from 64 words up."""
    made = responses(2, pairs=500)
    words = made.rng.integers(64, 1024, len(made.units))
    made.units["response_words"] = words
    made.rate("g", made.turned(made.see(0.8), "no", "yes", 0.1 * np.log2(words / 64)))
    row = row_of(audited(made, RESPONSE), "bias_length", "g", "all|binary")
    assert row["low"] < 0.1 * (0.8 * 0.7 + 0.2 * 0.5) < row["high"]
    assert row["at"] == "response_words"


def test_length_of_a_text_beside_the_response(
    responses: Callable, audited: Callable, row_of: Callable
) -> None:
    """One judge lets more pass the longer the context is; another does not look at it."""
    made = responses(6, pairs=500)
    words = made.rng.integers(64, 1024, len(made.units))
    made.units["context"] = "a text"
    made.units["context_words"] = words
    made.rate("lost", made.turned(made.see(0.8), "no", "yes", 0.1 * np.log2(words / 64)))
    made.rate("fair", made.see(0.8))
    rows = audited(made, RESPONSE)
    lost, fair = (row_of(rows, "bias_length", name, "all|binary") for name in ("lost", "fair"))
    assert lost["low"] < 0.1 * (0.8 * 0.7 + 0.2 * 0.5) < lost["high"]
    assert lost["low"] > 0
    assert fair["low"] < 0 < fair["high"]
    assert (lost["at"], lost["note"]) == ("context_words", "per doubling of the context")
    said = next(each for each in findings(rows.rows.values()) if each.row["at"] == "context_words")
    assert "length of the context" in said.sentence


@pytest.mark.slow
def test_noise_that_grows_with_length_is_no_bias_of_a_stricter_grader(
    responses: Callable, audited: Callable, row_of: Callable
) -> None:
    """All labels of texts twice as long are twice as noisy. A strict and a lenient grader are not
    blamed, and what cannot be told apart is named; a biased grader is found where noise is equal.
    """
    found = {}
    for noisier in (2.0, 1.0):
        made = responses(7, pairs=400, people=0)
        n = len(made.units)
        doublings, quality = 0.5 * made.rng.normal(size=n), made.rng.normal(size=n)
        made.units["response_words"] = np.round(1000 * 2.0**doublings).astype(int)

        def rate(
            name: str,
            cut: float,
            kind: str = "model",
            bias: float = 0.0,
            noisier: float = noisier,
            made: object = made,
            quality: np.ndarray = quality,
            doublings: np.ndarray = doublings,
        ) -> None:
            seen = quality + 0.8 * noisier**doublings * made.rng.normal(size=len(quality))
            made.rate(name, np.where(seen + bias * doublings > cut, "yes", "no"), kind)

        for person in "abc":
            rate(person, 0.0, "human")
        for name, cut, bias in (("strict", 1.0, 0.0), ("lenient", -1.0, 0.0), ("wordy", 1.0, 1.0)):
            rate(name, cut, bias=bias)
        rows = audited(made, RESPONSE)
        for each in findings(rows.rows.values()):
            if each.row["statistic"] == "bias_length":
                found[each.grader, noisier] = each
        if noisier == 2.0:
            assert not [one for name in ("strict", "lenient") for one in flagged(rows, name)]
        else:
            assert [one.row["statistic"] for one in flagged(rows, "wordy")] == ["bias_length"]
    for name, more in (("strict", "more"), ("lenient", "less")):
        assert found[name, 2.0].status == "nothing_found"
        assert found[name, 2.0].row["low"] < 0 < found[name, 2.0].row["high"]
        said = found[name, 2.0].sentence
        assert f"cannot tell a bias from noise. It is {more} often affirmative on longer" in said
        assert found[name, 1.0].status == "nothing_found"
        assert "noise" not in found[name, 1.0].sentence


def test_units_without_a_length_take_no_part(
    sample: Callable, audited: Callable, row_of: Callable
) -> None:
    made = sample(3, pairs=30)
    made.units["response_a_words"] = "100"
    made.units["response_b_words"] = ["200", "50", "", "0"] * 30
    made.rate("g", made.see(0.8))
    assert row_of(audited(made), "bias_length", "g")["n_units"] == 60


def test_self_preference(sample: Callable, audited: Callable, row_of: Callable) -> None:
    """Half of what is not C becomes C where the subject is of the grader's family."""
    made = sample(4, pairs=300)
    own = made.units["subject"].str.startswith("claude").to_numpy()
    label = made.see(0.8)
    for other in "AB":
        label = made.turned(label, other, "C", np.where(own, 0.5, 0.0))
    made.rate("anthropic:claude-opus-5", label)
    made.rate("openai:gpt-5", label)
    rows = audited(made)
    row = row_of(rows, "bias_self_preference", "anthropic:claude-opus-5", "all|binary")
    assert row["low"] < 0.5 * (1 - SEES_C) < row["high"]
    assert row["at"] == "anthropic"
    # The other grader has no subject of its family here.
    assert not any("openai:gpt-5" in key and key[1] == "bias_self_preference" for key in rows.rows)


def test_a_part_of_the_sample(sample: Callable, audited: Callable, row_of: Callable) -> None:
    """Half of what is not C becomes C on one topic; small parts say so."""
    made = sample(5, pairs=300)
    pair = np.arange(len(made.units)) // 4
    topic = np.where(pair < 6, "rare", np.where(pair % 3 == 0, "soft", "other"))
    made.units["topic"] = topic
    label = made.see(0.8)
    for other in "AB":
        label = made.turned(label, other, "C", np.where(topic == "soft", 0.5, 0.0))
    made.rate("g", label)
    rows = audited(made, slices=["topic"])
    soft = row_of(rows, "bias_slice", "g", "topic=soft|binary")
    assert soft["low"] < 0.5 * (1 - SEES_C) < soft["high"]
    rare = row_of(rows, "bias_slice", "g", "topic=rare|binary")
    assert "fewer than 10 clusters" in rare["note"]
    p = row_of(rows, "bias_slice_p", "g", "topic=soft|binary")
    assert p["estimate"] < 0.05
    assert p["note"].endswith("Benjamini-Hochberg over 3 parts of the sample")


def test_a_group_of_people(sample: Callable, audited: Callable, row_of: Callable) -> None:
    """Two people read the units in their own way, and the grader with them."""
    made = sample(6, pairs=150, people=0)
    theirs = np.where(made.rng.random(len(made.truth)) < 0.3, "C", made.truth)
    for rater, view in (("l1", theirs), ("l2", theirs), ("r1", made.truth), ("r2", made.truth)):
        made.truth, kept = view, made.truth
        made.rate(rater, made.see(0.9), "human")
        made.truth = kept
    made.truth = theirs
    made.rate("g", made.see(0.9))
    members = {"leaning=left": frozenset({"l1", "l2"}), "leaning=right": frozenset({"r1", "r2"})}
    rows = audited(made, members=members)
    row = row_of(rows, "bias_rater_group", "g", "leaning=left")
    assert row["at"] == "right"
    assert row["low"] > 0
    [said] = [each for each in findings(rows.rows.values()) if each.row is row]
    assert "agrees more with people of leaning=left than with right" in said.sentence
    assert not any(key[4] == "leaning=right" for key in rows.rows)


@pytest.mark.thorough
def test_an_unbiased_grader_is_left_alone(sample: Callable, audited: Callable) -> None:
    """Every question at once, nothing to find: at most a few of 30 samples may say otherwise."""
    blamed = 0
    for seed in range(30):
        made = sample(seed, pairs=80)
        made.units["response_a_words"] = made.rng.integers(50, 500, len(made.units))
        made.units["response_b_words"] = made.rng.integers(50, 500, len(made.units))
        made.units["topic"] = made.rng.choice(list("xyz"), len(made.units))
        for order in ("ab", "ba"):
            made.rate("anthropic:claude-opus-5", made.see(0.7), order=order)
        found = findings(audited(made, slices=["topic"], resamples=200).rows.values())
        assert {each.row["statistic"] for each in found} == {
            *("bias_side", "bias_order", "bias_length", "bias_self_preference", "bias_slice")
        }
        blamed += any(each.status == "found" for each in found)
    assert blamed <= 6  # two corrected families at .05 each: 3 expected, over 6 has a chance of 3%


@pytest.mark.parametrize("people", [0, 1])
def test_few_people(sample: Callable, audited: Callable, people: int) -> None:
    """Without people there are directions and orders only; with one, nothing is scaled."""
    made = sample(8, pairs=40, people=people)
    made.rate("g", made.see(0.8))
    rows = audited(made)
    tested = [row for key, row in rows.rows.items() if key[1] == "bias_side"]
    assert len(tested) == people
    assert all("taken to see as people do" in row["note"] for row in tested)
    assert any(key[1] == "direction_net" and key[2] == "g" for key in rows.rows)
