"""Prolific: the links that lead back there, and its export of submissions.

Facts: docs.prolific.com, "The study object" (placeholders, completion codes) and "Submission
object" (statuses; a submission's id is the SESSION_ID of the address).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.store.schema import participant_entries
from evenhand.study.tables.formats import read_table, row_number
from evenhand.study.workspace import Study

COMPLETION = "https://app.prolific.com/submissions/complete?cc="
_RELEASED = {"RETURNED": "returned", "TIMED-OUT": "timed_out", "REJECTED": "rejected"}
_STATUS = ("Status", "Submission status", "status")
_PARTICIPANT = ("Participant id", "Participant ID", "participant_id")
_SUBMISSION = ("Submission id", "Submission ID", "submission_id")

End = Literal["complete", "screened_out", "no_consent", "returned", "stopped", "nothing_left"]


def study_url(base: str, token: str) -> str:
    """The address that is entered at Prolific, which fills in its ids."""
    ids = "&".join(
        f"{name}={{{{%{name}%}}}}" for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
    )
    return f"{base}?invite={token}&{ids}"


def completion_url(study: Study, end: End) -> str:
    """The address that ends a submission; "" where the study names no code for this end."""
    code = completion_code(study, end)
    return COMPLETION + code if code else ""


def completion_code(study: Study, end: End) -> str:
    """The code itself, for who has to enter it."""
    codes = study.config.prolific
    code: str = getattr(codes, end) if codes else ""
    if codes and not code and end == "nothing_left":
        return codes.complete
    return code


def participants_table(study: Study) -> pd.DataFrame:
    """Return all entries: `rater_id, participant_id, study_id, session_id, created_at`."""
    names = ("rater_id", "participant_id", "study_id", "session_id", "created_at")
    query = sa.select(*(participant_entries.c[name] for name in names))
    return study.store.table(query.order_by(participant_entries.c.event_id))


def rater_of(study: Study, name: str) -> str:
    """Return the rater code of a participant's id, or of a rater code itself.

    Raises InputError where no participant or rater of this name has been here.
    """
    from evenhand.study.session.times import known_raters

    entries = participants_table(study)
    found = entries.loc[entries["participant_id"] == name, "rater_id"]
    if len(found):
        return str(found.iloc[0])
    if name not in known_raters(study):
        raise InputError(f"nobody called {name!r} has taken part in this study")
    return name


def released_submissions(study: Study, path: Path) -> dict[str, str]:
    """Return the raters whose places Prolific's export of submissions releases: rater -> reason.

    Submissions of people who never came to this study, and earlier ones of people who came again,
    are ignored. Raises InputError where a column is missing.
    """
    table = read_table(path)
    status = _column(table, _STATUS, path)
    participant = _column(table, _PARTICIPANT, path)
    submission = next((name for name in _SUBMISSION if name in table), None)
    latest = {
        entry.participant_id: entry for entry in participants_table(study).itertuples(index=False)
    }
    reasons = {}
    for at in range(len(table)):
        row = table.iloc[at]
        entry = latest.get(str(row[participant]).strip())
        said = str(row[status]).strip().upper().replace(" ", "-").replace("_", "-")
        if not said:
            raise InputError(f"{path.name}, row {row_number(table, at)}: {status} is empty")
        if entry is None or said not in _RELEASED:
            continue
        if submission is None or str(row[submission]).strip() == entry.session_id:
            reasons[str(entry.rater_id)] = _RELEASED[said]
    return reasons


def _column(table: pd.DataFrame, names: tuple[str, ...], path: Path) -> str:
    for name in names:
        if name in table:
            return name
    raise InputError(
        f"{path.name} has no column {names[0]!r}; export the submissions from Prolific as CSV"
    )
