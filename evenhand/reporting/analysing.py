"""The analysis of a study, or of anyone's ratings file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.reporting.ratings_file.scales import declared_scales
from evenhand.reporting.ratings_file.unit_columns import check_asked_for, with_units
from evenhand.reporting.thresholds import study_scales

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd

    from evenhand.analysis import Analysis
    from evenhand.analysis.report import ReportContext
    from evenhand.analysis.verification import Libraries
    from evenhand.reporting.ratings_file.dataframes import LongRows
    from evenhand.reporting.ratings_file.sidecar import Sidecar
    from evenhand.study import Study

Analysed = tuple["Analysis", "ReportContext"]
OnStage = Callable[[str], None] | None
"""Called with the name of each stage, to show progress."""
USUAL_SCALE = ScaleOptions()
_WAYS = ("json_schema", "tool", "plain")
"""The ways of `graders.clients.constraint`, which reports do not import."""


def analyse_source(
    source: Path,
    scale: ScaleOptions = USUAL_SCALE,
    *,
    units: Path | None = None,
    verify: bool | Libraries = False,
    why: bool = False,
    on_stage: OnStage = None,
    **changes: Any,
) -> Analysed:
    """Analyse a study folder, or a ratings file on the scale declared.

    `changes` are settings of the analysis that replace the study's own, or the defaults (see
    `analyse`, for `verify` and `why` too).
    """
    if is_study(source):
        from evenhand.study import open_study

        with open_study(source) as study:
            return analyse_study(study, verify=verify, why=why, on_stage=on_stage, **changes)
    return analyse_file(
        source, scale, units=units, verify=verify, why=why, on_stage=on_stage, **changes
    )


def is_study(source: Path) -> bool:
    """Return True for a study's folder, False for a file or folder of ratings."""
    from evenhand.exchange.readers.reading import TABLE, format_of
    from evenhand.exchange.readers.source import Source

    if not source.is_dir() or (source / "study.toml").exists():
        return source.is_dir()
    return format_of(Source(source)) == TABLE


def analyse_study(
    study: Study,
    *,
    verify: bool | Libraries = True,
    why: bool = False,
    pool: Executor | None = None,
    look: bool = True,
    on_stage: OnStage = None,
    **changes: Any,
) -> Analysed:
    """Analyse a study as study.toml says, in a `pool` of processes if there is one.

    Each look at new labels is counted; without a `look` there are no verdicts on such labels.
    Raises InputError where nothing is labelled yet.
    """
    from evenhand.analysis import StudyFacts, analyse
    from evenhand.reporting.ratings_file.sidecar import prices_of
    from evenhand.study.desk.oversight import oversight
    from evenhand.study.lead.disagreements import sorted_so_far
    from evenhand.study.session.background import raters_to_split_by
    from evenhand.study.store.grades import TRIED
    from evenhand.study.store.logs.attacked_log import attacked_table
    from evenhand.study.store.logs.looks import look_numbers
    from evenhand.study.store.totals import grade_totals

    ratings, config = study.ratings(), study.config
    # Grades under a text that was only tried are not part of the study.
    ratings = ratings[~ratings["rater_id"].str.contains(TRIED, regex=False)]
    if ratings.empty:
        raise InputError(
            "the study has no labels and no grades yet; collect some with `evenhand annotate` "
            "and `evenhand grade`"
        )
    usage = grade_totals(study.store)
    exclusions = oversight(study.store).exclusions
    analysis = analyse(
        ratings,
        study.units_with_lengths("all"),
        study_scales(study),
        config.analysis,
        config.decision,
        facts=StudyFacts(
            rubric_hashes=study.accepted_hashes(),
            excluded={rater: each.reason for rater, each in exclusions.items()},
            raters=raters_to_split_by(study),
            usage=usage,
            prices=prices_of(usage),
            looks=look_numbers(study.store, looked_at(study, ratings), record=look),
            sorted=Counter((each.rubric, each.grader, each.kind) for each in sorted_so_far(study)),
            attacked=attacked_table(study.store, study.accepted_hashes()),
            strata=config.sample.stratify,
        ),
        verify=verify,
        why=why,
        pool=pool,
        on_stage=on_stage,
        **{"seed": config.seed, **changes},
    )
    asked = _asked_by(usage) | _own_prompts(study, ratings["rater_id"].unique())
    return analysis, _study_context(study, ratings, exclusions, analysis, asked)


