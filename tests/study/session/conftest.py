"""Small studies with a session around the labelling."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from evenhand.rubrics import load_rubric
from evenhand.study import Study, open_study


@pytest.fixture
def make_session(make_study) -> Iterator[Callable[..., Study]]:
    """make_session(toml, files, **fields of StudyPlan) -> a study with these lines at the end of
    its study.toml, and these further files."""
    opened: list[Study] = []

    def make(toml: str = "", files: dict[str, str] | None = None, **fields: object) -> Study:
        fields.setdefault("rubrics", [load_rubric("refusal")])
        folder = make_study(**fields).folder
        for name, text in (files or {}).items():
            (folder / name).write_text(text, "utf-8")
        with (folder / "study.toml").open("a", encoding="utf-8") as file:
            file.write("\n" + toml)
        study = open_study(folder)
        opened.append(study)
        return study

    yield make
    for study in opened:
        study.close()
