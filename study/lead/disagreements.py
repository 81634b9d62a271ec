"""Disagreements between a grader and people, sorted by who is wrong: the grader, people, or the
rubric's text, which can be read in two ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.store.logs.disagreement_log import (
    KINDS,
    Kind,
    SortedDisagreement,
    add_sorted,
    all_sorted,
    ever_sorted,
)

if TYPE_CHECKING:
    from typing import Literal

    from evenhand.study.workspace import Study

__all__ = [
    "KINDS",
    "Kind",
    "SortedDisagreement",
    "held_out_units",
    "sort_disagreement",
    "sorted_so_far",
]


def sort_disagreement(
    study: Study,
    by: str,
    *,
    rubric: str,
    unit_id: str,
    grader: str,
    kind: Kind | Literal[""],
    note: str = "",
) -> None:
    """Append the judgment of the lead `by` on one disagreement; it is on disk when this returns.

    An empty `kind` takes the former one back. Raises InputError where the study has no such rubric
    or unit, or the kind is unknown.
    """
    known = study.rubrics.get(rubric)
    if known is None:
        raise InputError(f"the study has no rubric {rubric!r}")
    if kind not in ("", *KINDS):
        raise InputError(f"{kind!r} is none of {', '.join(KINDS)}")
    if unit_id not in study.units_by_kind("all")[known.unit]:
        raise InputError(f"the study has no {known.unit} unit {unit_id!r}")
    found = SortedDisagreement(
        rubric=rubric,
        rubric_hash=known.hash,
        unit_id=unit_id,
        grader=grader,
        kind=kind,
        note=note.strip(),
        done_by=by,
    )
    add_sorted(study.store, found)


def sorted_so_far(study: Study) -> list[SortedDisagreement]:
    """Return the judgments in force, in the order in which they came; those under an edited text of
    a rubric do not count.
    """
    return all_sorted(study.store, study.accepted_hashes())


def held_out_units(study: Study, rubric: str) -> list[str]:
    """Return the units of the sample on which a new text of a rubric may be tried: those of pairs
    without any sorted disagreement. A new text may have been written with the others in view.
    """
    read = {parse_unit_id(unit)[0] for unit in ever_sorted(study.store, rubric)}
    units = study.rubric_units(study.rubrics[rubric])
    return [unit for unit in units if parse_unit_id(unit)[0] not in read]
