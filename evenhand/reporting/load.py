"""Load a study, a ratings file or a table as a `Dataset`: the ratings that count, with their
scales, units (the rated items) and settings.

A table is read in four steps: the table of any library or file (`dataframes.frame_of`,
`exchange.readers`), the roles of its columns, named or guessed (`columns.roles_in`), its long form
(`dataframes.long_rows`), and the dataset (`from_rows`). `labels` has the corrections on the way.

Rows that repeat an item are no more evidence than one row, so each item is a cluster
(`clustered_by_items`). A column identifies items if some of its cells repeat and

- its name says so: `id`, `item`, `prompt`, `question` and others (`study.tables.columns`); or else
- it repeats as names and texts do: at least half of the rows share their cell with another row, and
  there are more than `MAX_VALUES` different cells, or `MIN_TEXTS` of them that are texts. Numbers
  and dates are no names, and a column of fewer values (topic, model) describes parts of the sample.

Of several such columns the one with the fewest different cells is taken: the repeats of the others
lie within it. A column is never taken if it is empty in more than a tenth of the rows, holds lists
or nested values, is named as an answer or as a fact about the labels, or is a function of the
labels, such as their majority. Without such a column, a table that consists of several copies of a
smaller one is recognised by its rows.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand.analysis import Scale
from evenhand.analysis.dataset import Dataset
from evenhand.analysis.labels.matrix import MAX_VALUES, MOST_SIDES, UnitFacts
from evenhand.analysis.labels.scale import Tuning
from evenhand.analysis.request import StudyFacts, TriedWording
from evenhand.errors import InputError, did_you_mean
from evenhand.exchange.readers.reading import TABLE, format_of
from evenhand.exchange.readers.source import Source as FileSource
from evenhand.lazy import np, pd
from evenhand.reporting.ratings_file import declared
from evenhand.reporting.ratings_file.columns import is_fact, is_nested
from evenhand.reporting.ratings_file.criteria import (
    rubric_scored,
    rubrics_of,
    shared_columns,
    with_scores,
)
from evenhand.reporting.ratings_file.dataframes import rows_of_file, rows_of_table, units_table
from evenhand.reporting.ratings_file.labels import Scales, pattern_of, scales_of, with_parts
from evenhand.rubrics.loading import own_prompt_hash
from evenhand.rubrics.options import ordered_scale, span_of
from evenhand.study.prompts.pairs import CRITERIA, RESPONSE_ID
from evenhand.study.settings.study_toml import FILE_NAME, read_config
from evenhand.study.store.grades import TRIED_MARK
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
    from evenhand.reporting.ratings_file.labels import RatingsInput, ScaledRatings
    from evenhand.study import Study

Source: TypeAlias = "Path | declared.Table | Dataset"
"""A study's folder, a file or a table of ratings, or a dataset that is loaded already."""

DEFAULTS = declared.ScaleOptions()
_LEVEL_WORDS = {"nominal": "unordered", "ordinal": "ordered", "interval": "as numbers"}  # in notes


def load(
    source: Source, options: declared.ScaleOptions = DEFAULTS, *, scales: Scales | None = None
) -> Dataset:
    """Load a study's folder, a file or folder of ratings, or a table (`from_study`, `from_file`,
    `from_table`). A `Dataset` is returned with the settings of `options`.
    """
    if isinstance(source, Dataset):
        return _changed(source, options.settings)
    if not isinstance(source, Path):
        return from_table(source, options, scales=scales)
    if not is_study(source):
        return from_file(source, options, scales=scales)
    from evenhand.study import open_study

    with open_study(source) as study:
        return with_scores(from_study(study, **options.settings))


def _changed(dataset: Dataset, changes: Mapping[str, Any]) -> Dataset:
    """Return a dataset with other settings. In a study's, labels that only these settings count as
    an interim analysis, or that they change, get no verdict, as it was not counted.
    """
    ratings = without_missing(dataset.ratings, changes.get("missing", ()))
    changed, facts = replace(dataset, ratings=ratings).changed(**changes), dataset.facts
    if facts.rubric_hashes is None or not changes:
        return changed
    before, now = label_hashes(dataset), label_hashes(changed)
    same_labels = dict(now.items() & before.items())
    looks = {name: facts.looks.get(name, 0) if name in same_labels else 0 for name in now}
    return replace(changed, facts=replace(facts, looks=looks))


def is_study(source: Path) -> bool:
    """Return True for a study's folder, False for a file or folder of ratings."""
    if not source.is_dir():
        return False
    # A folder without study.toml is one of ratings if a tool's format is recognised.
    return (source / FILE_NAME).exists() or format_of(FileSource(source)) == TABLE


