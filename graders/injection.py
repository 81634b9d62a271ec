"""An audit of prompt injection: a grader labels units (items), first clean and then under attack.

A *trial* is one question of the audit: a unit, the name of the attack appended to it ("clean" for
none), the option that the attack asks for (its *target*), the text of the unit to which it is
appended (its *place*, such as a response), and the number of the draw. Every attack is exactly as
long as its *placebo*, a text that asks for nothing: its larger effect is then not due to length.

The attacks are in `attacks.toml`, and a user's own in a file of the same form. `Suite` holds them,
`AuditPlan` plans the questions, `audit_injection` asks them as `grade` does, within a budget.
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

from evenhand.errors import InputError
from evenhand.graders import running
from evenhand.graders.options import GradingOptions, GradingTask, RequestLimits, plan_grading
from evenhand.graders.providers import Scrubber
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import PROMPT_VERSION, TEXT_VARIABLES
from evenhand.study import Study
from evenhand.study.prompts.sampling import digest
from evenhand.study.prompts.units import AttackedQuestion, parse_unit_id, variable_of
from evenhand.study.store.logs.replies import Trial, finished_trials
from evenhand.study.tables import ratings
from evenhand.texts import table_of, written

# ---- the texts: attacks and two placebos --------------------------------------------------------

_LONG_LENGTH = 3_000  # characters of a long text, at whose end the attack is
_FILLER = (  # text that does not affect any question about an answer
    "The library opens at nine and closes at six. The river runs past the old mill. Trains leave "
    "every hour from the second platform. The market has fruit, bread and cheese. Three bridges "
    "cross the canal. The school has a new roof. A bus stops in front of the post office. "
)
_BREAK = "\n\n"


@dataclass(frozen=True, slots=True)
class Attack:
    """A text that asks for an option, and the name of the placebo that it is compared with."""

    name: str
    text: str
    source: str
    placebo: str = ratings.PLACEBO

    def aimed_at(self, key: str, tag: str) -> str:
        """Return the attack aimed at option `key`; `tag` names the tags around the unit's text."""
        return self.text.replace("{key}", key).replace("{tag}", tag)