def analyse_file(
    file: Path,
    scale: ScaleOptions = USUAL_SCALE,
    *,
    units: Path | None = None,
    verify: bool | Libraries = False,
    why: bool = False,
    on_stage: OnStage = None,
    **changes: Any,
) -> Analysed:
    """Analyse a ratings file on the scale declared, with the columns of a file of `units`.

    The sidecar of the file (`reporting.ratings_file.sidecar`) is read with it. The notes of the
    context mention it, and what was assumed of the labels.
    """
    from evenhand.reporting.ratings_file.dataframes import rows_of_file
    from evenhand.reporting.ratings_file.sidecar import (
        attacked_beside,
        read_sidecar,
        sidecar_path,
        units_beside,
    )
    from evenhand.study.tables.formats import read_table

    known = read_sidecar(file)
    if units is None and known is not None:
        units = units_beside(file, known)
    beside = None if units is None else (read_table(units), units.name)
    try:
        return analyse_rows(
            rows_of_file(file, scale),
            scale,
            units=beside,
            known=known,
            attacked=attacked_beside(file, known) if known else None,
            verify=verify,
            why=why,
            on_stage=on_stage,
            **changes,
        )
    except InputError as error:
        if known is None:
            raise
        # With nothing declared, the user must learn where a scale or a column comes from.
        raise InputError(f"{error} ({sidecar_path(file).name} was read too)") from None


def analyse_rows(
    rows: LongRows,
    scale: ScaleOptions = USUAL_SCALE,
    *,
    units: tuple[pd.DataFrame, str] | None = None,
    known: Sidecar | None = None,
    attacked: pd.DataFrame | None = None,
    verify: bool | Libraries = False,
    why: bool = False,
    on_stage: OnStage = None,
    **changes: Any,
) -> Analysed:
    """Analyse the rows of a ratings file; `units` are a table of units and its name, `known` is the
    file's sidecar, `attacked` the injection audit. The declared scale and the `changes` override
    it.
    """
    from evenhand.analysis import analyse
    from evenhand.analysis.report import ReportContext
    from evenhand.reporting.ratings_file.items import clustered_by_items
    from evenhand.reporting.ratings_file.sidecar import Sidecar
    from evenhand.study.tables.ratings import rater_columns, split_ratings

    source = rows.places.source
    ratings, columns = split_ratings(rows.table, source)
    if ratings.empty:
        raise InputError(f"{source} has a header but no ratings")
    if units is not None:
        columns = with_units(columns, *units)
    check_asked_for(changes, columns, rows.table, source if units is None else units[1])
    sidecar = known or Sidecar.model_construct()  # which asks for no validator to be built
    ratings, scales, remarks = declared_scales(scale, ratings, rows.places, sidecar.known_scales())
    asked = changes.get("cluster", sidecar.asked_cluster)
    columns, cluster, said = clustered_by_items(columns, ratings, asked, scale)
    changes |= {} if cluster is None else {"cluster": cluster}
    raters = rater_columns(rows.table) if changes.get("rater_slices") else None
    analysis = analyse(
        ratings,
        columns,
        scales,
        sidecar.settings_for(ratings),
        sidecar.decision,
        facts=sidecar.facts(raters, source, attacked),
        verify=verify,
        why=why,
        on_stage=on_stage,
        **{"seed": sidecar.seed, **changes},
    )
    return analysis, ReportContext(
        name=source,
        synthetic=sidecar.synthetic,
        facts={
            "file": source,
            "margin": analysis.settings.margin,
            **_ratings_facts(ratings, sidecar.excluded),
            **_verified(analysis),
        },
        notes=[*(sidecar.said(source) if known else []), *rows.notes, *said, *remarks],
        rubric_titles={name: each.title for name, each in sidecar.scales.items() if each.title},
        label_names={name: each.names for name, each in sidecar.scales.items()},
    )


def looked_at(study: Study, ratings: pd.DataFrame) -> dict[str, str]:
    """Return a hash of the labels that a look at the verdict sees, by rubric.

    With fewer pairs labelled by two people than a verdict needs, no verdict can be given, so
    looking at them is free.
    """
    from evenhand.study.store.logs.looks import labels_hash

    pairs = study.units("all").set_index("unit_id")["cluster_id"]
    present = {}
    for name, own in ratings[ratings["rater_kind"] == "human"].groupby("rubric"):
        people = own.groupby("unit_id")["rater_id"].nunique()
        twice = pairs.reindex(people.index[people >= 2]).nunique()
        if twice >= study.config.decision.min_clusters:
            present[str(name)] = labels_hash(own)
    return present


