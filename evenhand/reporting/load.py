"""Ratings loaded with what they mean: a study, a file or a table becomes a `Dataset`.

Which ratings count, on which scales, under which settings: decided here, for every use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.analysis import Scale
from evenhand.analysis.dataset import Dataset
from evenhand.analysis.labels.scale import Tuning
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.request import StudyFacts, TriedWording
from evenhand.errors import InputError
from evenhand.lazy import np, pd
from evenhand.reporting.ratings_file.dataframes import rows_of_file, rows_of_table, units_table
from evenhand.reporting.ratings_file.declared import (
    ScaleOptions,
    Sidecar,
    attacked_beside,
    prices_of,
    read_sidecar,
    sidecar_path,
    units_beside,
)
from evenhand.reporting.ratings_file.scales import (
    declared_scales,
    declared_sets,
    refuse_sets,
    rows_of,
    rubric_of_sets,
    with_parts,
)
from evenhand.reporting.ratings_file.units import check_asked_for, clustered_by_items, with_units
from evenhand.rubrics.options import in_a_row, span_of
from evenhand.study.tables.columns import listed
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.ratings_file.dataframes import LongRows
    from evenhand.reporting.ratings_file.frames import Table
    from evenhand.study import Study

    Source = Path | Table | Dataset
    """What holds ratings: a study's folder, a file, a table, or what is loaded already."""

USUAL_SCALE = ScaleOptions()
_ORDER = {"nominal": "unordered", "ordinal": "ordered", "interval": "as numbers"}
_TUNED_ON = ("learn", "choose")


def load(
    source: Source,
    options: ScaleOptions = USUAL_SCALE,
    *,
    scales: Mapping[str, Scale] | None = None,
) -> Dataset:
    """Load a study's folder, a file or folder of ratings, or a table (`from_study`, `from_file`,
    `from_table`). Of a `Dataset`, which is loaded, only settings are changed.
    """
    if isinstance(source, Dataset):
        return source.changed(**options.settings)
    if not isinstance(source, Path):
        return from_table(source, options, scales=scales)
    if not is_study(source):
        return from_file(source, options, scales=scales)
    from evenhand.study import open_study

    with open_study(source) as study:
        dataset = from_study(study).changed(**options.settings)
        return replace(dataset, ratings=without_missing(dataset.ratings, options.missing))


def is_study(source: Path) -> bool:
    """Return True for a study's folder, False for a file or folder of ratings."""
    from evenhand.exchange.readers.reading import TABLE, format_of
    from evenhand.exchange.readers.source import Source

    if not source.is_dir() or (source / "study.toml").exists():
        return source.is_dir()
    return format_of(Source(source)) == TABLE


def is_file(source: Source | str) -> bool:
    """Return True for a ratings file, at an address too, or a table; False for a folder or what is
    loaded already.
    """
    return not isinstance(source, Dataset) and (not isinstance(source, Path) or source.is_file())


# ---- a study ------------------------------------------------------------------------------------


