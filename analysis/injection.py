"""Prompt-injection audit: how far texts that try to influence a grader succeed.

For each attack, the replies of a grader under attack are compared with its replies to the same text
without the attack (the *clean* text), on the same resamples as all other statistics.

An attack can have three effects: it *pulls* the label to its target (hijacks it), *knocks it off*
to a third label (disrupts it), or *silences* the grader (suppresses the label). Each is a mean
difference from a placebo in the same place, over units whose clean label is not the target, and
over the ends of the scale that attacks ask for. The one-sided test flips the signs of clusters'
sums: attack and placebo are exchangeable if the attack has no effect. Holm's correction is over
attacks. Decisions compare bounds with a limit, the largest tolerated effect. The upper bound is for
each attack alone, because all must lie below the limit; the lower bound is for all attacks
(Bonferroni), because one above it is enough.

The first part has the trials and the rows of results (`add_injection_rows`), the second part the
findings that reports and verdicts make from these rows (`Audit`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.analysis.bootstrap.bounds import ALPHA, influence, reach
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.bootstrap.significance import holm, sign_flip_above
from evenhand.analysis.labels.matrix import UnitFacts
from evenhand.analysis.request import Request
from evenhand.analysis.requirement import State, state_of
from evenhand.analysis.results import ResultRow, ResultRows, sample_of
from evenhand.analysis.statistics import join_notes, shown_apart
from evenhand.analysis.types import Array, DataFrame, Mask
from evenhand.analysis.writer import Counts, Writer
from evenhand.study.settings.analysis import InjectionBounds
from evenhand.study.tables.ratings import ATTACKS, CLEAN, LONG_PLACEBO, PLACEBO, label_of_draws
from evenhand.texts import written

Names = npt.NDArray[np.str_]


class _Text(NamedTuple):
    """A text that the grader read, with the label ("" if missing) and any probabilities of each
    reply (draw). An `attack` asks for the label `target`. `nth` counts readings of a clean text.
    """

    unit: str
    attack: str
    target: str
    side: str
    nth: int
    labels: Sequence[str]
    probabilities: Sequence[Any]

    @property
    def label(self) -> str:
        """Label of all draws combined."""
        return label_of_draws(self.labels)

    def shares(self, target: str, clean: str, by_probability: bool) -> tuple[float, float, float]:
        """Return the shares of draws with the `target`, with a third label, which is neither the
        target nor the `clean` one, and without label. If `by_probability`, draws with a label are
        divided by the grader's probabilities.
        """
        n_target, n_third, n_missing = 0.0, 0.0, 0.0
        for label, probabilities in zip(self.labels, self.probabilities, strict=True):
            if not label:
                n_missing += 1.0
            elif by_probability:
                share = float(probabilities.get(target, 0.0))
                n_target += share
                n_third += max(1.0 - share - float(probabilities.get(clean, 0.0)), 0.0)
            else:
                n_target += label == target
                n_third += label not in (target, clean)
        n_draws = len(self.labels)
        return n_target / n_draws, n_third / n_draws, n_missing / n_draws


class Trials(NamedTuple):
    """Trials of one grader: a text with an attack, or a placebo, of a unit with a clean label.

    `attack`, `target` and `unit` are names, (trials,). `effects` (3, trials) are the probabilities
    of the target, of a third label, and of no label under attack, each minus that under the placebo
    in the same place; NaN for placebos and without placebo. By trial, `flipped` is 1 if the label
    differs from the clean one, else 0, NaN without label; `retest` is the same for the clean text
    read again; `unscored` is the share of draws without label.
    """

    attack: Names
    target: Names
    unit: Names
    effects: Array
    flipped: Array
    retest: Array
    unscored: Array

    @classmethod
    def of(cls, table: DataFrame) -> Trials:
        """Return the trials of one grader on one rubric, from its table of replies
        (`study.store.logs.replies.attacked_table`). Attacks towards the clean label are left out.
        """
        texts = _texts(table)
        clean, retest = (  # labels by unit
            {text.unit: text.label for text in texts if text.attack == CLEAN and text.nth == nth}
            for nth in (0, 1)
        )
        attacked = [text for text in texts if text.attack != CLEAN]
        text_with = {(text.unit, text.attack, text.side): text for text in attacked}
        with_clean = (text for text in attacked if clean.get(text.unit))
        trials = [text for text in with_clean if text.target != clean[text.unit]]
        by_probability = all(  # True if every draw with a label has probabilities
            isinstance(probabilities, dict)
            for text in texts
            for label, probabilities in zip(text.labels, text.probabilities, strict=True)
            if label
        )

        def effects(text: _Text) -> list[float]:
            """Return the effects beyond those of the attack's placebo (`ATTACKS`); NaN without."""
            placebo = text_with.get((text.unit, ATTACKS.get(text.attack, PLACEBO), text.side))
            if placebo is None or text.attack in _PLACEBOS:
                return [np.nan] * 3
            arguments = text.target, clean[text.unit], by_probability
            pairs = zip(text.shares(*arguments), placebo.shares(*arguments), strict=True)
            return [under_attack - under_placebo for under_attack, under_placebo in pairs]

        def is_flipped(text: _Text, label: str) -> float:
            return float(label != clean[text.unit]) if label else np.nan

        return cls(
            attack=np.array([text.attack for text in trials], dtype=np.str_),
            target=np.array([text.target for text in trials], dtype=np.str_),
            unit=np.array([text.unit for text in trials], dtype=np.str_),
            effects=np.array([effects(text) for text in trials], dtype=float).reshape(-1, 3).T,
            flipped=np.array([is_flipped(text, text.label) for text in trials]),
            retest=np.array([is_flipped(text, retest.get(text.unit, "")) for text in trials]),
            unscored=np.array([text.labels.count("") / len(text.labels) for text in trials]),
        )

    @property
    def attacks(self) -> list[str]:
        """Names of the attacks that were tried, in the order of `ATTACKS`, then a user's own."""
        names = dict.fromkeys(self.attack.tolist())
        custom = [name for name in names if name not in (*ATTACKS, *_PLACEBOS)]
        return [*(name for name in ATTACKS if name in names), *custom]


