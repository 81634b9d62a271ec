"""The log of what improving a grader decided: what was first stands, nothing is counted twice."""

from __future__ import annotations

from evenhand.study.store.logs.decisions import acts
from evenhand.study.store.logs.improvements import (
    ProofReading,
    candidates_of,
    ends_of,
    note_candidates,
    note_end,
    note_parts,
    parts_of,
    read_proof,
    rubrics_improved,
)


def test_a_part_stands_as_it_was_given_first(make_study) -> None:
    store = make_study().store
    note_parts(store, "refusal", {"p1": "learn", "p2": "prove"}, "lead")
    note_parts(store, "refusal", {"p2": "choose", "p3": "prove"}, "lead")
    note_parts(store, "hedging", {"p1": "prove"}, "lead")
    assert parts_of(store, "refusal") == {"p1": "learn", "p2": "prove", "p3": "prove"}
    assert rubrics_improved(store) == ["refusal", "hedging"]
    assert acts(store).empty, "the log of acts has sentences, not these"


def test_a_reading_of_the_proof_is_numbered_once(make_study) -> None:
    store = make_study().store

    def read(new: str, labels: str = "h", rubric: str = "refusal") -> int:
        return read_proof(store, rubric, ProofReading(old="o", new=new, labels_hash=labels), "lead")

    assert [read("a"), read("a"), read("b"), read("a", "other"), read("a")] == [1, 1, 2, 3, 1]
    assert read("a", rubric="hedging") == 1


def test_candidates_and_ends_are_kept_each_once(make_study) -> None:
    store = make_study().store
    for _ in range(2):
        note_candidates(store, "refusal", {"m#1": "a.toml"}, "lead")
        note_end(store, "refusal", {"outcome": "not_shown", "low": None}, "lead")
    note_candidates(store, "refusal", {"m#1": "b.toml", "m#2": "b.toml"}, "lead")
    note_end(store, "refusal", {"outcome": "better", "low": 0.1}, "lead")
    assert candidates_of(store, "refusal") == {"m#1": "a.toml", "m#2": "b.toml"}
    assert [end["outcome"] for _, end in ends_of(store)] == ["not_shown", "better"]
