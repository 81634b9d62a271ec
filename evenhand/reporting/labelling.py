"""A study of the rows of a file or a table, with a link for each person who labels them."""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.reporting.new_study import (
    Ask,
    ItemStudy,
    StudyPreview,
    check_numbers,
    item_study,
    make_study,
    names_shown,
    preview_folder,
    preview_of,
    shown_texts,
)
from evenhand.reporting.noting import note
from evenhand.reporting.panel import Shown
from evenhand.reporting.ratings_file.declared import ItemOptions, LabelOptions
from evenhand.study import open_study
from evenhand.study.access.admission import make_invites
from evenhand.study.creation import StudyPlan
from evenhand.study.prompts.items import CONVERSATION_ID
from evenhand.study.settings.study_toml import FILE_NAME, read_config
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.panel import Line
    from evenhand.reporting.ratings_file.frames import Table
    from evenhand.study import Study
    from evenhand.study.prompts.items import Items


@dataclass(frozen=True, repr=False)
class Labelling(Shown):
    """A study to label: its folder, the `links` of those who do, and the `command` that serves the
    page behind them. `said` lists what was made of the items.
    """

    folder: Path
    links: Sequence[str]
    port: int
    said: Sequence[str] = ()

    @property
    def command(self) -> str:
        """The command that serves the page until it is stopped."""
        return join(["evenhand", "annotate", str(self.folder), "--port", str(self.port)])

    @property
    def notes(self) -> Sequence[str]:
        """What the columns were taken for, and what was made of the items."""
        return self.said

    @property
    def links_heading(self) -> str:
        """What the links are."""
        return written("items.links" if len(self.links) > 1 else "items.link")

    @property
    def reach(self) -> str:
        """A sentence on who can open the links."""
        return written("items.here_only")

    @property
    def lines(self) -> list[Line]:
        """The links, who can open them, and the command that serves their page."""
        served = written("items.served", command=self.command)
        return [self.links_heading, *self.links, self.reach, served]

    def serve(self) -> subprocess.Popen[bytes]:
        """Serve the page in a process of its own, which ends with this one or by `terminate()`."""
        words = ["annotate", str(self.folder), "--port", str(self.port)]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "evenhand", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(process.terminate)
        return process


def label_items(
    source: Path | Table,
    folder: Path,
    wanted: LabelOptions,
    *,
    port: int,
    address: str = "",
    ask: Ask | None = None,
) -> Labelling:
    """Make a study of the rows of a file or a table, or go on with the one that is there, and make
    a link for each rater that is good for a week, to `address` or to this machine's port.

    Raises InputError where the items are bad, where it is not said what to ask, or where the study
    that is there is of other items or asks something else.
    """
    leaves_out = ""
    if (folder / FILE_NAME).is_file():
        said = [written("items.goes_on", folder=folder), *_compared(source, folder, wanted, ask)]
    else:
        made, judged = _make(source, folder, wanted, ask)
        said = made.said(judged, folder, read_config(folder).sample.pairs)
        leaves_out = "show=" if wanted.in_python else "--show"
    with open_study(folder) as study:
        said += names_shown(study, leaves_out)
        places = study.config.annotation.raters_per_unit
        raters = [f"rater-{n}" for n in range(1, places + 1)]
        invites = make_invites(study, raters, hours=168.0)
        note(study, "invite", "", f"made: {len(raters)}")
    place = address or f"http://localhost:{port}/"
    links = [f"{place}?invite={each.token}" for each in invites]
    return Labelling(folder, links, port, said)


_TO_READ = ("--judge", "--missing", "--sheet", "--show", "--subject", "--cluster")
"""Options that may be given again without a question: they say how to read the file."""


def _compared(
    source: Path | Table, folder: Path, wanted: LabelOptions, ask: Ask | None
) -> list[str]:
    """Compare the study that is there with a file of items, and store the judge's labels that it
    lacks; return sentences on both.

    Raises InputError where something else is asked for, and, if it is named anew, where the items
    are others.
    """
    settled = f"is settled in {folder}, which is there already; leave it out, or name a new folder"
    options: ItemOptions = wanted
    is_named = bool(wanted.question or wanted.rubric)
    with open_study(folder) as study:
        if not is_named:
            for option in wanted.given:
                if option not in _TO_READ:
                    raise InputError(f"{option} {settled}")
            rubrics = [str(folder / RUBRICS_FOLDER / f"{name}.toml") for name in study.rubrics]
            in_turns = CONVERSATION_ID in study.store.pairs()
            options = replace(options, rubric=rubrics, each_turn=in_turns)
        try:
            made = item_study(source, options, ask)
        except InputError as fault:
            if is_named or options.judge:
                raise
            return [written("items.not_compared", reason=fault)]
        differs = _differences(study, made.items)
        if is_named:
            config = study.config
            rubrics_now = {rubric.hash for rubric in study.rubrics.values()}
            same = rubrics_now == {rubric.hash for rubric in made.rubrics}
            same &= wanted.sample in (None, config.sample.pairs) and wanted.seed == config.seed
            same &= wanted.raters in (None, config.annotation.raters_per_unit)
            if differs or not same:
                raise InputError(" ".join([f"what is asked for {settled}", *differs]))
        if added := 0 if differs else made.import_judge(study):
            differs.append(written("items.judged_now", count=added, rater=made.judge))
        return differs


def _differences(study: Study, items: Items) -> list[str]:
    """Sentences on items of a file that a study does not have, or has with another text."""
    texts: dict[str, set[str]] = {}
    for table in (items.pairs, items.responses):
        for item, *cells in table.itertuples(index=False):  # the id comes first in both
            texts.setdefault(str(item), set()).update(map(str, cells))
    present = set(study.store.pairs()["pair_id"])
    more = [item for item in texts if item not in present]
    changed = [
        item for item, _, text in shown_texts(study) if item in texts and text not in texts[item]
    ]
    return [
        written(f"items.{what}", count=len(set(ids)), first=ids[0])
        for what, ids in (("more", more), ("changed", changed))
        if ids
    ]


def _make(
    source: Path | Table, folder: Path, wanted: LabelOptions, ask: Ask | None = None
) -> tuple[ItemStudy, int]:
    """Make the study; return what it was made of, and how many labels a judge had given."""
    raters = 1 if wanted.raters is None else wanted.raters
    check_numbers(raters, wanted.seed)
    made = item_study(source, wanted, ask)
    plan = StudyPlan(
        items=made.items,
        rubrics=made.rubrics,
        sample=wanted.sample,
        stratify=wanted.stratify,
        seed=wanted.seed,
        raters_per_unit=raters,
    )
    return made, make_study(folder, plan, made)


def preview_items(source: Path, wanted: LabelOptions) -> tuple[StudyPreview, list[str]]:
    """Return the preview of a study of items that is made only for it, and then removed, and what
    the columns were taken for. Raises InputError where it could not be made.
    """
    with preview_folder() as folder:
        return create_items(folder, source, wanted)


def create_items(
    folder: Path, source: Path, wanted: LabelOptions
) -> tuple[StudyPreview, list[str]]:
    """Make a study of items; return its preview, and what the columns were taken for. Raises
    InputError, with nothing written, where the file is bad.
    """
    made, _ = _make(source, folder, wanted)
    with open_study(folder) as study:
        return preview_of(study), made.as_read
