"""Analyse a study, a ratings file or a table. Each function returns the analysis and the context of
its report: facts, differences from published figures, and quotations (see `quoted_texts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from evenhand import __version__
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.reporting.load import DEFAULTS, from_file, from_study, is_study, load, naming_sidecar
from evenhand.reporting.ratings_file.criteria import with_scores
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.rubrics.loading import own_prompt_hash, own_prompt_raters
from evenhand.rubrics.rendering import text_blocks
from evenhand.texts import written

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from evenhand.analysis import Analysis
    from evenhand.analysis.dataset import Dataset
    from evenhand.analysis.injection import Audit
    from evenhand.analysis.people.disagreements import GraderDisagreement
    from evenhand.analysis.report import ReportContext
    from evenhand.analysis.report.source import Replication
    from evenhand.reporting.load import Source
    from evenhand.study import Study
    from evenhand.study.settings.analysis import PublishedFigures
    from evenhand.study.tables.ratings import Mark

Value = TypeVar("Value")
AnalysisAndContext = tuple["Analysis", "ReportContext"]
NameOf = Callable[[str], str]  # returns the display name of an id
OnStage = Callable[[str], None] | None  # called with the name of each stage, to show progress


class Switches(TypedDict, total=False):
    """Options of an analysis that are not among its settings (see `analysis.analyse`)."""

    verify: bool
    why: bool
    on_stage: OnStage


def analyse_source(
    source: Source, options: ScaleOptions = DEFAULTS, **switches: Unpack[Switches]
) -> AnalysisAndContext:
    """Analyse a study or ratings. Only settings in `options` apply to a study or a `Dataset`."""
    if not isinstance(source, Path):
        dataset = load(source, options)
        return analyse_dataset(dataset, whole_of(source, options, dataset), **switches)
    if is_study(source):
        from evenhand.study import open_study

        # By default a study is verified, and other sources are not.
        arguments: dict[str, Any] = {"verify": False, **switches, **options.settings}
        with open_study(source) as study:
            return analyse_study(study, **arguments)
    return analyse_file(source, options, **switches)


def analyse_study(
    study: Study,
    *,
    verify: bool = True,
    why: bool = False,
    pool: Executor | None = None,
    look: bool = True,
    on_stage: OnStage = None,
    **changes: Any,
) -> AnalysisAndContext:
    """Analyse a study as study.toml says, except for `changes` of its settings, in a `pool` of
    processes if there is one. With `look`, new labels count as an interim analysis; without it they
    get no verdict. Raises InputError if nothing is labelled yet.
    """
    dataset = with_scores(from_study(study, look=look, **changes))
    if dataset.ratings.empty:
        raise InputError(
            "the study has no labels and no grades yet; collect some with `evenhand annotate` "
            "and `evenhand grade`"
        )
    published = published_figures(study) if study.config.published else None
    raters = dataset.ratings["rater_id"].unique()
    dataset = dataset.named()  # with display names in place of ids
    analysis = dataset.analyse(verify=verify, why=why, pool=pool, on_stage=on_stage)
    context = _study_context(study, dataset, analysis, raters)
    if published is None:
        return analysis, context
    figures = [
        figure.model_copy(update={"rubric": dataset.name_of(figure.rubric)})
        for figure in published.figure
    ]
    published = published.model_copy(update={"figure": tuple(figures)})
    _add_at_thresholds(dataset, analysis, published)
    return analysis, replace(context, replication=_replication(study, dataset, published))


def analyse_file(
    file: Path, options: ScaleOptions = DEFAULTS, **switches: Unpack[Switches]
) -> AnalysisAndContext:
    """Analyse a ratings file on the scale declared, with its sidecar (see `load.from_file`)."""
    dataset = from_file(file, options)
    whole = whole_of(file, options, dataset)
    with naming_sidecar(file):
        return analyse_dataset(dataset, whole, **switches)


def whole_of(source: Source, options: ScaleOptions, dataset: Dataset) -> Dataset | None:
    """Return all rubrics of a source if the verdicts on those chosen by `options`, in `dataset`,
    are to hold for all of them together; else None.
    """
    if options.rubric is None or dataset.decision.across_rubrics == "none":
        return None
    whole = load(source, options.of_all_rubrics())
    names = whole.scales.keys()
    if names.isdisjoint(dataset.scales) or names <= dataset.scales.keys():
        return None
    others = whole.ratings[~whole.ratings["rubric"].isin(list(dataset.scales))]
    ratings = pd.concat([dataset.ratings, others])
    return replace(whole, ratings=ratings, scales={**whole.scales, **dataset.scales})


def analyse_dataset(
    dataset: Dataset, whole: Dataset | None = None, **switches: Unpack[Switches]
) -> AnalysisAndContext:
    """Analyse a dataset without a study; the context's notes tell how its labels were read. Its
    rubrics are judged together with the others of the `whole`, if any (`whole_of`).
    """
    from evenhand.analysis.report import ReportContext

    whole, dataset = (whole or dataset).named(), dataset.named()
    analysis = whole.analyse(reported=dataset.scales, **switches)
    return analysis, ReportContext(
        name=dataset.name,
        synthetic=dataset.synthetic,
        facts={
            "file": dataset.name,
            "margin": analysis.settings.margin,
            **_ratings_facts(dataset, analysis),
        },
        notes=whole.notes,
        rubric_titles=dataset.titles,
        label_names=dataset.names,
    )


def _study_context(
    study: Study, dataset: Dataset, analysis: Analysis, raters: Iterable[str]
) -> ReportContext:
    """Return the report's context. The `dataset` has display names; `raters` are ids."""
    from evenhand.analysis.report import ReportContext
    from evenhand.study.lead.disagreements import sorted_cases
    from evenhand.study.store.store import models_that_answered

    usage, name_of, rubrics = dataset.facts.usage, dataset.name_of, study.rubrics
    disagreements = with_ids(analysis.disagreements, analysis.ids)  # the store has ids, not names

    def by_names(values: Mapping[Any, Value]) -> dict[Any, Value]:
        """Return values by (rubric, unit id) or (rubric, unit id, grader), with names for ids."""
        return {
            (name_of(rubric), unit, *map(name_of, grader)): value
            for (rubric, unit, *grader), value in values.items()
        }

    models_by_grader = {}
    if usage is not None:
        is_rated = usage["rater_id"].isin(dataset.ratings["rater_id"].unique())
        models_by_grader = models_that_answered(usage[is_rated])
    decisions = {
        (decision.rubric, decision.unit_id, decision.grader): (decision.kind, decision.note)
        for decision in sorted_cases(study)
    }
    return ReportContext(
        name=study.config.name,
        synthetic=study.config.synthetic,
        facts={
            **_sample_facts(study, analysis.settings.cluster),
            **_ratings_facts(dataset, analysis),
            **{
                written("methods.answered", grader=grader): counted(models)
                for grader, models in models_by_grader.items()
            },
            **_own_prompts(study, raters, name_of),
            **_improvements(study, name_of),
            **{f"rubric {name_of(name)}, hash": rubric.hash for name, rubric in rubrics.items()},
        },
        notes=[*dataset.notes, *several_models(models_by_grader)],
        answered=models_by_grader,
        rubric_titles=dataset.titles,
        label_names=dataset.names,
        texts=by_names(quoted_texts(study, disagreements)),
        remarks={
            key: {name_of(rater): text for rater, text in remarks.items()}
            for key, remarks in by_names(quoted_remarks(study, disagreements)).items()
        },
        marks={
            key: [(name_of(rater), mark) for rater, mark in marks]
            for key, marks in by_names(quoted_marks(study, disagreements)).items()
        },
        replies=by_names(quoted_replies(study, disagreements)),
        sortings=by_names(decisions),
    )


