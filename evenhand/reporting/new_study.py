"""Preview of a study that is not made yet: the work it would mean, and what it could decide."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.reporting.names_shown import names_shown
from evenhand.reporting.noting import note, note_edits, operator
from evenhand.study.settings.session import STUDY_NAME
from evenhand.study.tables.files import scratch_folder
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.item_study import ItemStudy
    from evenhand.study import Study
    from evenhand.study.creation import StudyPlan
    from evenhand.study.lead.progress import Workload

_MOST_HUMANS = 100
"""More raters of a unit hardly narrow an interval, and time grows with their square."""


def check_numbers(raters: int, seed: int) -> None:
    """Raise InputError for a number of annotators or a seed that a new study cannot have."""
    from evenhand.study.settings.session import MOST_RATERS

    if not 1 <= raters <= MOST_RATERS:
        raise InputError(f"--raters must be 1 to {MOST_RATERS:,}, not {raters:,}")
    if seed < 0:
        raise InputError("--seed must be 0 or more")


@dataclass(frozen=True)
class StudyPreview:
    """The number of prompts sampled and in all, the noun for them, the work for people, sentences
    on what the sample can decide, how responses are shown (empty where there are none yet), and
    names that annotators would see.
    """

    sampled: int
    total: int
    noun: str
    load: Workload
    precision: tuple[str, ...]
    display: str
    names: tuple[str, ...]


def make_study(folder: Path, plan: StudyPlan, items: ItemStudy | None = None) -> int:
    """Make a study, with the first entries of its log and the labels of the judge of its `items`;
    it appears whole or not at all. Return the number of these labels.
    """
    from evenhand.study import create_study

    judged = 0

    def complete(study: Study) -> None:
        nonlocal judged
        note(study, "study", Path(folder).name)
        note_edits(study, operator())
        judged = items.import_judge(study) if items else 0

    create_study(folder, plan, complete)
    return judged


def preview_of(study: Study) -> StudyPreview:
    """Return the preview of a study, as printed by `evenhand new`."""
    from evenhand.analysis.planning.pass_chance import study_precision
    from evenhand.study.lead.progress import workload
    from evenhand.study.prompts.items import ITEM_ID
    from evenhand.study.prompts.pairs import cluster_noun, prompts_noun

    pairs = study.store.pairs()
    sampled = pairs[pairs["sample_position"].notna()]
    cluster = study.config.analysis.cluster
    clustered = cluster in sampled  # prompts on one thing resemble one another
    noun = prompts_noun(pairs)
    answered = len(study.config.annotation.subjects or study.subjects()) or 1
    precision = study_precision(
        pairs=sampled[cluster].nunique() if clustered else len(sampled),
        subjects=1 if noun == "items" else answered,  # an item is one subject's answer
        humans=min(study.config.annotation.raters_per_unit, _MOST_HUMANS),
        margin=study.config.analysis.margin,
        rule=study.config.decision,
        noun=cluster_noun(pairs, cluster),
    )
    return StudyPreview(
        len(sampled),
        len(pairs),
        noun,
        workload(study),
        tuple(precision),
        display_of(study),
        tuple(names_shown(study, "--show" if ITEM_ID in pairs else "")),
    )


def display_of(study: Study) -> str:
    """Return a sentence on how responses are shown, and on the share of them written in
    Markdown.
    """
    from evenhand.study.prompts.pairs import markdown_share

    texts = study.store.responses()["response"]
    if texts.empty:
        return ""
    share = round(100 * markdown_share(texts))
    if study.config.annotation.display == "markdown":
        return written("display.markdown", share=share)
    return written("display.text", share=share)


def preview_plan(plan: StudyPlan) -> StudyPreview:
    """Return the preview of a study that is made only for it, and then removed.

    Raises InputError where it could not be made.
    """
    with preview_folder() as folder:
        return create_and_preview(folder, plan)


@contextmanager
def preview_folder() -> Iterator[Path]:
    """A place for a study that is made only for its preview."""
    with scratch_folder(Path(tempfile.gettempdir()), "evenhand-new-") as home:
        yield home / "study"


def folder_beside(present: Path, name: str) -> Path:
    """Return the folder `name` next to that of the `present` study, where a new one may be made.

    Raises InputError where the name is not a plain one, the folder exists, or its parent cannot be
    written.
    """
    if not STUDY_NAME.fullmatch(name):
        raise InputError(
            "a study's name is 1 to 64 letters, digits, hyphens or underscores, and begins with a "
            "letter or digit"
        )
    folder = present.resolve().parent / name
    if folder.exists() or folder.is_symlink():  # also a link that leads nowhere
        raise InputError(f"there is a folder {name!r} beside this study already; choose another")
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        raise InputError("nothing can be written beside this study; make the new one elsewhere")
    return folder


def create_and_preview(folder: Path, plan: StudyPlan) -> StudyPreview:
    """Make a study, and return its preview. Raises InputError, with nothing written, where a file
    is bad.
    """
    from evenhand.study import open_study

    make_study(folder, plan)
    with open_study(folder) as study:
        return preview_of(study)
