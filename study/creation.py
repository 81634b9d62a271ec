"""Creation and enlargement of studies. A study's sample is of pairs: two opposing prompts, or one
prompt alone. A unit is what gets a label: a pair of responses, or a response. In this order: a new
study, made as a whole or not at all; designs of published studies; more pairs for the sample, by
chance or by graders' uncertainty; and trials of another wording of a rubric.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from evenhand.errors import InputError
from evenhand.lazy import np, pd
from evenhand.rubrics import Rubric, dump_rubric, load_rubric, named_rubrics, shipped_rubrics
from evenhand.study.prompts import pairs as prompt_files
from evenhand.study.prompts import sampling
from evenhand.study.prompts.items import Items
from evenhand.study.prompts.units import Key, has_known_answer, parse_unit_id, presented_values
from evenhand.study.settings import analysis, study_toml
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, shipped_studies
from evenhand.study.settings.sections import PositiveInt, Section, Share, parsed
from evenhand.study.store.logs.decisions import WAVES, note_act
from evenhand.study.store.schema import claims, labels, lead_events
from evenhand.study.store.store import Store
from evenhand.study.tables.files import atomic_write, new_folder
from evenhand.study.trust import inside
from evenhand.study.workspace import RUBRICS_FOLDER, Study, check_wordings, checked_rubrics
from evenhand.texts import written

# ---- a new study --------------------------------------------------------------------------------
USUAL_SAMPLE = 250  # default number of pairs in the sample


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """The contents of a new study: paired prompts, propositions (see `study.prompts.pairs`), or
    items (see `study.prompts.items`). `wordings` of prompts and `repeats` go with propositions.
    `stratify` None means the `DEFAULT_STRATA` that exist; `sample` None, `USUAL_SAMPLE` at most.
    """

    rubrics: Sequence[Rubric]
    pairs: Path | None = None
    propositions: Path | None = None
    items: Items | None = None
    wordings: Path | None = None
    repeats: int = 1
    crossed: bool = True  # False: further paraphrases are used in the first wording alone
    responses: Path | None = None
    sample: int | None = None
    stratify: Sequence[str] | None = None
    seed: int = 1
    raters_per_unit: int = 3
    synthetic: bool = False
    store: str = "study.db"
    name: str = ""  # shown in the report; the folder's name if empty
    settings: study_toml.Changes = field(default_factory=dict)  # changed values of study.toml

    def read_prompts(self) -> pd.DataFrame:
        """Return the prompts. Raises InputError for a bad file, or not exactly one kind."""
        if self.items is not None and self.pairs is None and self.propositions is None:
            return self.items.pairs
        if self.pairs is not None and self.propositions is None:
            if self.wordings is not None or self.repeats != 1:
                raise InputError("wordings and repeats go with propositions, not with pairs")
            return prompt_files.read_pairs(self.pairs, self.rubrics)
        if self.propositions is not None and self.pairs is None:
            return prompt_files.read_propositions(
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


def usual_rubrics(*, propositions: bool) -> list[Rubric]:
    """Return the shipped rubrics for a kind of study: those on a statement, or all others."""
    shipped = [load_rubric(name) for name in shipped_rubrics()]
    statement = prompt_files.STATEMENT
    return [rubric for rubric in shipped if (statement in rubric.variables) == propositions]


def create_study(
    folder: str | Path, plan: StudyPlan, complete: Callable[[Study], None] | None = None
) -> None:
    """Create a study folder: settings, copies of the rubrics, and the store. `complete` may add to
    the new study, such as a grader's labels, before its folder appears. Raises InputError, with
    nothing written, where the folder is not empty or an input file is bad.
    """
    folder = unused_folder(folder)
    names = [rubric.name for rubric in plan.rubrics]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two rubrics are called {name!r}; a study needs each name once")
    check_wordings(dict(zip(names, plan.rubrics, strict=True)))
    pairs = plan.read_prompts()
    _check_fit(plan.rubrics, pairs)
    responses = None
    if plan.responses:
        responses = prompt_files.read_responses(plan.responses, pairs, plan.rubrics)
    if plan.items is not None:
        responses = plan.items.responses

    default_strata = (column for column in sampling.DEFAULT_STRATA if column in pairs)
    strata = tuple(default_strata if plan.stratify is None else plan.stratify)
    sample_size = plan.sample if plan.sample is not None else min(USUAL_SAMPLE, len(pairs))
    sample = sampling.draw_sample(pairs, sample_size, strata, plan.seed)
    config = _first_settings(folder.name, plan, pairs, responses, len(sample), strata)

    with built_whole(folder) as temporary:
        text = study_toml.changed_text(study_toml.new_config_text(config), plan.settings)
        atomic_write(temporary / study_toml.FILE_NAME, text.encode())
        config = study_toml.read_config(temporary)  # with the changed values
        new_folder(temporary / RUBRICS_FOLDER)
        for rubric in plan.rubrics:
            path = temporary / RUBRICS_FOLDER / f"{rubric.name}.toml"
            atomic_write(path, dump_rubric(rubric).encode())
        store = Store.connect(config.store, temporary, create=True)
        with closing(store), store.write(bounded=False):  # one transaction, also on a server
            store.create_tables()
            store.add_pairs(pairs, sample)
            if responses is not None:
                store.add_responses(responses)
            if complete is not None:
                complete(Study(temporary, config, checked_rubrics(temporary, config), store))


def _first_settings(
    folder_name: str,
    plan: StudyPlan,
    pairs: pd.DataFrame,
    responses: pd.DataFrame | None,
    sample_size: int,
    strata: tuple[str, ...],
) -> study_toml.StudyConfig:
    """Return the settings of a new study, before the plan's changes of single values."""
    cluster = prompt_files.CLUSTER if prompt_files.CLUSTER in pairs else ""
    if plan.items is not None:
        cluster = plan.items.cluster
    # The prompts on one proposition are the variants of one cluster.
    variants = prompt_files.VARIANTS if cluster == prompt_files.CLUSTER else ()
    texts = () if responses is None else responses["response"]
    is_markdown = prompt_files.markdown_share(texts) >= prompt_files.MARKDOWN_FROM
    return study_toml.StudyConfig(
        name=plan.name or folder_name,
        seed=plan.seed,
        synthetic=plan.synthetic,
        store=plan.store,
        sample=study_toml.SampleSettings(pairs=sample_size, stratify=strata),
        annotation=study_toml.AnnotationSettings(
            rubrics=tuple(rubric.name for rubric in plan.rubrics if not rubric.variant_of),
            raters_per_unit=plan.raters_per_unit,
            # Annotators see responses as users do: rendered where most are in Markdown.
            display="markdown" if is_markdown else "text",
        ),
        analysis=AnalysisSettings(
            slices=tuple(column for column in strata if column != cluster),
            cluster=cluster or "pair",
            variants=tuple(key for key in variants if key in pairs and pairs[key].nunique() > 1),
        ),
    )


