"""A PostgreSQL server of the tests' own, and small studies with a session."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType

import pytest
import sqlalchemy as sa

from evenhand.study import Study


@pytest.fixture
def make_session(make_study: Callable[..., Study]) -> Callable[..., Study]:
    """make_session(toml, files, **arguments of make_study) -> a study of refusals."""

    def make(
        toml: str = "", files: Mapping[str, str] = MappingProxyType({}), **more: object
    ) -> Study:
        return make_study(**{"rubrics": ["refusal"], "toml": toml, "files": files, **more})

    return make


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


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    """The field of StudyPlan that says where the store is: in the folder, or on a server."""
    return _database(request)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def any_database(request: pytest.FixtureRequest) -> dict[str, str]:
    """The same; the second in the thorough run alone."""
    return _database(request)


def _database(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "sqlite":
        return {}
    return {"store": request.getfixturevalue("new_postgresql")()}