def _sample_facts(study: Study, cluster: str) -> dict[str, str | int | float]:
    """Return the report's facts about a study's prompts and their sample, by their headings."""
    from evenhand.study.prompts.pairs import prompts_noun
    from evenhand.study.store.logs.decisions import WAVES

    config, prompts = study.config, study.store.pairs()
    noun = prompts_noun(prompts)
    waves = [len(wave.taken) for wave in WAVES.all(study.store) if wave.by == "uncertainty"]
    return {
        "study": config.name,
        noun: len(prompts),
        f"{noun} sampled": config.sample.pairs,
        "stratified by": ", ".join(config.sample.stratify) or "nothing",
        **({f"{noun} picked where graders differ or are unsure": sum(waves)} if waves else {}),
        "clusters": cluster,
        "seed": config.seed,
        "annotators wanted per item": config.annotation.raters_per_unit,
        "subjects": ", ".join(study.store.subjects()) or "none yet",
    }


def with_ids(
    disagreements: Iterable[GraderDisagreement], ids: Mapping[str, str]
) -> list[GraderDisagreement]:
    """Return disagreements with the ids of raters and rubrics in place of their display names."""
    return [
        replace(
            disagreement,
            rubric=ids.get(disagreement.rubric, disagreement.rubric),
            grader=ids.get(disagreement.grader, disagreement.grader),
            people={ids.get(rater, rater): label for rater, label in disagreement.people.items()},
        )
        for disagreement in disagreements
    ]