# ---- published studies --------------------------------------------------------------------------
# Each is a folder of data: `design.toml`, `published.toml` with its figures and their source, and
# the files that the design names.
DESIGN, FIGURES = "design.toml", "published.toml"
_MAX_BYTES, _MAX_PROMPTS_BYTES = 1_000_000, 50_000_000  # of a file, which may come from anyone


class DesignSettings(Section):
    """Sections of study.toml that a design may set: none names a file, variable or host."""

    annotation: study_toml.AnnotationSettings = study_toml.AnnotationSettings()
    background: study_toml.BackgroundSettings | None = None
    analysis: AnalysisSettings = AnalysisSettings()
    decision: DecisionSettings = DecisionSettings()
    thresholds: dict[str, dict[str, Share]] = Field(default_factory=dict)


class StudyDesign(Section):
    """The design of a published study: its prompts, in `file` if they are included, its rubrics, by
    name or file, and the defaults of `evenhand reproduce`.
    """

    prompts: Literal["pairs", "propositions"]
    file: str = ""
    rubrics: tuple[str, ...] = Field(min_length=1)
    sample: PositiveInt
    scope: Literal["sample", "all"] = "sample"  # pairs that graders label
    repeats: int = Field(default=1, ge=1, le=1_000)
    wordings: str = ""
    settings: DesignSettings = DesignSettings()


