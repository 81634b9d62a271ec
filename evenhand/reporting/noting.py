"""Note acts of the command line in a study's log of its leads' acts, and changes of study.toml."""

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
    """Return the process's owner, who runs the command line, whatever USER is set to."""
    from evenhand.study.tables.files import process_owner

    return written("terminal.operator", name=process_owner())


def note(study: Study, act: Act, about: str | Path = "", detail: str = "") -> None:
    """Append an act to an open study's log; `about` names its object."""
    from evenhand.study.store.logs.decisions import note_act

    note_act(study.store, act, str(about), detail, operator())


def note_in(folder: Path, act: Act, about: str | Path = "", detail: str = "") -> None:
    """Note an act in the log of the study in a folder, whose store may have an older schema."""
    from evenhand.study.settings.study_toml import read_config
    from evenhand.study.store.database import SILENT, Database
    from evenhand.study.store.logs.decisions import note_act

    with closing(Database.connect(read_config(folder).store, folder, silent=SILENT)) as store:
        note_act(store, act, str(about), detail, operator())


@contextmanager
def changing_settings(study: Study) -> Iterator[None]:
    """Log changes of study.toml in the block as the operator's; edits before it have no author."""
    note_edits(study)
    yield
    note_edits(study, operator())


def note_edits(study: Study, done_by: str = "") -> None:
    """Log that study.toml has changed, if it has; `done_by` is the author, "" if not known."""
    from evenhand.study.settings.study_toml import FILE_NAME
    from evenhand.study.store.logs.decisions import note_settings

    note_settings(study.store, (study.folder / FILE_NAME).read_text("utf-8-sig"), done_by)
