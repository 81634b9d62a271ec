"""A baseline: units with people's labels and a grader's grades, frozen, to compare later runs with.

The file is JSON of one fixed shape (`Baseline`). It holds labels, scales, the hash of the rubric
that was shown, clusters and the settings that decide; no prompts, no responses, no names of people.
So it may be kept in a repository with the code that it guards. To ask the grader again one needs
the texts, which stay with the study.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pandas as pd
from pydantic import Field, ValidationError

from evenhand import __version__
from evenhand.analysis import Scale
from evenhand.analysis.labels.encoding import combine_readings
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.verdicts.drift import Versions, drift_of, paired_labels
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.declared import MOST_BYTES, Line, ScaleSection, printable
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, with_changes
from evenhand.study.settings.sections import Section, fault_of
from evenhand.study.tables.columns import INCLUSION, listed
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.ratings import RATINGS_COLUMNS, validate_ratings

if TYPE_CHECKING:
    from evenhand.analysis.dataset import Dataset
    from evenhand.analysis.verdicts.drift import Drift

_LEFT_OUT = ("seconds", "rubric_hash", "created_at")
_KEPT = tuple(column for column in RATINGS_COLUMNS if column not in _LEFT_OUT)
_BASELINE = " (baseline)"
"""Suffix of a grader's name for its grades in the baseline."""
Table = Annotated[tuple[str, ...], Field(min_length=1, max_length=5_000_000)]
"""A CSV file in lines, the header first: a change of a label is a change of one line."""


class Baseline(Section):
    """The file as a whole. `scales` have the rubrics' `hashes`; thresholds are the grader's."""

    file: Literal["evenhand baseline"]
    format: Literal[1]
    grader: Line
    source: Line
    evenhand: Line
    created_at: Line
    synthetic: bool = False
    seed: int = Field(ge=0)
    analysis: AnalysisSettings = AnalysisSettings()
    decision: DecisionSettings = DecisionSettings()
    scales: dict[Line, ScaleSection] = Field(min_length=1)
    units: Table
    ratings: Table

    def known_scales(self) -> dict[str, Scale]:
        """Return every scale by its rubric. Raises InputError for an inconsistent one."""
        return {name: each.scale(name) for name, each in self.scales.items()}

    @property
    def n_units(self) -> int:
        """The number of units that it holds."""
        return len(self.units) - 1

    @property
    def n_people(self) -> int:
        """The number of people whose labels it holds."""
        ratings = _table(self.ratings)
        return int(ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique())


def baseline_of(found: Dataset, grader: str, rubric: str | None = None) -> Baseline:
    """Freeze the labels of people and a grader on the units that both labelled, on one rubric or on
    all. Where the study declares a reference, only its labels are taken of people's.

    Raises InputError where there is no such grader, or nothing to freeze.
    """
    graders = sorted(_graders(found.ratings))
    if grader not in graders:
        raise InputError(f"{found.name} has no grader {grader!r}; it has {listed(graders)}")
    wanted = [n for n in found.scales if rubric is None or same_rubric(n, rubric)]
    kept = {name: _both(found, name, grader) for name in wanted}
    kept = {name: own for name, own in kept.items() if not own.empty}
    if not kept:
        place = f" on {rubric}" if rubric else ""
        raise InputError(
            f"{found.name}: no item has a label of an annotator and of {grader!r}{place}; "
            "collect grades on labelled items first"
        )
    ratings = pd.concat(kept.values())
    ids = sorted(set(ratings["unit_id"]))
    clusters = UnitFacts(ids, found.units).clusters(found.settings.cluster)
    units = pd.DataFrame(
        {"unit_id": ids, "cluster_id": [clusters.values[code] for code in clusters.codes]}
    )
    if INCLUSION in found.units:
        chances = found.units.set_index("unit_id")[INCLUSION]
        units[INCLUSION] = units["unit_id"].map(chances)
    try:
        return Baseline(
            file="evenhand baseline",
            format=1,
            grader=grader,
            source=printable(found.name),
            evenhand=__version__,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            synthetic=found.synthetic,
            seed=found.seed,
            analysis=AnalysisSettings(
                margin=found.settings.margin,
                resamples=found.settings.resamples,
                interval=found.settings.interval,
            ),
            decision=found.decision.model_copy(update={"reference": ""}),
            scales={
                name: ScaleSection.of(
                    found.scales[name],
                    threshold=found.scales[name].threshold_for(grader),
                    hashes=tuple(sorted(set(own["rubric_hash"]) - {""})),
                )
                for name, own in kept.items()
            },
            units=_lines(units),
            ratings=_lines(_unnamed(ratings)[list(_KEPT)]),
        )
    except ValidationError as error:  # a name that no line can hold
        raise InputError(f"{found.name} cannot be frozen: {printable(fault_of(error))}") from None