def _study_context(
    study: Study,
    ratings: pd.DataFrame,
    excluded: Collection[str],
    analysis: Analysis,
    asked: Mapping[str, str],
) -> ReportContext:
    from evenhand.analysis.report import ReportContext
    from evenhand.reporting.quotes import (
        quoted_marks,
        quoted_remarks,
        quoted_replies,
        quoted_texts,
    )
    from evenhand.study.desk.hidden_prompts import prompts_seen
    from evenhand.study.lead.disagreements import sorted_so_far
    from evenhand.study.prompts.pairs import prompts_noun
    from evenhand.texts import written

    config, prompts = study.config, study.store.pairs()
    noun = prompts_noun(prompts)
    facts: dict[str, str | int | float] = {
        "study": config.name,
        noun: len(prompts),
        f"{noun} sampled": config.sample.pairs,
        "stratified by": ", ".join(config.sample.stratify) or "nothing",
        **_picked_by_uncertainty(study, noun),
        "clusters": analysis.settings.cluster,
        "seed": config.seed,
        "annotators wanted per unit": config.annotation.raters_per_unit,
        "subjects": ", ".join(study.subjects()) or "none yet",
        **_ratings_facts(ratings, excluded),
        **_verified(analysis),
        **asked,
        **{f"rubric {name}, hash": rubric.hash for name, rubric in study.rubrics.items()},
    }
    return ReportContext(
        name=config.name,
        synthetic=config.synthetic,
        facts=facts,
        notes=[
            written("prompts.seen", rubric=each.rubric.title, seen=each.seen, labels=each.labels)
            for each in prompts_seen(study, ratings)
        ],
        rubric_titles={name: rubric.title for name, rubric in study.rubrics.items()},
        label_names={
            name: {option.key: option.name for option in rubric.options}
            for name, rubric in study.rubrics.items()
        },
        published={name: rubric.published for name, rubric in study.rubrics.items()},
        texts=quoted_texts(study, analysis.disagreements),
        remarks=quoted_remarks(study, analysis.disagreements),
        marks=quoted_marks(study, analysis.disagreements),
        replies=quoted_replies(study, analysis.disagreements),
        sorted={
            (each.rubric, each.unit_id, each.grader): (each.kind, each.note)
            for each in sorted_so_far(study)
        },
    )


def _picked_by_uncertainty(study: Study, noun: str) -> dict[str, int]:
    from evenhand.study.store.logs.waves import sample_waves_of

    picked = [len(w.taken) for w in sample_waves_of(study.store) if w.by == "uncertainty"]
    return {f"{noun} picked where graders differ or are unsure": sum(picked)} if picked else {}


def _ratings_facts(
    ratings: pd.DataFrame, excluded: Collection[str]
) -> dict[str, str | int | float]:
    from evenhand import __version__

    kinds = ratings.drop_duplicates("rater_id")["rater_kind"]
    given = sorted(stamp for stamp in ratings["created_at"].unique() if stamp)
    facts: dict[str, str | int | float] = {
        "human raters": int((kinds == "human").sum()),
        "annotators per labelled unit": _people_per_unit(ratings, excluded),
        "model graders": int((kinds == "model").sum()),
        "ratings": len(ratings),
    }
    if given:
        facts["ratings given"] = f"{given[0][:10]} to {given[-1][:10]}"
    facts["evenhand"] = __version__
    return facts


def _people_per_unit(ratings: pd.DataFrame, excluded: Collection[str]) -> str:
    """Return the number of people per labelled unit, as text; excluded raters do not count."""
    people = ratings[
        (ratings["rater_kind"] == "human")
        & (ratings["label"] != "")
        & ~ratings["rater_id"].isin(list(excluded))
    ]
    counts = people.groupby(["rubric", "unit_id"])["rater_id"].nunique()
    if counts.empty:
        return "none"
    fewest, most = counts.min(), counts.max()
    return str(most) if fewest == most else f"{fewest} to {most}, {counts.mean():.1f} on average"


def _asked_by(usage: pd.DataFrame) -> dict[str, str]:
    """Return a report line for each grader: the ways in which its labels were asked for, with
    counts.
    """
    from evenhand.texts import written

    counts: dict[str, Counter[str]] = {}
    for row in usage.to_dict("records"):
        counts.setdefault(str(row["rater_id"]), Counter()).update(json.loads(row["asked_by"]))
    return {
        written("methods.asked", grader=grader): ", ".join(
            f"{written(f'methods.asked_{way}')} ({found[way]})" for way in _WAYS if found[way]
        )
        for grader, found in counts.items()
        if found
    }


def _own_prompts(study: Study, raters: Iterable[str]) -> dict[str, str]:
    """Return the judge prompt of each grader that read one of its user's own."""
    from evenhand.rubrics.judge_prompt import OWN_PROMPT, with_own_prompt
    from evenhand.study.workspace import PROMPTS_FOLDER
    from evenhand.texts import written

    found = {}
    for grader in with_own_prompt(raters):
        digest = grader.rpartition(OWN_PROMPT)[2]
        kept = sorted(path.stem for path in (study.folder / PROMPTS_FOLDER).glob(f"{digest}*.toml"))
        found[written("methods.own_prompt", grader=grader)] = ", ".join(kept) or digest
    return found


def _verified(analysis: Analysis) -> dict[str, str]:
    found = analysis.verification
    if found is None:
        return {}
    libraries = "scikit-learn, krippendorff and statsmodels"
    return {
        "estimates verified": f"{found.compared} values compared with {libraries}; "
        f"largest difference {found.largest:.0e}"
    }