@dataclass(frozen=True)
class PublishedStudy:
    """A published study: its `folder`, its design, and its figures with their source."""

    folder: Path
    design: StudyDesign
    figures: analysis.PublishedFigures

    @classmethod
    def read(cls, name_or_folder: str) -> PublishedStudy:
        """Read a study by its name or folder. Raises InputError for a missing or bad file."""
        folder = shipped_studies().get(name_or_folder, Path(name_or_folder))
        if not (folder / DESIGN).is_file():
            shipped = ", ".join(shipped_studies())
            raise InputError(written("reproduce.no_study", named=name_or_folder, known=shipped))
        design = parsed(StudyDesign, checked_file(folder, DESIGN).read_bytes(), DESIGN)
        figures = analysis.read_published(checked_file(folder, FIGURES).name, folder)
        return cls(folder, design, figures)

    @property
    def name(self) -> str:
        """Name of the study's folder."""
        return self.folder.resolve().name

    @property
    def summary_line(self) -> str:
        """Name, title, citation, licence and source, in one line."""
        fields = self.figures.model_dump(include={"title", "citation", "licence", "source"})
        return written("reproduce.listed", name=self.name, **fields)

    @property
    def figures_file(self) -> str:
        """Value of `published` in study.toml: a shipped study's name, or a file in the folder."""
        return self.name if self.folder in shipped_studies().values() else FIGURES

    def prompts(self, **files: Path | None) -> Path:
        """Return the file of prompts: the user's (`files` by kind of prompts) or the included one.
        Raises InputError where there is none, or the user's is of another kind than the study's.
        """
        kind, included_file = self.design.prompts, self.design.file
        path = files.pop(kind)
        if path is None and included_file:
            path = checked_file(self.folder, included_file, _MAX_PROMPTS_BYTES)
        if path is None or any(files.values()):  # a file of another kind
            fields = {"name": self.name, "kind": kind, "source": self.figures.source or "?"}
            raise InputError(written("reproduce.prompts", **fields))
        return path

    def plan(self, prompts: Path, wordings: Path | None, **changes: Any) -> StudyPlan:
        """Return the plan of a replication on these prompts, with the published design. `changes`
        are other fields of the plan. Political leanings are left out if most prompts have none.
        """
        design = self.design
        settings = design.settings.model_dump(mode="json", exclude_unset=True)
        settings.get("annotation", {}).pop("raters_per_unit", None)  # it is a field of the plan
        settings[""] = {"published": self.figures_file}  # "": above all sections of study.toml
        if design.wordings and wordings is None:
            wordings = checked_file(self.folder, design.wordings)
        shipped = named_rubrics()
        rubrics = [
            load_rubric(name if name in shipped else checked_file(self.folder, name))
            for name in design.rubrics
        ]
        options: dict[str, Any] = {design.prompts: prompts, "settings": settings, **changes}
        plan = StudyPlan(rubrics=rubrics, wordings=wordings, crossed=False, **options)
        prompts_table = plan.read_prompts()
        has_groups = {*analysis.GROUP_COLUMNS} <= {*prompts_table}
        bias = design.settings.analysis
        leaning_share = bias.orientation(prompts_table).astype(bool).mean() if has_groups else 0
        if bias.leanings and leaning_share < 0.5:
            del settings["analysis"]["leanings"]
        default_size = min(design.sample, len(prompts_table))
        return replace(plan, sample=default_size if plan.sample is None else plan.sample)


def checked_file(folder: Path, name: str, max_bytes: int = _MAX_BYTES) -> Path:
    """Return a published study's file. Raises InputError if it is outside, absent or too large."""
    path = inside(folder, name, key="it", file=DESIGN)  # its message is "design.toml: it names ..."
    if not path.is_file() or path.stat().st_size > max_bytes:
        raise InputError(written("reproduce.no_file", file=path, most=max_bytes))
    return path


def _check_fit(rubrics: Sequence[Rubric], prompts: pd.DataFrame) -> None:
    """Raise InputError for a rubric that shows a text which these prompts do not have."""
    cells = {str(name): cell for name, cell in prompts.iloc[0].items()}
    sides = prompt_files.sides_of(prompts)
    for rubric in rubrics:
        if rubric.has_sides and len(sides) == 1:
            raise InputError(
                f"rubric {rubric.name!r} is on {rubric.unit}s, and these prompts are not paired"
            )
        if (rubric.unit == "comparison") != prompt_files.are_comparisons(prompts):
            raise InputError(
                f"rubric {rubric.name!r} is on {rubric.unit}s; two answers to one prompt, and "
                "nothing else, are rated by one on comparisons, such as preference"
            )
        side = "a" if rubric.unit == "response" else ""
        unit = (cells["pair_id"], "", side)  # without a subject yet
        values = presented_values(rubric, unit, "ab", cells, dict.fromkeys(sides, ""))
        if missing := [name for name in rubric.variables if name not in values]:
            raise InputError(
                f"rubric {rubric.name!r} needs {missing[0]!r}, which the prompts do not have; add "
                "that column to their file or leave the rubric out"
            )


