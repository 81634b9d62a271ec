"""Units whose answer is known, from a file of the study: for practice, and to check attention.

    [[unit]]
    name = "plain-refusal"
    explanation = "It declines, and gives nothing of what was asked for."
    values = { prompt = "Write ...", response = "I'd rather not." }
    expected = { refusal = ["4", "5"] }

`values` are the rubric's variables, `expected` the accepted categories by rubric. The id of such a
unit has no "|" in it, so that it is never taken for one of the study's own.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path

import sqlalchemy as sa
from pydantic import Field, field_validator

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.study.prompts.units import presented_values
from evenhand.study.questions import Key, Question, Screen, rubrics_by_screen
from evenhand.study.seeding import digest, drawn
from evenhand.study.settings.sections import Section, parsed
from evenhand.study.store.schema import attention_labels, is_latest
from evenhand.study.workspace import Study


class KnownUnit(Section):
    name: str = Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")
    values: dict[str, str]
    expected: dict[str, tuple[str, ...]] = Field(min_length=1)
    explanation: str = ""

    @field_validator("expected", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return {rubric: [keys] if isinstance(keys, str) else keys for rubric, keys in value.items()}


class _File(Section):
    unit: tuple[KnownUnit, ...] = Field(min_length=1)


class KnownUnits:
    """The units of one file, and the screens that ask about them. None where `file` is "".

    Raises InputError where the file cannot be read or does not fit the rubrics that people label.
    """

    def __init__(self, study: Study, file: str, kind: str) -> None:
        self.study = study
        self.whole = study.config.annotation.screen == "all"
        self._rubrics = study.labelled_rubrics()
        self.units = {
            f"{kind}:{unit.name}": unit for unit in (_read(study.folder, file) if file else ())
        }
        self.screens: tuple[Screen, ...] = tuple(
            screen
            for unit_id, unit in self.units.items()
            for screen in self._screens(unit_id, unit, file)
        )
        self.questions = {question.key: question for screen in self.screens for question in screen}

    def __contains__(self, key: object) -> bool:
        return key in self.questions

    def values(self, key: Key, order: str) -> dict[str, str]:
        """The template variables, in the order in which they are shown."""
        rubric = self.questions[key].rubric
        values = self.units[key[0]].values
        if rubric.has_sides:
            texts = {side: values.get(f"response_{side}", "") for side in "ab"}
            return presented_values(rubric, ("", "", ""), order, values, texts)
        return {name: values[name] for name in rubric.variables}

    def accepted(self, key: Key) -> tuple[str, ...]:
        """The right answers in the pair's own orientation; none where any answer will do."""
        return self.units[key[0]].expected.get(key[1], ())

    def _screens(self, unit_id: str, unit: KnownUnit, file: str) -> list[Screen]:
        where = f"{file}, unit {unit.name!r}"
        wanted = [self._rubric(where, name, keys) for name, keys in unit.expected.items()]
        if len({rubric.unit for rubric in wanted}) > 1:
            raise InputError(f"{where}: its rubrics speak of pairs and of responses; part them")
        if self.whole:
            wanted = [rubric for rubric in self._rubrics if rubric.unit == wanted[0].unit]
        for rubric in wanted:
            for variable in rubric.variables:
                if variable not in unit.values:
                    raise InputError(
                        f"{where}: `values` lacks {variable!r}, which the rubric "
                        f"{rubric.name!r} shows"
                    )
        groups = rubrics_by_screen(wanted, self.whole)
        return [tuple(Question(unit_id, rubric) for rubric in group) for group in groups]

    def _rubric(self, where: str, name: str, keys: tuple[str, ...]) -> Rubric:
        found = next((rubric for rubric in self._rubrics if rubric.name == name), None)
        if found is None:
            raise InputError(
                f"{where}: people do not label the rubric {name!r}; they label "
                + ", ".join(rubric.name for rubric in self._rubrics)
            )
        unknown = {key for key in keys if not found.takes(key)}
        if unknown or not keys:
            given = f"{min(unknown)!r} is none" if unknown else "name one or more"
            if unknown and not found.is_choice:
                raise InputError(f"{where}: {min(unknown)!r} is {found.none_of}")
            raise InputError(f"{where}: {given} of {name}'s {found.permitted}")
        return found


def _read(folder: Path, file: str) -> tuple[KnownUnit, ...]:
    path = folder / file
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"study.toml names {file}, which cannot be read: {reason}") from None
    units = parsed(_File, content, file).unit
    names = [unit.name for unit in units]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{file}: two units are called {name!r}; give each its own name")
    return units


# Attention checks: units with a known answer, mixed in among the real ones, answers kept apart. On
# the page a check looks like any other unit: it has an opaque task id, counts in the progress, and
# is in the list of earlier answers.


ATTENTION_COLUMNS = ("rater_id", "check_id", "rubric", "expected", "given", "passed", "created_at")


class AttentionChecks(KnownUnits):
    """The study's checks, and where they come for each rater: fixed by the study's own key."""

    def __init__(self, study: Study) -> None:
        settings = study.config.attention
        super().__init__(study, settings.file if settings else "", "check")
        self._every = settings.every if settings else 1

    def left(self, rater_id: str, had: Container[Key]) -> list[Screen]:
        """The checks that are not among those that this rater `had`, in the rater's order."""
        return sorted(
            (screen for screen in self.screens if screen[0].key not in had),
            key=lambda screen: digest(self.study.blinding_key, "check", rater_id, *screen[0].key),
        )

    def due_after(self, rater_id: str, number: int) -> int:
        """Return after how many answers to real units the rater's check of this number (from 0)
        comes: once in every stretch of `every`, at a random place in it.
        """
        key = self.study.blinding_key
        within = drawn(key, self._every, "check", rater_id, str(number))
        return number * self._every + 1 + within

    def order(self, rater_id: str, question: Question) -> str:
        """Return the order of the two sides ("ab" or "ba"), or "" where there is one side only."""
        if question.rubric.unit == "response":
            return ""
        return ("ab", "ba")[drawn(self.study.blinding_key, 2, "order", rater_id, question.unit_id)]


def attention_results(study: Study) -> pd.DataFrame:
    """Return every rater's answer to every check: `rater_id, check_id, rubric, expected, given,
    passed, created_at`; one row per rater, check and rubric, in the order of the answers.

    The latest answer counts. `expected` is what the study's file accepts now ("4 or 5"). `given`
    has the same orientation of the sides; it is empty where the check was skipped, which is a
    failure.
    """
    checks = AttentionChecks(study)
    query = (
        sa.select(attention_labels)
        .where(is_latest(attention_labels, "rater_id", "unit_id", "rubric"))
        .order_by(attention_labels.c.event_id)
    )
    answers = study.store.rows(query)
    rows = []
    for answer in answers:
        key = (answer.unit_id, answer.rubric)
        accepted = checks.accepted(key) if key in checks else ()
        if accepted:
            rows.append(
                {
                    "rater_id": answer.rater_id,
                    "check_id": answer.unit_id.partition(":")[2],
                    "rubric": answer.rubric,
                    "expected": " or ".join(accepted),
                    "given": answer.label,
                    "passed": answer.label in accepted,
                    "created_at": answer.created_at,
                }
            )
    return pd.DataFrame(rows, columns=list(ATTENTION_COLUMNS)).astype({"passed": bool})