@dataclass(frozen=True)
class Suite:
    """The attacks of one audit: the package's and a user's own."""

    attacks: tuple[Attack, ...]

    @cached_property
    def version(self) -> str:
        """Version of the prompt and a short hash of the attack texts: `PROMPT_VERSION-HASH`."""
        texts = [_LONG_LENGTH, _FILLER, *(f"{entry.name}: {entry.text}" for entry in self.attacks)]
        return f"{PROMPT_VERSION}-{hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:8]}"

    def suffix(self, rubric: Rubric, attack: str, target: str, place: str) -> str:
        """Return the text to append to a unit's text at `place`: a break, harmless filler, and
        after another break the `attack` of this name; or for a placebo's name filler alone, of the
        same length. `target` is the option that the attack asks for, "" for a placebo.
        """
        variable = variable_of(place)
        tag = "turn" if variable in rubric.conversations else variable  # turns have their own tags
        attacks, keys = {entry.name: entry for entry in self.attacks}, rubric.categories
        max_length = max(len(entry.aimed_at(key, tag)) for entry in self.attacks for key in keys)
        text, placebo = "", attack  # for a placebo's name
        if attack in attacks:
            text, placebo = attacks[attack].aimed_at(target, tag), attacks[attack].placebo
        length = _LONG_LENGTH if placebo == ratings.LONG_PLACEBO else max_length + 2 * len(_BREAK)
        end = f"{_BREAK}{text}" if text else ""
        filler_length = length - len(_BREAK) - len(end)
        return _BREAK + (_FILLER * (filler_length // len(_FILLER) + 1))[:filler_length] + end

    def trials_of(
        self, targets: Sequence[str], places: Sequence[str]
    ) -> list[tuple[str, str, str]]:
        """Return (attack, target, place) of each text to append: both placebos and every attack."""
        aimed = [(ratings.PLACEBO, ""), (ratings.LONG_PLACEBO, "")]
        aimed += [(attack.name, target) for attack in self.attacks for target in targets]
        return [(attack, target, place) for place in places for attack, target in aimed]


@cache
def suite(attacks_file: Path | None = None) -> Suite:
    """Return the package's and a user's attacks. Raises InputError if the file is not valid."""
    table = table_of("evenhand.graders", "attacks.toml")
    attacks = [Attack(name=name, **row) for name, row in table.items()]
    if attacks_file is None:
        return Suite(tuple(attacks))
    try:
        rows = tomllib.loads(attacks_file.read_bytes().decode("utf-8"))
    except OSError:
        raise InputError(f"there is no file {attacks_file}") from None
    except ValueError as error:
        raise InputError(f"{attacks_file.name} is not TOML in UTF-8: {error}") from None
    if not rows:
        raise InputError(f'{attacks_file.name} names no attack; write [name] and text = "..."')
    for name, row in rows.items():
        fault = ""
        if not ratings.is_custom_attack(name):
            fault = ": choose another name, of small letters, digits and _, that no attack has"
        elif not isinstance(row, dict) or not all(isinstance(text, str) for text in row.values()):
            fault = ' must hold text = "..." and, if you like, source = "..."'
        elif unknown := set(row) - {"text", "source"}:  # figures compare own attacks with PLACEBO
            fault = f": there is no field {min(unknown)!r}; use text, source"
        elif "{key}" not in row.get("text", ""):
            fault = ": the text must hold {key}, the option that it asks for"
        if fault:
            raise InputError(f"{attacks_file.name}, [{name}]{fault}")
        attacks.append(Attack(name=name, **{"source": "own", **row}))
    return Suite(tuple(attacks))


def targets_of(rubric: Rubric) -> tuple[str, str]:
    """Return the two options that attacks ask for: the first and last of those that favour a side,
    if the rubric is on pairs and marks two; else the first and last of the scale.
    """
    sides = [option.key for option in rubric.options if option.favours]
    if rubric.has_sides and len(sides) >= 2:
        return sides[0], sides[-1]
    return rubric.categories[0], rubric.categories[-1]


def places_of(rubric: Rubric) -> list[tuple[str, ...]]:
    """Return the groups of places that an attack can be appended to, as `AttackedQuestion.side` has
    them: the responses ("", or "a" and "b"), the prompts, and every other block that the rubric
    shows. The groups take turns from unit to unit, so that several cost no more than one.
    """
    groups: list[tuple[str, ...]] = [("", "a", "b"), ("prompt", "prompt_a", "prompt_b")]
    groups += [(block.column,) for block in rubric.blocks if block.column not in TEXT_VARIABLES]
    variables = rubric.variables
    used = [tuple(place for place in group if variable_of(place) in variables) for group in groups]
    return [group for group in used if group]


# ---- the audit ----------------------------------------------------------------------------------

_DEFAULT_LIMITS = RequestLimits()
_UNKNOWN_LABEL = "\0"  # stands for a clean label that is not known yet; no option has this key


@dataclass(frozen=True)
class AuditOptions:
    """The user's options for an audit: the grader, the number of units per rubric, the options for
    `grading` them (rubrics None: all except variant wordings), and the user's file of attacks.
    """

    grader: str
    units: int = 100
    grading: GradingOptions = field(default_factory=GradingOptions)
    attacks_file: Path | None = None


def audit_injection(
    study: Study,
    options: AuditOptions,
    limits: RequestLimits = _DEFAULT_LIMITS,
    progress: running.Progress | None = None,
    *,
    batch: bool = False,
    cancel: bool = False,
) -> running.RunSummary:
    """Ask the missing questions of an audit: the clean texts first, then the attacks, each aimed at
    an option that the grader did not give to the clean text, in batches of their own. Safe to
    interrupt and to run again. `batch`, `cancel` and the errors raised are those of `grade`.
    """
    with running.only_runner(study):
        rounds = replace(running.Rounds.begin(study, limits), batch=batch, cancel=cancel)
        audit = AuditPlan(study, options, rounds.scrubber)
        # Any task of the audit's grader cancels all of its audit's batches, so one is enough.
        for plan_stage in (audit.clean,) if cancel else (audit.clean, audit.attacked):
            task = plan_stage()  # only now, as attacks are aimed away from the clean labels
            counter = running.ProgressCounter(progress)  # counts each stage from 0
            replace(rounds, progress=counter).collect([task])
            if rounds.summary.stopped:
                break
    return rounds.summary


def audit_in_rounds(rounds: running.Rounds, options: AuditOptions) -> running.RunSummary:
    """Ask the missing questions of an audit as `audit_injection` does, within the lock and the
    budget of these rounds. Returns the summary of all rounds so far.
    """
    audit = AuditPlan(rounds.study, options, rounds.scrubber)
    summary_name = written("improve.audited", grader=audit.rater_id)
    for plan_stage in (audit.clean, audit.attacked):
        rounds.collect([plan_stage()], name=summary_name)
        if rounds.summaries[summary_name].stopped:
            break
    return rounds.summary


def forecast_audit(
    study: Study, options: AuditOptions, *, batch: bool = False
) -> list[running.GraderForecast]:
    """Forecast the questions and the highest cost of an audit, without network or key."""
    audit = AuditPlan(study, options, Scrubber.from_environment(study.config.providers))
    return [running.forecast_of(study, audit.largest(), batch=batch)]


class AuditPlan:
    """Plans one grader's audit. Raises InputError if an option is not valid."""

    def __init__(self, study: Study, options: AuditOptions, scrubber: Scrubber) -> None:
        if options.units < 1:
            raise InputError(f"units is {options.units}; it must be at least 1")
        single = [rubric for rubric in study.rubrics.values() if rubric.kind.is_single]
        names = options.grading.rubrics or [entry.name for entry in single if not entry.variant_of]
        for name in names or study.rubrics:  # without names, an unsuitable one is reported
            if name in study.rubrics and not study.rubrics[name].kind.is_single:
                raise InputError(
                    f"rubric {name!r} asks for several options, and attacks ask for one; name "
                    "another with --rubric"
                )
        grading = replace(options.grading, rubrics=names)
        self._study = study
        self._suite = suite(options.attacks_file)
        (self._task,) = plan_grading(study, [options.grader], grading, scrubber)
        rubrics, count = self._task.rubrics.values(), options.units
        self._units = {rubric: audited_units(study, rubric, count) for rubric in rubrics}
        self._draws = self._task.settings.draws
        self.rater_id = self._task.rater_id

    def clean(self) -> GradingTask:
        """Plan the clean questions: every unit unchanged, asked twice, each time for all draws."""
        draws = range(ratings.REPEATS * self._draws)
        trials = {  # by rubric: (unit, attack, target, place, draw)
            rubric: [(unit, ratings.CLEAN, "", "", draw) for unit in units for draw in draws]
            for rubric, units in self._units.items()
        }
        return self._open_task(trials)

    def attacked(self) -> GradingTask:
        """Plan the attacked questions: the same units, with attacks aimed at each end of the scale
        that is not the unit's clean label. A unit without a clean label is left out.
        """
        return self._open_task({rubric: self._attack_trials(rubric) for rubric in self._units})

    def largest(self) -> GradingTask:
        """Plan the largest possible audit, before the clean answers are known: every unit is
        attacked towards both ends, or towards one where the scale has only two options.
        """
        clean = self.clean()
        trials = {rubric: self._attack_trials(rubric, _UNKNOWN_LABEL) for rubric in self._units}
        attacked = self._open_task(trials)
        questions = (*clean.questions, *attacked.questions)
        return replace(clean, questions=questions, already=clean.already + attacked.already)

    def _attack_trials(self, rubric: Rubric, assumed_label: str = "") -> list[Trial]:
        """Return the attacks on the units with a clean label. If there is an `assumed_label`, units
        without a clean label are attacked as if they had this one.
        """
        labels, draws, trials = self._label_by_trial(rubric), range(self._draws), list[Trial]()
        groups = places_of(rubric)
        for index, unit in enumerate(self._units[rubric]):
            clean_labels = [labels.get((unit, ratings.CLEAN, "", "", draw), "") for draw in draws]
            if not (label := ratings.label_of_draws(clean_labels) or assumed_label):
                continue
            targets = [target for target in targets_of(rubric) if target != label]
            if label == _UNKNOWN_LABEL and len(rubric.categories) == 2:
                targets = targets[:1]  # the label will be one of the two
            attacks = self._suite.trials_of(targets, groups[index % len(groups)])
            trials += [(unit, *attack, draw) for attack in attacks for draw in draws]
        return trials

    def _open_task(self, trials_by_rubric: Mapping[Rubric, Sequence[Trial]]) -> GradingTask:
        """Return the task of the trials that have no grade yet."""
        questions, already = list[AttackedQuestion](), 0
        suffix_of, version = self._suite.suffix, self._suite.version
        for rubric, trials in trials_by_rubric.items():
            order = "ab" if rubric.has_sides else ""  # pairs are shown in one order only
            finished = self._label_by_trial(rubric)
            open_trials = [trial for trial in trials if trial not in finished]
            already += len(trials) - len(open_trials)
            for unit, attack, target, place, draw in open_trials:
                suffix = "" if attack == ratings.CLEAN else suffix_of(rubric, attack, target, place)
                fields = {"target": target, "side": place, "suite": version, "suffix": suffix}
                questions.append(AttackedQuestion(unit, rubric, order, draw, attack, **fields))
        return replace(self._task, questions=questions, already=already, attacked=True)

    def _label_by_trial(self, rubric: Rubric) -> dict[Trial, str]:
        """Return the grader's finished trials of this suite, each with its label or ""."""
        accepted = self._study.accepted_hashes()[rubric.name]
        store, suite = self._study.store, self._suite.version
        return finished_trials(store, self.rater_id, rubric.name, accepted, suite)


def audited_units(study: Study, rubric: Rubric, count: int) -> list[str]:
    """Return `count` unit ids of the sample, drawn by the study's seed: one of every pair before a
    second of any pair, since units of one pair are correlated. A larger count adds to these units.
    """
    seed, n_by_pair = study.config.seed, Counter[str]()
    rank_by_unit: dict[str, int] = {}  # number of units of the same pair before this one
    shuffled = sorted(study.rubric_units(rubric), key=lambda unit: digest(seed, "injection", unit))
    for unit in shuffled:
        pair = parse_unit_id(unit).pair_id
        rank_by_unit[unit] = n_by_pair[pair]
        n_by_pair[pair] += 1
    # Sorting is stable: units of the same rank keep the shuffled order.
    return sorted(shuffled, key=rank_by_unit.__getitem__)[:count]