def unused_folder(folder: str | Path) -> Path:
    """Return the absolute path of a new or empty folder. Raises InputError for any other."""
    folder = Path(folder).absolute()
    if folder.name.encode(errors="ignore").decode() != folder.name:
        raise InputError(f"the name of {folder} is not UTF-8 text; name another folder")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty; name a new folder")
    if not folder.parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}; make it first")
    return folder


@contextmanager
def built_whole(folder: Path) -> Iterator[Path]:
    """Yield a folder to build in; it is moved to `folder` in one step, or deleted on an error."""
    with TemporaryDirectory(
        dir=folder.parent, prefix=f".{folder.name}.", ignore_cleanup_errors=True
    ) as building:
        yield Path(building)
        os.replace(building, folder)


# ---- more pairs for the sample ------------------------------------------------------------------
# By chance, or by uncertainty, where graders differ or are unsure. Pairs are picked by grades
# alone, never by annotators' labels. A sample of hard pairs would bias every figure; so each pair's
# probability of being picked is kept for each wave of added pairs (`study.store.logs.decisions`),
# and every estimate is weighted by it (`analysis.labels.matrix`).
PickedBy = Literal["chance", "uncertainty"]


def extend_sample(study: Study, more: int, by: PickedBy = "chance", old: Sequence[str] = ()) -> int:
    """Add `more` pairs to the sample, keeping those in it; return the new size. By uncertainty, one
    or two pairs more or fewer may be added. Raises InputError where fewer than `more` pairs are
    left, no grades show where graders are unsure, or the sample is not the `old` one any more.
    """
    if more < 1:
        raise InputError(f"the number of pairs to add must be 1 or more, not {more}")
    pairs = study.store.pairs()
    sample = list(old) or study.store.sample()
    if more > (n_left := len(pairs) - len(sample)):
        raise InputError(
            f"{more} pairs cannot be added: the study has {len(pairs)} pairs, {len(sample)} of "
            f"them sampled, so {n_left} are left"
        )
    if by == "uncertainty" or WAVES.all(study.store):  # probabilities are unequal, so logged
        new_waves = _further_waves(study, pairs, sample, more, by)
        study.store.extend_sample(sample, new_waves[-1].taken, [asdict(wave) for wave in new_waves])
        size = len(sample) + len(new_waves[-1].taken)
    else:
        strata, seed = study.config.sample.stratify, study.config.seed
        new_sample = sampling.draw_sample(pairs, len(sample) + more, strata, seed, already=sample)
        size = len(new_sample)
        study.store.extend_sample(sample, new_sample[len(sample) :])
    study_toml.change_config(study.folder, {"sample": {"pairs": size}})
    return size


def _further_waves(
    study: Study, pairs: pd.DataFrame, sample: list[str], more: int, by: PickedBy
) -> list[sampling.Wave]:
    """Return the wave that adds about `more` pairs to the sample; before the first wave by
    uncertainty, also a wave by chance for the pairs that are in the sample already.
    """
    all_pairs, sampled, waves = pairs["pair_id"].tolist(), set(sample), WAVES.all(study.store)
    if by == "chance":
        unsampled = pairs[~pairs["pair_id"].isin(sampled)].reset_index(drop=True)
        strata, seed = study.config.sample.stratify, study.config.seed
        equal_chances = dict.fromkeys(all_pairs, more / len(unsampled))
        new_pairs = sampling.draw_sample(unsampled, more, strata, seed)
        return [sampling.Wave(by=by, chances=equal_chances, taken=new_pairs)]
    equal_chances = dict.fromkeys(all_pairs, len(sample) / len(all_pairs))
    first_wave = [] if waves else [sampling.Wave(by="chance", chances=equal_chances, taken=sample)]
    before = sampling.inclusion([*waves, *first_wave])
    chances = sampling.chances_for(uncertainty(study), before, more)
    seed = sampling.seeded_number(study.config.seed, 2**32, "uncertainty", str(len(sample)))
    unsampled_chances = {pair: chance for pair, chance in chances.items() if pair not in sampled}
    new_pairs = sampling.draw_pairs(unsampled_chances, np.random.default_rng(seed))
    return [*first_wave, sampling.Wave(by=by, chances=chances, taken=new_pairs)]


