"""Small synthetic studies, made in a folder."""

from __future__ import annotations

import atexit
import csv
import json
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import sqlalchemy as sa

from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import Study, create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.desk.desk import AnnotationDesk, Answer, Submission, Task
from evenhand.study.keeping import ADDED_COLUMNS, upgrade_store
from evenhand.study.lead.imports import import_ratings
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.database import append_once
from evenhand.study.store.schema import answer_details, claims, labels, meta
from evenhand.study.tables.ratings import Mark, validate_ratings, written_marks
from harness.annotator import SUBJECT, prompt_text, response_text

MarkedStudy = Callable[..., Study]
"""`marked_study`, as the fixture of this name offers it."""

# R and C are keys of Streamlit's own (rerun, clear caches): an option must be able to have them.
SHORTER = """
name = "shorter"
title = "Length"
unit = "pair"
level = "nominal"
affirmative = ["C"]
variables = ["prompt_a", "response_a", "prompt_b", "response_b"]
question = "Which response is shorter?"
instructions = "Compare the two responses by their length alone."

[[options]]
key = "L"
name = "Response A"
description = "Response A has fewer words."
swapped = "R"

[[options]]
key = "R"
name = "Response B"
description = "Response B has fewer words."
swapped = "L"

[[options]]
key = "C"
name = "Neither"
description = "They are about as long."
"""


# The head of a rubric of which several options may apply.
TOPICS_HEAD = """
name = "topics"
title = "Topics"
unit = "response"
level = "nominal"
several = true
question = "What is it about?"
instructions = "Tick all that apply."
variables = ["response"]
"""


# Parts of study.toml that a session of participants from Prolific has.
CODES = '[prolific]\ncomplete = "DONE1"\nscreened_out = "OUT2"\nno_consent = "NO3"\n'
MORE_CODES = CODES + 'stopped = "STOP4"\nnothing_left = "NONE5"\n'
ASKS = """
[consent]
text = "May we?"
[[comprehension]]
question = "Which?"
options = ["this", "that"]
answer = "this"
"""


def response_rubric(options: Mapping[str, str], **fields: object) -> Rubric:
    """Return a rubric on responses with these options and their names; `fields` are Rubric's."""
    defaults: dict[str, object] = {
        "name": "own",
        "title": "Own",
        "unit": "response",
        "level": "nominal",
        "question": "Which is it?",
        "instructions": "Read it.",
        "options": [{"key": key, "name": name} for key, name in options.items()],
    }
    if "blocks" not in fields:
        defaults["variables"] = ["response"]
    return Rubric.model_validate(defaults | fields)


def new_study(folder: Path, plan: StudyPlan) -> None:
    """Make a study as `create_study` does, or copy the one made before for an equal plan."""
    if plan.store != StudyPlan.store:  # a database elsewhere
        create_study(folder, plan)
        return
    files = (plan.pairs, plan.propositions, plan.wordings, plan.responses)
    texts = [path and path.read_bytes() for path in files]
    rubrics = [rubric.model_dump_json() for rubric in plan.rubrics]
    name = plan.name or folder.name
    rest = replace(
        plan, name=name, rubrics=(), pairs=None, propositions=None, wordings=None, responses=None
    )
    template = _home() / sha256(repr((texts, rubrics, rest)).encode()).hexdigest() / folder.name
    if not template.exists():
        template.parent.mkdir(exist_ok=True)
        create_study(template, plan)
    shutil.copytree(template, folder)


@cache
def _home() -> Path:
    home = tempfile.TemporaryDirectory(prefix="evenhand-studies-")
    atexit.register(home.cleanup)
    return Path(home.name)


def write_pairs(path: Path, count: int = 6) -> Path:
    """Write a small pairs file with two columns for stratification."""
    lines = ["main_category,template_category,prompt_a,prompt_b,prompt_a_group,prompt_b_group"]
    for n in range(count):
        cells = (f"m{n % 2}", f"t{n % 3}", f"Argue for {n}", f"Argue against {n}", "pro", "con")
        lines.append(",".join(cells))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def write_responses(path: Path, count: int = 6, subjects: tuple[str, ...] = ("s1", "s2")) -> Path:
    """Responses of every subject to every prompt of `write_pairs`."""
    records = [
        {"subject": subject, "prompt": f"Argue {word} {n}", "response": f"{subject}: {word} {n}."}
        for subject in subjects
        for n in range(count)
        for word in ("for", "against")
    ]
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n", "utf-8")
    return path


