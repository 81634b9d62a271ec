"""Ratings with their meaning, from a study's folder or a file, for uses without a whole
analysis.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.reporting.ratings_file.missing import listed
from evenhand.study.settings.analysis import (
    SEED,
    AnalysisSettings,
    DecisionSettings,
    with_changes,
)
from evenhand.study.settings.sections import changed

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis import Scale

_SETTINGS, _DECISION = AnalysisSettings(), DecisionSettings()


@dataclass(frozen=True)
class Labelled:
    """The two tables and the facts about them; messages call them `name`.

    `hashes` are the versions of each rubric that count, or None if not known; `excluded` are raters
    who do not count.
    """

    name: str
    ratings: pd.DataFrame
    units: pd.DataFrame
    scales: Mapping[str, Scale]
    hashes: Mapping[str, Collection[str]] | None = None
    excluded: Collection[str] = ()
    settings: AnalysisSettings = _SETTINGS
    decision: DecisionSettings = _DECISION
    seed: int = SEED
    synthetic: bool = False
    notes: tuple[str, ...] = ()

    def of_rubric(self, name: str) -> pd.DataFrame:
        """The ratings of one rubric that count."""
        from evenhand.analysis.labels.counted import one_version

        own = self.ratings[self.ratings["rubric"] == name]
        counted, _ = one_version(own, name, self.hashes.get(name) if self.hashes else None)
        return counted[~counted["rater_id"].isin(list(self.excluded))]


def labelled(
    source: Path,
    options: ScaleOptions,
    *,
    units: Path | None = None,
    known: Mapping[str, Scale] | None = None,
    seed: int | None = None,
    **changes: object,
) -> Labelled:
    """Read a study's folder or a ratings file; `known` scales override those of a file's sidecar.

    `seed` and the `changes` are settings that replace its own. Raises InputError as
    `evenhand.reporting.analysing.analyse_source` does.
    """
    asked = changes.get("cluster")
    if source.is_dir():
        found = _of_study(source)
    else:
        found = _of_file(source, options, units, known, asked if isinstance(asked, str) else None)
    settings, decision = with_changes(found.settings, found.decision, changes)
    seed = found.seed if seed is None else seed
    return replace(found, settings=settings, decision=decision, seed=seed)


def _of_study(folder: Path) -> Labelled:
    from evenhand.reporting.thresholds import study_scales
    from evenhand.study import open_study
    from evenhand.study.desk.oversight import oversight
    from evenhand.study.store.grades import TRIED

    with open_study(folder) as study:
        ratings, config = study.ratings(), study.config
        return Labelled(
            name=config.name,
            ratings=ratings[~ratings["rater_id"].str.contains(TRIED, regex=False)],
            units=study.units_with_lengths("all"),
            scales=study_scales(study),
            hashes=study.accepted_hashes(),
            excluded=tuple(oversight(study.store).exclusions),
            settings=config.analysis,
            decision=config.decision,
            seed=config.seed,
            synthetic=config.synthetic,
        )


def _of_file(
    file: Path,
    options: ScaleOptions,
    units: Path | None,
    known: Mapping[str, Scale] | None,
    cluster: str | None,
) -> Labelled:
    from evenhand.reporting.ratings_file.dataframes import rows_of_file
    from evenhand.reporting.ratings_file.items import clustered_by_items
    from evenhand.reporting.ratings_file.scales import declared_scales
    from evenhand.reporting.ratings_file.sidecar import Sidecar, read_sidecar, units_beside
    from evenhand.reporting.ratings_file.unit_columns import with_units
    from evenhand.study.tables.formats import read_table
    from evenhand.study.tables.ratings import split_ratings

    beside = read_sidecar(file)
    sidecar = beside or Sidecar()
    if units is None and beside is not None and known is None:
        units = units_beside(file, beside)
    rows = rows_of_file(file, options)
    ratings, columns = split_ratings(rows.table, file.name)
    if ratings.empty:
        raise InputError(f"{file.name} has a header but no ratings")
    if units is not None:
        columns = with_units(columns, read_table(units), units.name)
    scales = sidecar.known_scales() if known is None else dict(known)
    if known is not None and (ratings["rubric"] != "").any():
        names = ratings["rubric"]
        ratings = ratings[names.isin(list(known))]
        if ratings.empty:
            raise InputError(
                f"{file.name} has no ratings on {listed(known)}; its rubrics are "
                f"{listed(sorted(set(names)))}"
            )
    ratings, declared, remarks = declared_scales(options, ratings, rows.places, scales)
    hashes = {name: each.hashes for name, each in sidecar.scales.items() if each.hashes is not None}
    asked = cluster or sidecar.asked_cluster
    columns, items, said = clustered_by_items(columns, ratings, asked, options)
    settings = sidecar.analysis if items is None else changed(sidecar.analysis, {"cluster": items})
    return Labelled(
        name=file.name,
        ratings=ratings,
        units=columns,
        scales=declared,
        hashes=hashes or None,
        excluded=tuple(sidecar.excluded),
        settings=settings,
        decision=sidecar.decision,
        seed=sidecar.seed,
        synthetic=sidecar.synthetic,
        notes=(*rows.notes, *said, *remarks),
    )
