"""Raters' sessions: the steps before the labelling, such as practice; the return to Prolific;
working times, pay and costs.

The steps are welcome, consent, side (the answer to a question with quotas), rubrics, practice,
comprehension and background, each only where study.toml has it; then comes the labelling.
`PracticeDesk` serves the practice, `Sessions` all steps, and `session_times` reports on them.
A unit gets a label; a claim records that a rater was given a question; the lead runs the study.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median_high
from typing import Any, Literal

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric, TextBlock
from evenhand.study.desk import claims, desk
from evenhand.study.prompts.sampling import digest
from evenhand.study.prompts.units import Question, Screen
from evenhand.study.settings.study_toml import PaySettings
from evenhand.study.store import schema, store
from evenhand.study.store.database import append
from evenhand.study.store.schema import background_answers, labels, practice_labels
from evenhand.study.tables.formats import read_table, row_number
from evenhand.study.tables.ratings import stored_instant
from evenhand.study.trust import inside
from evenhand.study.workspace import Study
from evenhand.texts import written

# The steps of a session

StepName = Literal[
    "welcome", "consent", "side", "rubric", "practice", "feedback", "comprehension",
    "background", "labelling", "ended",
]  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A rater's next step."""

    name: StepName
    reason: str = ""
    """Reason of the end: no_consent, side_full, screened_out, or one of RELEASE_REASONS."""
    attempt: int = 0
    """Number of earlier attempts at this step."""
    missed: frozenset[int] = frozenset()
    """Comprehension questions answered wrongly the last time, from 0 on."""
    rubric: Rubric | None = None
    """The rubric to be read (step "rubric")."""
    screen: Screen = ()
    """The questions to be answered (step "practice"), or just answered (step "feedback")."""


Log = Sequence[store.Event]  # the events of one rater's session, in their order


# Practice: units with a known answer, each followed by the right answer. Its desk has the interface
# of the annotators' desk, so that people practise on the page that they will work on. Practice
# answers are stored apart and are never labels.


@dataclass(frozen=True)
class QuestionFeedback:
    """Feedback on one question of a practice unit; `given` and `accepted` are options' names."""

    question: str
    given: str
    accepted: tuple[str, ...]
    is_right: bool


@dataclass(frozen=True)
class Feedback:
    """Feedback on a practice unit."""

    blocks: tuple[TextBlock, ...]
    questions: tuple[QuestionFeedback, ...]
    explanation: str


