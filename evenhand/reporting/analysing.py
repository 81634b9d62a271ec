"""The analysis behind every verb that needs one: of a study, or of anyone's ratings file."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli.scale_options import add_scale_options, declared_scales, keys_in, with_units
from evenhand.cli.terminal import console, working

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd

    from evenhand.analysis import Analysis
    from evenhand.analysis.report import ReportContext
    from evenhand.study import Study

__all__ = ["add_analysis_options", "analyse_file", "analyse_source", "analyse_study"]

Analysed = tuple["Analysis", "ReportContext"]


def add_analysis_options(parser: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """What can be said about a ratings file; a study says it in study.toml.

    The options `without` which a verb can do are not shown, and keep their defaults.
    """

    def add(option: str, default: object = None, **more: Any) -> None:
        if option in without:
            parser.set_defaults(**{option.removeprefix("--").replace("-", "_"): default})
        else:
            parser.add_argument(option, default=default, **more)

    add_scale_options(parser)
    add("--sides", metavar="KEY,KEY", help="labels that favour side a and side b")
    add("--margin", 0.1, type=float, metavar="KAPPA", help="how far below people (0.1)")
    add("--slice", [], action="append", metavar="COL", help="repeat by a units column")
    add("--group", [], action="append", metavar="COL", help="does a grader fail one group?")
    add("--variant", [], action="append", metavar="COL", help="tells wordings apart")
    add("--rater-slice", [], action="append", metavar="COL", help="repeat by kind of person")
    add("--cluster", "pair", metavar="COL", help="what is resampled (cluster_id; or unit)")
    add("--sensitivity-cluster", "", metavar="COL", help="another cluster, to compare")
    add("--interval", "percentile", choices=["percentile", "bca"], help="(percentile)")
    add("--epsilon", 0.2, type=float, help="of the alternative annotator test (0.2)")
    add("--ensemble", [], action="append", metavar="G1,G2", help="graders taken as one")


def analyse_source(source: Path, arguments: argparse.Namespace, *, why: bool = False) -> Analysed:
    """The analysis of a study folder, or of a ratings file with the options of the command line.

    With `why` also where people's labels differ (see `analyse`).
    """
    from evenhand.study import open_study

    if source.is_dir():
        with open_study(source) as study:
            return analyse_study(study, why=why)
    return analyse_file(source, arguments, why=why)


def analyse_study(study: Study, *, why: bool = False, pool: Executor | None = None) -> Analysed:
    """Analyse a study as study.toml says, in a `pool` of processes if there is one.

    Raises InputError where nothing is labelled yet.
    """
    from evenhand.analysis import BiasSettings, DecisionRule, Scale, analyse
    from evenhand.analysis.thresholds.confidence import ConfidenceRule
    from evenhand.errors import InputError
    from evenhand.study.desk.oversight import oversight

    ratings = study.ratings()
    if ratings.empty:
        raise InputError(
            "the study has no labels and no grades yet; collect some with `evenhand annotate` "
            "and `evenhand grade`"
        )
    settings = study.config.analysis
    scales = {
        name: Scale.from_rubric(rubric, study.config.thresholds.get(name))
        for name, rubric in study.rubrics.items()
    }
    usage = study.store.grade_totals()
    with working("analysing"):
        analysis = analyse(
            ratings,
            study.units_with_lengths("all"),
            scales,
            rule=DecisionRule(margin=settings.margin, **study.config.decision.model_dump()),
            resamples=settings.resamples,
            seed=study.config.seed,
            cluster=settings.cluster,
            interval_method=settings.interval,
            epsilon=settings.epsilon,
            slices=settings.slices,
            variants=settings.variants,
            groups=settings.groups,
            confidence=ConfidenceRule(settings.confidence_cut, settings.confidence_target),
            sensitivity_cluster=settings.sensitivity_cluster,
            ensembles=settings.ensembles,
            bias=BiasSettings(leanings=settings.leanings, families=settings.families),
            prices=_prices(usage),
            rubric_hashes=study.accepted_hashes(),
            excluded={
                rater: each.reason for rater, each in oversight(study.store).exclusions.items()
            },
            usage=usage,
            verify=True,
            why=why,
            pool=pool,
        )
    return analysis, _study_context(study, ratings, analysis)


def analyse_file(
    file: Path, arguments: argparse.Namespace, *, verify: bool = False, why: bool = False
) -> Analysed:
    """Analyse a ratings file on the scales that the command line declares."""
    from evenhand.analysis import DecisionRule, analyse
    from evenhand.analysis.report import ReportContext
    from evenhand.errors import InputError
    from evenhand.study.tables.ratings import read_rater_columns, read_ratings

    ratings, units = read_ratings(file)
    if ratings.empty:
        raise InputError(f"{file.name} has a header but no ratings")
    if arguments.units is not None:
        units = with_units(units, arguments.units)
    ratings, scales, remarks = declared_scales(arguments, ratings)
    for remark in remarks:
        console().print(remark)
    with working("analysing"):
        analysis = analyse(
            ratings,
            units,
            scales,
            rule=DecisionRule(margin=arguments.margin),
            cluster=arguments.cluster,
            interval_method=arguments.interval,
            epsilon=arguments.epsilon,
            slices=arguments.slice,
            variants=arguments.variant,
            groups=arguments.group,
            raters=read_rater_columns(file) if arguments.rater_slice else None,
            rater_slices=arguments.rater_slice,
            sensitivity_cluster=arguments.sensitivity_cluster,
            ensembles=[keys_in(graders) for graders in arguments.ensemble],
            source=file.name,
            verify=verify,
            why=why,
        )
    return analysis, ReportContext(
        name=file.name,
        synthetic=False,
        facts={
            "file": file.name,
            "margin": arguments.margin,
            **_ratings_facts(ratings),
            **_verified(analysis),
        },
        notes=remarks,
    )


def _prices(usage: pd.DataFrame) -> dict[tuple[str, str], float]:
    """What 1,000 units have cost, by rubric and grader: all attempts over the units graded."""
    return {
        (str(row["rubric"]), str(row["rater_id"])): 1000 * row["cost_usd"] / row["units"]
        for row in usage.to_dict("records")
        if row["units"] and row["cost_usd"] == row["cost_usd"]
    }


def _study_context(study: Study, ratings: pd.DataFrame, analysis: Analysis) -> ReportContext:
    from evenhand.analysis.report import ReportContext
    from evenhand.reporting.quotes import quoted_remarks, quoted_texts
    from evenhand.study.prompts.pairs import prompts_noun

    config, prompts = study.config, study.store.pairs()
    noun = prompts_noun(prompts)
    facts: dict[str, str | int | float] = {
        "study": config.name,
        noun: len(prompts),
        f"{noun} sampled for people": config.sample.pairs,
        "stratified by": ", ".join(config.sample.stratify) or "nothing",
        "clusters": config.analysis.cluster,
        "seed": config.seed,
        "people per unit": config.annotation.raters_per_unit,
        "subjects": ", ".join(study.subjects()) or "none yet",
        **_ratings_facts(ratings),
        **_verified(analysis),
        **{f"rubric {name}, hash": rubric.hash for name, rubric in study.rubrics.items()},
    }
    return ReportContext(
        name=config.name,
        synthetic=config.synthetic,
        facts=facts,
        rubric_titles={name: rubric.title for name, rubric in study.rubrics.items()},
        label_names={
            name: {option.key: option.name for option in rubric.options}
            for name, rubric in study.rubrics.items()
        },
        published={name: rubric.published for name, rubric in study.rubrics.items()},
        texts=quoted_texts(study, analysis.disagreements),
        remarks=quoted_remarks(study, analysis.disagreements),
    )


def _ratings_facts(ratings: pd.DataFrame) -> dict[str, str | int | float]:
    from evenhand import __version__

    kinds = ratings.drop_duplicates("rater_id")["rater_kind"]
    given = sorted(stamp for stamp in ratings["created_at"] if stamp)
    facts: dict[str, str | int | float] = {
        "human raters": int((kinds == "human").sum()),
        "model graders": int((kinds == "model").sum()),
        "ratings": len(ratings),
    }
    if given:
        facts["ratings given"] = f"{given[0][:10]} to {given[-1][:10]}"
    facts["evenhand"] = __version__
    return facts


def _verified(analysis: Analysis) -> dict[str, str]:
    found = analysis.verification
    if found is None:
        return {}
    libraries = "scikit-learn, krippendorff and statsmodels"
    return {
        "estimates verified": f"{found.compared} values held against {libraries}; largest "
        f"difference {found.largest:.0e}"
    }
