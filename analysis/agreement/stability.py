"""Stability of a rater's labels: from draw to draw, and when a question is worded differently.

Repeats are several draws of one unit in one order; everything else in the analysis first combines
them into one label (`analysis.labels.encoding`).

The same question is put to a subject in several wordings, as several paraphrases, or several times;
and a grader may be asked under several wordings of a rubric. Variants of one question are treated
as raters of one unit: stability is Fleiss' kappa across them, reported with the mean standard
deviation (Feng, Park, Liu & Tsvetkov 2023, appendix D). Intervals come from resampling the
clusters, each of which must hold all variants of a question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from evenhand.analysis.agreement.coefficients import label_counts, usual_codes
from evenhand.analysis.agreement.groups import group_panel
from evenhand.analysis.agreement.pairs import deciding_kappa, mean_over_pairs, pair_statistics
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import WEIGHT, UnitColumn, UnitFacts
from evenhand.analysis.notes import Code, join_notes
from evenhand.analysis.types import Codes, DataFrame, Labels
from evenhand.analysis.writer import RatedView, RubricView, View
from evenhand.errors import InputError

_BETWEEN = "\x1f"
"""Separator of a unit's id and its order; no id contains it."""


def repeats_of(
    ratings: DataFrame, scale: Scale, units: DataFrame | None = None, cluster: str = "pair"
) -> dict[str, LabelMatrix]:
    """Return each repeating rater's draws, laid out as if every draw were a separate rater.

    `ratings` is a validated table of one rubric. A row of the matrix is a unit in one order that
    the rater read more than once; it belongs to the unit's cluster.
    """
    import pandas as pd

    draws = ratings.groupby(["rater_id", "unit_id", "order"], sort=False)["draw"]
    again = ratings[draws.transform("size") > 1]
    found = {}
    for rater, own in again.groupby("rater_id", sort=True):
        name = str(rater)
        reading = own["unit_id"] + _BETWEEN + own["order"]
        as_raters = own.assign(rater_id=own["draw"].astype(str), unit_id=reading, order="")
        facts = UnitFacts(own["unit_id"].tolist(), units)
        known = facts.clusters(cluster)
        columns = {"cluster_id": [known.values[at] for at in known.codes]}
        if (weight := facts.weights(known)) is not None:
            columns[WEIGHT] = weight[known.codes].tolist()
        table = pd.DataFrame({"unit_id": reading.tolist(), **columns}).drop_duplicates()
        own_scale = replace(scale, threshold=scale.threshold_for(name), thresholds={})
        found[name] = encode(combine_readings(as_raters, own_scale), own_scale, table)
    return found


def add_repeat_rows(view: RatedView) -> None:
    """Add `intra_rater_agreement` and `intra_rater_kappa` of every rater with repeats.

    Both are plain means over the pairs of a rater's draws.
    """
    if not (view.ratings["draw"] > 0).any():
        return
    request, scale = view.request, view.labels.scale
    matrices = repeats_of(view.ratings, scale, request.units, request.settings.cluster)
    for name, of_draws in _views(view, matrices):
        draws = of_draws.coded
        panel, kappa = pair_statistics(draws), deciding_kappa(draws)
        pairs = list(combinations(range(len(draws.raters)), 2))
        units = of_draws.count(draws.labelled.sum(axis=1) >= 2)
        why: Code = "no_variation" if units[0] else "no_pairable_units"
        wanted = {each: panel[each] for each in ("observed_agreement", kappa) if each in panel}
        kind = "unweighted kappa" if kappa == "cohen_kappa" else f"{draws.ordered} kappa"
        for of, mean in mean_over_pairs(draws, pairs, of_draws.resamples, wanted).items():
            over = f"mean over {mean.n_tables} pairs of draws" if mean.n_tables > 1 else ""
            statistic, about = "intra_rater_kappa", join_notes(kind, over)
            if of == "observed_agreement":
                statistic, about = "intra_rater_agreement", join_notes(over)
            lost, add = mean.undefined, of_draws.add
            add(statistic, mean.values, units, a=name, note=about, undefined=lost, reason=why)


def _views(view: RatedView, matrices: Mapping[str, LabelMatrix]) -> Iterator[tuple[str, View]]:
    """Yield each rater with each view of their labels."""
    for name, matrix in matrices.items():
        folded, frequency = matrix.folded()
        shared = view.request.resampled(frequency, folded.weight)
        yield from ((name, View.of(view.rows, each, shared)) for each in folded.views)


STABILITY = "stability_fleiss_kappa"
SPREAD = "stability_sd"
REWORDED = "rubric"
"""The `at` of a grader's stability under several wordings of one rubric."""
HUMANS = "humans"