class PracticeDesk(desk.Desk):
    """Hands out practice units as sheets of questions and stores the answers, which are final: the
    feedback on a unit shows the right answer. No sheet is sent ahead, as feedback comes first.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        _ = study.blinding_key  # read now: the first call may write, which an open read forbids
        settings = study.config.training
        self.units = claims.KnownUnits(study, settings.file if settings else "", kind="practice")
        self._pass_mark = settings.pass_mark if settings else 0.0
        self._max_attempts = settings.attempts if settings else 1
        # A changed unit is asked anew: answers are stored under its id with a hash of its contents.
        # Answers stored before 0.3.0, under the id alone, count for the present contents.
        self.stored_ids = {
            unit_id: f"{unit_id}:{_text_hash(repr(unit.values), repr(unit.expected))}"
            for unit_id, unit in self.units.units.items()
        }
        ids = self.stored_ids.items()
        self._unit_ids = {name: unit_id for unit_id, stored in ids for name in (unit_id, stored)}

    def next_step(self, connection: sa.Connection, rater_id: str, log: Log) -> Step | None:
        """Return the next step of the practice; None once it is passed."""
        if not self.units.screens:
            return None
        answers = self._answers(connection, rater_id)
        details = [event.detail for event in log if event.kind == "feedback_read"]
        feedback_read = {
            (self._unit_ids.get(it["unit"]), it["rubric"], it["attempt"]) for it in details
        }
        for attempt in range(self._max_attempts):
            for screen in self.units.screens:
                if any((*question.key, attempt) not in answers for question in screen):
                    return Step("practice", attempt=attempt, screen=screen)
                if (*screen[0].key, attempt) not in feedback_read:  # see `record_feedback_read`
                    return Step("feedback", attempt=attempt, screen=screen)
            accepted = {key: self.units.accepted(key) for key in self.units.questions}
            # A question without accepted answers counts neither way.
            results = [answers[*key, attempt] in right for key, right in accepted.items() if right]
            if sum(results) / len(results) >= self._pass_mark:
                return None
        return Step("ended", reason="screened_out", attempt=self._max_attempts)

    def feedback(self, rater_id: str, step: Step, language: str = "") -> Feedback:
        """Return the feedback on the screen of a step "feedback", in a language of the rubrics."""
        with self.study.store.read() as connection:
            answers = self._answers(connection, rater_id)
        tasks = [self._task(rater_id, question, step.attempt) for question in step.screen]
        blocks = {block.variable: block for task in tasks for block in task.people.blocks}
        feedback = []
        for task, question in zip(tasks, step.screen, strict=True):
            if accepted := self.units.accepted(question.key):
                text, answer = task.people_in(language), answers[(*question.key, step.attempt)]
                name_of, is_right = text.kind.name_of, answer in accepted
                names = tuple(map(name_of, accepted))
                feedback.append(QuestionFeedback(text.question, name_of(answer), names, is_right))
        explanation = self.units.units[step.screen[0].unit_id].explanation
        return Feedback(tuple(blocks.values()), tuple(feedback), explanation)

    # The interface `Desk`

    def next_sheet(self, rater_id: str) -> desk.Sheet | None:
        """Return the practice unit to be answered; None if the next step is another one."""
        with self.study.store.read() as connection:
            step = self.next_step(connection, rater_id, store.events_of(connection, rater_id))
            if step is None or step.name != "practice":
                return None
            done, total = self._progress(connection, rater_id, step.attempt)
            claimed = [self._claim(rater_id, question, step.attempt) for question in step.screen]
            flags = desk.rater_flags(connection, rater_id, claimed)
        tasks = (self._task(rater_id, question, step.attempt) for question in step.screen)
        return desk.Sheet(tuple(tasks), done, total, flags=flags)

    def progress(self, rater_id: str) -> claims.Progress:
        """Return the progress of this attempt: questions answered, and all questions."""
        with self.study.store.read() as connection:
            step = self.next_step(connection, rater_id, store.events_of(connection, rater_id))
            attempt = step.attempt if step else self._max_attempts - 1  # None: all done
            return self._progress(connection, rater_id, attempt)

    def submit_all(
        self, rater_id: str, submissions: Sequence[desk.Submission]
    ) -> list[desk.Receipt]:
        """Store practice answers and flags; they are on disk on return."""
        with self.study.store.write() as connection:
            return [self._receipt(connection, rater_id, part) for part in submissions]

    def _receipt(
        self, connection: sa.Connection, rater_id: str, submission: desk.Submission
    ) -> desk.Receipt:
        """Store one practice answer or flag, and return its receipt."""
        matches = (
            (question, attempt, claim)
            for attempt in range(self._max_attempts)
            for question in self.units.questions.values()
            for claim in [self._claim(rater_id, question, attempt)]
            if submission.task_id == claim.task_id
        )
        if (match := next(matches, None)) is None:
            return "unknown_task"
        question, attempt, claim = match
        if (*question.key, attempt) in self._answers(connection, rater_id):
            claim = replace(claim, state="labelled")
        if isinstance(submission, desk.Answer):  # the right answer has been shown: no edits
            submission = replace(submission, edit=False)
        rubric, texts = question.rubric, self.units.values(question.key, "ab")  # as in `_task`
        return desk.store_submission(connection, practice_labels, claim, submission, rubric, texts)

    def _answers(self, connection: sa.Connection, rater_id: str) -> dict[tuple[str, str, int], str]:
        """Return a rater's practice answers by (unit id, rubric, attempt: stored as `draw`)."""
        query = sa.select(practice_labels).where(practice_labels.c.rater_id == rater_id)
        rows = connection.execute(query.where(practice_labels.c.unit_id.in_(self._unit_ids)))
        return {(self._unit_ids[row.unit_id], row.rubric, row.draw): row.label for row in rows}

    def _progress(self, connection: sa.Connection, rater_id: str, attempt: int) -> claims.Progress:
        """Return the progress of an attempt."""
        answers, questions = self._answers(connection, rater_id), self.units.questions
        return claims.Progress(sum((*key, attempt) in answers for key in questions), len(questions))

    def _task(self, rater_id: str, question: Question, attempt: int) -> desk.Task:
        """Return a practice question, ready to be shown."""
        claim = self._claim(rater_id, question, attempt)
        values = self.units.values(question.key, "ab")  # practice has the same order for all
        return desk.Task(claim.task_id, question.rubric, claim.order, values)

    def _claim(self, rater_id: str, question: Question, attempt: int) -> claims.Claim:
        """Return a claim of a practice question; it is not stored. The attempt is its `draw`."""
        question = replace(question, unit_id=self.stored_ids[question.unit_id])
        parts = ("practice", rater_id, *question.key, str(attempt))
        task_id = digest(self.study.blinding_key, *parts)[:24]
        order = "ab" if question.rubric.has_sides else ""
        return claims.Claim.of(rater_id, question, attempt, order, task_id)


