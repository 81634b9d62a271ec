"""An injection audit: the units that a grader is asked about, clean first and then under attack.

The attacks are data, in `attacks.toml`, and a user's own in a file of the same form. Every text is
as long as its placebo, to the character: what an attack does beyond its placebo is not done by
length. The audit is carried out by the runner of `grade`: resumable, and within a budget.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.graders.options import GradingOptions, GradingTask, RequestLimits, plan_grading
from evenhand.graders.providers import Scrubber
from evenhand.graders.running import (
    GraderForecast,
    Progress,
    ProgressCounter,
    Rounds,
    RunSummary,
    forecast_of,
    only_runner,
)
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import PROMPT_VERSION, TEXT_VARIABLES
from evenhand.study.prompts.sampling import digest
from evenhand.study.prompts.units import AttackedQuestion, parse_unit_id, variable_of
from evenhand.study.store.logs.replies import Trial, finished_trials
from evenhand.study.tables.ratings import (
    CLEAN,
    LONG_PLACEBO,
    PLACEBO,
    REPEATS,
    is_own,
    label_of_draws,
)
from evenhand.texts import table_of, written

if TYPE_CHECKING:
    from evenhand.study import Study

# ---- the texts: ways to talk a grader round, and two that do not try ----------------------------
_LONG = 3_000
"""Length in characters of the long text, which ends with its instruction."""
_FACTS = (
    "The library opens at nine and closes at six. The river runs past the old mill. Trains leave "
    "every hour from the second platform. The market has fruit, bread and cheese. Three bridges "
    "cross the canal. The school has a new roof. A bus stops in front of the post office. "
)
"""Harmless to any question about an answer."""

_BREAK = "\n\n"


@dataclass(frozen=True, slots=True)
class Attack:
    """A text that asks for an option, and the placebo that it is compared with."""

    name: str
    text: str
    source: str
    placebo: str = PLACEBO

    def aimed_at(self, key: str, tag: str) -> str:
        """Return the attack aimed at option `key`; `tag` names the tags around the unit's text."""
        return self.text.replace("{key}", key).replace("{tag}", tag)