def write_baseline(baseline: Baseline, file: Path) -> None:
    """Write the file in one step."""
    atomic_write(file, (baseline.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode())


def read_baseline(file: Path) -> Baseline:
    """The baseline in a file. Raises InputError, one sentence, where it is none or damaged."""
    if not file.is_file():
        raise InputError(f"there is no file {file}; make one with `evenhand baseline save`")
    if file.stat().st_size > MOST_BYTES:
        raise InputError(f"{file.name} has more than {MOST_BYTES // 1_000_000} MB; save it again")
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        raise InputError(
            f"{file.name} is not JSON, so it is no baseline; make one with `evenhand baseline save`"
        ) from None
    try:
        found = Baseline.model_validate(content)
        found.known_scales()
        _table(found.ratings), _table(found.units)
    except ValidationError as error:
        raise InputError(f"{file.name} is not a baseline: {printable(fault_of(error))}") from None
    except (ValueError, InputError) as error:  # no table, or no scale
        raise InputError(f"{file.name} is not a baseline: {printable(str(error))}") from None
    return found


def compared(
    baseline: Baseline,
    now: Dataset,
    grader: str,
    *,
    rubric: str | None = None,
    new_rubric: bool = False,
    **changes: Any,
) -> list[Drift]:
    """Compare the baseline's grader with what it is now, under the name `grader`, on each rubric.

    People's labels are those of the baseline, and so are scales, clusters and settings except the
    `changes`. Raises InputError where there are no such grades now, none on a unit of the baseline,
    or grades under another text of the rubric, unless `new_rubric` allows it.
    """
    wanted = [n for n in baseline.scales if rubric is None or same_rubric(n, rubric)]
    if not wanted:
        known = listed(baseline.scales)
        raise InputError(f"the baseline has no rubric {rubric!r}; it has {known}")
    graders = sorted(_graders(now.ratings))
    if grader not in graders:
        raise InputError(f"{now.name} has no grader {grader!r}; it has {listed(graders)}")
    settings, decision = with_changes(baseline.analysis, baseline.decision, changes)
    versions = Versions(grader + _BASELINE, grader)
    before = validate_ratings(_table(baseline.ratings), "the baseline")
    units, found = _table(baseline.units), []
    for name in wanted:
        own = before[before["rubric"] == name]
        new = _present(baseline, now, name, grader, new_rubric=new_rubric)
        scale = baseline.scales[name].scale(name)
        ratings = _together(own, new, versions, baseline.grader)
        rated = units[units["unit_id"].isin(ratings["unit_id"])]
        labels = paired_labels(ratings, rated, scale, versions)
        found.append(drift_of(labels, versions, settings, decision, seed=baseline.seed))
    return found


def same_rubric(name: str, other: str) -> bool:
    """Return True if two names are of one rubric, written with hyphens or underscores."""
    return name.replace("_", "-") == other.replace("_", "-")


def _graders(ratings: pd.DataFrame) -> set[str]:
    return set(ratings.loc[ratings["rater_kind"] == "model", "rater_id"])


def _both(found: Dataset, name: str, grader: str) -> pd.DataFrame:
    """The ratings of people and of the grader on units that both labelled."""
    ratings, reference = found.counted(name), found.decision.reference
    people = ratings["rater_kind"].eq("human")
    if reference:
        people = ratings["rater_id"].eq(reference)
        ratings = ratings.assign(rater_kind=ratings["rater_kind"].where(~people, "human"))
    people &= ratings["label"].ne("")
    own = ratings["rater_id"].eq(grader)
    scored = own & (ratings["label"].ne("") | ratings["p_positive"].notna())
    units = set(ratings.loc[people, "unit_id"]) & set(ratings.loc[scored, "unit_id"])
    return ratings[(people | own) & ratings["unit_id"].isin(units)]


def _unnamed(ratings: pd.DataFrame) -> pd.DataFrame:
    """Replace people's ids by numbers: their names are not needed later."""
    people = sorted(set(ratings.loc[ratings["rater_kind"] == "human", "rater_id"]))
    numbers = {person: f"person-{n}" for n, person in enumerate(people, start=1)}
    is_person = ratings["rater_kind"].eq("human")
    names = ratings["rater_id"].map(numbers).where(is_person, ratings["rater_id"])
    return ratings.assign(rater_id=names)


def _present(
    baseline: Baseline, now: Dataset, name: str, grader: str, *, new_rubric: bool
) -> pd.DataFrame:
    """The grader's present grades on the baseline's units."""
    ratings = now.counted(name)
    ratings = ratings[ratings["rater_id"] == grader]
    place = f" on {name}" if name else ""
    if ratings.empty:
        raise InputError(f"{now.name} has no grades of {grader!r}{place}; collect them first")
    hashes, known = set(ratings["rubric_hash"]) - {""}, baseline.scales[name].hashes
    if known and (other := hashes - set(known)) and not new_rubric:
        raise InputError(
            f"the text of rubric {name!r} has changed since the baseline was saved (hash "
            f"{listed(sorted(known))} then, {listed(sorted(other))} now); save a new baseline, or "
            "add --new-rubric if the new text is what you want to compare"
        )
    units = set(_table(baseline.units)["unit_id"])
    shared = ratings[ratings["unit_id"].isin(units)]
    if shared.empty:
        raise InputError(
            f"none of the {ratings['unit_id'].nunique()} items that {grader!r} graded{place} is "
            f"among the {len(units)} of the baseline; grade the baseline's items"
        )
    combine_readings(shared, baseline.scales[name].scale(name), now.name)  # names a row that is off
    return shared


def _together(
    before: pd.DataFrame, new: pd.DataFrame, versions: Versions, grader: str
) -> pd.DataFrame:
    """People's labels and both versions, as one table of the same columns."""
    was = before["rater_id"].where(before["rater_id"] != grader, versions.before)
    rows = [before.assign(rater_id=was), new.assign(rater_id=versions.after)]
    return pd.concat(rows, ignore_index=True)


def _lines(table: pd.DataFrame) -> tuple[str, ...]:
    """A table as lines of CSV, without columns that are empty all over."""
    filled = [name for name in table if table[name].notna().any() and (table[name] != "").any()]
    text = table[filled].to_csv(index=False, lineterminator="\n")
    return tuple(text.removesuffix("\n").split("\n"))


def _table(lines: Sequence[str]) -> pd.DataFrame:
    """The table again, all cells as text."""
    text = io.StringIO("\n".join(lines))
    return pd.read_csv(text, dtype=str, keep_default_na=False)
