"""Export a study: its tables, the sidecar of its ratings (a TOML file on what the labels mean, see
`reporting.ratings_file.declared`), and material for another tool's file (`exchange.writers`).

Annotators' answers about themselves are not exported, except the one that has quotas (the side),
nor any text that a person typed about an annotator.
"""

import json
import re
import shlex
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.analysis import Scale
from evenhand.analysis.labels.encoding import combine_readings, split_by_method
from evenhand.errors import InputError
from evenhand.exchange import writers
from evenhand.lazy import tomlkit
from evenhand.reporting.load import from_file, from_study, label_hashes
from evenhand.reporting.ratings_file import declared
from evenhand.study import Study, open_study
from evenhand.study.desk.claims import STOPPED_BY, decisions_table, oversight, quota_answers
from evenhand.study.lead.disagreements import final_labels
from evenhand.study.prompts.pairs import are_comparisons
from evenhand.study.session.sessions import Sessions, session_times
from evenhand.study.store.logs.decisions import coming_looks
from evenhand.study.store.logs.replies import attacked_table
from evenhand.study.store.store import answers_table, remarks_table, with_shown
from evenhand.study.tables.formats import csv_bytes, xlsx_bytes
from evenhand.study.tables.ratings import attacked_text

_HEADER = (
    "What the labels in the ratings file of this name mean: read by `evenhand check` by itself."
)
_LEAD_DECISION = "a decision of the study's lead"
"""Replaces a reason that a person typed, which may reveal too much about the annotator."""


def exported_ratings(study: Study) -> pd.DataFrame:
    """Return the ratings, with languages unless all are English, and any sides of annotators."""
    ratings = with_shown(study.store, study.ratings())
    with study.store.read() as connection:
        sides = quota_answers(study, connection)
    if (side := study.config.side) is None:
        return ratings
    return ratings.assign(**{side.key: ratings["rater_id"].map(sides).fillna("")})


def exported_remarks(study: Study) -> pd.DataFrame:
    """Return annotators' reasons and flags."""
    return remarks_table(study.store)


def exported_answers(study: Study) -> pd.DataFrame:
    """Return the latest answer of each annotator to each question."""
    return answers_table(study.store)


def exported_times(study: Study) -> pd.DataFrame:
    """Return annotators' working times and payments due."""
    return session_times(study, Sessions(study))


def exported_decisions(study: Study) -> pd.DataFrame:
    """Return the lead's decisions, in the order in which they were taken."""
    return decisions_table(study.store)


def as_csv(study: Study, make: Callable[[Study], pd.DataFrame]) -> bytes:
    """Return the table that an `exported_...` function makes, as CSV, for another process."""
    return csv_bytes(make(study))


def exported_units(study: Study) -> pd.DataFrame:
    """Return the units of the sample, then all others that were rated."""
    sample, all_units = study.units_with_lengths("sample"), study.units_with_lengths("all")
    others = set(study.ratings()["unit_id"]) - set(sample["unit_id"])
    return pd.concat([sample, all_units[all_units["unit_id"].isin(others)]], ignore_index=True)


def exported_final(study: Study) -> pd.DataFrame:
    """Return the final label of every item (`final_labels`), its votes as JSON, and the item's own
    columns, with the suffix `_of_item` where a name occurs twice.
    """
    final, units = final_labels(study).drop(columns=["labels", "agreement"]), exported_units(study)
    final["votes"] = [json.dumps(votes, ensure_ascii=False) for votes in final["votes"]]
    # A final label is of a unit, which its table calls item.
    units = units.rename(columns={"item_id": "item_id_of_item", "unit_id": "item_id"})
    return final.merge(units, "left", on="item_id", suffixes=("", "_of_item"))


def final_book(study: Study) -> bytes:
    """Return `exported_final` as a workbook of Excel."""
    return xlsx_bytes(exported_final(study), "final-labels.xlsx")


def exported_attacked(study: Study) -> pd.DataFrame:
    """Return graders' answers in the injection audit (`evenhand.study.tables.ratings`)."""
    return attacked_text(attacked_table(study.store, study.accepted_hashes()))