def from_study(
    study: Study, *, look: bool = False, tried: str = "", whole: bool = False
) -> Dataset:
    """Load a study: all ratings, of people and graders. A rubric that asks for several options is a
    rubric for each of them, unless sets of options are to stay `whole`.

    A `look` at new labels is counted; without it there are no verdicts on them. Grades under a text
    that was only tried are not part of a study, except those of the grader `tried`; nor are those
    withheld from a candidate of `improve` (`withheld_grades`).
    """
    from evenhand.study.creation import rewording_of, units_dealt
    from evenhand.study.desk.claims import oversight
    from evenhand.study.lead.disagreements import sorted_so_far
    from evenhand.study.session.sessions import raters_to_split_by
    from evenhand.study.store.grades import TRIED
    from evenhand.study.store.logs.decisions import look_numbers
    from evenhand.study.store.logs.replies import attacked_table
    from evenhand.study.store.store import all_labels_were_assigned, grade_totals

    rewording, units = rewording_of(study), study.units_with_lengths("all")
    tried_wordings = {}
    if rewording:
        old, new = units_dealt(study, rewording)
        each = study.config.annotation.raters_per_unit
        tried_wordings[rewording.new.name] = TriedWording(rewording.new.variant_of, old, new, each)
    ratings, config, hashes = study.ratings(), study.config, study.accepted_hashes()
    is_tried = ratings["rater_id"].str.contains(TRIED, regex=False)
    ratings = ratings[~is_tried | (ratings["rater_id"] == tried)]
    ratings = without_missing(ratings, config.analysis.missing)
    usage, exclusions = grade_totals(study.store), oversight(study.store).exclusions
    dataset = Dataset(
        name=config.name,
        ratings=ratings,
        units=units,
        scales=study_scales(study),
        settings=config.analysis,
        decision=config.decision,
        seed=config.seed,
        facts=StudyFacts(
            rubric_hashes=hashes,
            excluded={rater: each.reason for rater, each in exclusions.items()},
            raters=raters_to_split_by(study),
            usage=usage,
            prices=prices_of(usage),
            looks=look_numbers(study.store, looked_at(study, ratings), record=look),
            sorted=Counter((each.rubric, each.grader, each.kind) for each in sorted_so_far(study)),
            attacked=attacked_table(study.store, hashes),
            rewordings=tried_wordings,
            strata=config.sample.stratify,
            assigned=all_labels_were_assigned(study.store),
        ),
        title=config.name,
        titles={name: rubric.title for name, rubric in study.rubrics.items()},
        names={
            name: rubric.kind.names for name, rubric in study.rubrics.items() if rubric.kind.listed
        },
        synthetic=config.synthetic,
    )
    withheld = withheld_grades(study, dataset)
    scales = {
        name: replace(scale, withheld=withheld.get(name, {}))
        for name, scale in dataset.scales.items()
    }
    dataset = without_withheld(replace(dataset, scales=scales))
    several = {
        name: each.categories for name, each in study.rubrics.items() if not each.kind.is_single
    }
    return dataset if whole else with_parts(dataset, several)


def without_missing(ratings: pd.DataFrame, missing: Collection[str]) -> pd.DataFrame:
    """Return ratings without the labels that say that there is none."""
    labels = ratings["label"]
    return ratings.assign(label=labels.mask(labels.isin(missing), "")) if missing else ratings


def withheld_grades(study: Study, dataset: Dataset) -> dict[str, dict[str, frozenset[str]]]:
    """Return the units on which a grader's labels do not count or are not missed, by rubric and
    grader, because of `evenhand improve`.

    A winner of a finished choice looks better than it is on the clusters that it was chosen on, and
    a text that was tried in place of the old one on those to learn from, whoever reads it: there it
    is not judged. A candidate that was not chosen keeps its other grades; only one that was new and
    was graded nowhere but on clusters to learn from or to choose on is no grader of the study, and
    left out altogether. The old grader and a winner are asked about some parts only: while they
    were asked about nothing else, they lack no answers on units without their grades.
    """
    from evenhand.rubrics.own_words import own_prompt_of
    from evenhand.study.store.logs import decisions

    found: dict[str, dict[str, frozenset[str]]] = {}
    for rubric in decisions.rubrics_improved(study.store):
        clusters = clusters_of(dataset, decisions.parted_by(study.store, rubric))
        parts = decisions.parts_of(study.store, rubric)
        chosen = decisions.chosen_on(study.store, rubric)
        texts = decisions.texts_led_by(study.store, rubric)
        is_first = decisions.graded_here_first(study.store, rubric)
        ratings = dataset.ratings
        ratings = ratings[(ratings["rubric"] == rubric) & (ratings["rater_kind"] == "model")]
        by_rater = ratings.groupby("rater_id")["unit_id"]
        graded = {str(rater): frozenset(units) for rater, units in by_rater}
        own: dict[str, frozenset[str]] = {}
        for rater, units in graded.items():
            seen = chosen.get(rater, set()) | texts.get(own_prompt_of(rater), set())
            away = {unit for unit, each in clusters.items() if each in seen}
            if rater in is_first and parts.keys() >= {clusters.get(unit) for unit in units}:
                away |= {unit for unit, each in clusters.items() if each in parts} - units
            if away:
                own[rater] = frozenset(away)
        for rater, tried in decisions.candidates_of(study.store, rubric).items():
            if tried.is_new and rater not in chosen and rater in graded:
                units = graded[rater]
                if all(parts.get(clusters.get(unit, "")) in _TUNED_ON for unit in units):
                    own[rater] = units
        found[rubric] = own
    return found