def panel_study(
    home: Path,
    pairs: int,
    response: Callable[[int, str], str] = response_text,
    rubrics: Sequence[Rubric] = (),
    sample: int | None = None,
    **settings: object,
) -> Path:
    """Return the folder of a study that `Annotator` can label: which of two responses is shorter?

    `response(pair number, side)` is the text; `settings` are those of annotation.
    """
    prompts = [(prompt_text(n, "a"), prompt_text(n, "b")) for n in range(1, pairs + 1)]
    shorter = home / "shorter.toml"
    shorter.write_text(SHORTER, "utf-8")
    plan = StudyPlan(
        pairs=_prompts(home, prompts),
        responses=_responses(home, pairs, SUBJECT, response),
        rubrics=rubrics or [load_rubric(shorter)],
        stratify=(),
        sample=sample,
        raters_per_unit=50,
    )
    new_study(home / "study", plan)
    change_config(home / "study", {"annotation": settings})
    return home / "study"


def marked_study(
    folder: Path,
    pairs: int = 3,
    rubrics: Sequence[str | Rubric] = ("hedging",),
    response: Callable[[int, str], str] = lambda pair, side: "A plain answer.",
) -> Study:
    """Return an open study with one subject `m`; every response begins with a mark that names its
    unit, by which the protocol server recognises it.
    """
    files = folder.with_name(f"{folder.name}-files")
    files.mkdir()
    prompts = [(f"Argue for {n}.", f"Argue against {n}.") for n in range(1, pairs + 1)]

    def marked(pair: int, side: str) -> str:
        return f"[[p{pair:04d}|m|{side}]] {response(pair, side)}"

    plan = StudyPlan(
        pairs=_prompts(files, prompts),
        responses=_responses(files, pairs, "m", marked),
        rubrics=[load_rubric(each) if isinstance(each, str) else each for each in rubrics],
        sample=pairs,
        synthetic=True,
    )
    new_study(folder, plan)
    return open_study(folder)


def with_labels(
    study: Study,
    given: Mapping[str, Sequence[str]],
    rubric: str = "refusal",
    *,
    units: Sequence[str] = (),
    graders: Collection[str] = (),
    **columns: object,
) -> Study:
    """Return the study with imported labels: one of each rater for each unit, "-" for none.

    Without `units` they are all of the rubric's, sorted. Raters in `graders` are models. `columns`
    are further columns of the ratings: one value for all, or a list with one for each unit.
    """
    units = units or sorted(study.rubric_units(study.rubrics[rubric]))
    rows = [
        {"unit_id": unit, "rubric": rubric, "rater_id": rater, "label": label}
        | {"rater_kind": "model" if rater in graders else "human"}
        | {name: value[n] if isinstance(value, list) else value for name, value in columns.items()}
        for rater, labels in given.items()
        for n, (unit, label) in enumerate(zip(units, labels, strict=False))
        if label != "-"
    ]
    import_ratings(study, validate_ratings(pd.DataFrame(rows)), "test")
    return study


def task_of(desk: AnnotationDesk, rater: str) -> Task | None:
    """Return the first task that the rater is shown; None where nothing is left for them."""
    sheet = desk.next_sheet(rater)
    return sheet.tasks[0] if sheet else None


def claim_of(study: Study, task: Task | str) -> Any:
    """Return the row of a task's claim: its unit, rubric, draw and order."""
    task_id = task if isinstance(task, str) else task.task_id
    with study.store.read() as connection:
        return connection.execute(sa.select(claims).where(claims.c.task_id == task_id)).one()


def submit(
    desk: AnnotationDesk,
    rater: str,
    task: Task | str,
    option: str = "",
    submit_id: str = "",
    **fields: Any,
) -> str:
    """Answer a task, given or named by its id, and return the status of the receipt.

    The answer is called as its task unless `submit_id` says otherwise. `fields` are further ones
    of Answer.
    """
    task_id = task if isinstance(task, str) else task.task_id
    sent = Answer(submit_id=submit_id or task_id, task_id=task_id, option_key=option, **fields)
    return desk.submit_all(rater, [sent])[0]


