"""The analysis of a study, or of anyone's ratings file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.reporting.scales import ScaleOptions, declared_scales, with_units
from evenhand.reporting.thresholds import study_scales

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd

    from evenhand.analysis import Analysis
    from evenhand.analysis.report import ReportContext
    from evenhand.study import Study

Analysed = tuple["Analysis", "ReportContext"]
USUAL_SCALE = ScaleOptions()


def analyse_source(
    source: Path,
    scale: ScaleOptions = USUAL_SCALE,
    *,
    units: Path | None = None,
    verify: bool = False,
    why: bool = False,
    **changes: Any,
) -> Analysed:
    """The analysis of a study folder, or of a ratings file on the scale declared.

    `changes` are settings of the analysis that take the place of the study's own, or of the usual
    ones (see `analyse`, for `verify` and `why` too).
    """
    from evenhand.study import open_study

    if source.is_dir():
        with open_study(source) as study:
            return analyse_study(study, verify=verify, why=why, **changes)
    return analyse_file(source, scale, units=units, verify=verify, why=why, **changes)


def analyse_study(
    study: Study,
    *,
    verify: bool = True,
    why: bool = False,
    pool: Executor | None = None,
    look: bool = True,
    **changes: Any,
) -> Analysed:
    """Analyse a study as study.toml says, in a `pool` of processes if there is one.

    Each look at labels that nobody has looked at is counted; without a `look` there are no verdicts
    on such labels. Raises InputError where nothing is labelled yet.
    """
    from evenhand.analysis import StudyFacts, analyse
    from evenhand.study.desk.oversight import oversight
    from evenhand.study.session.background import raters_table
    from evenhand.study.store.totals import grade_totals

    ratings, config = study.ratings(), study.config
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
            raters=raters_table(study),
            usage=usage,
            prices=_prices(usage),
            looks=_looks(study, ratings, record=look),
            strata=config.sample.stratify,
        ),
        verify=verify,
        why=why,
        pool=pool,
        **{"seed": config.seed, **changes},
    )
    return analysis, _study_context(study, ratings, analysis)


def analyse_file(
    file: Path,
    scale: ScaleOptions = USUAL_SCALE,
    *,
    units: Path | None = None,
    verify: bool = False,
    why: bool = False,
    **changes: Any,
) -> Analysed:
    """Analyse a ratings file on the scale declared, with the columns of a file of `units`.

    What was assumed of the labels stands in the notes of the context.
    """
    from evenhand.study.tables.formats import read_table

    beside = None if units is None else (read_table(units), units.name)
    return analyse_rows(
        read_table(file), file.name, scale, units=beside, verify=verify, why=why, **changes
    )


def analyse_rows(
    rows: pd.DataFrame,
    source: str,
    scale: ScaleOptions = USUAL_SCALE,
    *,
    units: tuple[pd.DataFrame, str] | None = None,
    verify: bool = False,
    why: bool = False,
    **changes: Any,
) -> Analysed:
    """Analyse the rows of a ratings file, as `split_ratings` takes them, which messages call
    `source`; `units` are a table of units and what messages call that.
    """
    from evenhand.analysis import StudyFacts, analyse
    from evenhand.analysis.report import ReportContext
    from evenhand.study.tables.ratings import rater_columns, split_ratings

    ratings, columns = split_ratings(rows, source)
    if ratings.empty:
        raise InputError(f"{source} has a header but no ratings")
    if units is not None:
        columns = with_units(columns, *units)
    ratings, scales, remarks = declared_scales(scale, ratings)
    raters = rater_columns(rows) if changes.get("rater_slices") else None
    analysis = analyse(
        ratings,
        columns,
        scales,
        facts=StudyFacts(raters=raters, source=source),
        verify=verify,
        why=why,
        **changes,
    )
    return analysis, ReportContext(
        name=source,
        synthetic=False,
        facts={
            "file": source,
            "margin": analysis.settings.margin,
            **_ratings_facts(ratings),
            **_verified(analysis),
        },
        notes=remarks,
    )


def _looks(study: Study, ratings: pd.DataFrame, *, record: bool) -> dict[str, int]:
    """Which look at the verdict this is, by rubric.

    With fewer pairs labelled by two people than a verdict needs none can be given, so looking at
    them is free.
    """
    from evenhand.study.store.looks import labels_hash, look_numbers

    pairs = study.units("all").set_index("unit_id")["cluster_id"]
    present = {}
    for name, own in ratings[ratings["rater_kind"] == "human"].groupby("rubric"):
        people = own.groupby("unit_id")["rater_id"].nunique()
        twice = pairs.reindex(people.index[people >= 2]).nunique()
        if twice >= study.config.decision.min_clusters:
            present[str(name)] = labels_hash(own)
    return look_numbers(study.store, present, record=record)


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
        **_picked_by_uncertainty(study, noun),
        "clusters": analysis.settings.cluster,
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


def _picked_by_uncertainty(study: Study, noun: str) -> dict[str, int]:
    from evenhand.study.store.waves import sample_waves_of

    picked = [len(w.taken) for w in sample_waves_of(study.store) if w.by == "uncertainty"]
    return {f"{noun} picked where graders differ or are unsure": sum(picked)} if picked else {}


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
