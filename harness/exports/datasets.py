"""Write a Hugging Face dataset of two splits, with labels as a `ClassLabel`, and one of answers."""

from __future__ import annotations

from pathlib import Path

import datasets as library

from harness.exports.contents import (
    ANSWERED_BY,
    ANSWERS,
    DOCUMENTS,
    GRADER,
    JUDGED,
    QUESTIONS,
    labels,
)


def make(out: Path) -> None:
    names = ["no", "yes"]
    rows = [
        {"unit_id": unit, "rater_id": rater, "rater_kind": kind, "label": names.index(label)}
        for unit, a, b, g in labels()
        for rater, kind, label in (("ann", "human", a), ("ben", "human", b), (GRADER, "model", g))
    ]
    features = library.Features(
        dict.fromkeys(("unit_id", "rater_id", "rater_kind"), library.Value("string"))
        | {"label": library.ClassLabel(names=names)}
    )
    one, two = (library.Dataset.from_list(part, features) for part in (rows[:12], rows[12:]))
    library.DatasetDict(train=one, test=two).save_to_disk(str(out / "datasets"))
    answers = [
        {
            "id": f"q{number}",
            "question": question,
            "context": " ".join(DOCUMENTS),
            "answer": answer,
            "model": ANSWERED_BY,
            "judge": judged,
        }
        for number, (question, answer, judged) in enumerate(
            zip(QUESTIONS, ANSWERS, JUDGED, strict=True), 1
        )
    ]
    library.Dataset.from_list(answers).save_to_disk(str(out / "items" / "datasets"))
