"""Responses' numbers of words beside the units."""

from __future__ import annotations

from collections.abc import Callable

from evenhand.study.prompts.pairs import LENGTH_COLUMNS


def test_every_unit_carries_the_lengths_of_its_own_responses(make_study: Callable) -> None:
    """ "s1: for 0." has three words, as has every response of the fixture."""
    study = make_study()
    units = study.units_with_lengths("all").set_index("unit_id")
    assert units.loc["p0001|s1", list(LENGTH_COLUMNS)].tolist() == ["", "3", "3"]
    assert units.loc["p0001|s1|b", list(LENGTH_COLUMNS)].tolist() == ["3", "", ""]
    assert study.units("all").columns.tolist() == units.reset_index().columns.tolist()[:-3]


def test_pairs_without_responses_have_no_length(make_study: Callable) -> None:
    units = make_study(responses=None).units_with_lengths()
    assert (units[list(LENGTH_COLUMNS)] == "").all(axis=None)