def published_figures(study: Study) -> PublishedFigures:
    """Return the published figures named in study.toml. Raises InputError if they are invalid."""
    from evenhand.analysis.statistics import find_entry
    from evenhand.study.settings.analysis import read_published

    published = read_published(study.config.published, study.folder)
    for figure in published.figure:
        if find_entry(figure.statistic) is None:
            raise InputError(f"published figures: there is no statistic {figure.statistic!r}")
    return published


def _add_at_thresholds(dataset: Dataset, analysis: Analysis, published: PublishedFigures) -> None:
    """Add to the analysis the statistics that were published at a threshold of their own, computed
    with this threshold for every grader with probabilities, as `spearman_at_threshold` and others.
    """
    from evenhand.analysis.report.source import ALL_BINARY

    keys = {(figure.rubric, figure.threshold) for figure in published.figure if figure.threshold}
    for rubric, threshold in sorted(keys):
        rows = dataset.ratings[dataset.ratings["rubric"] == rubric]
        has_probabilities = (rows["rater_kind"] == "model") & (rows["prob_method"] != "")
        graders = sorted(rows.loc[has_probabilities, "rater_id"].unique())
        scale = dataset.scales.get(rubric)
        if scale is None or not graders:
            continue
        scale = replace(scale, thresholds=dict.fromkeys(graders, threshold), tunings={})
        at_threshold = replace(dataset, ratings=rows, scales={rubric: scale}).analyse()
        figures = [figure for figure in published.figure if figure.threshold == threshold]
        statistics = [figure.statistic for figure in figures if figure.rubric == rubric]
        names = {*statistics, *(f"pair_{name}" for name in statistics)}  # "pair_": for two raters
        for row in at_threshold.rows:
            raters = {row["rater_a"], row["rater_b"]}
            if row["statistic"] in names and row["subset"] == ALL_BINARY and raters & {*graders}:
                name = f"{row['statistic']}_at_threshold"
                analysis.rows.append({**row, "statistic": name, "at": repr(threshold)})


def _replication(study: Study, dataset: Dataset, published: PublishedFigures) -> Replication:
    """Return the published figures with sentences on differences of design."""
    from evenhand.analysis.report.source import Replication
    from evenhand.study.prompts.pairs import prompts_noun

    design, ratings = published.design, dataset.ratings
    models = ratings[ratings["rater_kind"] == "model"]
    graders = sorted(models["rater_id"].unique())
    with_probabilities = set(models.loc[models["prob_method"] != "", "rater_id"])
    n_people = ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique()
    by_role = {"subjects": ", ".join(study.store.subjects()), "graders": ", ".join(graders)}
    by_role["people"] = str(n_people) if n_people else ""
    notes = []
    for role, names in by_role.items():
        if published_names := getattr(design, role):
            texts = {"here": names or written("reproduction.none"), "there": published_names}
            notes.append(written(f"reproduction.{role}_differ", **texts))
    n_sampled, noun = study.config.sample.pairs, prompts_noun(study.store.pairs())
    # `here` is the number of prompts in both notes. The one on responses, which are not compared,
    # always shows how large the published study was.
    for name, count in (("prompts", design.prompts), ("responses", design.responses)):
        if count and (name == "responses" or count != n_sampled):
            numbers = {"here": n_sampled, "there": count}
            notes.append(written(f"reproduction.{name}_differ", noun=noun, **numbers))
    labels_only = ", ".join(grader for grader in graders if grader not in with_probabilities)
    if design.probabilities and labels_only:
        texts = {"there": design.probabilities, "graders": labels_only}
        notes.append(written("reproduction.no_probabilities", **texts))
    if (models["order"] == "ba").any():
        notes.append(written("reproduction.orders_differ"))
    if with_probabilities:
        names = ", ".join(sorted(with_probabilities))
        cuts = sorted({figure.threshold for figure in published.figure if figure.threshold})
        notes += [written("reproduction.cut_here", cut=repr(cut), graders=names) for cut in cuts]
    return Replication(published, graders, [*notes, *design.differs])


