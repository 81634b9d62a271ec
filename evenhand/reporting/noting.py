"""Log acts on the command line, and changes of study.toml, in the log of a study's leads' acts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study
    from evenhand.study.store.logs.decisions import Act


def operator() -> str:
    """Return the log's name for the owner of this process, whatever the variable USER says."""
    from evenhand.study.tables.files import process_owner

    return written("terminal.operator", name=process_owner())


def note(study: Study, act: Act, about: str | Path = "", detail: str = "") -> None:
    """Append an act of the operator to an open study's log; `about` names what was acted on."""
    from evenhand.study.store.logs.decisions import note_act

    note_act(study.store, act, str(about), detail, operator())


def note_in(folder: Path, act: Act, about: str | Path = "", detail: str = "") -> None:
    """Log an act, as `note` does, for the study in a folder, whose store may have an old schema."""
    from evenhand.study.settings.study_toml import read_config
    from evenhand.study.store.database import SILENT, Database
    from evenhand.study.store.logs.decisions import note_act

    with closing(Database.connect(read_config(folder).store, folder, silent=SILENT)) as store:
        note_act(store, act, str(about), detail, operator())


@contextmanager
def changing_settings(study: Study) -> Iterator[None]:
    """Log what the block changes in study.toml as the operator's, and earlier edits as nobody's."""
    note_edits(study)
    yield
    note_edits(study, operator())


def note_edits(study: Study, done_by: str = "") -> None:
    """Log a change of study.toml since the last entry, if any, by `done_by` ("" if unknown)."""
    from evenhand.study.settings.study_toml import FILE_NAME
    from evenhand.study.store.logs.decisions import note_settings

    note_settings(study.store, (study.folder / FILE_NAME).read_text("utf-8-sig"), done_by)