# The lead's texts, and the steps of all raters

MAX_COMPREHENSION_ATTEMPTS = 2
RELEASE_REASONS = ("returned", "timed_out", "rejected")

TextName = Literal["consent", "instructions", "content_warning"]


@dataclass(frozen=True)
class LeadText:
    """A text of the lead and the language that it is in."""

    text: str
    language: str


class LeadTexts:
    """The lead's texts for annotators. The original is in study.toml; a file next to it may have
    the same text in another language: `consent.de.md`, `instructions.de.md`,
    `content_warning.de.md`. It is plain text like the original. The files are read when the study
    is opened. Raises InputError for a file that is not UTF-8 text.
    """

    def __init__(self, study: Study) -> None:
        config = study.config
        self._language = config.annotation.language
        self.languages = (self._language, *config.annotation.languages)
        originals: dict[TextName, str] = {
            "consent": config.consent.text if config.consent else "",
            "instructions": config.session.instructions,
            "content_warning": config.session.content_warning,
        }
        self._texts = {(name, self._language): text for name, text in originals.items() if text}
        for name, _ in list(self._texts):
            for code in config.annotation.languages:
                path = inside(study.folder, f"{name}.{code}.md", "languages")
                try:
                    text = path.read_text("utf-8-sig").strip() if path.is_file() else ""
                except UnicodeDecodeError:
                    raise InputError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None
                if text:
                    self._texts[name, code] = text

    def in_language(self, name: TextName, language: str) -> LeadText:
        """Return the text in a language, or else the original; empty where the study has none."""
        code = language if (name, language) in self._texts else self._language
        return LeadText(self._texts.get((name, code), ""), code)