def _ratings_facts(dataset: Dataset, analysis: Analysis) -> dict[str, str | int | float]:
    """Return the report's facts about the ratings, by their headings."""
    ratings, excluded = dataset.ratings, dataset.facts.excluded
    kinds = ratings.drop_duplicates("rater_id")["rater_kind"]
    by_people = ratings[ratings["rater_kind"] == "human"]
    stamps = sorted(stamp for stamp in by_people["created_at"].unique() if stamp)
    labels = by_people[(by_people["label"] != "") & ~by_people["rater_id"].isin(list(excluded))]
    counts = labels.groupby(["rubric", "unit_id"])["rater_id"].nunique()
    per_unit = "none" if counts.empty else str(counts.max())
    if not counts.empty and counts.min() < counts.max():
        per_unit = f"{counts.min()} to {counts.max()}, {counts.mean():.1f} on average"
    facts: dict[str, str | int | float] = {
        "annotators": int((kinds == "human").sum()),
        "annotators per labelled item": per_unit,
        "model graders": int((kinds == "model").sum()),
        "ratings": len(ratings),
    }
    if stamps:
        facts["labels given"] = f"{stamps[0][:10]} to {stamps[-1][:10]}"  # dates
    facts["evenhand"] = __version__
    if checked := analysis.verification:
        facts["estimates verified"] = (
            f"{checked.compared} values compared with scikit-learn, krippendorff and statsmodels; "
            f"largest difference {checked.largest:.0e}"
        )
    return facts