def without_withheld(dataset: Dataset) -> Dataset:
    """Leave out the labels that are withheld from graders on their scale, and say so."""
    ratings, notes = dataset.ratings, []
    for rubric, scale in dataset.scales.items():
        if not scale.withheld:
            continue
        is_own = (ratings["rubric"] == rubric) | (len(dataset.scales) == 1)
        own = ratings[is_own]
        pairs = zip(own["rater_id"], own["unit_id"], strict=True)
        kept = [unit not in scale.withheld.get(rater, ()) for rater, unit in pairs]
        ratings = ratings.drop(own.index[~np.array(kept, dtype=bool)])
        left = ratings[is_own.loc[ratings.index]]
        labelled = set(left.loc[left["rater_kind"] == "human", "unit_id"])
        gone, dropped = [], set(own["rater_id"].to_numpy()[~np.array(kept, dtype=bool)])
        for grader in scale.withheld:
            judged = set(left.loc[left["rater_id"] == grader, "unit_id"])
            if not judged:
                gone += [grader] if grader in dropped else []
                continue
            about = {"rubric": rubric, "grader": grader, "have": len(judged & labelled)}
            key = "withheld" if grader in dropped else "not_asked"
            notes.append(written(f"note.{key}", labelled=len(labelled), **about))
        if gone:
            notes.append(written("note.only_tried", rubric=rubric, graders=", ".join(gone)))
    return replace(dataset, ratings=ratings, notes=(*dataset.notes, *notes))


def clusters_of(dataset: Dataset, by: str = "") -> dict[str, str]:
    """Return the cluster of each unit of a study, as its settings or as `by` says."""
    ids = sorted(set(dataset.units["unit_id"]))
    found = UnitFacts(ids, dataset.units).clusters(by or dataset.settings.cluster)
    return {unit: str(found.values[at]) for unit, at in zip(ids, found.codes, strict=True)}


def looked_at(study: Study, ratings: pd.DataFrame) -> dict[str, str]:
    """Return a hash of the labels that a look at the verdict sees, by rubric.

    With fewer pairs labelled by two people than a verdict needs, no verdict can be given, so
    looking at them is free.
    """
    from evenhand.study.store.logs.decisions import labels_hash

    pairs = study.units("all").set_index("unit_id")["cluster_id"]
    present = {}
    for name, own in ratings[ratings["rater_kind"] == "human"].groupby("rubric"):
        people = own.groupby("unit_id")["rater_id"].nunique()
        twice = pairs.reindex(people.index[people >= 2]).nunique()
        if twice >= study.config.decision.min_clusters:
            present[str(name)] = labels_hash(own)
    return present


def study_scales(study: Study) -> dict[str, Scale]:
    """Return the scale of every rubric, with the thresholds in force and what each was tuned on.

    A threshold counts as tuned if a logged one has this very number; any other was put in by hand.
    A wording that people label in a rubric's place is the rubric, and that is the other wording.
    """
    from evenhand.study.store.logs.decisions import TUNED_THRESHOLDS

    thresholds, tunings = study.config.thresholds, defaultdict[str, dict[str, Tuning]](dict)
    for each in TUNED_THRESHOLDS.all(study.store):
        if thresholds.get(each.rubric, {}).get(each.grader) == each.threshold:
            tunings[each.rubric][each.grader] = Tuning(
                clusters=frozenset(each.clusters),
                objective=each.objective,
                reference=each.reference,
                instead_of=each.instead_of,
            )
    labelled = {rubric.name: rubric.variant_of for rubric in study.labelled_rubrics()}
    adopted = {
        base: name for name, base in reversed(labelled.items()) if base and base not in labelled
    }
    scales = {}
    for name, rubric in study.rubrics.items():
        scale = Scale.from_rubric(rubric, thresholds.get(name), tunings.get(name))
        variant = scale.variant_of
        if new := adopted.get(variant or name):
            variant = "" if name == new else new
        ordered = study.config.analysis.ordered
        scales[name] = replace(scale, ordered=ordered, variant_of=variant)
    return scales