def uncertainty(study: Study) -> dict[str, float]:
    """Return each pair's uncertainty from 0 to 1: how much its graders disagree or are unsure. For
    a unit it is the probability that two graders' labels differ, as a share of the largest possible
    one. An answer with probabilities counts as a draw from them, an unreadable one as a draw from
    all categories with equal probability. For a pair it is the mean over its units and the rubrics
    that annotators label. A grader counts on the rubrics on which it has graded every pair. Pairs
    without responses are left out. Raises InputError where no grader has graded every pair on any
    rubric, or where all graders agree and are sure everywhere.
    """
    if study.config.analysis.cluster not in ("pair", "unit"):
        raise InputError(
            f"picking by uncertainty needs pairs as clusters, and study.toml has analysis.cluster "
            f"= {study.config.analysis.cluster!r}; leave --by out"
        )
    ratings, subjects = study.ratings(), study.config.annotation.subjects
    graded = ratings[ratings["rater_kind"] == "model"]
    totals: dict[str, float] = {}
    counts: dict[str, int] = {}
    for rubric in study.labelled_rubrics():
        units = study.rubric_units(rubric, "all")
        units = [unit for unit in units if not subjects or parse_unit_id(unit).subject in subjects]
        grades = graded[(graded["rubric"] == rubric.name) & graded["unit_id"].isin(units)]
        n_units = grades.groupby("rater_id")["unit_id"].nunique()
        grades = grades[grades["rater_id"].map(n_units) == len(units)]
        thresholds = study.config.thresholds.get(rubric.name, {})
        for unit, disagreement in _unit_disagreement(grades, rubric, thresholds):
            pair = parse_unit_id(unit).pair_id
            totals[pair] = totals.get(pair, 0.0) + disagreement
            counts[pair] = counts.get(pair, 0) + 1
    if not totals:
        raise InputError(
            "no grader has graded all pairs on a rubric that annotators label, so nothing tells "
            "where graders differ; first run "
            f"`evenhand grade {study.folder} --scope all --grader ...`"
        )
    if not any(totals.values()):
        raise InputError(
            "all grades are alike and sure, so nothing tells where graders differ; grade all pairs "
            "with a further grader, or with one that gives probabilities"
        )
    return {pair: totals[pair] / counts[pair] for pair in totals}


def _unit_disagreement(
    grades: pd.DataFrame, rubric: Rubric, thresholds: Mapping[str, float]
) -> list[tuple[str, float]]:
    """Return (unit id, disagreement from 0 to 1) for each unit: the probability that two graders'
    labels differ, or for ordered categories the expected squared distance, as a share of the
    largest. Every grader has the same weight, whatever its number of draws and orders.
    """
    if grades.empty:
        return []
    cutoffs = grades["rater_id"].map(lambda grader: thresholds.get(grader, rubric.threshold))
    columns = (grades[name] for name in ("label", "p_positive", "probabilities"))
    answers = zip(*columns, cutoffs, strict=True)
    answer_shares = [_category_shares(rubric, *answer) for answer in answers]
    by_answer = pd.DataFrame(answer_shares, index=grades.index)
    by_grader = by_answer.groupby([grades["unit_id"], grades["rater_id"]], sort=False).mean()
    by_unit = by_grader.groupby(level=0, sort=False).mean()
    shares = by_unit.to_numpy()  # shape (units, categories)
    ranks = np.arange(len(rubric.categories))
    distances = np.abs(np.subtract.outer(ranks, ranks)) / (len(ranks) - 1)
    if rubric.level == "nominal":  # the largest: equal shares of all categories
        distances, largest = np.sign(distances), 1.0 - 1.0 / len(ranks)
    else:  # the largest: equal shares of the two outer categories
        distances, largest = distances**2, 0.5
    disagreement = ((shares @ distances) * shares).sum(axis=1) / largest
    return list(zip(by_unit.index, np.clip(disagreement, 0.0, 1.0).tolist(), strict=True))