def id_in(source: Source | str, name: str) -> str:
    """Return the id of the rater or rubric with a display name in a source; else the name."""
    if isinstance(source, Dataset):
        return source.id_of(name)
    if not isinstance(source, Path):
        return name
    if (source / FILE_NAME).is_file():
        names = read_config(source).names
    else:
        names = sidecar.names if (sidecar := declared.read_sidecar(source)) else {}
    return next((id_ for id_, display_name in names.items() if display_name == name), name)


def is_file(source: Source | str) -> bool:
    """Return True for a ratings file, its address or a table; False for a folder or a Dataset."""
    return not isinstance(source, Dataset) and (not isinstance(source, Path) or source.is_file())


# ---- a study ------------------------------------------------------------------------------------


def from_study(
    study: Study, *, look: bool = False, tried: str = "", whole: bool = False, **changes: Any
) -> Dataset:
    """Load a study: the ratings of annotators and graders, with `changes` of its settings. A rubric
    that asks for several options becomes a rubric for each option, unless `whole`.

    With `look`, new labels count as an interim analysis; without it they get no verdict. Grades
    under a rubric's text that was only tried are left out, except those of the rater id `tried`,
    and so are those withheld because of `improve` (`withheld_units`).
    """
    ratings, config, rubrics = study.ratings(), study.config, study.rubrics
    notes = unknown_ids(config.names, ratings, rubrics)
    is_tried = ratings["rater_id"].str.contains(TRIED_MARK, regex=False)
    ratings = ratings[~is_tried | (ratings["rater_id"] == tried)]
    ratings = without_missing(ratings, changes.get("missing", config.analysis.missing))
    side_columns = [config.side.key] if config.side else []
    rater_slices = dict.fromkeys([*config.analysis.rater_slices, *side_columns])
    dataset = Dataset(
        name=config.name,
        ratings=ratings,
        units=study.units_with_lengths("all"),
        scales=study_scales(study),
        settings=config.analysis.model_copy(update={"rater_slices": tuple(rater_slices)}),
        decision=config.decision,
        seed=config.seed,
        title=config.name,
        titles={name: config.names.get(name, rubric.title) for name, rubric in rubrics.items()},
        names={name: rubric.kind.names for name, rubric in rubrics.items() if rubric.kind.listed},
        names_by_id=config.names,
        notes=tuple(notes),
        synthetic=config.synthetic,
    ).changed(**changes)
    dataset = replace(dataset, facts=_study_facts(study, dataset, look=look))
    withheld = withheld_units(study, dataset)
    scales = {
        name: replace(scale, withheld=withheld.get(name, {}))
        for name, scale in dataset.scales.items()
    }
    dataset = without_withheld(replace(dataset, scales=scales))
    if whole:
        return dataset
    set_rubrics = [rubric for rubric in rubrics.values() if not rubric.kind.is_single]
    return with_parts(dataset, {rubric.name: rubric.categories for rubric in set_rubrics})


def _study_facts(study: Study, dataset: Dataset, *, look: bool) -> StudyFacts:
    """Return the facts about a study's `dataset`; `look` is as in `from_study`."""
    from evenhand.study.creation import rewording_of, units_by_wording
    from evenhand.study.desk.claims import oversight
    from evenhand.study.lead.disagreements import sorted_cases
    from evenhand.study.session.sessions import raters_with_languages
    from evenhand.study.store.logs.decisions import look_numbers
    from evenhand.study.store.logs.replies import attacked_table
    from evenhand.study.store.store import all_labels_were_assigned

    tried_wordings = {}
    if rewording := rewording_of(study):
        old, new = units_by_wording(study, rewording)
        raters_per_unit = study.config.annotation.raters_per_unit
        trial = TriedWording(rewording.new.variant_of, old, new, raters_per_unit)
        tried_wordings[rewording.new.name] = trial
    hashes, usage = study.accepted_hashes(), study.grade_totals()
    exclusions = oversight(study.store).exclusions
    return StudyFacts(
        rubric_hashes=hashes,
        excluded={rater: exclusion.reason for rater, exclusion in exclusions.items()},
        raters=raters_with_languages(study),
        usage=usage,
        prices=declared.prices_of(usage),
        looks=look_numbers(study.store, label_hashes(dataset), record=look),
        sorted=Counter((case.rubric, case.grader, case.kind) for case in sorted_cases(study)),
        attacked=attacked_table(study.store, hashes),
        rewordings=tried_wordings,
        strata=study.config.sample.stratify,
        assigned=all_labels_were_assigned(study.store),
    )


