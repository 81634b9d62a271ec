"""Other words for a grader, made from what may be learnt from: examples, and instructions that a
model writes, within the money of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.reporting.lessons import (
    MOST_WORDS,
    Lesson,
    RefusedProposal,
    examples_from,
    requests_for,
    words_of,
)
from evenhand.rubrics import Instructions
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.graders import GraderForecast
    from evenhand.graders.running.runner import Rounds
    from evenhand.rubrics import JudgePrompt, PromptText, Rubric
    from evenhand.study import Study
    from evenhand.study.store.logs.proposals import ProposalAttempt

GEPA = "gepa"
"""In place of a proposer, or before its name: GEPA decides what is rewritten."""
MOST_PROPOSALS, MOST_EXAMPLES = 50, 32


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is to be made from the clusters to learn from: how many proposals, by which model ("":
    the grader's own), and sets of how many examples.
    """

    proposals: int = 0
    proposer: str = ""
    examples: Sequence[int] = ()

    def __bool__(self) -> bool:
        return bool(self.proposals or self.examples)

    @property
    def by_gepa(self) -> bool:
        """True where GEPA decides what is rewritten."""
        return self.proposer.partition(":")[0] == GEPA

    def writer(self, grader: str) -> str:
        """Return the model that writes, for this grader."""
        return (self.proposer.partition(":")[2] if self.by_gepa else self.proposer) or grader

    def check(self, study: Study, rubric: Rubric, grader: str) -> None:
        """Raise InputError where it is not valid for this grader of a rubric."""
        from evenhand.graders.running.proposing import writer_of

        if (self.proposals or self.examples) and (rubric.number or rubric.prompt):
            raise InputError(written("improve.no_proposals", rubric=rubric.name))
        if self.proposals not in range(MOST_PROPOSALS + 1):
            raise InputError(written("improve.count_proposals", most=MOST_PROPOSALS))
        if any(count not in range(2, MOST_EXAMPLES + 1) for count in self.examples):
            raise InputError(written("improve.count_examples", most=MOST_EXAMPLES))
        if self.examples and rubric.images:
            raise InputError(written("improve.image_examples", rubric=rubric.name))
        if self.proposals:
            writer_of(study, self.writer(grader))
        if self.proposals and self.by_gepa:
            from evenhand.reporting.by_gepa import check_installed

            check_installed()

    def check_price(self, rounds: Rounds, grader: str) -> None:
        """Raise InputError where the proposer's price is not known, and there is a budget."""
        from evenhand.graders.running.proposing import writer_of
        from evenhand.graders.running.runner import priced

        if self.proposals:
            spec, _ = writer_of(rounds.study, self.writer(grader))
            priced(spec, rounds.context.budget, "", rounds.study.config.prices)


@dataclass(frozen=True)
class Parent:
    """The grader whose words are to be changed: its rater id, its name as typed, and its words,
    None for the rubric's own.
    """

    rater_id: str
    grader: str
    prompt: JudgePrompt | Instructions | None

    @property
    def instructions(self) -> str:
        """Instructions that are not the rubric's own; "" where they are."""
        return self.prompt.instructions if isinstance(self.prompt, Instructions) else ""


@dataclass(frozen=True)
class Learnt:
    """What came of it: words to try, with where they come from, and what is said of the rest."""

    words: Sequence[tuple[Instructions, str]]
    said: Sequence[str] = ()


class Ended(Exception):  # noqa: N818  (nobody made an error)
    """Not all requests were answered."""


Asked = Callable[["Sequence[PromptText]", "Mapping[str, Any]"], "Sequence[ProposalAttempt]"]
"""A model's answers to requests; the second argument is kept with them."""
Tried = Callable[[Instructions, Sequence[str]], Mapping[str, str]]
"""The grader's labels of some units to learn from under these words, by unit."""


def learn(
    study: Study,
    rubric: Rubric,
    lessons: Sequence[Lesson],
    parent: Parent,
    wanted: Wanted,
    asked: Asked,
    tried: Tried,
) -> Learnt:
    """Draw examples, and have proposals written. Raises Ended where requests are left without an
    answer, and what `asked` and `tried` raise.
    """
    words, said = with_examples(study, lessons, parent, wanted)
    if not wanted.proposals:
        return Learnt(words, said)
    if not any(each.is_error for each in lessons):
        return Learnt(words, [*said, written("improve.no_errors", grader=parent.rater_id)])
    writer = _Writer(study, rubric, lessons, parent, wanted, asked, tried)
    if wanted.by_gepa:
        from evenhand.reporting.by_gepa import evolved

        known = [each for each in lessons if each.majority]
        for text in evolved(writer.start, known, wanted.proposals, study.config.seed, writer):
            words.append(writer.made[text])
    else:
        writer.write(parent.prompt, lessons, range(wanted.proposals))
        words += writer.made.values()
    return Learnt(words, [*said, *writer.said])


