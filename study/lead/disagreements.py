"""Disagreements between a grader and people, sorted by who is wrong: the grader, people, or the
rubric's text, which can be read in two ways. Append-only: the latest judgment on a unit and grader
counts, and an empty one takes the former back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from evenhand.errors import InputError
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.store.events import EventLog
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import sorted_disagreements

if TYPE_CHECKING:
    from evenhand.study.workspace import Study

Kind = Literal["grader_wrong", "people_wrong", "rubric_unclear"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class SortedDisagreement:
    """A judgment by the lead `done_by` on who is wrong where a grader's label differs from
    people's.

    `kind` is one of `KINDS`, or empty where a former judgment is taken back.
    """

    rubric: str
    rubric_hash: str
    unit_id: str
    grader: str
    kind: Kind | Literal[""]
    note: str = ""
    done_by: str = ""
    created_at: str = field(default_factory=utc_now)


_LOG = EventLog(sorted_disagreements, SortedDisagreement)


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
    _LOG.append(study.store, [found])


def sorted_so_far(study: Study) -> list[SortedDisagreement]:
    """Return the judgments in force, in their order; without those under an edited rubric text."""
    accepted = study.accepted_hashes()
    latest = _LOG.latest(study.store, "rubric", "unit_id", "grader", "rubric_hash")
    counted = (each for each in latest if each.rubric_hash in accepted.get(each.rubric, ()))
    current = {(each.rubric, each.unit_id, each.grader): each for each in counted}
    return [each for each in current.values() if each.kind]


def held_out_units(study: Study, rubric: str) -> list[str]:
    """Return the units of the sample on which a new text of a rubric may be tried: those of pairs
    without any sorted disagreement. A new text may have been written with the others in view.
    """
    ever = _LOG.all(study.store, sorted_disagreements.c.rubric == rubric)
    read = {parse_unit_id(each.unit_id)[0] for each in ever}
    units = study.rubric_units(study.rubrics[rubric])
    return [unit for unit in units if parse_unit_id(unit)[0] not in read]