def send(desk: AnnotationDesk, rater: str, *sent: Submission) -> Sequence[str]:
    """Send answers and flags together; return the receipts."""
    return desk.submit_all(rater, sent)


def work_through(
    desk: AnnotationDesk, rater: str, most: int = 10_000, seconds: float = 20.0, options: int = 1
) -> int:
    """Answer tasks at the desk, by the first `options` of a rubric in turn; return how many."""

    def choose(task: Task, number: int) -> str:
        return task.rubric.categories[number % options]

    return len(label_all(desk, rater, choose, most, seconds=seconds))


def label_all(
    desk: AnnotationDesk,
    rater: str,
    choose: Callable[[Task, int], str] | str = "",
    most: int = 10_000,
    **fields: Any,
) -> list[Task]:
    """Answer screen after screen until `most` tasks are answered; return them in order.

    `choose` is an option, or returns one for a task and its number from 0; by default the first.
    """
    answered: list[Task] = []
    while len(answered) < most and (sheet := desk.next_sheet(rater)):
        for task in sheet.tasks:
            option = choose(task, len(answered)) if callable(choose) else choose
            option = option or task.rubric.categories[0]
            assert submit(desk, rater, task, option, **fields) == "stored"
            answered.append(task)
    return answered


def with_settings(study: Study, text: str) -> Study:
    """Return the study reopened, with this text appended to its study.toml."""
    study.close()
    path = study.folder / "study.toml"
    path.write_text(path.read_text("utf-8") + text, "utf-8")
    return open_study(study.folder)


def with_edited_rubric(study: Study, name: str, *, same: bool) -> Study:
    """Return the study reopened with its rubric reworded; `same` declares the same meaning."""
    old = study.rubrics[name]
    file = study.folder / "rubrics" / f"{name}.toml"
    file.write_text(file.read_text("utf-8").replace(old.title, f"{old.title}!"), "utf-8")
    if same:
        settings = study.folder / "study.toml"
        text = settings.read_text("utf-8") + f'\n[same_text]\n{name} = ["{old.hash}"]\n'
        settings.write_text(text, "utf-8")
    edited = open_study(study.folder)
    assert edited.rubrics[name].hash != old.hash
    return edited


def give_secret(study: Study, secret: str) -> None:
    """Exchange the study's secret for this one, in hexadecimal digits, before any desk opens."""
    with study.store.write() as connection:
        connection.execute(sa.update(meta).where(meta.c.key == "secret").values(value=secret))


def mark_words(study: Study, rater: str, *marks: Mark) -> None:
    """Give each label of a rater, imported without any, these marks."""
    query = sa.select(labels.c.submit_id).where(labels.c.rater_id == rater)
    with study.store.write() as connection:
        for submit_id in connection.execute(query).scalars().all():
            event = {"submit_id": submit_id, "display": "text", "evidence": written_marks(marks)}
            append_once(connection, answer_details, "submit_id", event)


def upgraded_without(study: Study, table: sa.Table) -> Study:
    """Close the study, put it back to a store of 0.1.0 without this table, and upgrade it."""
    table.drop(study.store.engine)
    with study.store.write() as connection:
        for name, columns in ADDED_COLUMNS.items():
            for column in columns:
                connection.execute(sa.text(f"ALTER TABLE {name} DROP COLUMN {column}"))
        connection.execute(sa.update(meta).where(meta.c.key == "schema").values(value="1"))
    study.close()
    upgrade_store(study.folder)
    return open_study(study.folder)


def _prompts(folder: Path, prompts: Sequence[tuple[str, str]]) -> Path:
    path = folder / "pairs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("prompt_a", "prompt_b"), *prompts])
    return path


def _responses(folder: Path, pairs: int, subject: str, response: Callable[[int, str], str]) -> Path:
    path = folder / "responses.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for n in range(1, pairs + 1):
            for side in "ab":
                row = {"subject": subject, "pair_id": f"p{n:04d}", "side": side}
                file.write(json.dumps(row | {"response": response(n, side)}) + "\n")
    return path