class Sessions:
    """The steps of all raters of a study. Safe under many threads and processes at once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.practice = PracticeDesk(study)
        self.texts = LeadTexts(study)
        # Hashes by language: a rater who has read one of the present texts need not read another.
        self._welcome_hashes = self._hashes("content_warning", "instructions")
        self._consent_hashes = self._hashes("consent")
        self._comprehension_hash = _text_hash(*map(repr, study.config.comprehension))

    def _hashes(self, *names: TextName) -> dict[str, str]:
        """Return a hash of these texts together, by language."""
        return {
            language: _text_hash(*(self.texts.in_language(name, language).text for name in names))
            for language in self.texts.languages
        }

    @property
    def steps(self) -> list[StepName]:
        """The steps that this study has, in their order."""
        config = self.study.config
        settings: dict[StepName, object] = {
            "welcome": config.session.content_warning or config.session.instructions,
            "consent": config.consent,
            "side": config.side,
            "rubric": config.training and config.training.walk_through,
            "practice": self.practice.units.screens,
            "comprehension": config.comprehension,
            "background": config.background and config.background.optional,  # the rest is "side"
            "labelling": True,
        }
        return [step for step, setting in settings.items() if setting]

    def next_step(self, rater_id: str) -> Step:
        """Return the rater's next step."""
        with self.study.store.read() as connection:
            log = store.events_of(connection, rater_id)
            if reason := store.release_reason(log):
                return Step("ended", reason=reason)
            steps = (self._pending_step(name, connection, rater_id, log) for name in self.steps)
            step = next(filter(None, steps), Step("labelling"))
            if step.name == "ended" or not (end := claims.end_in(log)):
                return step
            # A changed text or question lets the rater go on, unless another has their place.
            has_place = claims.has_place(self.study, connection, rater_id)
            return step if has_place else Step("ended", reason=end)

    def _pending_step(
        self, name: StepName, connection: sa.Connection, rater_id: str, log: Log
    ) -> Step | None:
        """Return this step, or the end of the session at it; None if the rater is past it."""
        match name:
            case "welcome" if not _has_read(log, "welcome_read", self._welcome_hashes):
                return Step("welcome")
            case "consent" if _has_read(log, "consent", self._consent_hashes, agreed=False):
                return Step("ended", reason="no_consent")
            case "consent" if not _has_read(log, "consent", self._consent_hashes, agreed=True):
                return Step("consent")
            case "side" if _events_like(log, "screened_out", side=True):
                return Step("ended", reason="side_full")
            case "side" if not claims.quota_answers(self.study, connection, rater_id):
                return Step("side")
            case "rubric":
                for rubric in self.study.labelled_rubrics():
                    hashes = {code: version.hash for code, version in rubric.versions.items()}
                    if not _has_read(log, "rubric_read", hashes):
                        return Step("rubric", rubric=rubric)
            case "practice":
                return self.practice.next_step(connection, rater_id, log)
            case "comprehension":
                return self._comprehension_step(log)
            case "background" if not _events_like(log, "background_done"):
                return Step("background")
        return None

    def _comprehension_step(self, log: Log) -> Step | None:
        """Return the next attempt at the comprehension questions, or the end of the session after
        too many; None once all answers were right.
        """
        attempts = _events_like(log, "comprehension", text=self._comprehension_hash)
        if any(all(event.detail["right"]) for event in attempts):
            return None
        if len(attempts) >= MAX_COMPREHENSION_ATTEMPTS:
            return Step("ended", reason="screened_out", attempt=len(attempts))
        results = attempts[-1].detail["right"] if attempts else []
        missed = frozenset(number for number, is_right in enumerate(results) if not is_right)
        return Step("comprehension", attempt=len(attempts), missed=missed)

    # Completed steps. A step is recorded only if it is the rater's next one: they may be further on
    # in another window, or by a click before. `next_step` reads within the open `write()`, and so
    # sees the events that this has added. `language` is that of the text read, "" for the main one.

    def record_welcome_read(self, rater_id: str, language: str = "") -> None:
        """Record that the rater has read the welcome."""
        text = _hash_in(self._welcome_hashes, language)
        self._record_step(rater_id, Step("welcome"), "welcome_read", text=text)

    def decide_consent(self, rater_id: str, agreed: bool, language: str = "") -> None:
        """Record consent or its refusal, which withdraws the consent if it comes later."""
        with self.study.store.write() as connection:
            log = store.events_of(connection, rater_id)
            has_agreed = _has_read(log, "consent", self._consent_hashes, agreed=True)
            has_refused = _has_read(log, "consent", self._consent_hashes, agreed=False)
            withdraws = not agreed and has_agreed and not has_refused
            if withdraws or self.next_step(rater_id).name == "consent":
                text = _hash_in(self._consent_hashes, language)
                store.add_event(connection, rater_id, "consent", agreed=agreed, text=text)

    def answer_side(self, rater_id: str, side: str) -> None:
        """Record the answer to the question with quotas, if the side has a place left; else the
        rater's session ends. Two raters at once never share the last place.
        """
        with self.study.store.write() as connection:
            if self.next_step(rater_id).name != "side":
                return
            if (question := self.study.config.side) is None or side not in question.options:
                raise InputError(f"{side!r} is none of the answers to choose from")
            if not claims.has_room(self.study, connection, side):
                store.add_event(connection, rater_id, "screened_out", side=True)
                return
            background_answer = {"rater_id": rater_id, "question": question.key, "answer": side}
            append(connection, background_answers, background_answer)
            store.add_event(connection, rater_id, "side_answered")

    def sides(self) -> dict[str, tuple[int, int]]:
        """Return (raters, quota) of each answer to the question with quotas; {} without one."""
        with self.study.store.read() as connection:
            return claims.quota_places(self.study, connection)

    def record_rubric_read(self, rater_id: str, rubric: Rubric, language: str = "") -> None:
        """Record that the rater has read a rubric."""
        step = self.next_step(rater_id)
        if step.rubric is not None and step.rubric.name == rubric.name:
            text = rubric.in_language(language).hash
            self._record_step(rater_id, step, "rubric_read", rubric=rubric.name, text=text)

    def record_feedback_read(self, rater_id: str, step: Step) -> None:
        """Record that the rater has read the feedback on the screen of this step."""
        unit, rubric = step.screen[0].key
        detail = {"unit": self.practice.stored_ids[unit], "rubric": rubric, "attempt": step.attempt}
        self._record_step(rater_id, step, "feedback_read", **detail)

    def answer_comprehension(self, rater_id: str, answers: Sequence[str], attempt: int) -> None:
        """Record the answers to all questions, in their order, that a rater gave at an attempt."""
        pairs = zip(answers, self.study.config.comprehension, strict=True)
        is_right = [answer == question.answer for answer, question in pairs]
        detail = {"answers": list(answers), "right": is_right, "text": self._comprehension_hash}
        step = Step("comprehension", attempt=attempt)
        self._record_step(rater_id, step, "comprehension", **detail)

    def answer_background(self, rater_id: str, answers: Mapping[str, str]) -> None:
        """Record a rater's answers about themselves, by the questions' keys; all are optional."""
        with self.study.store.write() as connection:
            if self.next_step(rater_id).name != "background":
                return
            rows = [
                {"rater_id": rater_id, "question": question, "answer": answer}
                for question, answer in answers.items()
            ]
            append(connection, background_answers, *rows)
            store.add_event(connection, rater_id, "background_done")

    def complete(self, rater_id: str) -> None:
        """Record that nothing was left to label: once, and once more after the first answer."""
        with self.study.store.read() as connection:
            begun = _begun_by_rater(connection, labels.c.rater_id == rater_id).get(rater_id, "")
            completions = _events_like(store.events_of(connection, rater_id), "completed")
            if any(event.created_at >= begun for event in completions):
                return
        self._record_step(rater_id, Step("labelling"), "completed")

    def _record_step(self, rater_id: str, step: Step, kind: store.EventKind, **detail: Any) -> None:
        """Append an event if this step and attempt are next; and "screened_out" on a failure."""
        with self.study.store.write() as connection:
            pending = self.next_step(rater_id)
            if (pending.name, pending.attempt) != (step.name, step.attempt):
                return
            store.add_event(connection, rater_id, kind, **detail)
            can_fail = kind in ("comprehension", "feedback_read")
            if can_fail and self.next_step(rater_id).reason == "screened_out":
                store.add_event(connection, rater_id, "screened_out")

    def release(self, rater_id: str, reason: str) -> int:
        """End a rater's session and release their tasks to others; return the number of tasks.
        Open tasks are released; for the reason "rejected" the answered ones too. All labels stay.
        """
        with self.study.store.write() as connection:
            if store.release_reason(store.events_of(connection, rater_id)) != reason:
                store.add_event(connection, rater_id, "released", reason=reason)
            states = ("open", "labelled") if reason == "rejected" else ("open",)
            return self._set_claim_states(connection, rater_id, states, "released")

    def readmit(self, rater_id: str) -> None:
        """Let a rater whose tasks were released continue; those that they answered count again."""
        with self.study.store.write() as connection:
            if store.release_reason(store.events_of(connection, rater_id)):
                store.add_event(connection, rater_id, "readmitted")
                self._set_claim_states(connection, rater_id, ("released",), "labelled")

    def _set_claim_states(
        self, connection: sa.Connection, rater_id: str, old_states: Sequence[str], new_state: str
    ) -> int:
        """Set the state of a rater's claims ("labelled" only of answered ones); return how many."""
        conditions = schema.claims.c.rater_id == rater_id, schema.claims.c.state.in_(old_states)
        query = sa.select(schema.claims.c.task_id).where(*conditions)
        if new_state == "labelled":
            query = query.where(_has_answer_in(labels) | _has_answer_in(schema.attention_labels))
        tasks = list(connection.execute(query.order_by(schema.claims.c.version)).scalars())
        # Each change gets the next version: a desk reads the claims with versions after its last.
        for version, task_id in enumerate(tasks, start=claims.last_version(connection) + 1):
            update = sa.update(schema.claims).where(schema.claims.c.task_id == task_id)
            connection.execute(update.values(state=new_state, version=version))
        return len(tasks)


