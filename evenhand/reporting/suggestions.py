"""Unclear points of a rubric's text: disagreements that the lead put down to it, grouped by the
options that people and graders chose, and people's flags. A basis for a better text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenhand.rubrics import Rubric

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study import Study

_UNCLEAR = "rubric_unclear"
_FLAG = "unclear_rubric"
_NO_LABEL = "-"

Options = tuple[str, ...]


@dataclass(frozen=True)
class UnclearUnit:
    """A unit on which the rubric is unclear, with the lead's note."""

    unit_id: str
    grader: str
    note: str


@dataclass
class UnclearRubric:
    """A rubric with its unclear units, grouped by people's options and the grader's option, the
    largest group first; and people's flags: unit and text, each flag once.
    """

    rubric: Rubric
    by_options: dict[tuple[Options, Options], list[UnclearUnit]] = field(default_factory=dict)
    flags: list[tuple[str, str]] = field(default_factory=list)

    def named(self, chosen: Options) -> str:
        """Options with their names, as in '2 (Partly) or 3 (Fully)'."""
        names = {option.key: option.name for option in self.rubric.options}
        return " or ".join(f"{key} ({names[key]})" if key in names else key for key in chosen)


def unclear_rubrics(study: Study) -> list[UnclearRubric]:
    """Return the rubrics of a study in which something is unclear under their present texts."""
    from evenhand.reporting.load import from_study
    from evenhand.study.lead.disagreements import sorted_so_far

    found = {name: UnclearRubric(rubric) for name, rubric in study.rubrics.items()}
    dataset = from_study(study, whole=True)
    excluded = list(dataset.facts.excluded)
    if unclear := [each for each in sorted_so_far(study) if each.kind == _UNCLEAR]:
        ratings = dataset.ratings[~dataset.ratings["rater_id"].isin(excluded)]
        for each in unclear:
            own = found[each.rubric]
            at = (ratings["rubric"] == each.rubric) & (ratings["unit_id"] == each.unit_id)
            people = ratings[at & (ratings["rater_kind"] == "human")]
            graded = ratings[at & (ratings["rater_id"] == each.grader)]
            chosen = _options(people, own.rubric), _options(graded, own.rubric)
            unit = UnclearUnit(each.unit_id, each.grader, each.note)
            own.by_options.setdefault(chosen, []).append(unit)
    for rubric, flagged, text in _flags(study, excluded):
        found[rubric].flags.append((flagged, text))
    for own in found.values():
        groups = sorted(own.by_options.items(), key=lambda group: -len(group[1]))
        own.by_options = dict(groups)
    return [own for own in found.values() if own.by_options or own.flags]


def _options(given: pd.DataFrame, rubric: Rubric) -> Options:
    """Return the options chosen, in the rubric's order."""
    labels = set(given["label"]) - {""}
    if rubric.several:
        return tuple(sorted(labels)) or (_NO_LABEL,)
    return tuple(key for key in rubric.categories if key in labels) or (_NO_LABEL,)


def _flags(study: Study, excluded: Sequence[str]) -> Sequence[tuple[str, str, str]]:
    """(rubric, unit, text) of the latest flag of each person on each unit, under texts that count;
    flags of people who are excluded are left out.
    """
    from evenhand.study.store.logs.answers import remarks_table, standing

    accepted = study.accepted_hashes()
    said = standing(remarks_table(study.store))
    said = said[(said["kind"] == "flag") & (said["reason"] == _FLAG)]
    said = said[~said["rater_id"].isin(excluded)]
    said = said.drop_duplicates(["rubric", "unit_id", "rater_id"], keep="last")
    return [
        (row["rubric"], row["unit_id"], row["text"])
        for row in said.to_dict("records")
        if row["rubric_hash"] in accepted.get(row["rubric"], ())
    ]
