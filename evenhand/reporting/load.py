"""Ratings loaded with what they mean: a study, a file or a table becomes a `Dataset`.

Here is decided which ratings count, on which scales, under which settings. Reading a table is four
steps: the table of any library or file (`dataframes.frame_of`, `exchange.readers`), its columns,
named or guessed (`columns.roles_in`), their long form (`dataframes.long_rows`), and the dataset
(`from_rows`). Every correction on the way is one of the steps in `labels`.

Rows that repeat an item are no more evidence than one of them, so an item is a cluster. A column
names the items if some of its cells repeat and

- it is called so: `id`, `item`, `prompt`, `question` and others (`study.tables.columns`); or else
- it repeats as names and texts do: at least half of the rows share their cell with another row, and
  there are more than `MAX_VALUES` different cells, or `MIN_TEXTS` of them that are texts. Numbers
  and dates are no names, and a column of fewer values (a topic, a model) is a slice.

Of several the one with the fewest different cells counts, as the others' repeats lie within it.
Never an item is a column that is empty in more than a tenth of the rows, holds lists or nested
values, is named as an answer or as a fact about the labels, or is a function of the labels, as
their majority or their distribution is.
Where no column does, a table that is several copies of itself is known by its rows.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.analysis import Scale
from evenhand.analysis.dataset import Dataset
from evenhand.analysis.labels.matrix import MAX_VALUES, MOST_SIDES, UnitFacts
from evenhand.analysis.labels.scale import Tuning
from evenhand.analysis.request import StudyFacts, TriedWording
from evenhand.errors import InputError, did_you_mean
from evenhand.exchange.readers.reading import TABLE, format_of
from evenhand.exchange.readers.source import Source as FileSource
from evenhand.lazy import np, pd
from evenhand.reporting.ratings_file.columns import is_fact, is_nested
from evenhand.reporting.ratings_file.criteria import rubric_read, shared_columns, with_scores
from evenhand.reporting.ratings_file.dataframes import rows_of_file, rows_of_table, units_table
from evenhand.reporting.ratings_file.declared import (
    ScaleOptions,
    Sidecar,
    named_file,
    prices_of,
    read_sidecar,
    sidecar_path,
)
from evenhand.reporting.ratings_file.labels import Scales, pattern_of, scales_of, with_parts
from evenhand.rubrics.loading import own_prompt_hash
from evenhand.rubrics.options import ordered_scale, span_of
from evenhand.study.prompts.pairs import CRITERIA, RESPONSE_ID
from evenhand.study.settings.study_toml import FILE_NAME, read_config
from evenhand.study.tables.columns import listed, names_items
from evenhand.study.tables.formats import row_number
from evenhand.study.tables.ratings import (
    RATINGS_COLUMNS,
    rater_columns,
    read_attacked,
    split_ratings,
    texts,
    with_unit_id,
)
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.ratings_file.declared import Table
    from evenhand.reporting.ratings_file.labels import RatingsInput
    from evenhand.study import Study

    Source = Path | Table | Dataset
    """A study's folder, a file or a table of ratings, or a dataset that is loaded already."""

USUAL_SCALE = ScaleOptions()
_ORDER = {"nominal": "unordered", "ordinal": "ordered", "interval": "as numbers"}


