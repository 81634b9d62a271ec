"""Fixtures that several packages' tests share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evenhand.study import Study, create_study, open_study
from evenhand.study.creation import StudyPlan, usual_rubrics

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Published data that is not part of the project; tests that need it skip without it."""
    folder = ROOT / os.environ.get("EVENHAND_SHARED", "../shared") / "data"
    if not folder.is_dir():
        pytest.skip("published data is not here (set EVENHAND_SHARED)")
    return folder


def write_pairs(path: Path, count: int = 6) -> Path:
    """A small pairs file with two columns to stratify by."""
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


MakeStudy = Callable[..., Study]


@pytest.fixture
def make_study(tmp_path: Path) -> Iterator[MakeStudy]:
    """Makes small studies: make_study(pairs=6, subjects=("s1", "s2"), **fields of StudyPlan)."""
    opened: list[Study] = []

    def make(pairs: int = 6, subjects: tuple[str, ...] = ("s1", "s2"), **fields: object) -> Study:
        folder = tmp_path / f"study{len(opened)}"
        plan = {
            "pairs": write_pairs(tmp_path / "pairs.csv", pairs),
            "responses": write_responses(tmp_path / "responses.jsonl", pairs, subjects),
            "rubrics": usual_rubrics(propositions=False),
            **fields,
        }
        create_study(folder, StudyPlan(**plan))  # type: ignore[arg-type]
        study = open_study(folder)
        opened.append(study)
        return study

    yield make
    for study in opened:
        study.close()