def part_path(ratings: Path, part: str) -> Path:
    """Return the default path of a part of an exported ratings file: `units` or `attacked`.

    >>> part_path(Path("out/ratings.csv"), "units").as_posix()
    'out/ratings.units.csv'
    """
    return ratings.parent / f"{ratings.stem}.{part}{ratings.suffix}"


def sidecar_text(study: Study, units: str, attacked: str = "") -> str:
    """Return the sidecar of a study's ratings as TOML: what the analysis of a study uses in
    addition to its two tables. `units` names the file of units next to it, `attacked` that of the
    injection audit, "" without one. A scale's `look` is the number of the next interim analysis.
    """
    dataset = from_study(study, whole=True)
    looks = coming_looks(study.store, label_hashes(dataset))
    # Other columns to slice raters by are annotators' answers about themselves.
    rater_slices = (study.config.side.key,) if study.config.side else ()
    usage = [] if dataset.facts.usage is None else dataset.facts.usage.to_dict("records")
    sidecar = declared.Sidecar(
        study=_line(dataset.title),
        synthetic=dataset.synthetic,
        seed=dataset.seed,
        units=units,
        attacked=attacked,
        strata=dataset.facts.strata,
        excluded={  # with the reason if the program itself gave it
            rater: _line(exclusion.reason) if exclusion.done_by == STOPPED_BY else _LEAD_DECISION
            for rater, exclusion in oversight(study.store).exclusions.items()
        },
        analysis=dataset.settings.model_copy(update={"rater_slices": rater_slices}),
        decision=dataset.decision,
        rewordings={
            name: declared.WordingTrial.model_validate(vars(rewording))
            for name, rewording in dataset.facts.rewordings.items()
        },
        scales={
            name: _section(study, scale, looks.get(name, 1), usage)
            for name, scale in dataset.scales.items()
        },
        names={id_: dataset.names_by_id[id_] for id_ in dataset.ids if id_ in dataset.names_by_id},
    )
    document = tomlkit.document()
    document.add(tomlkit.comment(_HEADER))
    document["format"] = sidecar.format
    document.update(sidecar.model_dump(mode="json", exclude_defaults=True))
    return tomlkit.dumps(document)


def _section(
    study: Study, scale: Scale, look: int, usage: list[dict[Any, Any]]
) -> declared.ScaleSection:
    """Return a rubric's section of the sidecar; `look` numbers its next interim analysis."""
    rubric = study.rubrics[scale.name]
    usage_by_grader = {}
    for row in usage:
        if row["rubric"] == scale.name:
            names = declared.GraderUsage.model_fields
            figures = {name: row[name] for name in names if not pd.isna(row[name])}
            usage_by_grader[row["rater_id"]] = declared.GraderUsage(**figures)
    return declared.ScaleSection.of(
        scale,
        title=_line(rubric.title),
        names={option.key: _line(option.name) for option in rubric.kind.listed},
        several=not rubric.kind.is_single,
        favours={option.key: option.favours for option in rubric.options if option.favours},
        unclear=rubric.unclear,
        collapse=dict(scale.collapse),
        variant_of=scale.variant_of,
        thresholds=dict(scale.thresholds),
        tuned=tuple(
            declared.TunedThreshold(
                **vars(tuning) | {"grader": grader, "clusters": sorted(tuning.clusters)}
            )
            for grader, tuning in scale.tunings.items()
        ),
        withheld=tuple(
            declared.WithheldUnits(grader=grader, units=tuple(sorted(units)))
            for grader, units in scale.withheld.items()
        ),
        hashes=study.accepted_hashes()[scale.name],
        look=look,
        usage=usage_by_grader,
    )


