"""Findings of an injection audit, in sentences that claim no more than their rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from evenhand.analysis.injection.rows import EFFECT, FLIPS, OUTCOMES, RETEST
from evenhand.analysis.requirement import State, state_of
from evenhand.analysis.results import ResultRow
from evenhand.analysis.statistics import shown_apart
from evenhand.study.settings.analysis import InjectionBounds
from evenhand.texts import written

LEVEL = 0.05
"""An attack had an effect if its corrected p is below this."""
NAMES = {
    name: written(f"attack.{name}")
    for name in (
        *("plain_order", "false_authority", "closing_tag", "lookalike_tag", "chat_tokens"),
        *("fake_turn", "fake_answer", "long_text", "other_language", "flattery"),
    )
}
"""Name of every attack within a sentence."""
Status = Literal["pulled", "knocked_off", "silenced", "withstands", "cannot_tell"]


def named(attack: str) -> str:
    """Return an attack's name within a sentence; a user's own attack keeps its name."""
    return NAMES.get(attack, attack.replace("_", " "))


@dataclass(frozen=True)
class Attack:
    """Effect of one attack on one grader in one way.

    The rows of its effect, corrected p and deciding bounds.
    """

    effect: ResultRow
    p: ResultRow
    bounds: ResultRow

    @property
    def name(self) -> str:
        """Name of the attack within a sentence."""
        return named(self.effect["at"])

    @property
    def works(self) -> bool:
        """True if the attack has an effect beyond chance."""
        return self.p["estimate"] < LEVEL

    def beyond(self, bound: float) -> bool:
        """Return True if the whole effect lies beyond what is allowed."""
        return self.works and self.bounds["low"] > bound


@dataclass(frozen=True)
class Outcome:
    """Outcome that attacks can have (`rows.OUTCOMES`), attack by attack."""

    name: str
    attacks: tuple[Attack, ...]

    def state(self, bound: float) -> State:
        """Return *broken* if some attack clearly exceeds what is allowed, *met* if all clearly stay
        below, else *open*.
        """
        return state_of(
            met=all(each.bounds["high"] < bound for each in self.attacks),
            broken=any(each.beyond(bound) for each in self.attacks),
        )

    def worst(self, bound: float) -> Attack:
        """Return the attack with the largest effect of those beyond the bound.

        If there is none, the attack whose effect may be the largest.
        """
        if beyond := [each for each in self.attacks if each.beyond(bound)]:
            return max(beyond, key=lambda each: each.bounds["estimate"])
        return max(self.attacks, key=lambda each: each.bounds["high"])

    def figures(self, bound: float) -> dict[str, object]:
        """Return the figures of the worst attack, for a sentence."""
        worst = self.worst(bound)
        row = worst.bounds
        units = f"{row['n_units']} units"
        apart = row["n_clusters"] != row["n_units"]
        return {
            "attack": worst.name,
            "effect": row["estimate"],
            "low": shown_apart(row["low"], [bound]),
            "high": shown_apart(row["high"], [bound]),
            "bound": bound,
            "sample": f"{units} in {row['n_clusters']} clusters" if apart else units,
        }


@dataclass(frozen=True)
class Audit:
    """Attacks on one grader under one rubric, by outcome.

    `flips` are the flips beyond the grader's own, by attack; `retest` its own flips on the clean
    text asked again, where it was.
    """

    rubric: str
    grader: str
    outcomes: tuple[Outcome, ...]
    flips: dict[str, ResultRow]
    retest: ResultRow | None

    @property
    def attacks(self) -> tuple[Attack, ...]:
        """Attacks with their effect towards the label that they ask for."""
        return self.outcomes[0].attacks

    def beyond(self, bounds: InjectionBounds) -> list[Outcome]:
        """Return the outcomes in which an attack clearly exceeds what is allowed."""
        return self._in_state("broken", bounds)

    def status(self, bounds: InjectionBounds) -> Status:
        """Return the first outcome in which an attack clearly exceeds what is allowed.

        Else "withstands" if all are clearly within it, or "cannot_tell".
        """
        if beyond := self.beyond(bounds):
            return beyond[0].name  # type: ignore[return-value]
        return "cannot_tell" if self._in_state("open", bounds) else "withstands"

    def fails(self, bounds: InjectionBounds) -> bool:
        """Return True if an attack clearly has more of some effect than is allowed."""
        return bool(self.beyond(bounds))

    def telling(self, bounds: InjectionBounds) -> list[tuple[Outcome, float]]:
        """Return the outcomes that the verdict rests on, with their bounds.

        These are the outcomes beyond their bound; else those still open; else all.
        """
        found = self.beyond(bounds) or self._in_state("open", bounds) or self.outcomes
        return [(each, bounds.of(each.name)) for each in found]

    def _in_state(self, state: State, bounds: InjectionBounds) -> list[Outcome]:
        return [each for each in self.outcomes if each.state(bounds.of(each.name)) == state]

    def sentence(self, bounds: InjectionBounds) -> str:
        """Return the verdict, the worst attack of each kind, and the figures."""
        status = self.status(bounds)
        head = written(f"injection.{_HEADS.get(status, 'fails')}", grader=self.grader)
        how = "beyond" if status in OUTCOMES else "open" if status == "cannot_tell" else "within"
        said = (
            written(f"injection.{outcome.name}_{how}", **outcome.figures(bound))
            for outcome, bound in self.telling(bounds)
        )
        return " ".join((head, *said))

    def rows(self, bounds: InjectionBounds) -> tuple[ResultRow, ...]:
        """Return the rows that the sentence is based on."""
        rows: list[ResultRow | None] = []
        for outcome, bound in self.telling(bounds):
            worst = outcome.worst(bound)
            rows += [worst.effect, worst.p, worst.bounds]
        return tuple(row for row in (*rows, self.retest) if row is not None)


_HEADS = {"withstands": "withstands", "cannot_tell": "cannot_tell"}


def audits(rows: Iterable[ResultRow]) -> list[Audit]:
    """Return the audits of all graders, in the order of the rows."""
    by_key = {
        (row["rubric"], row["rater_a"], row["statistic"], row["at"]): row
        for row in rows
        if row["statistic"].startswith("injection_")
    }
    graders = dict.fromkeys(key[:2] for key in by_key if key[2] == EFFECT)
    return [_audit(by_key, rubric, grader) for rubric, grader in graders]


def _audit(by_key: dict[tuple[str, str, str, str], ResultRow], rubric: str, grader: str) -> Audit:
    def of(statistic: str) -> dict[str, ResultRow]:
        own = (rubric, grader, statistic)
        return {key[3]: row for key, row in by_key.items() if key[:3] == own}

    outcomes = []
    for name, (effect, p, bounds) in OUTCOMES.items():
        ps, within = of(p), of(bounds)
        attacks = (Attack(row, ps[at], within[at]) for at, row in of(effect).items())
        outcomes.append(Outcome(name, tuple(attacks)))
    return Audit(rubric, grader, tuple(outcomes), of(FLIPS), of(RETEST).get(""))


def audit_of(rows: Iterable[ResultRow], grader: str) -> Audit | None:
    """Return the audit of one grader among the rows of one rubric, or None."""
    return next((each for each in audits(rows) if each.grader == grader), None)
