"""From what a user types to every grader's open questions, without any network or key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.graders.grader_settings import REASON_FIRST, GraderSettings, rater_id
from evenhand.graders.open_questions import OpenQuestions, open_questions
from evenhand.graders.providers.table import Own
from evenhand.graders.scrub import Scrubber
from evenhand.graders.sharding import WHOLE, Shard
from evenhand.graders.spec import GraderSpec, parse_spec
from evenhand.rubrics import JudgePrompt, Rubric
from evenhand.study.lead.disagreements import held_out_units
from evenhand.study.store.grades import tried_rater
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study


BOTH_ORDERS = ("ab", "ba")
"""Orders in which each pair is shown by default: many graders favour what they read first."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The user's choices for a run: what to grade, and how. `rubrics` None means all; `orders` are
    those in which pairs are shown; with `retry_unscored` outcomes without a label are asked again.
    `text` is a new version of one of the study's rubrics: only this version is tried, on pairs that
    did not inform it. `prompt` replaces the text of the one rubric chosen. Only units in `shard`
    are asked about.
    """

    rubrics: Sequence[str] | None = None
    scope: str = "sample"
    orders: Sequence[str] = BOTH_ORDERS
    draws: int = 1
    method: str = ""
    max_tokens: int = 0
    effort: str = ""
    service_tier: str = ""
    temperature: float | None = None
    seed: int | None = None
    retry_unscored: bool = False
    text: Rubric | None = None
    prompt: JudgePrompt | None = None
    shard: Shard = WHOLE


@dataclass(frozen=True, slots=True)
class GraderPlan:
    """A grader with its settings and its open questions."""

    spec: GraderSpec
    settings: GraderSettings
    questions: OpenQuestions


def plan_grading(
    study: Study, grader_specs: Sequence[str], choice: Choice, scrubber: Scrubber
) -> list[GraderPlan]:
    """Plan every grader's open questions. Raises InputError where a grader, a rubric or another
    choice is not valid.
    """
    specs = _parsed(grader_specs, scrubber, study.config.providers)
    own = choice.prompt
    if own:
        _check_own_prompt(specs, choice)
    ways = [
        GraderSettings.for_grader(
            spec,
            choice.method or ("label" if own else ""),
            choice.draws,
            max_tokens=choice.max_tokens,
            effort=choice.effort,
            service_tier=choice.service_tier,
            temperature=choice.temperature,
            seed=choice.seed,
        )
        for spec in specs
    ]
    text, accepted = choice.text, study.accepted_hashes()
    if text is None:
        chosen = _chosen(study, choice.rubrics)
        if own:
            chosen = [own.for_rubric(_the_one(chosen))]
        units = _units(study, chosen, choice.scope)
    else:
        chosen, units = [text], {text.name: _held_out(study, text)}
        accepted = {text.name: (text.hash,)}
    if choice.shard != WHOLE:
        units = {name: [u for u in all_ if choice.shard.holds(u)] for name, all_ in units.items()}
    _check_verbatim(chosen, choice.method)
    plans = []
    for spec, settings in zip(specs, ways, strict=True):
        who = rater_id(spec, settings, own.hash if own else "")
        questions = open_questions(
            study.store,
            who if text is None else tried_rater(who, text.hash),
            units,
            chosen,
            accepted,
            choice.orders,
            settings.draws,
            retry_unscored=choice.retry_unscored,
        )
        plans.append(GraderPlan(spec, settings, questions))
    return plans


def _check_verbatim(rubrics: Sequence[Rubric], method: str) -> None:
    """Raise InputError where a rubric's own prompt, sent word for word, cannot serve the method."""
    for rubric in rubrics:
        if rubric.prompt and method in ("verbalised", REASON_FIRST):
            raise InputError(
                f"rubric {rubric.name!r} has a [prompt] of its own, which asks for one option; use "
                f"--draws, or leave out --method {method}"
            )


def _check_own_prompt(specs: Sequence[GraderSpec], choice: Choice) -> None:
    """Raise InputError where the user's own prompt cannot be combined with the other choices."""
    if choice.text is not None:
        raise InputError(written("judge_prompt.with_text"))
    if choice.method not in ("", "label"):
        raise InputError(written("judge_prompt.with_method", method=choice.method))
    for spec in specs:
        if spec.speaks == "baseline":
            raise InputError(written("judge_prompt.with_baseline", grader=spec.text))


def _the_one(rubrics: Sequence[Rubric]) -> Rubric:
    """Return the only rubric. Raises InputError where there are several."""
    if len(rubrics) > 1:
        names = ", ".join(rubric.name for rubric in rubrics)
        raise InputError(written("judge_prompt.which_rubric", names=names))
    return rubrics[0]


def _held_out(study: Study, text: Rubric) -> list[str]:
    """Return the units on which a new version of a rubric's text is tried. Raises InputError where
    the study has no such rubric, the text is not a new version of it, or no units are left.
    """
    known = study.rubrics.get(text.name)
    if known is None:
        raise InputError(
            f"the text is of a rubric {text.name!r}; name it as one of the study's: "
            + ", ".join(study.rubrics)
        )
    if (known.unit, known.categories) != (text.unit, text.categories):
        raise InputError(
            f"the text asks for other units or options than the study's {text.name!r}; give it the "
            "same unit and option keys"
        )
    if text.hash in study.accepted_hashes()[text.name]:
        raise InputError(f"the text is the one that the study's {text.name!r} has already")
    if units := held_out_units(study, text.name):
        return units
    raise InputError(
        f"no pair of the sample is left to try the text on: a disagreement on {text.name!r} was "
        "sorted in each; enlarge the sample with `evenhand extend`"
    )


def _parsed(texts: Sequence[str], scrubber: Scrubber, own: Own) -> list[GraderSpec]:
    if not texts:
        raise InputError("name at least one grader")
    for text in texts:
        if scrubber.text(text) != text:
            raise InputError("a grader's name must not hold an API key; take the key out")
    return list({(spec := parse_spec(text, own)).text: spec for text in texts}.values())


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
    by_kind = study.units_by_kind(scope)
    units = {rubric.name: by_kind[rubric.unit] for rubric in rubrics}
    if not any(units.values()):
        raise InputError(
            "the study has no responses to grade; add some with "
            "`evenhand import DIR FILE --kind responses`"
        )
    return units