def _has_answer_in(table: sa.Table) -> sa.Exists:
    """Return an SQL condition: the claim has its answer in this table."""
    return sa.exists().where(*(table.c[n] == schema.claims.c[n] for n in claims.TASK_COLUMNS))


def _text_hash(*texts: str | Sequence[str]) -> str:
    """Return 16 hexadecimal digits that change with the texts."""
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]


def _hash_in(hashes: Mapping[str, str], language: str) -> str:
    """Return the hash of the text in a language, or else in the main one, which comes first."""
    return hashes.get(language, next(iter(hashes.values())))


def _events_like(log: Log, kind: store.EventKind, **detail: Any) -> list[store.Event]:
    """Return the events of this kind whose detail has these values."""
    return [event for event in log if event.kind == kind and detail.items() <= event.detail.items()]


def _has_read(log: Log, kind: store.EventKind, hashes: Mapping[str, str], **detail: Any) -> bool:
    """Return True if the log has such an event for a text of one of these hashes, by language."""
    return any(_events_like(log, kind, text=text_hash, **detail) for text_hash in hashes.values())


# Prolific: links back to it, and its export of submissions. Source: docs.prolific.com, "The study
# object" (placeholders, completion codes), "Submission object" (statuses; its id is SESSION_ID).

COMPLETION_URL = "https://app.prolific.com/submissions/complete?cc="
_REASON_OF_STATUS = {"RETURNED": "returned", "TIMED-OUT": "timed_out", "REJECTED": "rejected"}
_STATUS_NAMES = ("Status", "Submission status", "status")
_PARTICIPANT_NAMES = ("Participant id", "Participant ID", "participant_id")
_SUBMISSION_NAMES = ("Submission id", "Submission ID", "submission_id")