def add_stability_rows(view: RubricView) -> None:
    """Add the stability of subjects' answers from variant to variant, as each rater labels them.

    `stability_fleiss_kappa` and, on scales with an order, `stability_sd`: `rater_a` is the grader,
    or "humans" for the majority of people; `at` is the column that varies, while all other
    `columns`, the subject, the side and the cluster stay the same; `subset` is "all" or
    "subject=NAME".
    """
    coded, labels = view.coded, view.labels
    columns = labels.columns(view.request.settings.variants)
    readers = {coded.raters[model]: coded.codes[:, model] for model in coded.members("model")}
    if humans := coded.members("human"):
        majority = usual_codes(coded, humans).astype(coded.codes.dtype)
        readers = {HUMANS: majority, **readers}
    for (reader, codes), column in product(readers.items(), columns):
        fixed = [other for other in columns if other.name != column.name]
        wide, clusters, subject = _by_variant(labels, codes, column, fixed)
        parts = {coded.subset: np.ones(len(subject), dtype=bool)}
        if len(labels.subjects) > 1:
            for code, name in enumerate(labels.subjects):
                parts[coded.part(f"subject={name}")] = subject == code
        kinds = ("variant",) * len(column.values)
        for subset, own in parts.items():
            variants = replace(
                coded,
                raters=column.values,
                kinds=kinds,
                codes=wide[own],
                clusters=clusters[own],
                subset=subset,
            )
            given = View.of(view.rows, variants, view.resamples)
            _add_rows(given, labels.scale, reader, column.name)


def reworded(
    ratings: DataFrame,
    family: Sequence[Scale],
    units: DataFrame | None = None,
    cluster: str = "pair",
) -> dict[str, LabelMatrix]:
    """Return each rater's labels under a rubric's wordings, each wording as a separate rater.

    `family` is the rubric and its variants, `ratings` those given under them; raters who labelled
    under one of them only are left out. Raises InputError where a variant has other categories.
    """
    base, *others = family
    for other in others:
        if other.categories != base.categories:
            raise InputError(
                f"rubric {other.name!r} is a variant of {base.name!r} but has other categories; "
                "give both the same option keys"
            )
    found = {}
    for rater, given in ratings.groupby("rater_id", sort=True):
        if given["rubric"].nunique() < 2:
            continue
        name = str(rater)
        scale = replace(base, threshold=base.threshold_for(name), thresholds={})
        as_raters = given.assign(rater_id=given["rubric"])
        found[name] = encode(combine_readings(as_raters, scale), scale, units, cluster)
    return found


def add_rewording_rows(view: RatedView, matrices: Mapping[str, LabelMatrix]) -> None:
    """Add a rater's own stability from wording to wording of the rubric: `at` is "rubric"."""
    for name, of_rater in _views(view, matrices):
        _add_rows(of_rater, matrices[name].scale, name, REWORDED)


def _by_variant(
    labels: LabelMatrix,
    codes: Labels,
    column: UnitColumn,
    fixed: Sequence[UnitColumn],
) -> tuple[Labels, Codes, Codes]:
    """Return labels (questions, variants) of one reader, with each question's cluster and subject.

    A question is one cluster, subject, side and value of the other columns. Where several units are
    the same variant of one question, the first one counts.
    """
    known = np.flatnonzero((column.codes >= 0) & (codes >= 0))
    question = np.column_stack(
        [labels.clusters, labels.subject, labels.side, *(other.codes for other in fixed)]
    )[known]
    distinct, at = np.unique(question, axis=0, return_inverse=True)
    wide = np.full((len(distinct), len(column.values)), -1, dtype=codes.dtype)
    backwards = np.arange(len(known))[::-1]
    wide[at.reshape(-1)[backwards], column.codes[known][backwards]] = codes[known][backwards]
    return wide, distinct[:, 0].astype(np.intp), distinct[:, 1].astype(np.intp)


def _add_rows(view: View, scale: Scale, reader: str, at: str) -> None:
    coded = view.coded
    counts = label_counts(coded, range(len(coded.raters)))
    several = counts.sum(axis=1) >= 2
    if not several.any():
        return
    variants = int((coded.labelled & several[:, None]).any(axis=0).sum())
    if not coded.is_number:
        kappa = group_panel(counts * several[:, None], coded, view.resamples)["fleiss_kappa"]
        view.add(STABILITY, kappa, several, a=reader, at=at, note=f"across {variants} variants")
    if not (coded.is_binary or scale.level != "nominal" or scale.unclear):
        return  # no order
    # Standard deviation (divisor n - 1) of each question's values.
    values = np.array([*coded.values, np.nan])
    if not coded.is_binary:
        values[[code for code, key in enumerate(scale.categories) if key in scale.unclear]] = np.nan
    each = values[coded.codes]
    n = (~np.isnan(each)).sum(axis=1)
    mean = np.nansum(each, axis=1) / np.maximum(n, 1)
    squares = np.nansum((each - mean[:, None]) ** 2, axis=1)
    spread = view.share(np.sqrt(squares / np.maximum(n - 1, 1)), n >= 2)
    view.add(SPREAD, spread, several, a=reader, at=at)