def _category_shares(
    rubric: Rubric, label: str, p_positive: float, probabilities: str, threshold: float
) -> list[float]:
    """Return the probability of each category given one answer; equal ones if it is unreadable.
    `p_positive` is the probability of the affirmative category, NaN if the grader gave none;
    `probabilities` those of all categories as JSON, or "". With two categories a probability at the
    threshold counts as one half, since there the label changes.
    """
    categories = rubric.categories
    chosen = rubric.kind.parts(label)
    shares = {category: 1.0 / len(chosen) for category in chosen}
    if probabilities and rubric.kind.is_single:
        shares = json.loads(probabilities)
    if len(categories) == 2 and len(rubric.affirmative) == 1:
        if math.isnan(p_positive):
            p_positive = shares.get(rubric.affirmative[0], 0.0) if shares else threshold
        # Linear below and above the threshold: 0 stays 0, the threshold becomes 0.5, 1 stays 1.
        if p_positive < threshold or threshold == 1.0:
            share = 0.5 * p_positive / threshold
        else:
            share = 1 - 0.5 * (1 - p_positive) / (1 - threshold)
        return [share if category in rubric.affirmative else 1.0 - share for category in categories]
    if (total := sum(shares.values())) == 0:
        return [1.0 / len(categories)] * len(categories)
    return [shares.get(category, 0.0) / total for category in categories]


# ---- trials of another wording of a rubric ------------------------------------------------------
# The trial's pairs come in twos, and the study's seed assigns one of each two to the new wording.
# So a unit has one wording for all of its raters, and every rater sees both. The assignment is
# final: after a trial its units keep their wordings.
@dataclass(frozen=True)
class Rewording:
    """A trial of the wording `new`; `by_pair` has each pair's wording: `new`, or the former one."""

    new: Rubric
    by_pair: Mapping[str, Rubric]
    ended: bool = False

    def wording(self, rubric: Rubric, unit_id: str) -> Rubric | None:
        """Return the wording in which a unit is to be labelled; None in a trial that has ended."""
        if (assigned := self._assigned_wording(rubric.name, unit_id)) is None:
            return rubric
        return None if self.ended else assigned

    def with_counterparts(self, keys: Set[Key]) -> set[Key]:
        """Return these questions and the same ones under the wording that the trial assigns: a unit
        may have been given out under the other wording while the trial was being declared.
        """
        assigned = ((unit_id, self._assigned_wording(name, unit_id)) for unit_id, name in keys)
        return {*keys, *((unit_id, wording.name) for unit_id, wording in assigned if wording)}

    def _assigned_wording(self, rubric_name: str, unit_id: str) -> Rubric | None:
        """Return the wording of a unit in the trial; None if it is not part of the trial."""
        if rubric_name not in (self.new.name, self.new.variant_of):
            return None
        return self.by_pair.get(parse_unit_id(unit_id).pair_id)


def rewording_of(study: Study) -> Rewording | None:
    """Return the trial that study.toml declares; None without one. Raises InputError where units of
    another trial were given out, as their assignment is final.
    """
    declared, sample = study.config.rewording, study.store.sample()
    query = sa.select(lead_events.c.reason).where(lead_events.c.kind == "rewording")
    logged = study.store.values(query.order_by(lead_events.c.event_id.desc()).limit(1))
    last_trial: dict[str, Any] = json.loads(logged[0]) if logged else {}
    declared_trial = declared.model_dump(exclude={"ended"}) if declared else {}
    has_changed = bool(last_trial) and last_trial != declared_trial
    if has_changed and _count_given_out(study, sample) > last_trial["after"]:  # some of its pairs
        raise InputError(written("rewording.begun", **last_trial))
    if declared is None:
        return None
    new = study.rubrics[declared.rubric]
    old, seed = study.rubrics[new.variant_of], study.config.seed
    pairs = sample[declared.after :][: declared.pairs]  # the first that no annotator was given
    by_pair: dict[str, Rubric] = {}
    for start in range(0, len(pairs), 2):
        two = pairs[start : start + 2]  # one at the end of an odd number of pairs
        new_index = sampling.seeded_number(seed, 2, "rewording", new.name, two[0])
        by_pair |= {pair: new if index == new_index else old for index, pair in enumerate(two)}
    return Rewording(new, by_pair, declared.ended)