def load(
    source: Source, options: ScaleOptions = USUAL_SCALE, *, scales: Scales | None = None
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
        dataset = with_scores(from_study(study).changed(**options.settings))
        return replace(dataset, ratings=without_missing(dataset.ratings, options.missing))


def is_study(source: Path) -> bool:
    """Return True for a study's folder, False for a file or folder of ratings."""
    if not source.is_dir() or (source / "study.toml").exists():
        return source.is_dir()
    return format_of(FileSource(source)) == TABLE


def id_in(source: Source | str, name: str) -> str:
    """Return the id of the rater or rubric that a source gives this display name; else the name."""
    if isinstance(source, Dataset):
        return source.id_of(name)
    if not isinstance(source, Path):
        return name
    if (source / FILE_NAME).is_file():
        called = read_config(source).names
    else:
        called = sidecar.names if (sidecar := read_sidecar(source)) else {}
    return next((id_ for id_, given in called.items() if given == name), name)


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
    people = dict.fromkeys(config.analysis.rater_slices)
    people |= {config.side.key: None} if config.side else {}
    unknown = unknown_names(config.names, ratings, study.rubrics)
    is_tried = ratings["rater_id"].str.contains(TRIED, regex=False)
    ratings = ratings[~is_tried | (ratings["rater_id"] == tried)]
    ratings = without_missing(ratings, config.analysis.missing)
    usage, exclusions = grade_totals(study.store), oversight(study.store).exclusions
    dataset = Dataset(
        name=config.name,
        ratings=ratings,
        units=units,
        scales=study_scales(study),
        settings=config.analysis.model_copy(update={"rater_slices": tuple(people)}),
        decision=config.decision,
        seed=config.seed,
        facts=StudyFacts(
            rubric_hashes=hashes,
            excluded={rater: exclusion.reason for rater, exclusion in exclusions.items()},
            raters=raters_to_split_by(study),
            usage=usage,
            prices=prices_of(usage),
            looks=look_numbers(study.store, looked_at(study, ratings), record=look),
            sorted=Counter((case.rubric, case.grader, case.kind) for case in sorted_so_far(study)),
            attacked=attacked_table(study.store, hashes),
            rewordings=tried_wordings,
            strata=config.sample.stratify,
            assigned=all_labels_were_assigned(study.store),
        ),
        title=config.name,
        titles={
            name: config.names.get(name, rubric.title) for name, rubric in study.rubrics.items()
        },
        names={
            name: rubric.kind.names for name, rubric in study.rubrics.items() if rubric.kind.listed
        },
        called=config.names,
        notes=tuple(unknown),
        synthetic=config.synthetic,
    )
    withheld = withheld_grades(study, dataset)
    known = dataset.scales.items()
    scales = {name: replace(scale, withheld=withheld.get(name, {})) for name, scale in known}
    dataset = without_withheld(replace(dataset, scales=scales))
    of_sets = [rubric for rubric in study.rubrics.values() if not rubric.kind.is_single]
    several = {} if whole else {rubric.name: rubric.categories for rubric in of_sets}
    return with_parts(dataset, several)


def unknown_names(
    called: Mapping[str, str], ratings: pd.DataFrame, rubrics: Collection[str]
) -> list[str]:
    """Return a sentence on each id with a display name that no rater and no rubric has."""
    if not called:
        return []
    known = [*ratings["rater_id"].unique(), *ratings["rubric"].unique(), *rubrics]
    unknown = [name for name in called if name not in known or not name]
    hints = ((name, did_you_mean(name, known)) for name in unknown)
    return [written("names.unknown", id=repr(name), hint=hint) for name, hint in hints]


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
    from evenhand.study.store.logs import decisions

    withheld: dict[str, dict[str, frozenset[str]]] = {}
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
        of_rubric: dict[str, frozenset[str]] = {}
        for rater, units in graded.items():
            seen = chosen.get(rater, set()) | texts.get(own_prompt_hash(rater), set())
            away = {unit for unit, cluster in clusters.items() if cluster in seen}
            if rater in is_first and parts.keys() >= {clusters.get(unit) for unit in units}:
                away |= {unit for unit, cluster in clusters.items() if cluster in parts} - units
            if away:
                of_rubric[rater] = frozenset(away)
        for rater, tried in decisions.candidates_of(study.store, rubric).items():
            if tried.is_new and rater not in chosen and rater in graded:
                units = graded[rater]
                if all(parts.get(clusters.get(unit, "")) in ("learn", "choose") for unit in units):
                    of_rubric[rater] = units
        withheld[rubric] = of_rubric
    return withheld


def without_withheld(dataset: Dataset) -> Dataset:
    """Leave out the labels that are withheld from graders on their scale, and say so."""
    ratings, notes = dataset.ratings, []
    for rubric, scale in dataset.scales.items():
        if not scale.withheld:
            continue
        is_own = (ratings["rubric"] == rubric) | (len(dataset.scales) == 1)
        of_rubric = ratings[is_own]
        pairs = zip(of_rubric["rater_id"], of_rubric["unit_id"], strict=True)
        kept = [unit not in scale.withheld.get(rater, ()) for rater, unit in pairs]
        ratings = ratings.drop(of_rubric.index[~np.array(kept, dtype=bool)])
        left = ratings[is_own.loc[ratings.index]]
        labelled = set(left.loc[left["rater_kind"] == "human", "unit_id"])
        gone, dropped = [], set(of_rubric["rater_id"].to_numpy()[~np.array(kept, dtype=bool)])
        for grader in scale.withheld:
            judged = set(left.loc[left["rater_id"] == grader, "unit_id"])
            if not judged:
                gone += [grader] if grader in dropped else []
                continue
            about = {
                "rubric": dataset.call(rubric),
                "grader": dataset.call(grader),
                "have": len(judged & labelled),
            }
            key = "withheld" if grader in dropped else "not_asked"
            notes.append(written(f"note.{key}", labelled=len(labelled), **about))
        if gone:
            named = {"rubric": dataset.call(rubric), "graders": ", ".join(map(dataset.call, gone))}
            notes.append(written("note.only_tried", **named))
    return replace(dataset, ratings=ratings, notes=(*dataset.notes, *notes))


def clusters_of(dataset: Dataset, by: str = "") -> dict[str, str]:
    """Return the cluster of each unit of a study, as its settings or as `by` says."""
    ids = sorted(set(dataset.units["unit_id"]))
    clusters = UnitFacts(ids, dataset.units).clusters(by or dataset.settings.cluster)
    return {unit: str(clusters.values[at]) for unit, at in zip(ids, clusters.codes, strict=True)}


def looked_at(study: Study, ratings: pd.DataFrame) -> dict[str, str]:
    """Return a hash of the labels that a look at the verdict sees, by rubric.

    With fewer pairs labelled by two people than a verdict needs, no verdict can be given, so
    looking at them is free.
    """
    from evenhand.study.store.logs.decisions import labels_hash

    pairs = study.units("all").set_index("unit_id")["cluster_id"]
    present = {}
    for name, labels in ratings[ratings["rater_kind"] == "human"].groupby("rubric"):
        people = labels.groupby("unit_id")["rater_id"].nunique()
        twice = pairs.reindex(people.index[people >= 2]).nunique()
        if twice >= study.config.decision.min_clusters:
            present[str(name)] = labels_hash(labels)
    return present


def study_scales(study: Study) -> dict[str, Scale]:
    """Return the scale of every rubric, with the thresholds in force and what each was tuned on.

    A threshold counts as tuned if a logged one has this very number; any other was put in by hand.
    A wording that people label in a rubric's place is the rubric, and that is the other wording.
    """
    from evenhand.study.store.logs.decisions import TUNED_THRESHOLDS

    thresholds, tunings = study.config.thresholds, defaultdict[str, dict[str, Tuning]](dict)
    for threshold in TUNED_THRESHOLDS.all(study.store):
        if thresholds.get(threshold.rubric, {}).get(threshold.grader) == threshold.threshold:
            tunings[threshold.rubric][threshold.grader] = Tuning(
                clusters=frozenset(threshold.clusters),
                objective=threshold.objective,
                reference=threshold.reference,
                instead_of=threshold.instead_of,
            )
    labelled = {rubric.name: rubric.variant_of for rubric in study.labelled_rubrics()}
    variants = [(base, name) for name, base in reversed(labelled.items()) if base]
    adopted = {base: name for base, name in variants if base not in labelled}
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
    file: Path, options: ScaleOptions = USUAL_SCALE, *, scales: Scales | None = None
) -> Dataset:
    """Load a ratings file on the scale declared, with its sidecar
    (`reporting.ratings_file.declared`).

    `scales` replace those of the sidecar: only their rubrics are read, and the files that the
    sidecar names are not. Raises InputError, naming file and row.
    """
    sidecar, attacked, units = read_sidecar(file), None, options.units
    if sidecar is not None:
        options = sidecar.file.under(options)
        options = replace(options, rubric=options.rubric and id_in(file, options.rubric))
        if scales is None:
            advice = "put it there or give --units FILE"
            units = units or named_file(file, "units", sidecar.units, advice)
            audit = named_file(file, "injection audit", sidecar.attacked, "put it there")
            attacked = read_attacked(audit) if audit else None
        if (missing := sidecar.analysis.missing) and not options.missing:
            options = replace(options, settings={**options.settings, "missing": missing})
    table = None if units is None else units_table(units)
    with naming_sidecar(file):
        read = rows_of_file(file, options)
        return from_rows(*read, units=table, sidecar=sidecar, attacked=attacked, scales=scales)