def _line(text: str) -> str:
    """Return a text as one printable line, as long as a line of a sidecar may be (`Line`)."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())[:1000]


def material_of(
    source: Path, raters: Collection[str] = (), options: declared.ScaleOptions | None = None
) -> writers.Material:
    """Return the material for export of a study folder or a ratings file, of these `raters` or of
    all. Raises InputError where there are no ratings, or a rater is not among those who rated.
    """
    if source.is_dir():
        with open_study(source) as study:
            dataset, name = from_study(study), "the study"
            ratings = with_shown(study.store, dataset.ratings)
            responses = study.store.responses()
            units = _with_responses(exported_units(study), responses, ratings["unit_id"])
    else:
        # Rows are exported whatever their clusters are; units as clusters need no column.
        options = options or declared.ScaleOptions()
        settings = {**options.settings, "cluster": "unit"}
        try:
            dataset = from_file(source, replace(options, settings=settings))
        except InputError as fault:
            if re.search("--(missing|categories|(no-)?normalise|level)", str(fault)):
                check = f"evenhand check {shlex.quote(source.name)} ... --write-settings"
                raise InputError(f"{fault}; `export` reads such options from `{check}`") from None
            raise
        ratings, units, name = dataset.ratings, dataset.units, source.name
    if ratings.empty:
        raise InputError(f"{name} has no ratings yet")
    all_ids = ratings["rater_id"].unique()
    for rater in raters:
        if rater not in all_ids:
            raise InputError(f"{name} has no rater {rater!r}; it has {', '.join(sorted(all_ids))}")
    if raters:
        ratings = ratings[ratings["rater_id"].isin(list(raters))]
    combined, scales = [], {}
    for key, rubric_ratings in ratings.groupby("rubric", sort=True):
        rubric = str(key)
        scale = dataset.scales[rubric]
        combined.append(_combined(rubric_ratings, rubric, scale, name))
        option_names = dataset.names.get(rubric, {})
        name_by_label = {label: option_names.get(label, label) for label in scale.categories}
        title = dataset.titles.get(rubric) or rubric or "Label"
        scales[rubric] = writers.Scale(title, name_by_label)
    return writers.Material(
        name=dataset.title,
        ratings=ratings,
        combined=pd.concat(combined, ignore_index=True),
        units=units[units["unit_id"].isin(ratings["unit_id"])],
        scales={rubric: scales[rubric] for rubric in dataset.scales if rubric in scales},
        synthetic=dataset.synthetic,
        # Without those that advise options of `check`.
        notes=[note for note in dataset.notes if not re.search("--(level|categories)", note)],
    )


def _combined(ratings: pd.DataFrame, rubric: str, scale: Scale, source: str) -> pd.DataFrame:
    """Return a row for each rater and unit, with draws and orders combined as in the analysis."""
    # A grader whose probabilities come from several methods becomes one rater per method.
    ratings, _ = split_by_method(ratings, rubric)
    readings = combine_readings(ratings, scale, source)
    labels = np.array([*scale.categories, ""], dtype=object)  # the code of no label is -1
    probabilities = [
        json.dumps(dict(zip(scale.categories, map(float, shares), strict=True)))
        if not np.isnan(shares).any()  # as of numbers, which have no probabilities of categories
        else ""
        for shares in readings.probabilities
    ]
    return pd.DataFrame(
        {
            "unit_id": np.array(readings.units, dtype=object)[readings.unit],
            "rubric": rubric,
            "rater_id": np.array(readings.raters, dtype=object)[readings.rater],
            "rater_kind": np.array(readings.kinds, dtype=object)[readings.rater],
            "label": labels[readings.code],
            "p_positive": readings.positive,
            "probabilities": probabilities,
            "unscored_reason": readings.reason,
        }
    )


def _with_responses(units: pd.DataFrame, responses: pd.DataFrame, ids: pd.Series) -> pd.DataFrame:
    """Return the units of these ids with their responses: one if a unit has a `side`, else both."""
    units = units[units["unit_id"].isin(ids)]
    if are_comparisons(units):  # both sides have the same prompt
        units = units.assign(prompt=units["prompt_a"]).drop(columns=["prompt_a", "prompt_b"])
    texts = {
        (row["pair_id"], row["subject"], row["side"]): row["response"]
        for row in responses.to_dict("records")
    }
    # A study's clusters are its pairs.
    keys = list(zip(units["cluster_id"], units["subject"], units["side"], strict=True))
    single = [texts.get((pair, subject, side), "") if side else "" for pair, subject, side in keys]
    side_a = ["" if side else texts.get((pair, subject, "a"), "") for pair, subject, side in keys]
    side_b = ["" if side else texts.get((pair, subject, "b"), "") for pair, subject, side in keys]
    return units.assign(response=single, response_a=side_a, response_b=side_b)
