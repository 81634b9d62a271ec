"""A small synthetic study in which each of the lead's pages has something to show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from evenhand.reporting.report import count_look
from evenhand.rubrics import load_rubric
from evenhand.rubrics.loading import parse_rubric
from evenhand.study import Study, open_study
from evenhand.study.access import make_invites, set_account
from evenhand.study.desk.claims import exclude
from evenhand.study.desk.desk import AnnotationDesk, Flag
from evenhand.study.lead.disagreements import decide, raised_flags, settle_flag, sort_disagreement
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.tables.ratings import Mark
from harness.annotator import SUBJECT
from harness.studies import (
    CODES,
    SHORTER,
    give_secret,
    mark_words,
    panel_study,
    send,
    task_of,
    with_labels,
)

PASSWORD = "correct horse battery"
GRADER, WEAK = "provider:grader", "weak"
PAIRS = 36
PEOPLE = ("ann", "ben", "cy", "dee")
DIFFERS = {"ann": 9, "ben": 7, "cy": 8, "dee": 2, GRADER: 6, WEAK: 1}
"""By rater, every how many labels differ from those of most raters."""
RUBRICS = {"shorter": ("LRC", ""), "refusal": ("12345", "|a")}
"""Options, and the end of an item's id, by rubric."""
ITEM = """
[[unit]]
name = "short-b"
explanation = "One *word* is shorter than many."
expected = { shorter = "R" }
[unit.values]
prompt_a = "1 + 1 = ?"
response_a = "This one is by far the longer one."
prompt_b = "Tell B."
response_b = "Brief."
"""
SESSION = """
[session]
content_warning = "Some texts are <b>harsh</b>."
instructions = "Read both responses.\\n\\nThen say which one is shorter."
[consent]
text = "You may stop at [any time](https://example.org)."
[training]
file = "training.toml"
pass_mark = 1.0
[[comprehension]]
question = "What is *compared*?"
options = ["The length", "Who wrote them"]
answer = "The length"
explanation = "It is length alone that counts."
[background]
[attention]
file = "attention.toml"
every = 2
[pay]
complete = 6.5
currency = "EUR"
[names]
"provider:grader" = "The grader"
ann = "Ann A."
"""

BACKGROUND = """
[[background.questions]]
key = "party"
question = "Which party?"
options = ["left", "right"]
quotas = [1, 0]
[[background.questions]]
key = "age"
question = "How *old*?"
options = ["under 40", "40 or over"]
"""


def led_study(home: Path, name: str) -> Path:
    """Make a study of two rubrics, labelled by four annotators, of whom one is excluded, and two
    graders; with a session, flags, links, accounts, a decision and a reviewed disagreement.
    """
    home.mkdir()
    rubrics = [parse_rubric(SHORTER, "shorter.toml"), load_rubric("refusal")]
    made = panel_study(home, PAIRS + 4, rubrics=rubrics, sample=PAIRS, languages=["de"])
    folder = made.rename(home / name)
    change_config(folder, {"": {"synthetic": True}, "analysis": {"resamples": 50}})
    for file in ("training.toml", "attention.toml"):
        (folder / file).write_text(ITEM, "utf-8")
    with (folder / "study.toml").open("a", encoding="utf-8") as settings:
        settings.write(SESSION + CODES)
    with open_study(folder) as study:
        give_secret(study, "7" * 64)
    with open_study(folder) as study:
        set_account(study.store, "chair", PASSWORD, "expert")
        make_invites(study, ["eve", ""], 24)
        for rater in (*PEOPLE, "eve"):
            AnnotationDesk(study).register(rater)
        then = datetime.now(UTC) - timedelta(hours=50)
        for rubric in RUBRICS:
            _label(study, rubric, then.isoformat(timespec="milliseconds"))
        _flag(study)
        exclude(study.store, "dee", "<i>hasty</i>", "lead")
        decide(study, "chair", f"p0001|{SUBJECT}|a", "refusal", "2", "It says so.")
        about = {"rubric": "shorter", "unit_id": f"p0013|{SUBJECT}", "grader": GRADER}
        sort_disagreement(study, "lead", kind="grader_wrong", note="read twice", **about)
    count_look(folder)
    return folder


def _label(study: Study, rubric: str, then: str) -> None:
    """Give each rater's labels, as of a time; on the sixth item everybody's differ."""
    options, side = RUBRICS[rubric]
    units = [f"p{n:04d}|{SUBJECT}{side}" for n in range(1, PAIRS + 1)]
    for place, (rater, every) in enumerate(DIFFERS.items()):
        off = [place if n == 5 else (n % every == 0) * (every % 2 + 1) for n in range(PAIRS)]
        labels = [options[(n + more) % len(options)] for n, more in enumerate(off)]
        if rater in PEOPLE:
            seconds = [3.0 if rater in ("cy", "dee") else 20.0 + n for n in range(PAIRS)]
            given = {rater: labels if rater != "dee" else labels[:30]}
            with_labels(study, given, rubric, units=units, seconds=seconds, created_at=then)
            continue
        study.store.add_grades(
            GradeAttempt(
                unit_id=unit, rubric=rubric, rater_id=rater, label=label, raw=f"So **{label}**.",
                rubric_hash=study.rubrics[rubric].hash, provenance={"cost_usd": 0.01},
            )
            for unit, label in zip(units, labels, strict=True)
        )  # fmt: skip
    if rubric == "shorter":
        mark_words(study, "ann", Mark("response_a", 0, 8))
        mark_words(study, "ben", Mark("response_a", 4, 10))


def _flag(study: Study) -> None:
    desk = AnnotationDesk(study)
    task = task_of(desk, "eve")
    assert task is not None
    for reason in ("harmful", "other"):
        text = f"<b>{reason}</b>"
        send(desk, "eve", Flag(submit_id=reason, task_id=task.task_id, reason=reason, text=text))
    settle_flag(study, raised_flags(study)[0].number, "looked at", "lead", "Thank you.")


def session_study(home: Path, name: str) -> Path:
    """Make a study of two pairs with every step of a session."""
    folder = panel_study(home, 2, languages=["de"]).rename(home / name)
    for file in ("training.toml", "attention.toml"):
        (folder / file).write_text(ITEM, "utf-8")
    with (folder / "study.toml").open("a", encoding="utf-8") as settings:
        settings.write(SESSION.replace("[background]", BACKGROUND) + CODES)
    with open_study(folder) as study:
        give_secret(study, "7" * 64)
    return folder
