"""A synthetic study that twenty raters have labelled, with a grader, flags and a session."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import sqlalchemy as sa

from evenhand.rubrics import load_rubric
from evenhand.study import Study, open_study
from evenhand.study.access.accounts import set_account
from evenhand.study.lead.imports import import_ratings
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.database import append
from evenhand.study.store.grades import utc_now
from evenhand.study.store.logs.answers import add_event
from evenhand.study.store.schema import participant_entries, remarks
from evenhand.study.tables.ratings import validate_ratings
from harness.annotator import SUBJECT
from harness.studies import CODES, SHORTER, panel_study
from tests.annotate_app.leading import HOSTILE, PASSWORD

RATERS = [f"r{n:02d}" for n in range(1, 21)]
CARELESS = "r07"
PAIRS = 80
EACH = 10
"""People on each unit."""
GRADER = "openai:some-model"
PARTICIPANT = "5f1d7f7a0000000000000000"
"""Who `r06` is at Prolific."""


def twenty_raters(home: Path) -> Path:
    """The folder of the study; the same every time."""
    shorter = home / "first.toml"
    shorter.write_text(SHORTER, "utf-8")
    folder = panel_study(
        home, PAIRS, rubrics=[load_rubric(shorter), load_rubric("refusal")], raters_per_unit=EACH
    )
    change_config(folder, {"analysis": {"resamples": 200}})  # quick, and no figure is asserted
    with (folder / "study.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[consent]\ntext = "Do you agree?"\n{CODES}')
    with open_study(folder) as study:
        for name in ("chair", "deputy"):
            set_account(study.store, name, PASSWORD, "expert")
        frame = pd.DataFrame(list(_ratings(random.Random(3))))
        import_ratings(study, validate_ratings(frame, "test"), "test")
        _enter(study)
        _flag(study)
    return folder


def _ratings(rng: random.Random) -> Iterator[dict[str, Any]]:
    began = datetime(2026, 3, 2, 9, tzinfo=UTC)
    turn = 0
    for rubric, options in (("shorter", "LRC"), ("refusal", "12345")):
        for n in range(1, PAIRS + 1):
            truth, side = rng.choice(options), "" if rubric == "shorter" else "|a"
            unit = {"unit_id": f"p{n:04d}|{SUBJECT}{side}", "rubric": rubric}
            people = [RATERS[(n * EACH + k) % len(RATERS)] for k in range(EACH)]
            for rater in [*people, GRADER]:
                turn += 1
                careless = rater == CARELESS
                says = rng.choice(options) if careless or rng.random() < 0.3 else truth
                yield unit | {
                    "rater_id": rater,
                    "rater_kind": "model" if rater == GRADER else "human",
                    "label": says,
                    "seconds": 2.0 if careless else 20.0 + rng.random() * 20,
                    "created_at": (began + timedelta(minutes=6 * turn)).isoformat(),
                }


def _enter(study: Study) -> None:
    """Twenty consent and one does not; one is at the consent still."""
    sessions = Sessions(study)
    for rater in [*RATERS, "refuser", "waiting"]:
        with study.store.write() as connection:
            add_event(connection, rater, "entered", way="open")
        if rater != "waiting":
            sessions.decide_consent(rater, agreed=rater != "refuser")
    entry = {"rater_id": "r06", "participant_id": PARTICIPANT, "study_id": "s", "session_id": "1"}
    entry["created_at"] = utc_now()
    with study.store.write() as connection:
        connection.execute(sa.insert(participant_entries).values(entry))


def _flag(study: Study) -> None:
    said = (("harmful", HOSTILE), ("unclear_rubric", "What counts as a word?"))
    about = {"kind": "flag", "rubric": "shorter", "order": "ab", "draw": 0}
    about["rubric_hash"] = study.rubrics["shorter"].hash
    with study.store.write() as connection:
        for n, (reason, text) in enumerate(said, start=1):
            flag = {"submit_id": f"flag-{n}", "unit_id": f"p{n:04d}|{SUBJECT}"}
            flag |= {"rater_id": RATERS[n], "reason": reason, "text": text}
            at = f"2026-03-02T10:0{n}:00.000+00:00"
            append(connection, remarks, about | flag | {"created_at": at})