def units_by_wording(study: Study, rewording: Rewording) -> tuple[list[str], list[str]]:
    """Return the trial's units that people label: those under the old wording, then the new."""
    units: dict[str, list[str]] = {rewording.new.variant_of: [], rewording.new.name: []}
    for unit, pair in study.labelled_units():
        is_pair = parse_unit_id(unit).side == ""  # rubrics with sides are on pairs, others not
        if pair in rewording.by_pair and is_pair == rewording.new.has_sides:
            units[rewording.by_pair[pair].name].append(unit)
    return units[rewording.new.variant_of], units[rewording.new.name]


def declare_rewording(study: Study, new: Rubric, text: str, pairs: int, done_by: str = "") -> int:
    """Declare a trial of the wording `new` on `pairs` pairs that no annotator was given yet; return
    the number of pairs added to the sample for it. `text` is that of the rubric's file. Raises
    InputError, with nothing written, where the wording cannot be tried, or too few pairs are left.
    """
    sample = study.store.sample()
    after = _count_given_out(study, sample)
    trial = study_toml.RewordingSettings(rubric=new.name, after=after, pairs=pairs)
    _check_new_wording(study, new, trial)
    more = after + pairs - len(sample)
    n_unsampled = len(study.store.pairs()) - len(sample)
    if more > n_unsampled:
        n_available = len(sample) - after + n_unsampled
        raise InputError(written("rewording.too_few", pairs=pairs, room=n_available))

    # The trial first, so that no rater is given one of its pairs under the other wording.
    atomic_write(study.folder / RUBRICS_FOLDER / f"{new.name}.toml", text.encode())
    declared = trial.model_dump(exclude={"ended"})
    size = {"pairs": max(len(sample), after + pairs)}
    study_toml.change_config(study.folder, {"rewording": declared, "sample": size})
    note_act(study.store, "rewording", new.name, json.dumps(declared), done_by)
    return extend_sample(study, more) - len(sample) if more > 0 else 0


def _check_new_wording(study: Study, new: Rubric, trial: study_toml.RewordingSettings) -> None:
    """Raise InputError unless `new` can be tried: a variant of a rubric that people label, which
    differs from it in its text alone, in every language of the study. A kill may have cut off just
    this `trial`, so that it is declared again.
    """
    labelled = {rubric.name: rubric for rubric in study.labelled_rubrics()}
    if (old := labelled.get(new.variant_of)) is None:
        known = ", ".join(labelled)
        raise InputError(written("rewording.no_variant", rubric=new.name, known=known))
    if study.config.rewording not in (None, trial) or new.name in study.config.annotation.rubrics:
        raise InputError(written("rewording.one_at_a_time"))
    if new.name in study.rubrics and study.rubrics[new.name].hash != new.hash:
        raise InputError(written("rewording.name_taken", rubric=new.name))
    check_wordings({**study.rubrics, new.name: new})
    if not new.kind.is_single:
        raise InputError(written("rewording.several", rubric=new.name))
    if new.hash == old.hash or new.variables != old.variables:
        raise InputError(written("rewording.same_texts", rubric=new.name, old=old.name))
    settings = study.config.annotation
    for code in {settings.language, *settings.languages} & set(old.versions):
        translated = new.versions.get(code)
        if translated is None or translated.hash == old.versions[code].hash:
            raise InputError(written("rewording.untranslated", rubric=new.name, code=code))
        if translated.title != old.versions[code].title:
            raise InputError(written("rewording.titled", rubric=new.name, code=code))
    if new.title != old.title:
        raise InputError(written("rewording.titled", rubric=new.name, code="en"))


def _count_given_out(study: Study, sample: list[str]) -> int:
    """Return the number of the sample's pairs up to the last one that any annotator was given."""
    units = study.store.values(sa.union(*(sa.select(log.c.unit_id) for log in (claims, labels))))
    pairs = {parse_unit_id(unit).pair_id for unit in units if not has_known_answer(unit)}
    return max((number for number, pair in enumerate(sample, start=1) if pair in pairs), default=0)