def unknown_ids(
    names: Mapping[str, str], ratings: pd.DataFrame, rubrics: Collection[str]
) -> list[str]:
    """Return a sentence on each id in `names` (display names) that no rater or rubric has."""
    if not names:
        return []
    ids = [*ratings["rater_id"].unique(), *ratings["rubric"].unique(), *rubrics]
    return [
        written("names.unknown", id=repr(id_), hint=did_you_mean(id_, ids))
        for id_ in names
        if id_ not in ids or not id_
    ]


def without_missing(ratings: pd.DataFrame, missing: Collection[str]) -> pd.DataFrame:
    """Return ratings with an empty label in place of each of the `missing` codes."""
    labels = ratings["label"]
    return ratings.assign(label=labels.mask(labels.isin(missing), "")) if missing else ratings


def withheld_units(study: Study, dataset: Dataset) -> dict[str, dict[str, frozenset[str]]]:
    """Return the units on which a grader's labels do not count, or are not counted as missing, by
    rubric and rater id.

    - After `evenhand improve` a winner looks better than it is on the clusters that it was chosen
      on, and any grader with a proposed prompt on those that the prompt was written from: its
      grades there are withheld.
    - A new candidate with grades only in *learn* and *choose* (the training and selection sets)
      that was not chosen is no grader of the study: all its grades are withheld.
    - Labelled units that a grader was never asked about, as those outside the sample, do not count
      as missing. What an imported grader was asked is not known, so all are expected of it.
    """
    from evenhand.study.store.logs import decisions
    from evenhand.study.store.store import imported_graders

    withheld: dict[str, dict[str, frozenset[str]]] = {}
    improved, imported = decisions.rubrics_improved(study.store), imported_graders(study.store)
    for rubric, ratings in dataset.ratings.groupby("rubric"):
        is_grade = ratings["rater_kind"] == "model"
        labelled = frozenset(ratings.loc[~is_grade, "unit_id"])
        by_rater = ratings[is_grade].groupby("rater_id")["unit_id"]
        graded = {str(rater): frozenset(units) for rater, units in by_rater}
        omitted = {rater: labelled - units for rater, units in graded.items()}
        omitted |= {grader: frozenset() for name, grader in imported if name == rubric}
        if rubric in improved:
            for rater, units in _withheld_by_improve(study, dataset, str(rubric), graded).items():
                omitted[rater] |= units
        withheld[str(rubric)] = {rater: units for rater, units in omitted.items() if units}
    return withheld