def from_table(given: Table, options: ScaleOptions, *, scales: Scales | None = None) -> Dataset:
    """Load a table of ratings, of any library, on the scale declared. Raises InputError, naming
    the row by its index.
    """
    units = None if options.units is None else units_table(options.units)
    return from_rows(*rows_of_table(given, options), units=units, scales=scales)


@contextmanager
def naming_sidecar(file: Path) -> Iterator[None]:
    """Name the sidecar of a ratings file, if it has one, in the InputErrors of this block: a scale
    or a column that nothing on the command line declares comes from there.
    """
    try:
        yield
    except InputError as error:
        path = sidecar_path(file)
        if not path.exists():
            raise
        raise InputError(f"{error} ({path.name} was read too)") from None


def from_rows(
    rows: pd.DataFrame,
    read: RatingsInput,
    *,
    units: tuple[pd.DataFrame, str] | None = None,
    sidecar: Sidecar | None = None,
    attacked: pd.DataFrame | None = None,
    scales: Scales | None = None,
) -> Dataset:
    """Load the rows of a ratings file or a table; `units` are a table of units and its name,
    `attacked` the injection audit. The scale and the settings declared override the sidecar.
    """
    source, options = read.source, read.options
    changes = options.settings
    ratings, columns = split_ratings(rows, source)
    if ratings.empty:
        raise InputError(f"{source} has a header but no ratings")
    if units is not None:
        columns = with_units(columns, *units)
    check_asked_for(changes, columns, rows, source if units is None else units[1])
    known = sidecar or Sidecar.model_construct()  # which asks for no validator to be built
    for fault in unknown_names(known.names, ratings, known.scales):
        raise InputError(fault)
    named = ratings["rubric"]
    if scales is not None and (named != "").any():
        ratings = ratings[named.isin(list(scales))]
        if ratings.empty:
            raise InputError(
                f"{source} has no ratings on {listed(scales)}; its rubrics are "
                f"{listed(sorted(set(named)))}"
            )
    if {*CRITERIA} <= set(columns) and options.rubric not in {*named}:
        options = replace(options, rubric=rubric_read(options.rubric))
    of_labels = replace(read, notes=[], options=options)
    ratings, declared, several = scales_of(ratings, of_labels, known, scales)
    settings = {name: getattr(known.analysis, name) for name in known.analysis.model_fields_set}
    asked = {**settings, **changes}.get("cluster")
    columns, cluster, of_items = clustered_by_items(columns, ratings, asked, options)
    asked_sides = changes.get("rater_slices") or ()
    is_sided = asked_sides or known.analysis.rater_slices
    raters = rater_columns(rows, None if is_sided else MOST_SIDES + 1)
    check_sides(rows, raters, asked_sides, source)
    notes = [*read.notes]
    if sidecar is None:
        notes.append(_read_as(read.items, ratings, declared, several))
    else:
        key, file = "sidecar_of" if known.study else "sidecar", sidecar_path(Path(source)).name
        notes.insert(0, written(f"reading.{key}", study=known.study, file=file))
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
        titles={
            name: title
            for name, scale in known.scales.items()
            if (title := known.names.get(name, scale.title))
        },
        names={name: scale.names for name, scale in known.scales.items()},
        called=known.names,
        notes=(*notes, *of_items, *of_labels.notes),
        synthetic=known.synthetic,
    )
    changes = changes if cluster is None else {**changes, "cluster": cluster}
    return with_scores(without_withheld(with_parts(dataset, several)).changed(**changes))