class _Writer:
    """A model that rewrites the words of a grader, and the grader that tries them. `made` are the
    words so far, by their instructions, with where they come from.
    """

    def __init__(
        self,
        study: Study,
        rubric: Rubric,
        lessons: Sequence[Lesson],
        parent: Parent,
        wanted: Wanted,
        asked: Asked,
        tried: Tried,
    ) -> None:
        self._study = study
        self._rubric = rubric
        self._parent = parent
        self._wanted = wanted
        self._asked = asked
        self._tried = tried
        self._known = {each.unit_id: each.graded for each in lessons}
        self._about = {
            "parent": parent.rater_id,
            "part": "learn",
            "units": sorted(each.unit_id for each in lessons),
        }
        self.start = parent.instructions or rubric.instructions
        self.made: dict[str, tuple[Instructions, str]] = {}
        self.said: list[str] = []

    def write(
        self,
        prompt: JudgePrompt | Instructions | None,
        lessons: Sequence[Lesson],
        numbers: Sequence[int],
    ) -> list[str]:
        """Ask for proposals of these numbers, in place of a grader's words. Return the instructions
        that can be tried, and say of the others why not.
        """
        rubric, found = self._rubric, []
        asked = requests_for(self._study, rubric, lessons, prompt, numbers)
        model = self._wanted.writer(self._parent.grader)
        answers = self._asked(asked, self._about)
        if len(answers) < len(asked):
            raise Ended
        for nth, answer in zip(numbers, answers, strict=True):
            who = {"nth": nth + 1, "proposer": self._wanted.proposer or model}
            try:
                own = words_of(answer, rubric, self._parent.rater_id, len(self._known))
            except RefusedProposal as refused:
                self.said.append(written("improve.refused", **who, why=refused))
            else:
                self.made.setdefault(own.instructions, (own, written("improve.proposed", **who)))
                found.append(own.instructions)
        return found

    def rewrite(self, instructions: str, lessons: Sequence[Lesson], nth: int) -> str | None:
        """Return the `nth` rewriting of the instructions, as `by_gepa.Trainer` asks for it."""
        if not any(each.is_error for each in lessons):
            return None
        now = Instructions(instructions=instructions)
        return next(iter(self.write(now, lessons, [nth])), instructions)

    def label(self, instructions: str, lessons: Sequence[Lesson]) -> Mapping[str, str]:
        """Return the grader's labels under these instructions, as it gave them to learn from where
        they are its own.
        """
        if instructions == self.start:
            return self._known
        own, _ = self.made[instructions]
        return self._tried(own, [each.unit_id for each in lessons])


def forecast_learning(
    study: Study, rubric: Rubric, lessons: Sequence[Lesson], parent: Parent, wanted: Wanted
) -> tuple[list[GraderForecast], Learnt]:
    """Forecast the requests for proposals, and return words that cost as much to try as those that
    may come. Grades that the grader has not given yet count as errors.
    """
    from evenhand.graders.running.proposing import forecast_proposals

    words, said = with_examples(study, lessons, parent, wanted)
    numbers, prompt = range(wanted.proposals), parent.prompt
    longest = [Instructions.written(f"{nth} ".ljust(MOST_WORDS, "x")) for nth in numbers]
    if wanted.by_gepa and numbers:  # it rewrites what was written, after units wrong under that
        prompt, lessons = longest[0], [replace(each, graded="") for each in lessons]
    asked = requests_for(study, rubric, lessons, prompt, numbers) if numbers else []
    model = wanted.writer(parent.grader)
    for nth, _ in enumerate(asked):
        proposer = wanted.proposer or model
        words.append((longest[nth], written("improve.proposed", nth=nth + 1, proposer=proposer)))
    if not asked:
        return [], Learnt(words, said)
    cost = forecast_proposals(study, rubric.name, model, asked)
    if not any(each.graded for each in lessons):
        cost = replace(cost, sample=None)  # what will be sent is not known yet
    return [cost], Learnt(words, said)


def with_examples(
    study: Study, lessons: Sequence[Lesson], parent: Parent, wanted: Wanted
) -> tuple[list[tuple[Instructions, str]], list[str]]:
    """Return sets of examples to try, and what is said of those that cannot be drawn."""
    words: list[tuple[Instructions, str]] = []
    said = []
    for count in dict.fromkeys(wanted.examples):
        origin = written("improve.examples", count=count)
        if drawn := examples_from(study, lessons, count):
            remark = written("improve.drawn_by", parent=parent.rater_id, units=len(lessons))
            words.append((Instructions.written(parent.instructions, drawn, [remark]), origin))
        else:
            said.append(written("improve.few_examples", count=count))
    return words, said