# ---- a file, a table ----------------------------------------------------------------------------


def from_file(
    file: Path, options: ScaleOptions = USUAL_SCALE, *, scales: Mapping[str, Scale] | None = None
) -> Dataset:
    """Load a ratings file on the scale declared, with its sidecar
    (`reporting.ratings_file.declared`).

    `scales` replace those of the sidecar: only their rubrics are read, and the files that the
    sidecar names are not. Raises InputError, naming file and row.
    """
    sidecar, attacked, units = read_sidecar(file), None, options.units
    if sidecar is not None:
        options = sidecar.file.under(options)
        if scales is None:
            units = units or units_beside(file, sidecar)
            attacked = attacked_beside(file, sidecar)
        if (missing := sidecar.analysis.missing) and not options.missing:
            options = replace(options, settings={**options.settings, "missing": missing})
    beside = None if units is None else units_table(units)
    with naming_sidecar(file):
        rows = rows_of_file(file, options)
        return from_rows(
            rows, options, units=beside, sidecar=sidecar, attacked=attacked, scales=scales
        )


def from_table(
    given: Table, options: ScaleOptions = USUAL_SCALE, *, scales: Mapping[str, Scale] | None = None
) -> Dataset:
    """Load a table of ratings, of any library, on the scale declared. Raises InputError, naming
    the row by its index.
    """
    units = None if options.units is None else units_table(options.units)
    return from_rows(rows_of_table(given, options), options, units=units, scales=scales)


@contextmanager
def naming_sidecar(file: Path) -> Iterator[None]:
    """Name the sidecar of a ratings file, if it has one, in the InputErrors of this block: a scale
    or a column that nothing on the command line declares comes from there.
    """
    try:
        yield
    except InputError as error:
        beside = sidecar_path(file)
        if not beside.exists():
            raise
        raise InputError(f"{error} ({beside.name} was read too)") from None


