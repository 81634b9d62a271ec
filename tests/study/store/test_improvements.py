"""The log of what improving a grader decided: what was first stands, nothing is counted twice."""

from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.study.store.logs.decisions import acts
from evenhand.study.store.logs.improvements import (
    ProofReading,
    Tried,
    candidates_of,
    check_clusters,
    chosen_on,
    ends_of,
    is_read,
    note_candidates,
    note_choice,
    note_end,
    note_parts,
    parts_of,
    read_proof,
    readings_so_far,
    rubrics_improved,
    texts_led_by,
)


def test_a_part_stands_as_it_was_given_first(make_study) -> None:
    store = make_study().store
    note_parts(store, "refusal", {"p1": "learn", "p2": "prove"}, "pair", "lead")
    note_parts(store, "refusal", {"p2": "choose", "p3": "prove"}, "pair", "lead")
    note_parts(store, "hedging", {"p1": "prove"}, "pair", "lead")
    assert parts_of(store, "refusal") == {"p1": "learn", "p2": "prove", "p3": "prove"}
    assert rubrics_improved(store) == ["refusal", "hedging"]
    assert acts(store).empty, "the log of acts has sentences, not these"


def test_other_clusters_than_those_that_were_parted_are_refused(make_study) -> None:
    store = make_study().store
    check_clusters(store, "refusal", "stance_id")
    note_parts(store, "refusal", {"p1": "learn"}, "pair", "lead")
    check_clusters(store, "refusal", "pair")
    with pytest.raises(InputError, match=r"parted by 'pair', and analysis\.cluster is now 'unit'"):
        check_clusters(store, "refusal", "unit")


def test_a_reading_of_the_proof_is_numbered_by_its_content_over_all_graders(make_study) -> None:
    store = make_study().store

    def read(new: str, content: str = "h", rubric: str = "refusal") -> int:
        reading = ProofReading(old="o", new=new, content=content)
        return read_proof(store, rubric, reading, "lead")

    assert [read("a"), read("b"), read("a", "i"), read("b", "j"), read("a")] == [1, 1, 2, 3, 1]
    assert read("a", rubric="hedging") == 1
    assert readings_so_far(store, "refusal") == 3
    assert is_read(store, "refusal", "j")
    assert not is_read(store, "hedging", "j")


def tried(origin: str, *, has_own_text: bool = True) -> Tried:
    return Tried(origin=origin, is_new=True, has_own_text=has_own_text)


def test_candidates_and_ends_are_kept_each_once(make_study) -> None:
    store = make_study().store
    for price in (1.0, 2.0):
        note_candidates(store, "refusal", {"m#1": tried("a.toml")}, "lead")
        end = {"outcome": "not_shown", "low": None, "price": price}
        note_end(store, "refusal", end, "lead")
    both = {"m#1": tried("b.toml"), "m#2": tried("b.toml")}
    note_candidates(store, "refusal", both, "lead")
    note_end(store, "refusal", {"outcome": "better", "low": 0.1, "price": None}, "lead")
    assert candidates_of(store, "refusal") == {"m#1": tried("a.toml"), "m#2": tried("b.toml")}
    assert [end["outcome"] for _, end in ends_of(store)] == ["not_shown", "better"]


def test_a_winner_was_led_to_by_what_it_was_chosen_on_and_a_text_by_what_it_learned_from(
    make_study,
) -> None:
    store = make_study().store
    parts = {"p1": "learn", "p2": "choose", "p3": "choose", "p4": "prove"}
    note_parts(store, "refusal", parts, "pair", "lead")
    text = "m#prompt-01234567"
    graders = {text: tried("a.toml"), "model": tried("another", has_own_text=False)}
    graders["m#prompt-abcdefab"] = tried("b.toml")
    note_candidates(store, "refusal", graders, "lead")
    assert chosen_on(store, "refusal") == {}, "who was tried only was not chosen"
    for _ in range(2):
        note_choice(store, "refusal", text, ["p2"], "lead")
    note_choice(store, "refusal", "model", ["p2", "p3"], "lead")
    assert chosen_on(store, "refusal") == {text: {"p2"}, "model": {"p2", "p3"}}
    assert texts_led_by(store, "refusal") == {"01234567": {"p1", "p2"}, "abcdefab": {"p1"}}
