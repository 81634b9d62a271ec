"""Making a study: it appears whole or not at all. `extension` enlarges its sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evenhand.errors import InputError
from evenhand.rubrics import Rubric, dump_rubric, load_rubric, shipped_rubrics
from evenhand.study.prompts.items import Items
from evenhand.study.prompts.pairs import (
    CLUSTER,
    STATEMENT,
    VARIANTS,
    are_comparisons,
    read_pairs,
    read_propositions,
    sides_of,
)
from evenhand.study.prompts.responses import MARKDOWN_FROM, markdown_share, read_responses
from evenhand.study.prompts.sampling import DEFAULT_STRATA, draw_sample
from evenhand.study.prompts.units import presented_values
from evenhand.study.settings.analysis import AnalysisSettings
from evenhand.study.settings.annotation import AnnotationSettings, SampleSettings
from evenhand.study.settings.study_toml import (
    FILE_NAME,
    StudyConfig,
    new_config_text,
)
from evenhand.study.store.store import Store
from evenhand.study.tables.atomic import atomic_write
from evenhand.study.tables.private import new_folder as private_folder
from evenhand.study.tables.scratch import scratch_folder
from evenhand.study.workspace import RUBRICS_FOLDER, Study, check_wordings, rubrics_in_step

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """The contents of a new study: paired prompts, propositions (see `study.prompts.pairs`), or
    items (see `study.prompts.items`).

    `stratify` None means the usual columns, as far as they exist; `sample` None means the usual
    250, or all pairs where there are fewer.
    """

    rubrics: Sequence[Rubric]
    pairs: Path | None = None
    propositions: Path | None = None
    items: Items | None = None
    wordings: Path | None = None
    repeats: int = 1
    crossed: bool = True
    """False: paraphrases of a proposition are put in the first wording alone."""
    responses: Path | None = None
    sample: int | None = None
    stratify: Sequence[str] | None = None
    seed: int = 1
    raters_per_unit: int = 3
    synthetic: bool = False
    store: str = "study.db"
    name: str = ""
    """Shown in the report; the folder's name if empty."""

    def read_prompts(self) -> pd.DataFrame:
        """The prompts. Raises InputError where a file is bad or not exactly one kind is named."""
        if self.items is not None and self.pairs is None and self.propositions is None:
            return self.items.pairs
        if self.pairs is not None and self.propositions is None:
            if self.wordings is not None or self.repeats != 1:
                raise InputError("wordings and repeats go with propositions, not with pairs")
            return read_pairs(self.pairs, self.rubrics)
        if self.propositions is not None and self.pairs is None:
            return read_propositions(
                self.propositions,
                self.wordings,
                self.repeats,
                crossed=self.crossed,
                rubrics=self.rubrics,
            )
        raise InputError(
            "a study is made of paired prompts (--pairs FILE), of propositions "
            "(--propositions FILE) or of items (--items FILE): name one of them"
        )


USUAL_SAMPLE = 250


def usual_rubrics(*, propositions: bool) -> list[Rubric]:
    """The shipped rubrics for a kind of study: those on a statement, or those without one."""
    shipped = [load_rubric(name) for name in shipped_rubrics()]
    return [rubric for rubric in shipped if (STATEMENT in rubric.variables) == propositions]


def create_study(
    folder: str | Path, plan: StudyPlan, complete: Callable[[Study], None] | None = None
) -> None:
    """Make a study folder: settings, the study's own copies of the rubrics, and the store. What
    `complete` adds to the study, such as a judge's labels, is in it when it appears.

    Raises InputError, with nothing written, where the folder is taken or an input file is bad.
    """
    folder = new_folder(folder)
    _check_rubrics(plan.rubrics)
    pairs = plan.read_prompts()
    _check_fit(plan.rubrics, pairs)
    responses = None
    if plan.responses:
        responses = read_responses(plan.responses, pairs, plan.rubrics)
    cluster = CLUSTER if CLUSTER in pairs else ""
    if plan.items is not None:
        responses, cluster = plan.items.responses, plan.items.cluster
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
            rubrics=tuple(each.name for each in plan.rubrics if not each.variant_of),
            raters_per_unit=plan.raters_per_unit,
            display=_display(responses),
        ),
        analysis=_analysis_settings(pairs, strata, cluster),
    )
    with built_whole(folder) as building:
        atomic_write(building / FILE_NAME, new_config_text(config).encode())
        private_folder(building / RUBRICS_FOLDER)
        for rubric in plan.rubrics:
            path = building / RUBRICS_FOLDER / f"{rubric.name}.toml"
            atomic_write(path, dump_rubric(rubric).encode())
        store = Store.connect(config.store, building, create=True)
        with closing(store), store.write(bounded=False):  # all in one, also on a server
            store.create_tables()
            store.add_pairs(pairs, sample)
            if responses is not None:
                store.add_responses(responses)
            if complete is not None:
                complete(Study(building, config, rubrics_in_step(building, config), store))


def _display(responses: pd.DataFrame | None) -> Literal["text", "markdown"]:
    """Return how responses are shown. Raters see what users see: Markdown is rendered where most
    responses are written in it.
    """
    share = 0.0 if responses is None else markdown_share(responses["response"])
    return "markdown" if share >= MARKDOWN_FROM else "text"


def _analysis_settings(
    pairs: pd.DataFrame, strata: tuple[str, ...], cluster: str
) -> AnalysisSettings:
    """Slices by the strata; the prompts on one proposition are one cluster, and its variants."""
    if not cluster:
        return AnalysisSettings(slices=strata)
    slices = tuple(column for column in strata if column != cluster)
    variants = VARIANTS if cluster == CLUSTER else ()
    varied = tuple(column for column in variants if pairs[column].nunique() > 1)
    return AnalysisSettings(slices=slices, cluster=cluster, variants=varied)


def _check_rubrics(rubrics: Sequence[Rubric]) -> None:
    names = [rubric.name for rubric in rubrics]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two rubrics are called {name!r}; a study needs each name once")
    check_wordings({rubric.name: rubric for rubric in rubrics})


def _check_fit(rubrics: Sequence[Rubric], prompts: pd.DataFrame) -> None:
    """Raises InputError for a rubric that shows what these prompts do not have."""
    cells = {str(name): cell for name, cell in prompts.iloc[0].items()}
    sides = sides_of(prompts)
    for rubric in rubrics:
        if rubric.has_sides and len(sides) == 1:
            raise InputError(
                f"rubric {rubric.name!r} is on {rubric.unit}s, and these prompts are not paired"
            )
        if (rubric.unit == "comparison") != are_comparisons(prompts):
            raise InputError(
                f"rubric {rubric.name!r} is on {rubric.unit}s; two answers to one prompt, and "
                "nothing else, are rated by one on comparisons, such as preference"
            )
        unit = (cells["pair_id"], "", "a" if rubric.unit == "response" else "")
        values = presented_values(rubric, unit, "ab", cells, dict.fromkeys(sides, ""))
        if missing := [name for name in rubric.variables if name not in values]:
            raise InputError(
                f"rubric {rubric.name!r} needs {missing[0]!r}, which the prompts do not have; add "
                "that column to their file or leave the rubric out"
            )


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
    with scratch_folder(folder.parent, f".{folder.name}.") as building:
        yield building
        os.replace(building, folder)