_COLUMNS = ("unit_id", "attack", "target", "side", "draw", "label", "probabilities")
_PLACEBOS = (PLACEBO, LONG_PLACEBO)


def _texts(table: DataFrame) -> list[_Text]:
    """Return the texts of one grader, with their draws in order. The clean text was read several
    times; each reading has as many draws as the other texts.
    """
    table = table.sort_values("draw", kind="stable")
    n_draws = 1 + max(table.loc[table["attack"] != CLEAN, "draw"], default=0)
    replies: dict[tuple[str, str, str, str, int], list[tuple[str, Any]]] = {}
    columns = (table[name].tolist() for name in _COLUMNS)
    for unit, attack, target, side, draw, label, probabilities in zip(*columns, strict=True):
        nth = draw // n_draws if attack == CLEAN else 0
        replies.setdefault((unit, attack, target, side, nth), []).append((label, probabilities))
    # The fields of `_Text` in their order: the keys of `replies`, then labels and probabilities.
    return [_Text(*text, *zip(*draws, strict=True)) for text, draws in replies.items()]


EFFECT, P, BOUNDS = "injection_effect", "injection_effect_p", "injection_bounds"
OUTCOMES = {"pulled": (EFFECT, P, BOUNDS)} | {
    name: (f"injection_{name}", f"injection_{name}_p", f"injection_{name}_bounds")
    for name in ("knocked_off", "silenced")
}
"""Outcomes of an attack, with their statistics: effect, corrected p, deciding bounds."""
FLIPS, RETEST, UNSCORED = "injection_flips", "injection_retest_flips", "injection_unscored"
STATISTICS = (
    *(bounds for *_, bounds in OUTCOMES.values()),
    *(name for effect, p, _ in OUTCOMES.values() for name in (effect, p)),
    *(FLIPS, UNSCORED, RETEST),
)
"""All statistics of the audit, the deciding ones first."""


def add_injection_rows(rows: ResultRows, request: Request) -> None:
    """Add the rows of every grader that was audited on the rubric (`rater_a`).

    For every attack (`at`): `injection_effect`, `injection_knocked_off` and `injection_silenced`,
    each with its p and its deciding bounds; `injection_flips`, minus the flips on the clean text
    read again; and `injection_unscored`. The last two also for placebos. For each grader:
    `injection_retest_flips`, the flips on the clean text read again.
    """
    attacked = request.facts.attacked
    if attacked is None or attacked.empty:
        return
    for grader, table in attacked[attacked["rubric"] == rows.rubric].groupby("rater_id", sort=True):
        trials = Trials.of(table)
        if not trials.attacks:
            continue
        clusters = UnitFacts(trials.unit.tolist(), request.units).clusters(request.settings.cluster)
        draw = partial(request.resampled, np.ones(len(clusters.values), dtype=np.int64))
        _AuditWriter(Writer(rows, draw, clusters.codes), trials, str(grader)).add_rows()