def _withheld_by_improve(
    study: Study, dataset: Dataset, rubric: str, graded: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return the units withheld because of `improve`, by rater id; `graded` units likewise."""
    from evenhand.study.store.logs import decisions

    clusters = clusters_of(dataset, decisions.split_cluster_kind(study.store, rubric))
    parts = decisions.parts_of(study.store, rubric)  # of the split, by cluster
    chosen_on = decisions.chosen_on(study.store, rubric)
    written_from = decisions.influences_on_texts(study.store, rubric)
    withheld: dict[str, frozenset[str]] = {}
    for rater in graded:  # a winner, or a grader with a proposed prompt
        tuned_on = chosen_on.get(rater, set()) | written_from.get(own_prompt_hash(rater), set())
        withheld[rater] = frozenset(unit for unit in clusters if clusters[unit] in tuned_on)
    for rater, tried in decisions.candidates_of(study.store, rubric).items():  # not chosen
        if tried.is_new and rater not in chosen_on and rater in graded:
            units = graded[rater]
            if all(parts.get(clusters.get(unit, "")) in ("learn", "choose") for unit in units):
                withheld[rater] = units
    return withheld


def without_withheld(dataset: Dataset) -> Dataset:
    """Return the dataset without the labels that its scales withhold, with a note for each grader.
    If there is only one scale, it applies to all ratings: these need not name its rubric.
    """
    ratings, notes = dataset.ratings, []
    for rubric, scale in dataset.scales.items():
        if not scale.withheld:
            continue
        is_on_rubric = (ratings["rubric"] == rubric) | (len(dataset.scales) == 1)
        on_rubric = ratings[is_on_rubric]
        rated = zip(on_rubric["rater_id"], on_rubric["unit_id"], strict=True)
        is_withheld = [unit in scale.withheld.get(rater, ()) for rater, unit in rated]
        withheld = on_rubric[np.array(is_withheld, dtype=bool)]
        ratings = ratings.drop(withheld.index)
        remaining = ratings[is_on_rubric.loc[ratings.index]]
        labelled = set(remaining.loc[remaining["rater_kind"] == "human", "unit_id"])
        removed_graders, affected_graders = [], set(withheld["rater_id"])
        for grader in scale.withheld:
            graded = set(remaining.loc[remaining["rater_id"] == grader, "unit_id"])
            if not graded:  # no note on it alone: it is removed, or never had labels
                if grader in affected_graders:
                    removed_graders.append(grader)
                continue
            key = "withheld" if grader in affected_graders else "not_asked"
            names = {"rubric": dataset.name_of(rubric), "grader": dataset.name_of(grader)}
            counts = {"have": len(graded & labelled), "labelled": len(labelled)}
            notes.append(written(f"note.{key}", **names, **counts))
        if removed_graders:
            joined = ", ".join(map(dataset.name_of, removed_graders))
            notes.append(written("note.only_tried", rubric=dataset.name_of(rubric), graders=joined))
    return replace(dataset, ratings=ratings, notes=(*dataset.notes, *notes))


def clusters_of(dataset: Dataset, by: str = "") -> dict[str, str]:
    """Return the cluster of each unit, by the column `by` or, if "", that of the settings."""
    ids = sorted(set(dataset.units["unit_id"]))
    clusters = UnitFacts(ids, dataset.units).clusters(by or dataset.settings.cluster)
    return {id_: str(clusters.values[code]) for id_, code in zip(ids, clusters.codes, strict=True)}


def label_hashes(dataset: Dataset) -> dict[str, str]:
    """Return, by rubric, a hash of the labels that an interim analysis uses, annotators' and the
    reference's. Rubrics with fewer clusters labelled by the reference, or else by two annotators,
    than a verdict needs are left out: they get none, so analysing them spends no error rate. If no
    item has these labels, one by an annotator counts where a grader gives probabilities, from which
    a confidence cut follows (`thresholds.add_routing_rows`).
    """
    from evenhand.study.store.logs.decisions import labels_hash

    settings, reference = dataset.settings, dataset.id_of(dataset.decision.reference)
    ratings = without_missing(dataset.ratings, settings.missing)
    is_used = (ratings["rater_kind"] == "human") | (ratings["rater_id"] == reference)
    has_probability = (ratings["probabilities"] != "") | ratings["p_positive"].notna()
    hashes, with_cuts = {}, {*ratings.loc[has_probability, "rubric"]}
    for name, labels in ratings[is_used].groupby("rubric"):
        raters = labels.groupby("unit_id")["rater_id"].agg(set)
        is_compared = [reference in ids if reference else len(ids) >= 2 for ids in raters]
        if name in with_cuts and not any(is_compared):
            is_compared = [True] * len(raters)
        compared = UnitFacts(raters.index[is_compared].tolist(), dataset.units)
        if len(compared.clusters(settings.cluster).values) >= dataset.decision.min_clusters:
            hashes[str(name)] = labels_hash(labels)
    return hashes


def study_scales(study: Study) -> dict[str, Scale]:
    """Return the scale of every rubric, with the active thresholds and the labels that each was
    tuned on. A threshold counts as tuned if a logged one has the same value; any other was set by
    hand. If annotators label another wording of a rubric, that wording is the main one of the
    family and the others are its variants.
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
    labelled = {rubric.name: rubric for rubric in study.labelled_rubrics()}
    main_wordings: dict[str, str] = {}  # by the base that they are labelled instead of
    for name, rubric in labelled.items():
        if rubric.variant_of and rubric.variant_of not in labelled:
            main_wordings.setdefault(rubric.variant_of, name)
    scales = {}
    for name, rubric in study.rubrics.items():
        scale = Scale.from_rubric(rubric, thresholds.get(name), tunings.get(name))
        variant_of = scale.variant_of
        if main := main_wordings.get(variant_of or name):
            variant_of = "" if name == main else main
        scales[name] = replace(scale, ordered=study.config.analysis.ordered, variant_of=variant_of)
    return scales


# ---- a file, a table ----------------------------------------------------------------------------


def from_file(
    file: Path, options: declared.ScaleOptions = DEFAULTS, *, scales: Scales | None = None
) -> Dataset:
    """Load a ratings file on the scale of `options`, with its sidecar
    (`reporting.ratings_file.declared`). `scales` replace those of the sidecar: only their rubrics
    are read, and no file that the sidecar names. Raises InputError, naming file and row.
    """
    sidecar, attacked, units = declared.read_sidecar(file), None, options.units
    if sidecar is not None:
        options = sidecar.file.completing(options)
        options = replace(options, rubric=options.rubric and id_in(file, options.rubric))
        if scales is None:
            advice = "put it there or give --units FILE"
            units = units or declared.named_file(file, "units", sidecar.units, advice)
            audit = declared.named_file(file, "injection audit", sidecar.attacked, "put it there")
            attacked = read_attacked(audit) if audit else None
        if (codes := sidecar.analysis.missing) and not options.missing:
            options = replace(options, settings={**options.settings, "missing": codes})
    table_and_name = None if units is None else units_table(units)
    with naming_sidecar(file):
        # A column that a setting names describes items, also if it is the sidecar's setting.
        stored = {} if sidecar is None else sidecar.analysis.model_dump(exclude_unset=True)
        settings = {**stored, **options.settings}
        rows, reading = rows_of_file(file, replace(options, settings=settings))
        reading = replace(reading, options=replace(reading.options, settings=options.settings))
        return from_rows(
            rows, reading, units=table_and_name, sidecar=sidecar, attacked=attacked, scales=scales
        )


def from_table(
    table: declared.Table, options: declared.ScaleOptions, *, scales: Scales | None = None
) -> Dataset:
    """Load a table of ratings of any library. Raises InputError naming the row's index."""
    units = None if options.units is None else units_table(options.units)
    return from_rows(*rows_of_table(table, options), units=units, scales=scales)


@contextmanager
def naming_sidecar(file: Path) -> Iterator[None]:
    """Name a file's sidecar, which may be at fault, in InputErrors of the block."""
    try:
        yield
    except InputError as error:
        path = declared.sidecar_path(file)
        if not path.exists():
            raise
        raise InputError(f"{error} ({path.name} was read too)") from None


def from_rows(
    rows: pd.DataFrame,
    reading: RatingsInput,
    *,
    units: tuple[pd.DataFrame, str] | None = None,
    sidecar: declared.Sidecar | None = None,
    attacked: pd.DataFrame | None = None,
    scales: Scales | None = None,
) -> Dataset:
    """Load the rows of a ratings file or a table, one for each label. `units` are a table of units
    and its name, `attacked` is an injection audit. `reading.options` override the sidecar.
    """
    source, options, settings = reading.source, reading.options, reading.options.settings
    # The labels, and the units that they are on.
    ratings, unit_table = split_ratings(rows, source)
    if ratings.empty:
        raise InputError(f"{source} has a header but no ratings")
    units_source = source  # the name of the table that has the columns of units
    if units is not None:
        declared_units, units_source = units
        unit_table = with_units(unit_table, declared_units, units_source)
    check_setting_columns(settings, unit_table, rows, units_source)
    # The sidecar, or a default one; without validation, as building the validator takes long.
    stored = sidecar or declared.Sidecar.model_construct()
    if faults := unknown_ids(stored.names, ratings, stored.scales):
        raise InputError(faults[0])
    # The rubrics and their scales. With `scales`, ratings on other rubrics are left out.
    rubrics = {*ratings["rubric"].unique()}
    has_criteria = {*CRITERIA} <= set(unit_table)
    if scales is not None:
        names, scales = rubrics_of(scales, rubrics, has_criteria=has_criteria)
        ratings = ratings[ratings["rubric"].isin(names)] if rubrics != {""} else ratings
        if ratings.empty:
            fault = f"{source} has no ratings on {listed(scales)}"
            raise InputError(f"{fault}; its rubrics are {listed(sorted(rubrics))}")
    if has_criteria and options.rubric not in rubrics:  # a score's, which is computed in the end
        options = replace(options, rubric=rubric_scored(options.rubric))
    scaled = scales_of(ratings, replace(reading, options=options), stored, scales)
    ratings = scaled.ratings
    # The clusters: those that user or sidecar declared, or else the items that units repeat.
    in_sidecar = {name: getattr(stored.analysis, name) for name in stored.analysis.model_fields_set}
    cluster = {**in_sidecar, **settings}.get("cluster")
    unit_table, item_cluster, item_notes = clustered_by_items(unit_table, ratings, cluster, options)
    settings = settings if item_cluster is None else {**settings, "cluster": item_cluster}
    # The columns of raters that annotators may be sliced by.
    rater_slices = settings.get("rater_slices") or ()
    has_slices = rater_slices or stored.analysis.rater_slices
    most_values = None if has_slices else MOST_SIDES + 1  # None: no limit; 1 for an empty cell
    raters = rater_columns(rows, most_values)
    check_sides(rows, raters, rater_slices, source)
    if sidecar is None:
        notes = [*reading.notes, _reading_note(reading.items, scaled)]
    else:
        key = "sidecar_of" if stored.study else "sidecar"
        file = declared.sidecar_path(Path(source)).name
        notes = [written(f"reading.{key}", study=stored.study, file=file), *reading.notes]
    titles = {name: stored.names.get(name, scale.title) for name, scale in stored.scales.items()}
    dataset = Dataset(
        name=source,
        ratings=ratings,
        units=unit_table,
        scales=scaled.scales,
        settings=stored.analysis,
        decision=stored.decision,
        seed=stored.seed,
        facts=stored.facts(raters, source, attacked),
        title=stored.study or Path(source).stem,
        titles={name: title for name, title in titles.items() if title},
        names={name: scale.names for name, scale in stored.scales.items()},
        names_by_id=stored.names,
        notes=(*notes, *item_notes, *scaled.notes),
        synthetic=stored.synthetic,
    )
    dataset = without_withheld(with_parts(dataset, scaled.set_options)).changed(**settings)
    return with_scores(dataset)


def check_sides(
    rows: pd.DataFrame, raters: pd.DataFrame, columns: Sequence[str], source: str
) -> None:
    """Raise InputError if a column of `raters` that annotators are sliced by has fewer than two
    values (sides) that annotators share, and one of a single annotator. `rows` are the ratings.
    """
    human_ids = rows.loc[rows["rater_kind"] == "human", "rater_id"]
    annotators = raters[raters["rater_id"].isin(human_ids)]
    for column in (name for name in columns if name in annotators):
        cells = annotators[column].fillna("").astype(str)
        sides = cells[cells != ""].value_counts()
        if (sides >= 2).sum() < 2 and (sides == 1).any():
            side = str(sides.index[-1])  # the rarest
            annotator = annotators.loc[cells == side, "rater_id"].iloc[0]
            position = int((rows["rater_id"] == annotator).to_numpy().argmax())
            raise InputError(
                f"{source}, row {row_number(rows, position)}: {column} {side!r} has only the "
                f"annotator {annotator!r}, and a side needs two; add annotators of that side, or "
                f"leave {column} out of rater_slices"
            )


def _reading_note(items: str, scaled: ScaledRatings) -> str:
    """Return a line on what was read as items (a column, or ""), annotators, graders and labels."""
    raters, scales = scaled.ratings.drop_duplicates("rater_id"), scaled.scales
    raters_of_kind = []
    for kind, noun in (("human", "annotator"), ("model", "grader")):
        ids = raters.loc[raters["rater_kind"] == kind, "rater_id"]
        if len(ids):
            heading = f"{noun}s" if len(ids) > 1 else noun
            raters_of_kind.append(f"{heading} {listed(f'`{rater_id}`' for rater_id in ids)}")
    scale = next(iter(scales.values()), None)
    if scaled.set_options or len(scales) != 1 or scale is None:
        labels = f"rubrics {listed([*scales, *scaled.set_options])}"
    elif scale.is_number:
        labels = f"numbers from {scale.categories[0]} to {scale.categories[-1]}"
    elif ordered_scale(scale.categories):
        labels = f"labels {span_of(scale.categories)}, {_LEVEL_WORDS[scale.level]}"
    else:
        labels = f"labels {listed(scale.categories)}, {_LEVEL_WORDS[scale.level]}"
    items = f"`{items}`" if items else "are rows"
    return written("reading.read_as", items=items, raters="; ".join(raters_of_kind), labels=labels)


# ---- the units of a file or a table, and the items that they repeat ------------------------------

_PURPOSES = {  # in messages, by setting that names columns of units
    "slices": "slice by",
    "groups": "group by",
    "variants": "tell variants by",
    "cluster": "cluster by",
    "sensitivity_cluster": "cluster by",
}
MIN_FILLED = 0.9  # the smallest share of filled cells in a column that identifies items
_MOST_NESTED_CHECKED = 100  # different cells of a column that are checked for nested values
_ANSWER = re.compile(rf"(^|[_\W])({pattern_of('answer')})([_\W]|$)", re.I)
MIN_TEXTS = 10  # the fewest different cells of a column of texts or names
TEXT_LENGTH = 20  # median length, in characters, from which different cells are texts
MIN_COPIED = 20
"""The fewest different rows of a table that counts as copied. By chance, the counts of m different
rows are all multiples of one number with a probability of about 2 ** -m."""
COPIES = "copied_row"  # the units column that gives all copies of a row the same number
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?|\d{1,2}:\d{2}.*")


def with_units(rated: pd.DataFrame, units: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return `units`, a table called `source` in messages, with the further columns of `rated`, the
    units in the ratings. Raises InputError if an item has no row or several, or another value.
    """
    units = with_unit_id(units)
    if "unit_id" not in units:
        raise InputError(
            f"{source}: the column 'unit_id' is missing (it has {listed(units.columns)}); give "
            "that name to the column that identifies the items"
        )
    is_duplicate = units.duplicated("unit_id").to_numpy()
    if is_duplicate.any():
        position = int(is_duplicate.argmax())
        raise InputError(
            f"{source}, row {row_number(units, position)}: item "
            f"{units['unit_id'].iloc[position]!r} has more than one row; keep one for each item"
        )
    is_unknown = ~rated["unit_id"].isin(units["unit_id"])
    if is_unknown.any():
        unit = rated.loc[is_unknown, "unit_id"].iloc[0]
        raise InputError(f"{source} has no row for item {unit!r}, which was rated; add it")
    added = [column for column in rated if column == "unit_id" or column not in units]
    for column in rated.columns.difference(added):
        cells = texts(units[column])
        given = texts(units["unit_id"].map(rated.set_index("unit_id")[column]))
        number, given_number = (pd.to_numeric(each, errors="coerce") for each in (cells, given))
        differs = (given != "") & (given != cells) & (given_number != number)
        if differs.any():
            position = int(differs.to_numpy().argmax())
            raise InputError(
                f"{source}, row {row_number(units, position)}: {column} of item "
                f"{units['unit_id'].iloc[position]!r} is {cells.iloc[position]!r} here and "
                f"{given.iloc[position]!r} in the ratings; keep the column in one of the two"
            )
    return units.merge(rated[added], on="unit_id", how="left").fillna("")


def check_setting_columns(
    settings: Mapping[str, Any], units: pd.DataFrame, rows: pd.DataFrame, source: str
) -> None:
    """Raise InputError if a setting names a column that `units` lacks, listing its columns.
    `source` is the name in messages of the table that should have it, `rows` are the ratings.
    """
    for setting, purpose in _PURPOSES.items():
        value = settings.get(setting) or ()
        for column in (value,) if isinstance(value, str) else value:
            if column in units or (setting == "cluster" and column in ("pair", "unit")):
                continue
            if column in rows and column not in RATINGS_COLUMNS:  # it varies within some unit
                first = rows.groupby("unit_id", sort=False)[column].transform("first")
                unit = rows.loc[rows[column] != first, "unit_id"].iloc[0]
                raise InputError(
                    f"{source}: the column {column!r} differs between ratings of item {unit!r}, so "
                    f"there is nothing to {purpose}; name a column with one value for each item"
                )
            columns = listed(name for name in units if name != "unit_id")
            existing = f"it has {columns}" if columns else "it has no columns that describe units"
            raise InputError(f"{source} has no column {column!r} to {purpose}; {existing}")


def clustered_by_items(
    units: pd.DataFrame, ratings: pd.DataFrame, cluster: str | None, options: declared.ScaleOptions
) -> tuple[pd.DataFrame, str | None, list[str]]:
    """Return the units, the column that is their cluster (None: as in the settings), and notes.
    `cluster` is the user's setting, or None. Raises InputError if units declared to be independent
    have a cluster.
    """
    if options.independent and cluster not in (None, "unit"):
        typed = [options.spelled("cluster", cluster or ""), options.spelled("independent")]
        raise InputError(f"{' and '.join(typed)} exclude each other; leave one of them out")
    if options.independent:
        return units, "unit", []
    if cluster not in (None, "pair") or "cluster_id" in units:  # declared; "pair" is the default
        return units, None, []
    fixes = {"cluster": options.spelled("cluster")}
    is_rated = units["unit_id"].isin(ratings["unit_id"].unique()).to_numpy()
    rated = units[is_rated]
    response_column = RESPONSE_ID if {*CRITERIA} <= set(rated) else None
    column = item_column(rated[shared_columns(rated)], ratings) or response_column
    if column:
        cells = texts(units[column])
        cluster_of_one = "(" + units["unit_id"].astype(str) + ")"  # if the cell is empty
        units = units.assign(**{column: cells.where(cells != "", cluster_of_one)})
        counts = {"clusters": units.loc[is_rated, column].nunique(), "items": len(rated)}
        return units, column, [written("reading.items", column=column, **counts, **fixes)]
    if COPIES not in units and (row_numbers := _copied_rows(rated, ratings)) is not None:
        numbers = np.full(len(units), "", dtype=object)
        numbers[is_rated] = row_numbers.astype(str)
        items = len(np.unique(row_numbers))
        note = written("reading.copies", times=len(rated) // items, items=items, **fixes)
        return units.assign(**{COPIES: numbers}), COPIES, [note]
    return units, None, []


def item_column(units: pd.DataFrame, ratings: pd.DataFrame) -> str | None:
    """Return the column that identifies items which units share, or None: see the module's text.

    >>> import pandas as pd
    >>> units = pd.DataFrame({"unit_id": list("1234"), "topic": list("aabb"), "Item": list("xyxy")})
    >>> item_column(units, pd.DataFrame({"unit_id": [], "label": []}))
    'Item'
    """
    by_name, by_repeats = {}, {}  # two kinds of candidates, each with its number of different cells
    for column in map(str, units.columns):
        if column == "unit_id":
            continue
        counts = texts(units[column]).value_counts(sort=False).drop("", errors="ignore")
        if len(counts) < 2 or counts.max() < 2 or counts.sum() < MIN_FILLED * len(units):
            continue  # one value, no repeats, or too many empty cells
        if counts.index[:_MOST_NESTED_CHECKED].map(is_nested).all():
            continue  # lists and objects, not ids
        if names_items(column):
            by_name[column] = len(counts)
        elif (
            not is_fact(column)
            and not _ANSWER.search(column)
            and 2 * counts[counts > 1].sum() >= len(units)
            and _are_names(counts.index)
        ):
            by_repeats[column] = len(counts)
    for n_values in (by_name, by_repeats):
        for column in sorted(n_values, key=lambda name: (n_values[name], name)):
            if not _is_function_of_labels(units, column, ratings):
                return column
    return None


def _is_function_of_labels(units: pd.DataFrame, column: str, ratings: pd.DataFrame) -> bool:
    """Return True if a unit's labels, in any order, determine its cell in a column."""
    labelled = ratings[ratings["label"] != ""].sort_values("label")
    patterns = labelled.groupby("unit_id")["label"].agg("\n".join)
    cells = texts(units[column]).set_axis(units["unit_id"].to_numpy())
    shared = patterns.index.intersection(cells.index)
    pairs = list(zip(patterns[shared], cells[shared], strict=True))
    n_patterns = len({pattern for pattern, _ in pairs})
    n_repeats = len(pairs) - n_patterns  # a few repeats may have the same cell by chance
    return n_repeats >= MIN_TEXTS and len(set(pairs)) == n_patterns


def _are_names(values: pd.Index) -> bool:
    """Return True if cells are numerous or long enough for names, and not numbers or dates."""
    if len(values) < MIN_TEXTS:
        return False
    if len(values) <= MAX_VALUES and values.str.len().to_series().median() < TEXT_LENGTH:
        return False
    is_number = pd.to_numeric(values.to_series(), errors="coerce").notna().to_numpy()
    return not (is_number | values.str.fullmatch(_DATE)).all()


def _copied_rows(units: pd.DataFrame, ratings: pd.DataFrame) -> np.ndarray | None:
    """Return the number of the row that each unit is a copy of, shape (units,), if the table is
    several copies of a smaller one; else None. Units are equal if all columns and ratings are.
    Equal rows of the smaller table cannot be told apart, so their copies are assigned in turn.
    """
    if len(units) < 2 * MIN_COPIED:
        return None
    contents = ratings[["rubric", "rater_id", "label", "p_positive", "probabilities"]]
    position = pd.Index(units["unit_id"]).get_indexer(pd.Index(ratings["unit_id"]))
    unit_hash = np.zeros(len(units), dtype=np.uint64)
    # Hashes are added, as a unit's ratings come in any order.
    np.add.at(unit_hash, position, pd.util.hash_pandas_object(contents, index=False).to_numpy())
    if columns := [name for name in units if name != "unit_id"]:
        column_hash = pd.util.hash_pandas_object(units[columns].astype(str), index=False)
        # An odd factor, so that the hash of ratings and that of columns cannot change places.
        unit_hash = np.asarray(unit_hash * np.uint64(31) + column_hash.to_numpy(), dtype=np.uint64)
    _, group, counts = np.unique(unit_hash, return_inverse=True, return_counts=True)
    n_copies = int(np.gcd.reduce(counts))
    if n_copies < 2 or len(counts) < MIN_COPIED:
        return None
    rows_in_group = counts // n_copies  # rows of the smaller table that are equal
    rank_in_group = pd.Series(group).groupby(group).cumcount().to_numpy()
    first_row = np.concatenate([[0], np.cumsum(rows_in_group)[:-1]])  # of each group
    return np.asarray(first_row[group] + rank_in_group % rows_in_group[group])