End = Literal["complete", "screened_out", "no_consent", "returned", "stopped", "nothing_left"]


def study_url(base: str, token: str) -> str:
    """Return the address to enter at Prolific, with placeholders for its ids."""
    parameters = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
    # Prolific replaces {{%PROLIFIC_PID%}} by the participant's id, and so on.
    return f"{base}?invite={token}&" + "&".join(f"{name}={{{{%{name}%}}}}" for name in parameters)


def completion_url(study: Study, end: End) -> str:
    """Return the address that ends a submission; "" where the study has no code for this end."""
    code = completion_code(study, end)
    return COMPLETION_URL + code if code else ""


def completion_code(study: Study, end: End) -> str:
    """Return the completion code of this end, for raters who enter it; "" if there is none."""
    if (settings := study.config.prolific) is None:
        return ""
    code: str = getattr(settings, end)  # without one, "nothing_left" has that of "complete"
    return settings.complete if end == "nothing_left" and not code else code


def participants_table(study: Study) -> pd.DataFrame:
    """Return all entries: `rater_id, participant_id, study_id, session_id, created_at`."""
    names = ("rater_id", "participant_id", "study_id", "session_id", "created_at")
    query = sa.select(*(schema.participant_entries.c[name] for name in names))
    return study.store.table(query.order_by(schema.participant_entries.c.event_id))


def known_raters(study: Study) -> set[str]:
    """Return all raters who have entered, been given a unit, or labelled."""
    people = sa.select(labels.c.rater_id).where(labels.c.rater_kind == "human")
    event_raters = (sa.select(table.c.rater_id) for table in (schema.session_events, schema.claims))
    return set(study.store.values(sa.union(people, *event_raters)))


def rater_of(study: Study, name: str) -> str:
    """Return the rater code of a participant's id or rater code. Raises InputError if unknown."""
    entries = participants_table(study)
    raters = entries.loc[entries["participant_id"] == name, "rater_id"]
    if len(raters):
        return str(raters.iloc[0])
    if name not in known_raters(study):
        raise InputError(f"nobody called {name!r} has taken part in this study")
    return name


def released_submissions(study: Study, path: Path) -> dict[str, str]:
    """Return the raters whose places Prolific's export of submissions releases, each with the
    reason. Submissions of people who never came to this study, earlier ones of people who came
    again, and ends that the lead has undone are ignored. Raises InputError for a missing column.
    """
    table = read_table(path)
    status, participant, submission = (
        next((name for name in names if name in table), "")
        for names in (_STATUS_NAMES, _PARTICIPANT_NAMES, _SUBMISSION_NAMES)
    )
    if not status or not participant:
        missing = _PARTICIPANT_NAMES[0] if status else _STATUS_NAMES[0]
        raise InputError(
            f"{path.name} has no column {missing!r}; export the submissions from Prolific as CSV"
        )
    entries = participants_table(study).itertuples(index=False)
    latest_entries = {entry.participant_id: entry for entry in entries}  # the last of each
    reasons = {}
    for index in range(len(table)):
        row = table.iloc[index]
        entry = latest_entries.get(str(row[participant]).strip())
        prolific_status = str(row[status]).strip().upper().replace(" ", "-").replace("_", "-")
        if not prolific_status:
            raise InputError(f"{path.name}, row {row_number(table, index)}: {status} is empty")
        if entry is None or prolific_status not in _REASON_OF_STATUS:
            continue
        rater, reason = str(entry.rater_id), _REASON_OF_STATUS[prolific_status]
        is_present = not submission or str(row[submission]).strip() == entry.session_id
        if is_present and not _is_undone(study, rater, reason):
            reasons[rater] = reason
    return reasons