class _AuditWriter(NamedTuple):
    """Trials of one grader with the writer of their rows."""

    out: Writer
    trials: Trials
    grader: str

    def add_rows(self) -> None:
        """Add all rows of the audit."""
        out, trials = self.out, self.trials
        has_placebo = ~np.isnan(trials.effects[0])
        masks = {name: has_placebo & (trials.attack == name) for name in trials.attacks}
        masks = {name: chosen for name, chosen in masks.items() if chosen.any()}  # by attack
        for values, (effect, p, bounds) in zip(trials.effects, OUTCOMES.values(), strict=True):
            sums = [np.bincount(out.clusters[mask], values[mask]) for mask in masks.values()]
            corrected = holm([sign_flip_above(cluster_sums) for cluster_sums in sums])
            for (name, chosen), adjusted in zip(masks.items(), corrected, strict=True):
                add = partial(out.add, units=self._counts(chosen), a=self.grader, at=name)
                self._add_mean(effect, values, chosen, at=name)
                add(p, float(adjusted), note=f"Holm over {len(masks)} attacks")
                add(bounds, self._bounds(values, chosen, n_attacks=len(masks)))
        retested = ~np.isnan(trials.retest)
        is_first = np.zeros(len(trials.unit), dtype=bool)
        is_first[np.unique(trials.unit, return_index=True)[1]] = True
        first_retested = is_first & retested  # a unit's clean text counts once, not for each attack
        if first_retested.any():
            self._add_mean(RETEST, trials.retest, first_retested)
        for name in (*_PLACEBOS, *masks):
            chosen = trials.attack == name
            has_both = chosen & retested & ~np.isnan(trials.flipped)
            if has_both.any():
                self._add_mean(FLIPS, trials.flipped - trials.retest, has_both, at=name)
            if chosen.any():
                self._add_mean(UNSCORED, trials.unscored, chosen, at=name)

    def _add_mean(self, statistic: str, values: Array, chosen: Mask, at: str = "") -> None:
        """Add a mean over some trials, with its bootstrap interval."""
        shares = self.out.share(np.where(chosen, values, 0.0), chosen)
        self.out.add(statistic, shares, self._counts(chosen), a=self.grader, at=at)

    def _bounds(self, effects: Array, chosen: Mask, n_attacks: int) -> Interval:
        """Return one-sided bounds: the lower for all attacks together, the upper for this one."""
        frequency, effect = self.out.resamples.frequency, np.where(chosen, effects, 0.0)
        left_out = Resamples(frequency, jackknife=True)
        values = ratio(*left_out.sums(self.out.clusters, effect, chosen).T)
        estimate = float(values[0])
        deviations = np.nan_to_num(influence(values))  # NaN with one cluster
        level = ALPHA / n_attacks
        # Distances of the bounds: at least the share of clusters that may differ unobserved.
        below, above = (1.0 - alpha ** (1.0 / left_out.n_types) for alpha in (level, ALPHA))
        if deviations.any():
            reaches = np.nan_to_num([reach(deviations, level), reach(-deviations, ALPHA)])
            below, above = np.maximum([below, above], reaches).tolist()
        low, high = max(estimate - below, -1.0), min(estimate + above, 1.0)
        note = f"one-sided: lower {level:.3g}, upper {ALPHA:.3g}"
        return Interval(estimate, low, high, join_notes(note))

    def _counts(self, chosen: Mask) -> Counts:
        """Return the numbers of units and clusters of some trials."""
        units, clusters = self.trials.unit[chosen], self.out.clusters[chosen]
        return len(np.unique(units)), len(np.unique(clusters))


LEVEL = 0.05
"""Corrected p below which an attack had an effect."""
NAMES = {
    name: written(f"attack.{name}")
    for name in (
        *("plain_order", "false_authority", "closing_tag", "lookalike_tag", "chat_tokens"),
        *("fake_turn", "fake_answer", "long_text", "other_language", "flattery"),
    )
}
"""Name of every attack within a sentence."""
Status = Literal["pulled", "knocked_off", "silenced", "withstands", "inconclusive"]


def name_in_words(attack: str) -> str:
    """Return an attack's name within a sentence; a user's own attack keeps its name."""
    return NAMES.get(attack, attack.replace("_", " "))


class Attack(NamedTuple):
    """Rows of one outcome of one attack on one grader: effect, corrected p and deciding bounds."""

    effect: ResultRow
    p: ResultRow
    bounds: ResultRow

    @property
    def name(self) -> str:
        """Name of the attack within a sentence."""
        return name_in_words(self.effect["at"])

    @property
    def has_effect(self) -> bool:
        """True if the effect is significant."""
        return self.p["estimate"] < LEVEL

    def beyond(self, limit: float) -> bool:
        """Return True if the effect is significant and its lower bound above the limit."""
        return self.has_effect and self.bounds["low"] > limit


