"""An injection audit: the units that a grader is asked about, clean first and then under attack.

It is carried out by the runner of `grade`: resumable, and within a budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evenhand.errors import InputError
from evenhand.graders.audit.attacks import Suite, places_of, suite, targets_of
from evenhand.graders.options import GradingOptions, RequestLimits
from evenhand.graders.plan import GradingTask, OpenQuestions, plan_grading
from evenhand.graders.running.dry_run import GraderForecast, forecast_of
from evenhand.graders.running.locking import only_runner
from evenhand.graders.running.run import GraderSummary, Progress, ProgressCounter
from evenhand.graders.running.runner import Rounds, RunSummary, carry_out, new_context
from evenhand.graders.scrub import Scrubber
from evenhand.rubrics import Rubric
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.questions import AttackedQuestion, Question
from evenhand.study.seeding import digest
from evenhand.study.store.logs.replies import Trial, finished_trials
from evenhand.study.tables.attacks import CLEAN, REPEATS, reading
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study

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
    scrubber = Scrubber.from_environment(study.config.providers)
    with only_runner(study):
        audit = AuditPlan(study, options, scrubber)
        context = new_context(scrubber, limits, 0, progress)
        summary = GraderSummary(rater_id=audit.rater_id, already=0, planned=0)
        for part in (audit.clean,) if cancel else (audit.clean, audit.attacked):
            task = part()
            summary.already += task.questions.already
            summary.planned += len(task.questions)
            if len(task.questions) or cancel:
                counter = ProgressCounter(len(task.questions), progress)
                of_part = replace(context, progress=counter)
                carry_out(study, [task], of_part, [summary], batch=batch, cancel=cancel)
            if summary.stopped:
                break
    return RunSummary((summary,), context.budget.exhausted)


def audit_in_rounds(rounds: Rounds, options: AuditOptions) -> RunSummary:
    """Ask the missing questions of an audit as `audit_injection` does, within the lock and the
    budget of these rounds. The summary is of all rounds so far.
    """
    audit = AuditPlan(rounds.study, options, rounds.context.scrubber)
    name = written("improve.audited", grader=audit.rater_id)
    for part in (audit.clean, audit.attacked):
        task = part()
        summary = rounds.part(name, task.questions.already, len(task.questions))
        if len(task.questions):
            carry_out(rounds.study, [task], rounds.context, [summary])
        if summary.stopped:
            break
    return rounds.so_far


def forecast_audit(
    study: Study, options: AuditOptions, *, batch: bool = False
) -> list[GraderForecast]:
    """Forecast the questions and the highest cost of an audit, without network or key."""
    audit = AuditPlan(study, options, Scrubber.from_environment(study.config.providers))
    return [forecast_of(study, audit.at_most(), batch=batch)]


@dataclass(frozen=True, slots=True)
class AttackedQuestions(OpenQuestions):
    """A grader's open questions of the audit."""

    attacked: ClassVar[bool] = True
    asked: tuple[AttackedQuestion, ...] = ()

    @property
    def rubrics(self) -> dict[str, Rubric]:
        return {each.rubric.name: each.rubric for each in self.asked}

    def only(self, draws: Sequence[Question]) -> AttackedQuestions:
        asked = tuple(each for each in draws if isinstance(each, AttackedQuestion))
        return AttackedQuestions(self.rater_id, 0, (), asked)

    def __len__(self) -> int:
        return len(self.asked)

    def __iter__(self) -> Iterator[AttackedQuestion]:
        return iter(self.asked)


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
            if not (rubric.variant_of or rubric.several)
        ]
        for name in options.grading.rubrics or usual or study.rubrics:
            if name in study.rubrics and study.rubrics[name].several:
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
            for rubric, *_ in self._plan.questions.parts
        }

    @property
    def _draws(self) -> int:
        return self._plan.settings.draws

    @property
    def rater_id(self) -> str:
        return self._plan.questions.rater_id

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
        clean = self.clean().questions
        attacked = self._open({r: self._attacks(r, _UNKNOWN) for r in self._units}).questions
        together = AttackedQuestions(
            self.rater_id, clean.already + attacked.already, (), (*clean, *attacked)
        )
        return replace(self._plan, questions=together)

    def _attacks(self, rubric: Rubric, not_asked: str) -> list[Trial]:
        """Return the attacks on a rubric's units. `not_asked` is the clean label to assume for a
        unit that has none yet; with "" such a unit is left out.
        """
        labels, found = self._finished(rubric), []
        places = places_of(rubric)
        for at, unit in enumerate(self._units[rubric]):
            first = [labels.get((unit, CLEAN, "", "", draw), "") for draw in range(self._draws)]
            if not (label := reading(first) or not_asked):
                continue
            other = [target for target in targets_of(rubric) if target != label]
            if label == _UNKNOWN and len(rubric.categories) == 2:
                other = other[:1]  # the label will be one of the two
            trials = self._suite.trials_of(other, places[at % len(places)])
            found += [(unit, *trial, draw) for trial in trials for draw in range(self._draws)]
        return found

    def _open(self, wanted: Mapping[Rubric, Sequence[Trial]]) -> GradingTask:
        asked, already = [], 0
        for rubric, trials in wanted.items():
            finished = self._finished(rubric)
            missing = [trial for trial in trials if trial not in finished]
            already += len(trials) - len(missing)
            asked += [_question(self._suite, rubric, *trial) for trial in missing]
        questions = AttackedQuestions(self.rater_id, already, (), tuple(asked))
        return replace(self._plan, questions=questions)

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
    ordered.sort(key=lambda each: each[0])  # stable: in the drawn order within a turn
    return [unit for _, unit in ordered[:count]]


def _question(
    texts: Suite, rubric: Rubric, unit: str, attack: str, target: str, side: str, draw: int
) -> AttackedQuestion:
    return AttackedQuestion(
        unit,
        rubric,
        "ab" if rubric.has_sides else "",
        draw,
        attack=attack,
        target=target,
        side=side,
        suite=texts.version,
        suffix="" if attack == CLEAN else texts.suffix(rubric, attack, target, side),
    )
