"""Enlarging a study's sample: by chance, or where graders differ or are unsure.

Pairs are picked by grades alone, never by people's labels. Labelling what is hard would make every
figure look worse than it is; so each pair's probability of being picked is kept
(`study.store.logs.decisions`), and every estimate weights for it (`analysis.labels.units`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from evenhand.errors import InputError
from evenhand.rubrics import Rubric
from evenhand.rubrics.options import SEPARATOR
from evenhand.study import seeding
from evenhand.study.prompts.sampling import Wave, chances_for, draw_sample, inclusion, pick
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.decisions import WAVES
from evenhand.study.workspace import Study

if TYPE_CHECKING:
    import pandas as pd

By = Literal["chance", "uncertainty"]


def extend_sample(study: Study, more: int, by: By = "chance") -> int:
    """Take `more` further pairs into the sample, keeping those in it; return the new size.

    By uncertainty it may be a pair or two more or fewer. Raises InputError where fewer than `more`
    pairs are left, or no grades show where graders are unsure.
    """
    if more < 1:
        raise InputError(f"the number of pairs to add must be 1 or more, not {more}")
    pairs = study.store.pairs()
    sample = study.store.sample()
    left = len(pairs) - len(sample)
    if more > left:
        raise InputError(
            f"{more} pairs cannot be added: the study has {len(pairs)} pairs, {len(sample)} of "
            f"them sampled, so {left} are left"
        )
    waves = WAVES.all(study.store)
    if by == "uncertainty" or waves:
        new = _further_waves(study, pairs, sample, waves, more, by)
        log = WAVES.table, WAVES.rows(new)
        study.store.extend_sample(sample, new[-1].taken, log)
        size = len(sample) + len(new[-1].taken)
    else:
        size = len(sample) + more
        larger = _stratified(study, pairs, size, sample)
        study.store.extend_sample(sample, larger[len(sample) :])
    change_config(study.folder, {"sample": {"pairs": size}})
    return size


def _further_waves(
    study: Study, pairs: pd.DataFrame, sample: list[str], waves: list[Wave], more: int, by: By
) -> list[Wave]:
    """The wave to come; before it, where there is none yet, all that was drawn so far."""
    import numpy as np

    every, known = pairs["pair_id"].tolist(), set(sample)
    so_far = [] if waves else [_by_chance(every, len(sample) / len(every), sample)]
    if by == "chance":
        left = pairs[~pairs["pair_id"].isin(known)].reset_index(drop=True)
        taken = _stratified(study, left, more)
        return [_by_chance(every, more / len(left), taken)]
    scores = uncertainty(study)
    before = inclusion([*waves, *so_far])
    chances = chances_for(scores, before, more)
    seed = seeding.drawn(study.config.seed, 2**32, "uncertainty", str(len(sample)))
    open_to = {pair: chance for pair, chance in chances.items() if pair not in known}
    taken = pick(open_to, np.random.default_rng(seed))
    return [*so_far, Wave(by=by, chances=chances, taken=taken)]


def _by_chance(every: list[str], chance: float, taken: list[str]) -> Wave:
    return Wave(by="chance", chances=dict.fromkeys(every, chance), taken=taken)


def _stratified(
    study: Study, pairs: pd.DataFrame, size: int, already: list[str] | None = None
) -> list[str]:
    config = study.config
    return draw_sample(pairs, size, config.sample.stratify, config.seed, already or [])


def uncertainty(study: Study) -> dict[str, float]:
    """Return each pair's uncertainty from 0 to 1: how much its graders disagree or are unsure.

    On a unit it is the chance that two graders' labels differ, as a share of the largest possible
    one. An answer with probabilities counts as a draw from them, an unreadable one as a draw from
    all categories alike. A pair has the mean over its units and the rubrics that people label.
    Graders count on a rubric where they have graded every pair. Pairs without responses are left
    out. Raises InputError where no grader has, or where all agree and are sure everywhere.
    """
    if study.config.analysis.cluster not in ("pair", "unit"):
        raise InputError(
            f"picking by uncertainty needs pairs as clusters, and study.toml has analysis.cluster "
            f"= {study.config.analysis.cluster!r}; leave --by out"
        )
    ratings, subjects = study.ratings(), study.config.annotation.subjects
    graded = ratings[ratings["rater_kind"] == "model"]
    total: dict[str, float] = {}
    units_of: dict[str, int] = {}
    for rubric in study.labelled_rubrics():
        units = [
            unit
            for unit in study.rubric_units(rubric, "all")
            if not subjects or parse_unit_id(unit)[1] in subjects
        ]
        own = graded[(graded["rubric"] == rubric.name) & graded["unit_id"].isin(units)]
        complete = own.groupby("rater_id")["unit_id"].nunique() == len(units)
        own = own[own["rater_id"].isin(complete.index[complete])]
        for unit, spread in _spread(own, rubric, study.config.thresholds.get(rubric.name, {})):
            pair = parse_unit_id(unit)[0]
            total[pair] = total.get(pair, 0.0) + spread
            units_of[pair] = units_of.get(pair, 0) + 1
    if not total:
        raise InputError(
            "no grader has graded all pairs on a rubric that people label, so nothing tells where "
            f"graders differ; first run `evenhand grade {study.folder} --scope all --grader ...`"
        )
    if not any(total.values()):
        raise InputError(
            "all grades are alike and sure, so nothing tells where graders differ; grade all pairs "
            "with a further grader, or with one that gives probabilities"
        )
    return {pair: total[pair] / units_of[pair] for pair in total}


def _spread(
    graded: pd.DataFrame, rubric: Rubric, thresholds: Mapping[str, float]
) -> list[tuple[str, float]]:
    """Return each unit's chance that two of its graders' labels differ, as a share of the largest;
    where categories have an order, their expected squared distance instead.

    Every grader counts alike, whatever its number of draws and orders.
    """
    import numpy as np
    import pandas as pd

    if graded.empty:
        return []
    answers = zip(
        graded["label"],
        graded["p_positive"],
        graded["probabilities"],
        graded["rater_id"].map(lambda grader: thresholds.get(grader, rubric.threshold)),
        strict=True,
    )
    shares = pd.DataFrame([_shares(rubric, *answer) for answer in answers], index=graded.index)
    of_grader = shares.groupby([graded["unit_id"], graded["rater_id"]], sort=False).mean()
    mean = of_grader.groupby(level=0, sort=False).mean()
    place = np.arange(len(rubric.categories))
    apart = np.abs(np.subtract.outer(place, place)) / (len(place) - 1)
    apart = np.sign(apart) if rubric.level == "nominal" else apart**2
    largest = 1.0 - 1.0 / len(place) if rubric.level == "nominal" else 0.5
    differ = ((mean.to_numpy() @ apart) * mean.to_numpy()).sum(axis=1) / largest
    return list(zip(mean.index, np.clip(differ, 0.0, 1.0).tolist(), strict=True))


def _shares(
    rubric: Rubric, label: str, positive: float, probabilities: str, threshold: float
) -> list[float]:
    """Return the probability of each category given one answer; equal ones where it could not be
    read.

    With two categories a probability at the threshold counts as one half: there the label changes.
    """
    keys = rubric.categories
    given = json.loads(probabilities) if probabilities else {label: 1.0} if label else {}
    if rubric.several:
        chosen = [key for key in label.split(SEPARATOR) if key in keys]
        given = {key: 1.0 / len(chosen) for key in chosen}
    if len(keys) == 2 and len(rubric.affirmative) == 1:
        if not positive >= 0:  # not given
            positive = given.get(rubric.affirmative[0], 0.0) if given else threshold
        below = positive < threshold
        half = 0.5 * positive / threshold if below else 1 - 0.5 * (1 - positive) / (1 - threshold)
        return [half if key in rubric.affirmative else 1.0 - half for key in keys]
    whole = sum(given.values())
    return [given.get(key, 0.0) / whole if whole else 1.0 / len(keys) for key in keys]