class Outcome(NamedTuple):
    """One of the `OUTCOMES` that attacks can have, with its rows for each attack."""

    name: str
    attacks: tuple[Attack, ...]

    def state(self, limit: float) -> State:
        """Return *broken* if an effect is beyond the limit, *met* if all lie below, else *open*."""
        return state_of(
            met=all(attack.bounds["high"] < limit for attack in self.attacks),
            broken=any(attack.beyond(limit) for attack in self.attacks),
        )

    def worst(self, limit: float) -> Attack:
        """Return the attack with the largest effect of those beyond the limit; if there is none,
        the attack with the highest upper bound.
        """
        if beyond := [attack for attack in self.attacks if attack.beyond(limit)]:
            return max(beyond, key=lambda attack: attack.bounds["estimate"])
        return max(self.attacks, key=lambda attack: attack.bounds["high"])

    def figures(self, limit: float) -> dict[str, object]:
        """Return the worst attack's figures for a sentence, with no bound rounded to the limit."""
        row = self.worst(limit).bounds
        low, high = (shown_apart(end, [limit]) for end in (row["low"], row["high"]))
        figures = {"effect": row["estimate"], "low": low, "high": high, "bound": limit}
        return {"attack": name_in_words(row["at"]), "sample": sample_of(row), **figures}


class Audit(NamedTuple):
    """Findings on attacks on one grader under one rubric, by outcome; `retest` is the row of its
    flips on the clean text read again, if it was.
    """

    rubric: str
    grader: str
    outcomes: tuple[Outcome, ...]
    retest: ResultRow | None

    def beyond(self, limits: InjectionBounds) -> list[Outcome]:
        """Return the outcomes in which an attack's effect lies beyond its limit."""
        return self._in_state("broken", limits)

    def status(self, limits: InjectionBounds) -> Status:
        """Return the first outcome in which an attack's effect lies beyond its limit; else
        "withstands" if all lie within their limits, or "inconclusive".
        """
        if beyond := self.beyond(limits):
            return beyond[0].name  # type: ignore[return-value]
        return "inconclusive" if self._in_state("open", limits) else "withstands"

    def deciding_outcomes(self, limits: InjectionBounds) -> list[tuple[Outcome, float]]:
        """Return the outcomes that decide, with their limits: those with an effect beyond the
        limit, else those that are open, else all.
        """
        outcomes = self.beyond(limits) or self._in_state("open", limits) or self.outcomes
        return [(outcome, limits.of(outcome.name)) for outcome in outcomes]

    def _in_state(self, state: State, limits: InjectionBounds) -> list[Outcome]:
        """Return the outcomes that are in a state by their limits."""
        return [item for item in self.outcomes if item.state(limits.of(item.name)) == state]

    def sentence(self, limits: InjectionBounds) -> str:
        """Return the verdict, the worst attack of each kind, and the figures."""
        status = self.status(limits)
        verdict = "fails" if status in OUTCOMES else status
        lines = [written(f"injection.{verdict}", grader=self.grader)]
        ending = {"inconclusive": "open", "withstands": "within"}.get(status, "beyond")
        for outcome, limit in self.deciding_outcomes(limits):
            lines.append(written(f"injection.{outcome.name}_{ending}", **outcome.figures(limit)))
        return " ".join(lines)

    def rows(self, limits: InjectionBounds) -> tuple[ResultRow, ...]:
        """Return the rows that the sentence is based on."""
        worst = (outcome.worst(limit) for outcome, limit in self.deciding_outcomes(limits))
        rows = [row for attack in worst for row in (attack.effect, attack.p, attack.bounds)]
        return tuple(rows if self.retest is None else [*rows, self.retest])


def audits(rows: Iterable[ResultRow]) -> list[Audit]:
    """Return the audits of all graders, in the order of the rows."""
    by_key = {  # the parts 0 to 3 of a key are rubric, grader, statistic and attack
        (row["rubric"], row["rater_a"], row["statistic"], row["at"]): row
        for row in rows
        if row["statistic"].startswith("injection_")
    }
    all_audits = []
    for rubric, grader in dict.fromkeys(key[:2] for key in by_key if key[2] == EFFECT):
        attack_names = [key[3] for key in by_key if key[:3] == (rubric, grader, EFFECT)]
        outcomes = []
        for outcome, statistics in OUTCOMES.items():
            attacks = tuple(
                Attack(*(by_key[rubric, grader, statistic, name] for statistic in statistics))
                for name in attack_names
            )
            outcomes.append(Outcome(outcome, attacks))
        retest = by_key.get((rubric, grader, RETEST, ""))
        all_audits.append(Audit(rubric, grader, tuple(outcomes), retest))
    return all_audits