@dataclass(frozen=True)
class Suite:
    """The attacks of one audit: those of the package, and a user's own."""

    attacks: tuple[Attack, ...]

    @cached_property
    def version(self) -> str:
        """Version of the prompt and a short hash of the attack texts: `PROMPT_VERSION-HASH`."""
        texts = [_LONG, _FACTS, *(f"{attack.name}: {attack.text}" for attack in self.attacks)]
        digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
        return f"{PROMPT_VERSION}-{digest[:8]}"

    def suffix(self, rubric: Rubric, attack: str, target: str, place: str) -> str:
        """Return the text to append to a unit's text at `place`, as long as its placebo.

        `target` is the option that the attack asks for, "" for a placebo.
        """
        tag = variable_of(place)
        tag = "turn" if tag in rubric.conversations else tag
        aimed = next((candidate for candidate in self.attacks if candidate.name == attack), None)
        text = aimed.aimed_at(target, tag) if aimed else ""
        of = aimed.placebo if aimed else attack
        texts = (other.aimed_at(key, tag) for other in self.attacks for key in rubric.categories)
        length = _LONG if of == LONG_PLACEBO else max(map(len, texts)) + 2 * len(_BREAK)
        end = f"{_BREAK}{text}" if text else ""
        room = length - len(_BREAK) - len(end)
        return _BREAK + (_FACTS * (room // len(_FACTS) + 1))[:room] + end

    def trials_of(
        self, targets: Sequence[str], places: Sequence[str]
    ) -> list[tuple[str, str, str]]:
        """Return (attack, target, place) of every trial other than the clean text."""
        asked = [(attack.name, target) for attack in self.attacks for target in targets]
        return [
            (*text, place)
            for place in places
            for text in ((PLACEBO, ""), (LONG_PLACEBO, ""), *asked)
        ]


@cache
def suite(own: Path | None = None) -> Suite:
    """Load the attacks of the package and those of a user's `own` file. Raises InputError where
    that file is missing or is not a valid file of attacks.
    """
    table = table_of("evenhand.graders", "attacks.toml")
    attacks = [Attack(name=name, **row) for name, row in table.items()]
    if own is None:
        return Suite(tuple(attacks))
    try:
        rows = tomllib.loads(own.read_bytes().decode("utf-8"))
    except OSError:
        raise InputError(f"there is no file {own}") from None
    except ValueError as error:
        raise InputError(f"{own.name} is not TOML in UTF-8: {error}") from None
    if not rows:
        raise InputError(f'{own.name} names no attack; write [name] and text = "..."')
    for name, row in rows.items():
        fault = ""
        if not is_own(name):
            fault = ": choose another name, of small letters, digits and _, that no attack has"
        elif not isinstance(row, dict) or not all(isinstance(v, str) for v in row.values()):
            fault = ' must hold text = "..." and, if you like, source = "..."'
        elif extra := set(row) - {"text", "source", "placebo"}:
            fault = f": there is no field {min(extra)!r}; use text, source, placebo"
        elif "{key}" not in row.get("text", ""):
            fault = ": the text must hold {key}, the option that it asks for"
        elif row.get("placebo", PLACEBO) not in (PLACEBO, LONG_PLACEBO):
            fault = f": placebo is {PLACEBO} or {LONG_PLACEBO}"
        if fault:
            raise InputError(f"{own.name}, [{name}]{fault}")
        attacks.append(Attack(name=name, **{"source": "own", **row}))
    return Suite(tuple(attacks))


def targets_of(rubric: Rubric) -> tuple[str, str]:
    """Return the options that attacks ask for: the first and the last of the scale, or, for pairs,
    the first and the last option that favours a side, where the rubric marks at least two.
    """
    sides = [option.key for option in rubric.options if option.favours]
    if rubric.has_sides and len(sides) >= 2:
        return sides[0], sides[-1]
    return rubric.categories[0], rubric.categories[-1]


def places_of(rubric: Rubric) -> list[tuple[str, ...]]:
    """Return the places that an attack can be appended to: the responses together, then the
    prompts, then every other block, as far as the rubric shows them. Each unit is attacked in one
    of these places, in turn, so that several places cost no more than one.
    """
    kinds: list[tuple[str, ...]] = [("", "a", "b"), ("prompt", "prompt_a", "prompt_b")]
    kinds += [(block.column,) for block in rubric.blocks if block.column not in TEXT_VARIABLES]
    shown = [tuple(p for p in kind if variable_of(p) in rubric.variables) for kind in kinds]
    return [places for places in shown if places]


# ---- the audit ----------------------------------------------------------------------------------
_LIMITS = RequestLimits()
_UNKNOWN = "\0"  # no option's key


@dataclass(frozen=True)
class AuditOptions:
    """The user's options for an audit: the grader, the number of units per rubric, and the options
    for `grading` them (rubrics None: all except variant wordings of another rubric). `own` is a
    file of further attacks.
    """

    grader: str
    units: int = 100
    grading: GradingOptions = field(default_factory=GradingOptions)
    own: Path | None = None


def audit_injection(
    study: Study,
    options: AuditOptions,
    limits: RequestLimits = _LIMITS,
    progress: Progress | None = None,
    *,
    batch: bool = False,
    cancel: bool = False,
) -> RunSummary:
    """Ask the missing questions of an audit: the clean texts first, then the attacks, each aimed
    at an option that the grader did not give to the clean text. Safe to interrupt and to run again.

    `batch` and `cancel` are those of `grade`: a batch of the clean texts, then one of the attacks.
    Raises InputError as `grade` does.
    """
    with only_runner(study):
        run = replace(Rounds.begin(study, limits), batch=batch, cancel=cancel)
        audit = AuditPlan(study, options, run.scrubber)
        for part in (audit.clean,) if cancel else (audit.clean, audit.attacked):
            replace(run, progress=ProgressCounter(progress)).collect([part()])
            if run.so_far.stopped:
                break
    return run.so_far


def audit_in_rounds(rounds: Rounds, options: AuditOptions) -> RunSummary:
    """Ask the missing questions of an audit as `audit_injection` does, within the lock and the
    budget of these rounds. The summary is of all rounds so far.
    """
    audit = AuditPlan(rounds.study, options, rounds.scrubber)
    name = written("improve.audited", grader=audit.rater_id)
    for part in (audit.clean, audit.attacked):
        rounds.collect([part()], name=name)
        if rounds.summaries[name].stopped:
            break
    return rounds.so_far


def forecast_audit(
    study: Study, options: AuditOptions, *, batch: bool = False
) -> list[GraderForecast]:
    """Forecast the questions and the highest cost of an audit, without network or key."""
    audit = AuditPlan(study, options, Scrubber.from_environment(study.config.providers))
    return [forecast_of(study, audit.at_most(), batch=batch)]


class AuditPlan:
    """The audit of one grader. Raises InputError where the grader, a rubric or another option
    is not valid.
    """

    def __init__(self, study: Study, options: AuditOptions, scrubber: Scrubber) -> None:
        if options.units < 1:
            raise InputError(f"units is {options.units}; it must be at least 1")
        usual = [
            name
            for name, rubric in study.rubrics.items()
            if rubric.kind.is_single and not rubric.variant_of
        ]
        for name in options.grading.rubrics or usual or study.rubrics:
            if name in study.rubrics and not study.rubrics[name].kind.is_single:
                raise InputError(
                    f"rubric {name!r} asks for several options, and attacks ask for one; name "
                    "another with --rubric"
                )
        grading = replace(options.grading, rubrics=options.grading.rubrics or usual)
        self._study = study
        self._suite = suite(options.own)
        (self._plan,) = plan_grading(study, [options.grader], grading, scrubber)
        self._units = {
            rubric: audited_units(study, rubric, options.units)
            for rubric in self._plan.rubrics.values()
        }
        self._draws = self._plan.settings.draws
        self.rater_id = self._plan.rater_id

    def clean(self) -> GradingTask:
        """Plan the clean questions: every unit unchanged, asked twice, each time for all draws."""
        draws = range(REPEATS * self._draws)
        return self._open(
            {
                rubric: [(unit, CLEAN, "", "", draw) for unit in units for draw in draws]
                for rubric, units in self._units.items()
            }
        )

    def attacked(self) -> GradingTask:
        """Plan the attacked questions: the same units, with attacks aimed at each end of the scale
        that is not the unit's clean label. A unit without a clean label is left out.
        """
        return self._open({rubric: self._attacks(rubric, "") for rubric in self._units})

    def at_most(self) -> GradingTask:
        """Plan the largest possible audit, before the clean answers are known: every unit is
        attacked towards both ends, or towards one where the scale has only two options.
        """
        clean = self.clean()
        attacked = self._open({r: self._attacks(r, _UNKNOWN) for r in self._units})
        questions = (*clean.questions, *attacked.questions)
        return replace(clean, questions=questions, already=clean.already + attacked.already)

    def _attacks(self, rubric: Rubric, not_asked: str) -> list[Trial]:
        """Return the attacks on a rubric's units. `not_asked` is the clean label to assume for a
        unit that has none yet; with "" such a unit is left out.
        """
        labels, attacks = self._finished(rubric), []
        places = places_of(rubric)
        for at, unit in enumerate(self._units[rubric]):
            first = [labels.get((unit, CLEAN, "", "", draw), "") for draw in range(self._draws)]
            if not (label := label_of_draws(first) or not_asked):
                continue
            other = [target for target in targets_of(rubric) if target != label]
            if label == _UNKNOWN and len(rubric.categories) == 2:
                other = other[:1]  # the label will be one of the two
            trials = self._suite.trials_of(other, places[at % len(places)])
            attacks += [(unit, *trial, draw) for trial in trials for draw in range(self._draws)]
        return attacks

    def _open(self, wanted: Mapping[Rubric, Sequence[Trial]]) -> GradingTask:
        asked, already = list[AttackedQuestion](), 0
        for rubric, trials in wanted.items():
            finished = self._finished(rubric)
            missing = [trial for trial in trials if trial not in finished]
            already += len(trials) - len(missing)
            for unit, attack, target, side, draw in missing:
                order, texts = "ab" if rubric.has_sides else "", self._suite
                suffix = "" if attack == CLEAN else texts.suffix(rubric, attack, target, side)
                of = {"attack": attack, "target": target, "side": side, "suite": texts.version}
                asked.append(AttackedQuestion(unit, rubric, order, draw, suffix=suffix, **of))
        rubrics = {question.rubric.name: question.rubric for question in asked}
        return replace(self._plan, rubrics=rubrics, questions=asked, already=already, attacked=True)

    def _finished(self, rubric: Rubric) -> dict[Trial, str]:
        accepted = self._study.accepted_hashes()[rubric.name]
        return finished_trials(
            self._study.store, self.rater_id, rubric.name, accepted, self._suite.version
        )


def audited_units(study: Study, rubric: Rubric, count: int) -> list[str]:
    """Return `count` unit ids of the sample, drawn by the study's seed: one of every pair before a
    second of any, as units of one pair tell less. A larger count adds to the same units.
    """
    seed, turns = study.config.seed, Counter[str]()
    ordered = []
    drawn = sorted(study.rubric_units(rubric), key=lambda unit: digest(seed, "injection", unit))
    for unit in drawn:
        pair = parse_unit_id(unit)[0]
        ordered.append((turns[pair], unit))
        turns[pair] += 1
    ordered.sort(key=lambda turn: turn[0])  # stable: in the drawn order within a turn
    return [unit for _, unit in ordered[:count]]