def check_sides(
    rows: pd.DataFrame, raters: pd.DataFrame, columns: Sequence[str], source: str
) -> None:
    """Raise InputError where one of the columns of raters has no two sides of two annotators."""
    humans = rows.loc[rows["rater_kind"] == "human", "rater_id"]
    known = raters[raters["rater_id"].isin(humans)]
    for column in (name for name in columns if name in known):
        cells = known[column].fillna("").astype(str)
        sides = cells[cells != ""].value_counts()
        if (sides >= 2).sum() < 2 and (sides == 1).any():
            side = str(sides.index[-1])
            who = known.loc[cells == side, "rater_id"].iloc[0]
            at = int((rows["rater_id"] == who).to_numpy().argmax())
            raise InputError(
                f"{source}, row {row_number(rows, at)}: {column} {side!r} has only the annotator "
                f"{who!r}, and a side needs two; add annotators of that side, or leave {column} "
                "out of rater_slices"
            )


def _read_as(
    items: str, ratings: pd.DataFrame, scales: Scales, several: Mapping[str, Sequence[str]]
) -> str:
    """Return what was taken for items, annotators, graders and labels, in a line."""
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
    elif ordered_scale(scale.categories):
        labels = f"labels {span_of(scale.categories)}, {_ORDER[scale.level]}"
    else:
        labels = f"labels {listed(scale.categories)}, {_ORDER[scale.level]}"
    items = f"`{items}`" if items else "are rows"
    return written("reading.read_as", items=items, raters="; ".join(names), labels=labels)


