"""Argilla's records, as its two writers write them: JSON, and a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import argilla as library
from argilla.records._io import HFDatasetsIO, JsonIO

from harness.exports.contents import GRADER, TOPICS, UUIDS, labels


def make(out: Path) -> None:
    records = [_record(number, *said) for number, said in enumerate(labels())]
    (out / "argilla.json").unlink(missing_ok=True)
    JsonIO.to_json(records, out / "argilla.json")
    frame = HFDatasetsIO.to_datasets(records, _dataset())
    frame.save_to_disk(str(out / "argilla"))


def _record(number: int, unit: str, ann: str, ben: str, grader: str) -> Any:
    given = [(UUIDS[0], ann, "submitted"), (UUIDS[1], ben, "submitted")]
    given += [(UUIDS[2], "no", "draft")] if number == 2 else []
    responses = [
        library.Response(question_name="fair", value=value, user_id=user, status=status)
        for user, value, status in given
    ]
    suggestion = library.Suggestion(question_name="fair", value=grader, agent=GRADER, score=0.75)
    return library.Record(
        id=unit,
        fields={"text": f"Text {unit}"},
        metadata={"topic": TOPICS[number]},
        responses=responses,
        suggestions=[suggestion],
    )


def _dataset() -> Any:
    """Return an unsaved dataset with the attributes that the writer of datasets needs."""
    library.Argilla._default_client = MagicMock()
    own = library.Settings(
        fields=[library.TextField(name="text")],
        questions=[library.LabelQuestion(name="fair", labels=["yes", "no"])],
        metadata=[library.TermsMetadataProperty(name="topic")],
    )

    class Offline:
        schema = own.schema
        settings = own

    return Offline()