def from_rows(
    rows: LongRows,
    options: ScaleOptions = USUAL_SCALE,
    *,
    units: tuple[pd.DataFrame, str] | None = None,
    sidecar: Sidecar | None = None,
    attacked: pd.DataFrame | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> Dataset:
    """Load the rows of a ratings file or a table; `units` are a table of units and its name,
    `attacked` the injection audit. The scale and the settings of the options override the sidecar.
    """
    from evenhand.study.tables.ratings import rater_columns, split_ratings

    source, changes = rows.places.source, options.settings
    ratings, columns = split_ratings(rows.table, source)
    if ratings.empty:
        raise InputError(f"{source} has a header but no ratings")
    if units is not None:
        columns = with_units(columns, *units)
    check_asked_for(changes, columns, rows.table, source if units is None else units[1])
    known = sidecar or Sidecar.model_construct()  # which asks for no validator to be built
    named = ratings["rubric"]
    if scales is not None and (named != "").any():
        ratings = ratings[named.isin(list(scales))]
        if ratings.empty:
            raise InputError(
                f"{source} has no ratings on {listed(scales)}; its rubrics are "
                f"{listed(sorted(set(named)))}"
            )
    ratings, declared, several, remarks = _with_scales(options, ratings, rows, known, scales)
    asked = changes.get("cluster", known.asked_cluster)
    columns, cluster, said = clustered_by_items(columns, ratings, asked, options)
    raters = rater_columns(rows.table) if changes.get("rater_slices") else None
    dataset = Dataset(
        name=source,
        ratings=ratings,
        units=columns,
        scales=declared,
        settings=known.analysis,
        decision=known.decision,
        seed=known.seed,
        facts=known.facts(raters, source, attacked),
        title=known.study or Path(source).stem,
        titles={name: each.title for name, each in known.scales.items() if each.title},
        names={name: each.names for name, each in known.scales.items()},
        notes=(
            *(sidecar.said(source) if sidecar else ()),
            *rows.notes,
            *([] if sidecar else [_read_as(rows, ratings, declared, several)]),
            *(*said, *remarks),
        ),
        synthetic=known.synthetic,
    )
    changes = changes if cluster is None else {**changes, "cluster": cluster}
    return without_withheld(with_parts(dataset, several)).changed(**changes)


def _read_as(
    rows: LongRows,
    ratings: pd.DataFrame,
    scales: Mapping[str, Scale],
    several: Mapping[str, Sequence[str]],
) -> str:
    """What was taken for items, annotators, graders and labels, in a line."""
    raters = ratings.drop_duplicates("rater_id")
    names = [
        f"{what}{'s' if len(named) > 1 else ''} {listed(f'`{name}`' for name in named)}"
        for kind, what in (("human", "annotator"), ("model", "grader"))
        if len(named := raters.loc[raters["rater_kind"] == kind, "rater_id"])
    ]
    scale = next(iter(scales.values()), None)
    if several or len(scales) != 1 or scale is None:
        labels = f"rubrics {listed([*scales, *several])}"
    elif scale.is_number:
        labels = f"numbers from {scale.categories[0]} to {scale.categories[-1]}"
    elif in_a_row(scale.categories):
        labels = f"labels {span_of(scale.categories)}, {_ORDER[scale.level]}"
    else:
        labels = f"labels {listed(scale.categories)}, {_ORDER[scale.level]}"
    items = f"`{rows.items}`" if rows.items else "are rows"
    return written("reading.read_as", items=items, raters="; ".join(names), labels=labels)


def _with_scales(
    options: ScaleOptions,
    ratings: pd.DataFrame,
    rows: LongRows,
    known: Sidecar,
    scales: Mapping[str, Scale] | None,
) -> tuple[pd.DataFrame, dict[str, Scale], dict[str, Sequence[str]], list[str]]:
    """Return the ratings with clean labels, the scales of those that are one option each, the
    options by rubric of those that are sets of them, and what was assumed.
    """
    several: dict[str, Sequence[str]] = {}
    if options.several:
        for name in ("level", "affirmative", "sides"):
            if getattr(options, name):
                raise InputError(
                    f"{options.spelled(name)} does not go with {options.spelled('several')}, which "
                    "takes each option as a yes or no of its own"
                )
        ratings = ratings if options.rubric is None else rows_of(ratings, options, {})
        known_options = {"": options.categories}
        ratings, several, notes = declared_sets(ratings, known_options, rows.places, options)
        return ratings, {}, several, notes
    ratings, of_sets = rubric_of_sets(options, ratings)
    known_scales = known.known_scales() if scales is None else dict(scales)
    if scales is None:
        of_sets |= {name: each.categories for name, each in known.scales.items() if each.several}
    own, sets = ratings["rubric"].isin(list(of_sets)), []
    if own.any():
        labelled, several, _ = declared_sets(ratings[own], of_sets, rows.places, options)
        if own.all() or options.rubric in of_sets:
            return labelled, {}, several, []
        ratings, sets = ratings[~own], [labelled]
        known_scales = {name: each for name, each in known_scales.items() if name not in of_sets}
    refuse_sets(ratings, known_scales, rows.places, options)
    without_level = known.without_level if scales is None else ()
    ratings, declared, remarks = declared_scales(
        options, ratings, rows.places, known_scales, without_level
    )
    return pd.concat([ratings, *sets]) if sets else ratings, declared, several, remarks