# ---- the units of a file or a table, and the items that they repeat ------------------------------

_PURPOSES = {
    "slices": "slice by",
    "groups": "group by",
    "variants": "tell variants by",
    "cluster": "cluster by",
    "sensitivity_cluster": "cluster by",
}
"""The settings that name units columns, and what for."""
MIN_FILLED = 0.9
_MOST_LOOKED_AT = 100
_ANSWER = re.compile(rf"(^|[_\W])({pattern_of('answer')})([_\W]|$)", re.I)
MIN_TEXTS = 10
TEXT_LENGTH = 20
"""Median length, in characters, from which different cells are texts."""
MIN_COPIED = 20
"""A table of fewer different rows may be several copies of itself by chance: that the counts of m
different rows are all multiples of one number has a chance of about 2 ** -m."""
COPIES = "copies"
"""The units column that numbers the rows of which a table holds several copies."""
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?|\d{1,2}:\d{2}.*")


def with_units(rated: pd.DataFrame, units: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return a table of units, which messages call `source`, plus the columns of units in the
    ratings.
    """
    units = with_unit_id(units)
    if "unit_id" not in units:
        raise InputError(
            f"{source}: the column 'unit_id' is missing (it has {listed(units.columns)}); give "
            "that name to the column that identifies the items"
        )
    again = units.duplicated("unit_id").to_numpy()
    if again.any():
        at = int(again.argmax())
        raise InputError(
            f"{source}, row {row_number(units, at)}: item {units['unit_id'].iloc[at]!r} has more "
            "than one row; keep one for each item"
        )
    unknown = ~rated["unit_id"].isin(units["unit_id"])
    if unknown.any():
        unit = rated.loc[unknown, "unit_id"].iloc[0]
        raise InputError(f"{source} has no row for item {unit!r}, which was rated; add it")
    further = [column for column in rated if column == "unit_id" or column not in units]
    return units.merge(rated[further], on="unit_id", how="left").fillna("")


def check_asked_for(
    settings: Mapping[str, Any], units: pd.DataFrame, rows: pd.DataFrame, source: str
) -> None:
    """Raise InputError where a setting names a column that no unit has, listing those there are.

    `source` is the name in messages of the table that should have it, `rows` are the ratings.
    """
    for setting, purpose in _PURPOSES.items():
        named = settings.get(setting) or ()
        for column in (named,) if isinstance(named, str) else named:
            if column in units or (setting == "cluster" and column in ("pair", "unit")):
                continue
            if column in rows and column not in RATINGS_COLUMNS:
                first = rows.groupby("unit_id", sort=False)[column].transform("first")
                unit = rows.loc[rows[column] != first, "unit_id"].iloc[0]
                raise InputError(
                    f"{source}: the column {column!r} differs between ratings of item {unit!r}, so "
                    f"there is nothing to {purpose}; name a column with one value for each item"
                )
            others = listed(name for name in units if name != "unit_id")
            existing = f"it has {others}" if others else "it has no columns that describe units"
            raise InputError(f"{source} has no column {column!r} to {purpose}; {existing}")


def clustered_by_items(
    units: pd.DataFrame, ratings: pd.DataFrame, cluster: str | None, options: ScaleOptions
) -> tuple[pd.DataFrame, str | None, list[str]]:
    """Return the units, the column that is their cluster (None: as in the settings), and notes.

    `cluster` is the one asked for, or None. Raises InputError where a cluster is named for units
    that are declared to be independent.
    """
    if options.independent and cluster not in (None, "unit"):
        one, other = options.spelled("cluster", cluster or ""), options.spelled("independent")
        raise InputError(f"{one} and {other} exclude each other; leave one of them out")
    if options.independent:
        return units, "unit", []
    if cluster not in (None, "pair") or "cluster_id" in units:
        return units, None, []
    ways = {"independent": options.spelled("independent"), "cluster": options.spelled("cluster")}
    is_rated = units["unit_id"].isin(ratings["unit_id"].unique()).to_numpy()
    rated = units[is_rated]
    of_criteria = RESPONSE_ID if {*CRITERIA} <= set(rated) else None
    if name := item_column(rated[shared_columns(rated)], ratings) or of_criteria:
        cells = texts(units[name])
        alone = "(" + units["unit_id"].astype(str) + ")"
        units = units.assign(**{name: cells.where(cells != "", alone)})
        items, rows = units.loc[is_rated, name].nunique(), len(rated)
        return units, name, [written("reading.items", column=name, items=items, rows=rows, **ways)]
    if COPIES not in units and (copied := _copies(rated, ratings)) is not None:
        numbers = np.full(len(units), "", dtype=object)
        numbers[is_rated] = copied.astype(str)
        items = len(np.unique(copied))
        times = len(rated) // items
        note = written("reading.copies", times=times, items=items, **ways)
        return units.assign(**{COPIES: numbers}), COPIES, [note]
    return units, None, []


def item_column(units: pd.DataFrame, ratings: pd.DataFrame) -> str | None:
    """The column that names items which several units share; None where there is none.

    >>> import pandas as pd
    >>> units = pd.DataFrame({"unit_id": list("1234"), "topic": list("aabb"), "Item": list("xyxy")})
    >>> item_column(units, pd.DataFrame({"unit_id": [], "label": []}))
    'Item'
    """
    named, repeating = {}, {}
    for column in map(str, units.columns):
        if column == "unit_id":
            continue
        cells = texts(units[column])
        counts = cells.value_counts(sort=False).drop("", errors="ignore")
        if len(counts) < 2 or counts.max() < 2 or counts.sum() < MIN_FILLED * len(units):
            continue
        if counts.index[:_MOST_LOOKED_AT].map(is_nested).all():
            continue
        if names_items(column):
            named[column] = len(counts)
        elif (
            not is_fact(column)
            and not _ANSWER.search(column)
            and 2 * counts[counts > 1].sum() >= len(units)
            and _are_names(counts.index)
        ):
            repeating[column] = len(counts)
    for able in (named, repeating):
        for column in sorted(able, key=lambda column: (able[column], column)):
            if not _is_of_labels(units, column, ratings):
                return column
    return None


def _is_of_labels(units: pd.DataFrame, column: str, ratings: pd.DataFrame) -> bool:
    """Return True if a unit's labels, in any order, determine its cell in a column."""
    given = ratings[ratings["label"] != ""].sort_values("label")
    labels = given.groupby("unit_id")["label"].agg("\n".join)
    cells = texts(units[column]).set_axis(units["unit_id"].to_numpy())
    both = labels.index.intersection(cells.index)
    pairs = list(zip(labels[both], cells[both], strict=True))
    repeats = len(pairs) - len({pattern for pattern, _ in pairs})
    return repeats >= MIN_TEXTS and len(set(pairs)) == len({pattern for pattern, _ in pairs})


def _are_names(values: pd.Index) -> bool:
    """Return True if the different cells are numerous enough, or long enough, to be names."""
    if len(values) < MIN_TEXTS:
        return False
    if len(values) <= MAX_VALUES and values.str.len().to_series().median() < TEXT_LENGTH:
        return False
    others = ~(
        pd.to_numeric(values.to_series(), errors="coerce").notna().to_numpy()
        | values.str.fullmatch(_DATE)
    )
    return bool(others.any())


def _copies(units: pd.DataFrame, ratings: pd.DataFrame) -> np.ndarray | None:
    """Return the row that each unit is a copy of, (units,), if units and labels show that the table
    is several copies of a smaller one; else None.

    Equal rows of the smaller table cannot be told apart; it does not matter which copy is whose.
    """
    if len(units) < 2 * MIN_COPIED:
        return None
    given = ratings[["rubric", "rater_id", "label", "p_positive", "probabilities"]]
    place = pd.Index(units["unit_id"]).get_indexer(pd.Index(ratings["unit_id"]))
    key = np.zeros(len(units), dtype=np.uint64)
    # A sum, as a unit's ratings come in any order.
    np.add.at(key, place, pd.util.hash_pandas_object(given, index=False).to_numpy())
    if about := [name for name in units if name != "unit_id"]:
        described = pd.util.hash_pandas_object(units[about].astype(str), index=False)
        key = np.asarray(key * np.uint64(31) + described.to_numpy(), dtype=np.uint64)
    _, group, counts = np.unique(key, return_inverse=True, return_counts=True)
    times = int(np.gcd.reduce(counts))
    if times < 2 or len(counts) < MIN_COPIED:
        return None
    nth = pd.Series(group).groupby(group).cumcount().to_numpy()
    start = np.concatenate([[0], np.cumsum(counts // times)[:-1]])
    return np.asarray(start[group] + nth % (counts // times)[group])