def several_models(models_by_grader: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a warning for each grader for which more than one model answered."""
    return [
        written("grade.several_models", grader=grader, models=counted(models))
        for grader, models in models_by_grader.items()
        if len(models) > 1
    ]


def counted(models: Mapping[str, int]) -> str:
    """Return models with their numbers of replies, for a sentence.

    >>> counted({"gpt-5": 38, "gpt-4o-mini": 2})
    'gpt-5 (38), gpt-4o-mini (2)'
    """
    return ", ".join(f"{name} ({count})" for name, count in models.items())


def _own_prompts(study: Study, raters: Iterable[str], name_of: NameOf) -> dict[str, str]:
    """Return by heading the prompt file of each grader with a prompt of the user's."""
    from evenhand.study.workspace import PROMPTS_FOLDER

    prompts = {}
    for grader in own_prompt_raters(raters):
        digest = own_prompt_hash(grader)
        files = (study.folder / PROMPTS_FOLDER).glob(f"{digest}*.toml")
        names = ", ".join(sorted(path.stem for path in files))
        prompts[written("methods.own_prompt", grader=name_of(grader))] = names or digest
    return prompts


def _improvements(study: Study, name_of: NameOf) -> dict[str, str]:
    """Return by heading, for each improved rubric, its split of labels, every choice, the price."""
    from evenhand.study.store.logs.decisions import ends_of

    runs_by_rubric: dict[str, list[dict[str, Any]]] = {}
    for rubric, run in ends_of(study.store):
        runs_by_rubric.setdefault(rubric, []).append(run)
    lines = {}
    for rubric, runs in runs_by_rubric.items():
        last_run = runs[-1]
        sentences = [written("methods.improved_parted", **last_run["parts"])]
        sentences += [sentence for run in runs for sentence in choice_lines(run, name_of)]
        if last_run["price"] is not None:
            sentences.append(written("methods.improved_price", price=last_run["price"]))
        lines[written("methods.improved", rubric=name_of(rubric))] = " ".join(sentences)
    return lines


def choice_lines(run: Mapping[str, Any], name_of: NameOf = str) -> list[str]:
    """Return sentences on a stored `run` of `improve` (`reporting.improving`): the kappa of each
    grader in the last round that compared it, the old grader's first; then the choice and its test.
    `name_of` returns a grader's name. A tested choice has the number of this analysis (`look`) and
    an `outcome`. An untested one failed the injection audit (`gives_way` is the sentence on the
    attack), had no error rate left (`no_level`), or is futile: it gained too little for a test.
    """
    last_scores: dict[str, tuple[float | None, int]] = {run["old"]: (None, 0)}  # keeps it first
    for stage in run["rounds"]:
        for name, kappa in stage["kappas"].items():
            last_scores[name] = kappa, stage["clusters"]
    scores = "; ".join(
        written("methods.improved_score", grader=name_of(name), kappa=kappa, clusters=clusters)
        for name, (kappa, clusters) in last_scores.items()
        if kappa is not None
    )
    fields: dict[str, object] = {"old": name_of(run["old"]), "new": name_of(run["new"])}
    fields |= {"count": len(last_scores) - 1, "scores": scores}
    fields["gives_way"] = run.get("gives_way", "")
    result = "none"
    if run.get("look") and run["outcome"] in ("better", "not_shown", "worse"):
        result = run["outcome"]
    elif run["new"]:
        result = next((key for key in ("gives_way", "no_level") if run.get(key)), "futile")
    lines = [written(f"methods.improved_{key}", **fields) for key in ("tried", result)]
    if run.get("low") is not None:
        lines.append(written("methods.improved_gain", **run))
    if run.get("known_before"):
        lines.append(written("improve.known_before", **fields))
    return [*lines, *run.get("said", ())]  # remarks on proposals


def audits_of(study: Study, grader: str) -> list[Audit]:
    """Return a grader's injection audits by rubric, with the rows of the report."""
    from evenhand.analysis.injection import add_injection_rows, audits
    from evenhand.analysis.request import Request, StudyFacts
    from evenhand.analysis.results import ResultRows

    dataset, grader_audits = from_study(study), []
    table = dataset.facts.attacked
    if table is None:
        return []
    facts = StudyFacts(attacked=table[table["rater_id"] == grader])
    request = Request(dataset.units, dataset.settings, facts=facts, seed=dataset.seed)
    for rubric in study.rubrics:
        rows = ResultRows(rubric)
        add_injection_rows(rows, request)
        grader_audits += audits(rows.rows.values())
    return grader_audits


UnitTexts = dict[tuple[str, str], dict[str, str]]  # by (rubric, unit id): texts by name or rater
_UNITS_PER_QUERY = 400  # units that are read from the store at a time


def quoted_texts(study: Study, disagreements: list[GraderDisagreement]) -> UnitTexts:
    """Return the texts that raters read, by (rubric, unit id), each under its name."""
    from evenhand.study.prompts.units import Question

    keys = dict.fromkeys((case.rubric, case.unit_id) for case in disagreements)
    units = [key for key in keys if key[0] in study.rubrics]  # a computed score has no rubric
    quoted: UnitTexts = {}
    for start in range(0, len(units), _UNITS_PER_QUERY):
        batch = units[start : start + _UNITS_PER_QUERY]
        questions = [Question(unit, study.rubrics[name], order="ab") for name, unit in batch]
        for question, key, values in zip(questions, batch, study.values_of(questions), strict=True):
            blocks = text_blocks(question.rubric.variables, question.rubric.blocks, values)
            texts = values | {block.variable: block.text for block in blocks}
            quoted[key] = {text_title(name): text for name, text in texts.items()}
    return quoted


def text_title(variable: str) -> str:
    """Return the name under which a variable's text is quoted, such as "Prompt a"."""
    return variable.replace("_", " ").capitalize()


def quoted_remarks(study: Study, disagreements: Sequence[GraderDisagreement]) -> UnitTexts:
    """Return each annotator's reason for their label or latest flag, by (rubric, unit id)."""
    from evenhand.study.lead.disagreements import counted_remarks

    keys = {(disagreement.rubric, disagreement.unit_id) for disagreement in disagreements}
    remarks: UnitTexts = {}
    for remark in counted_remarks(study).to_dict("records"):
        key = (remark["rubric"], remark["unit_id"])
        text = ": ".join(filter(None, (remark["reason"], remark["text"])))
        if key in keys and text:
            remarks.setdefault(key, {})[remark["rater_id"]] = text
    return remarks


def quoted_marks(
    study: Study, disagreements: Sequence[GraderDisagreement]
) -> dict[tuple[str, str], list[tuple[str, Mark]]]:
    """Return (annotator, marked passage) by (rubric, unit id) for the annotators compared."""
    from evenhand.study.lead.disagreements import counted_marks

    people = {(case.rubric, case.unit_id): case.people for case in disagreements}
    units = list(people)
    by_unit: dict[tuple[str, str], list[tuple[str, Mark]]] = {}
    for start in range(0, len(units), _UNITS_PER_QUERY):
        by_unit |= counted_marks(study, set(units[start : start + _UNITS_PER_QUERY]))
    return {
        key: [(rater, mark) for rater, mark in marks if rater in people[key]]
        for key, marks in by_unit.items()
    }


def quoted_replies(
    study: Study, disagreements: list[GraderDisagreement]
) -> dict[tuple[str, str, str], list[str]]:
    """Return the latest reply of each grader to each order and draw, by (rubric, unit id, grader).
    Replies to texts of the rubric that no longer count are left out; equal ones are listed once.
    """
    from evenhand.study.store.logs.replies import raw_replies

    keys = [(case.rubric, case.unit_id, case.grader) for case in disagreements]
    return raw_replies(study.store, keys, study.accepted_hashes())