def _is_undone(study: Study, rater_id: str, reason: str) -> bool:
    """Return True if a present submission ended for this reason and the lead readmitted it."""
    with study.store.read() as connection:
        log = store.events_of(connection, rater_id)
    start = max((place for place, event in enumerate(log) if event.kind == "entered"), default=0)
    has_ended = any(_events_like(log[start:], "released", reason=reason))
    return has_ended and not store.release_reason(log)


# Times, pay and costs, and raters' answers about themselves. The time worked is the sum of the
# times between a rater's events: steps, practice, checks, labels; each `idle_minutes` at most.

TIMES_COLUMNS = (
    "rater_id", "state", "start", "end", "active_seconds", "units", "answers",
    "owed", "currency", "why",
)  # fmt: skip


@dataclass
class _Work:
    """The work of one rater. `acts` are (time, seconds) of each thing that they did: when it ended
    and how long it took, 0 for a step; `units` are those with a label or a skip; `answers` counts
    labels and skips; `completed` is the time at which nothing was left to label, after the first
    answer if there is one, or "".
    """

    acts: list[tuple[datetime, float]] = field(default_factory=list)
    units: set[str] = field(default_factory=set)
    answers: int = 0
    completed: str = ""


def session_times(study: Study, sessions: Sessions) -> pd.DataFrame:
    """Return a row per rater, `TIMES_COLUMNS`.

    `start` and `end` are the times of the rater's first and last act (UTC); if the first act is a
    label, `start` is when its unit was shown. `units` are those with a label or a skip, `answers`
    all labels and skips; practice and checks are in the time, not in the counts. `state` is the
    present step, "complete", "nothing_left" (no unit for them), "stopped" (by a rule), "excluded"
    (by the lead), or a reason of a step "ended". `why` explains `owed`, which may be empty.
    """
    exclusions = claims.oversight(study.store).exclusions
    idle_seconds = study.config.session.idle_minutes * 60
    rows: list[dict[str, Any]] = []
    for rater, work in sorted(_work_by_rater(study).items()):
        acts = sorted(work.acts)
        began = [time - timedelta(seconds=seconds) for time, seconds in acts[:1]]
        times = [*began, *(time for time, _ in acts)]  # none if the times of labels are not known
        gaps = ((later - earlier).total_seconds() for earlier, later in pairwise(times))
        rows.append(
            {
                "rater_id": rater,
                "state": _session_state(work, sessions.next_step(rater), exclusions.get(rater)),
                "start": times[0].isoformat(timespec="seconds") if times else "",
                "end": times[-1].isoformat(timespec="seconds") if times else "",
                "active_seconds": round(sum(min(gap, idle_seconds) for gap in gaps), 1),
                "units": len(work.units),
                "answers": work.answers,
            }
        )
    complete_counts = [row["units"] for row in rows if row["state"] == "complete"]
    usual_count = median_high(complete_counts) if complete_counts else 0
    full_count = study.config.annotation.units_per_rater or usual_count  # of a session
    pay = study.config.pay
    for row in rows:
        amount, why = amount_owed(row["state"], row["units"], full_count, pay)
        row |= {"owed": amount, "currency": pay.currency if pay else "", "why": why}
    return pd.DataFrame(rows, columns=list(TIMES_COLUMNS)).astype({"owed": "float64"})


def _work_by_rater(study: Study) -> dict[str, _Work]:
    """Return the work of each rater who did anything."""
    work_by_rater: dict[str, _Work] = defaultdict(_Work)
    with study.store.read() as connection:
        begun = _begun_by_rater(connection)
        for event in connection.execute(sa.select(schema.session_events)):
            if event.kind in ("released", "readmitted"):  # no acts of the rater
                continue
            work = work_by_rater[event.rater_id]
            work.acts.append((datetime.fromisoformat(event.created_at), 0.0))
            if event.kind == "completed" and event.created_at >= begun.get(event.rater_id, ""):
                work.completed = work.completed or event.created_at  # the first time
        for table in (practice_labels, schema.attention_labels, labels):
            for row in connection.execute(sa.select(table).where(table.c.rater_kind == "human")):
                work = work_by_rater[row.rater_id]
                if time := stored_instant(row.created_at):  # "": imported by an earlier version
                    work.acts.append((datetime.fromisoformat(time), row.seconds or 0.0))
                if table is labels:
                    work.units.add(row.unit_id)
                    work.answers += 1
    return work_by_rater


