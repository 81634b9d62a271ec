"""Grading a study: plan what is missing, ask, keep every grade, say how it went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graders.plan import Work, open_work
from graders.scrub import Scrubber
from graders.spec import GraderSpec, parse_spec
from rubrics import Rubric
from rubrics.errors import InputError

if TYPE_CHECKING:
    from graders.live import LiveRun, Pace
    from graders.offline import OfflineRun
    from graders.outcome import Grader
    from study import Study

__all__ = ["GraderSummary", "Progress", "RunSummary", "grade"]

Progress = Callable[[int, int, str], None]
"""Called with (grades of this run so far, questions of this run, the grader's rater_id)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderSummary:
    """How one grader's part of a run went. `stopped` says why, where it was stopped early."""

    rater_id: str
    already: int
    planned: int
    scored: int = 0
    unscored: Mapping[str, int] = field(default_factory=dict)
    requests: int = 0
    stopped: str = ""

    @property
    def unasked(self) -> int:
        return self.planned - self.scored - sum(self.unscored.values())


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run went, grader by grader, in the order in which they were named."""

    graders: tuple[GraderSummary, ...]

    @property
    def scored(self) -> int:
        return sum(grader.scored for grader in self.graders)

    @property
    def unscored(self) -> int:
        return sum(sum(grader.unscored.values()) for grader in self.graders)

    @property
    def stopped(self) -> tuple[str, ...]:
        """One sentence for every grader that was stopped early."""
        return tuple(f"{g.rater_id} was stopped: {g.stopped}" for g in self.graders if g.stopped)


def grade(
    study: Study,
    grader_specs: Sequence[str],
    rubrics: Sequence[str] | None = None,
    scope: str = "sample",
    concurrency: int = 32,
    progress: Progress | None = None,
    *,
    orders: Sequence[str] = ("ab",),
    timeout: float = 600.0,
    wait_scale: float = 1.0,
) -> RunSummary:
    """Collect the grades that are missing. Safe to interrupt and to run again at any time.

    `rubrics` are names, None means all of the study's; `scope` is "sample" or "all"; `orders` are
    those in which pairs are shown. `timeout` is in seconds for one request; `wait_scale` multiplies
    the waits between attempts. Raises InputError, with nothing asked, where a grader is unknown,
    has no key or cannot grade a rubric. A grader that fails for good is stopped, and the summary
    says so; the others go on.
    """
    from graders.live import Pace

    if concurrency < 1:
        raise InputError(f"concurrency is {concurrency}; it must be at least 1")
    pace = Pace(concurrency=concurrency, timeout=timeout, wait_scale=wait_scale)
    scrubber = Scrubber.from_environment()
    specs = _parsed(grader_specs, scrubber)
    chosen = _chosen(study, rubrics)
    units = _units(study, chosen, scope)
    works = [open_work(study.store, spec.text, units, chosen, orders) for spec in specs]
    counter = _Counter(sum(map(len, works)), progress)
    parts = {
        spec.text: _part(study, spec, work, scrubber, pace, counter)
        for spec, work in zip(specs, works, strict=True)
        if len(work)
    }
    _carry_out(list(parts.values()))
    return RunSummary(tuple(_summary(work, parts.get(work.rater_id)) for work in works))


class _Counter:
    """Counts the run's grades and reports them."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def add(self, rater_id: str, count: int = 1) -> None:
        self._done += count
        if self._progress:
            self._progress(self._done, self._total, rater_id)


def _parsed(texts: Sequence[str], scrubber: Scrubber) -> list[GraderSpec]:
    if not texts:
        raise InputError("name at least one grader")
    for text in texts:
        if scrubber.text(text) != text:
            raise InputError("a grader's name must not hold an API key; take the key out")
    return [parse_spec(text) for text in dict.fromkeys(texts)]


def _chosen(study: Study, names: Sequence[str] | None) -> list[Rubric]:
    chosen = []
    for name in dict.fromkeys(names if names is not None else study.rubrics):
        if name not in study.rubrics:
            raise InputError(
                f"the study has no rubric {name!r}; it has " + ", ".join(study.rubrics)
            )
        chosen.append(study.rubrics[name])
    return chosen


def _units(study: Study, rubrics: Sequence[Rubric], scope: str) -> dict[str, list[str]]:
    if scope not in ("sample", "all"):
        raise InputError(f"scope is {scope!r}; it must be sample or all")
    units = {rubric.name: study.rubric_units(rubric, scope) for rubric in rubrics}
    if not any(units.values()):
        raise InputError(
            "the study has no responses to grade; add some with "
            "`evenhand import DIR FILE --kind responses`"
        )
    return units


def _part(
    study: Study,
    spec: GraderSpec,
    work: Work,
    scrubber: Scrubber,
    pace: Pace,
    counter: _Counter,
) -> OfflineRun | LiveRun:
    """One grader's part of the run, its key and its rubrics checked."""
    if spec.provider == "baseline":
        from graders.offline import OfflineRun

        return OfflineRun(study, work, counter.add)
    from graders.live import LiveRun

    grader = _open(spec, scrubber, pace.timeout)
    return LiveRun(study, grader, work, scrubber, pace, counter.add)


def _open(spec: GraderSpec, scrubber: Scrubber, timeout: float) -> Grader:
    if spec.provider == "anthropic":
        from graders.claude import ClaudeGrader

        return ClaudeGrader(spec, scrubber, timeout=timeout)
    from graders.openai_chat import OpenAIGrader

    return OpenAIGrader(spec, scrubber, timeout=timeout)


def _carry_out(parts: Sequence[OfflineRun | LiveRun]) -> None:
    """Offline parts first, then all graders behind a network side by side."""
    from graders.live import LiveRun, run_all
    from graders.offline import OfflineRun

    for part in parts:
        if isinstance(part, OfflineRun):
            part.run()
    if live := [part for part in parts if isinstance(part, LiveRun)]:
        run_all(live)


def _summary(work: Work, part: OfflineRun | LiveRun | None) -> GraderSummary:
    if part is None:
        return GraderSummary(rater_id=work.rater_id, already=work.already, planned=0)
    return GraderSummary(
        rater_id=work.rater_id,
        already=work.already,
        planned=len(work),
        scored=part.scored,
        unscored=dict(part.unscored),
        requests=part.requests,
        stopped=part.stopped,
    )
