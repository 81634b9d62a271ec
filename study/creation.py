"""Making a study and enlarging it. A study appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rubrics import Rubric, dump_rubric
from rubrics.errors import InputError
from study.config import (
    FILE_NAME,
    AnalysisSettings,
    AnnotationSettings,
    SampleSettings,
    StudyConfig,
    change_config,
    new_config_text,
)
from study.files import atomic_write
from study.pairs import read_pairs, read_responses
from study.sampling import DEFAULT_STRATA, draw_sample
from study.store import Store
from study.workspace import RUBRICS_FOLDER, Study

__all__ = ["StudyPlan", "built_whole", "create_study", "extend_sample", "new_folder"]


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """What a new study is made of. `stratify` None means the usual columns, as far as they exist;
    `sample` None means the usual 250, or all pairs where there are fewer.
    """

    pairs: Path
    rubrics: Sequence[Rubric]
    responses: Path | None = None
    sample: int | None = None
    stratify: Sequence[str] | None = None
    seed: int = 1
    raters_per_unit: int = 3
    synthetic: bool = False
    store: str = "study.db"
    name: str = ""
    """Shown in the report; the folder's name if empty."""


USUAL_SAMPLE = 250


def create_study(folder: str | Path, plan: StudyPlan) -> None:
    """Make a study folder: settings, the study's own copies of the rubrics, and the store.

    Raises InputError, with nothing written, where the folder is taken or an input file is bad.
    """
    folder = new_folder(folder)
    _check_rubrics(plan.rubrics)
    pairs = read_pairs(plan.pairs)
    responses = read_responses(plan.responses, pairs) if plan.responses else None
    strata = tuple(
        plan.stratify
        if plan.stratify is not None
        else (column for column in DEFAULT_STRATA if column in pairs)
    )
    size = plan.sample if plan.sample is not None else min(USUAL_SAMPLE, len(pairs))
    sample = draw_sample(pairs, size, strata, plan.seed)
    config = StudyConfig(
        name=plan.name or folder.name,
        seed=plan.seed,
        synthetic=plan.synthetic,
        store=plan.store,
        sample=SampleSettings(pairs=size, stratify=strata),
        annotation=AnnotationSettings(
            rubrics=tuple(rubric.name for rubric in plan.rubrics),
            raters_per_unit=plan.raters_per_unit,
        ),
        analysis=AnalysisSettings(slices=strata),
    )
    with built_whole(folder) as building:
        atomic_write(building / FILE_NAME, new_config_text(config).encode())
        (building / RUBRICS_FOLDER).mkdir()
        for rubric in plan.rubrics:
            path = building / RUBRICS_FOLDER / f"{rubric.name}.toml"
            atomic_write(path, dump_rubric(rubric).encode())
        store = Store.open(config.store, building, create=True)
        try:
            store.add_pairs(pairs, sample)
            if responses is not None:
                store.add_responses(responses)
        finally:
            store.close()


def _check_rubrics(rubrics: Sequence[Rubric]) -> None:
    names = [rubric.name for rubric in rubrics]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two rubrics are called {name!r}; a study needs each name once")


def new_folder(folder: str | Path) -> Path:
    """The absolute path of a folder that may be made. Raises InputError where it is taken."""
    folder = Path(folder).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty; name a new folder")
    if not folder.parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}; make it first")
    return folder


@contextmanager
def built_whole(folder: Path) -> Iterator[Path]:
    """A folder to build in, moved to its place in one step at the end, or gone after an error."""
    building = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    building.mkdir()
    try:
        yield building
        os.replace(building, folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def extend_sample(study: Study, more: int) -> int:
    """Take `more` further pairs into the sample, keeping those in it; returns the new size."""
    if more < 1:
        raise InputError(f"the number of pairs to add must be 1 or more, not {more}")
    pairs = study.store.pairs()
    sample = study.store.sample()
    left = len(pairs) - len(sample)
    if more > left:
        raise InputError(
            f"{more} pairs cannot be added: the study has {len(pairs)} pairs, {len(sample)} of "
            f"them sampled, so {left} are left"
        )
    size = len(sample) + more
    larger = draw_sample(pairs, size, study.config.sample.stratify, study.config.seed, sample)
    study.store.extend_sample(sample, larger[len(sample) :])
    change_config(study.folder, {"sample": {"pairs": size}})
    return size
