"""The plan of a run: every grader's open questions (everything chosen minus what is finished), from
what a user types, without any network or key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evenhand.errors import InputError
from evenhand.graders.options import (
    REASON_FIRST,
    WHOLE,
    GraderSettings,
    GradingOptions,
    rater_id,
    takes_images,
)
from evenhand.graders.providers import Own
from evenhand.graders.scrub import Scrubber
from evenhand.graders.spec import GraderSpec, parse_spec
from evenhand.rubrics import JudgePrompt, Rubric
from evenhand.study.lead.disagreements import held_out_units
from evenhand.study.questions import Question
from evenhand.study.store.grades import tried_rater
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study
    from evenhand.study.store.store import Store


@dataclass(frozen=True, slots=True)
class OpenQuestions:
    """The open questions of one grader. Iterating makes them one at a time."""

    attacked: ClassVar[bool] = False
    """True for the questions of an injection audit."""

    rater_id: str
    already: int
    parts: tuple[tuple[Rubric, str, tuple[tuple[str, int], ...]], ...]
    """(rubric, order, the (unit_id, draw) to ask) for each rubric and order."""

    @property
    def rubrics(self) -> dict[str, Rubric]:
        """The rubrics with the texts that are asked, by name."""
        return {rubric.name: rubric for rubric, *_ in self.parts}

    def __len__(self) -> int:
        return sum(len(asked) for _, _, asked in self.parts)

    def __iter__(self) -> Iterator[Question]:
        for rubric, order, asked in self.parts:
            for unit_id, draw in asked:
                yield Question(unit_id, rubric, order, draw)

    def only(self, draws: Sequence[Question]) -> OpenQuestions:
        """Return the open questions reduced to some draws of one prompt."""
        first, asked = draws[0], tuple((each.unit_id, each.draw) for each in draws)
        return OpenQuestions(self.rater_id, 0, ((first.rubric, first.order, asked),))


@dataclass(frozen=True, slots=True)
class GradingTask:
    """A grader with its settings and its open questions."""

    spec: GraderSpec
    settings: GraderSettings
    questions: OpenQuestions


def plan_grading(
    study: Study, grader_specs: Sequence[str], options: GradingOptions, scrubber: Scrubber
) -> list[GradingTask]:
    """Plan every grader's open questions. Raises InputError where a grader, a rubric or another
    option is not valid.
    """
    specs = _parsed(grader_specs, scrubber, study.config.providers)
    own = options.prompt
    if own:
        _check_own_prompt(specs, options)
    ways = [GraderSettings.for_grader(spec, options) for spec in specs]
    text, accepted = options.text, study.accepted_hashes()
    if text is None:
        chosen = _chosen(study, options.rubrics)
        if own:
            if len(chosen) > 1:
                names = ", ".join(rubric.name for rubric in chosen)
                raise InputError(written("judge_prompt.which_rubric", names=names))
            chosen = [own.for_rubric(chosen[0])]
            if chosen[0].several:
                raise InputError(
                    f"rubric {chosen[0].name!r} asks for several options, which a prompt of your "
                    "own cannot; leave --prompt out"
                )
        units = _units(study, chosen, options.scope)
    else:
        chosen, units = [text], {text.name: _held_out(study, text)}
        accepted = {text.name: (text.hash,)}
    if options.shard != WHOLE:
        units = {name: [u for u in all_ if options.shard.holds(u)] for name, all_ in units.items()}
    if options.units is not None:
        wanted = set(options.units)
        units = {name: [u for u in all_ if u in wanted] for name, all_ in units.items()}
    _check_verbatim(chosen, options.method)
    _check_images(specs, chosen)
    plans = []
    for spec, settings in zip(specs, ways, strict=True):
        who = rater_id(spec, settings, own.hash if own else "")
        questions = open_questions(
            study.store,
            who if text is None else tried_rater(who, text.hash),
            units,
            chosen,
            accepted,
            options.orders,
            settings.draws,
            retry_unscored=options.retry_unscored,
        )
        plans.append(GradingTask(spec, settings, questions))
    return plans


def open_questions(
    store: Store,
    rater_id: str,
    units: Mapping[str, Sequence[str]],
    rubrics: Sequence[Rubric],
    accepted: Mapping[str, Collection[str]],
    orders: Sequence[str],
    draws: int = 1,
    *,
    retry_unscored: bool = False,
) -> OpenQuestions:
    """Return the questions that this grader has not answered.

    `units` are unit ids by rubric name; `accepted` are, by rubric name, the hashes of the rubric's
    texts whose answers count (see `Study.accepted_hashes`).
    """
    parts = []
    already = 0
    for rubric in rubrics:
        finished = store.finished_grades(
            rater_id, rubric.name, accepted[rubric.name], labelled_only=retry_unscored
        )
        for order in orders if rubric.has_sides else ("",):
            wanted = [(unit, draw) for unit in units[rubric.name] for draw in range(draws)]
            missing = tuple(w for w in wanted if (w[0], order, w[1]) not in finished)
            already += len(wanted) - len(missing)
            parts.append((rubric, order, missing))
    return OpenQuestions(rater_id, already, tuple(parts))


def _check_verbatim(rubrics: Sequence[Rubric], method: str) -> None:
    """Raise InputError where a rubric's own prompt, sent word for word, cannot serve the method, or
    its answer is a number, which has no probabilities.
    """
    for rubric in rubrics:
        if not rubric.is_choice and method == "verbalised":
            wanted = "a number" if rubric.number else "several options"
            raise InputError(
                f"rubric {rubric.name!r} asks for {wanted}, and not for the probability of an "
                "option; leave out --method verbalised"
            )
        if rubric.prompt and method in ("verbalised", REASON_FIRST):
            raise InputError(
                f"rubric {rubric.name!r} has a [prompt] of its own, which asks for one option; use "
                f"--draws, or leave out --method {method}"
            )


def _check_images(specs: Sequence[GraderSpec], rubrics: Sequence[Rubric]) -> None:
    """Raise InputError where a rubric shows an image and a grader takes none."""
    shown = [rubric for rubric in rubrics if rubric.images]
    for spec in specs if shown else ():
        if not takes_images(spec):
            sentence = written("grade.no_images", grader=spec.text, rubric=shown[0].name)
            raise InputError(sentence)


def _check_own_prompt(specs: Sequence[GraderSpec], options: GradingOptions) -> None:
    """Raise InputError where the user's own prompt cannot be combined with the other choices."""
    if options.text is not None:
        raise InputError(written("judge_prompt.with_text"))
    if isinstance(options.prompt, JudgePrompt) and options.method not in ("", "label"):
        raise InputError(written("judge_prompt.with_method", method=options.method))
    for spec in specs:
        if spec.speaks == "baseline":
            raise InputError(written("judge_prompt.with_baseline", grader=spec.text))


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
    if text.several:
        raise InputError(
            f"the study's {text.name!r} asks for several options; trying another text of such a "
            "rubric is not supported"
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
    """Return the rubrics of these names; of None all but a wording that is only tried among people,
    whose grades nothing reads.
    """
    tried = study.config.rewording
    only_tried = {tried.rubric} if tried else set()
    only_tried -= {rubric.name for rubric in study.labelled_rubrics()}
    usual = [name for name in study.rubrics if name not in only_tried]
    chosen = []
    for name in dict.fromkeys(names if names is not None else usual):
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