def _begun_by_rater(connection: sa.Connection, *of: sa.ColumnElement[bool]) -> dict[str, str]:
    """Return the time of the first answer of each rater, in ISO 8601, so as to compare as text."""
    first = sa.select(labels.c.rater_id, sa.func.min(labels.c.created_at)).where(*of)
    rows = connection.execute(first.group_by(labels.c.rater_id))
    return {rater: stored_instant(time) for rater, time in rows}


def _session_state(work: _Work, step: Step, exclusion: claims.Exclusion | None) -> str:
    """Return a rater's `state` in `session_times`. Completion outlasts exclusion and training."""
    is_complete = bool(work.completed and work.answers)
    if step.reason and not (is_complete and step.reason in ("screened_out", "side_full")):
        return step.reason
    # Times are in ISO 8601, so that they compare as texts.
    if exclusion and not (work.completed and work.completed <= exclusion.created_at):
        return "stopped" if exclusion.done_by == claims.STOPPED_BY else "excluded"
    if work.completed:
        return "complete" if is_complete else "nothing_left"
    return step.name


_PAID = ("complete", "screened_out", "nothing_left")  # states with an amount in [pay]
_UNPAID = ("no_consent", "returned", "rejected")


def amount_owed(
    state: str, n_units: int, full_count: int, pay: PaySettings | None
) -> tuple[float | None, str]:
    """Return (amount owed, reason) for a rater in this state who has answered `n_units` of the
    `full_count` units of a session (0: not known). The amount is None where the lead has to decide.
    """
    state = "screened_out" if state == "side_full" else state
    if state == "stopped" and pay is not None and pay.stopped == "full":
        return pay.complete, written("pay.stopped_full")
    if state == "stopped" and not full_count:
        return None, written("pay.stopped_unknown", units=n_units)
    if state == "stopped":
        amount = None if pay is None else round(pay.complete * min(n_units / full_count, 1.0), 2)
        return amount, written("pay.stopped", units=n_units, whole=full_count)
    if state in ("excluded", "timed_out"):
        return None, written(f"pay.{state}")
    pay_state = state if state in (*_PAID, *_UNPAID) else "at_work"
    why = written(f"pay.{pay_state}")
    if pay is None:
        return None, why
    return getattr(pay, pay_state) if pay_state in _PAID else 0.0, why


@dataclass(frozen=True)
class Costs:
    """Amounts owed to raters and spent on graders, None if unknown, as of the `unpriced` ones."""

    currency: str = ""
    owed: float | None = None
    graders_usd: float | None = None
    unpriced: int = 0


def costs(study: Study) -> Costs:
    """Return the amounts owed to raters so far, and the costs of graders."""
    grader_totals = study.grade_totals()
    known_costs = grader_totals["cost_usd"].dropna()
    graders_usd = float(known_costs.sum()) if len(known_costs) else None
    unpriced = grader_totals.loc[grader_totals["cost_usd"].isna(), "rater_id"].nunique()
    if (pay := study.config.pay) is None:
        return Costs(graders_usd=graders_usd, unpriced=unpriced)
    owed = float(session_times(study, Sessions(study))["owed"].sum())
    return Costs(pay.currency, owed, graders_usd, unpriced)


def raters_table(study: Study) -> pd.DataFrame:
    """Return a row per rater who answered anything: `rater_id` and a column per background
    question, empty if skipped. Usable as `analyse(raters=..., rater_slices=[...])`.
    """
    background = study.config.background
    keys = dict.fromkeys(question.key for question in background.questions) if background else {}
    rows = study.store.rows(sa.select(background_answers).order_by(background_answers.c.event_id))
    answers: dict[str, dict[str, str]] = {}
    for row in rows:
        keys.setdefault(row.question)  # one that the settings no longer have
        answers.setdefault(row.rater_id, {})[row.question] = row.answer
    table = [(rater, *(answers[rater].get(key, "") for key in keys)) for rater in sorted(answers)]
    return pd.DataFrame(table, columns=["rater_id", *keys])


def raters_with_languages(study: Study) -> pd.DataFrame:
    """Return `raters_table` with a column `page_language`, also of raters without answers there."""
    languages = store.languages_of_raters(study.store)
    table = raters_table(study)
    if not languages:
        return table
    table = table.set_index("rater_id").reindex(sorted({*table["rater_id"], *languages}))
    table["page_language"] = table.index.map(languages)
    return table.fillna("").rename_axis("rater_id").reset_index()
