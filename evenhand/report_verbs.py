"""`report` and `check`: how far raters agree, for a study and for anyone's ratings file."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.terminal import console, print_table, working

if TYPE_CHECKING:
    import pandas as pd

    from analysis import Analysis, Scale
    from analysis.report import ReportContext
    from rubrics import Rubric
    from study import Study

__all__ = ["add_verbs", "report_study"]


def add_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = verbs.add_parser("report", help="write report.html, .md, .json and results.csv")
    report.add_argument("dir", type=Path, metavar="DIR")
    report.add_argument("--out", type=Path, metavar="DIR", help="where to (DIR/report)")
    report.set_defaults(run=_report)

    check = verbs.add_parser("check", help="the same analysis on a ratings file, no study needed")
    check.add_argument("file", type=Path, metavar="RATINGS")
    check.add_argument("--rubric", metavar="NAME|FILE", help="only this rubric, on its scale")
    check.add_argument("--units", type=Path, metavar="FILE", help="columns of the units")
    check.add_argument("--level", choices=["nominal", "ordinal", "interval"])
    check.add_argument("--categories", metavar="KEY,...", help="all permitted labels, in order")
    check.add_argument("--affirmative", metavar="KEY,...", help="labels that count as yes")
    check.add_argument(
        "--margin", type=float, default=0.1, metavar="KAPPA", help="how far below people (0.1)"
    )
    check.add_argument(
        "--slice", action="append", default=[], metavar="COL", help="repeat by a units column"
    )
    check.add_argument(
        "--group", action="append", default=[], metavar="COL", help="does a grader fail one group?"
    )
    check.add_argument(
        "--variant", action="append", default=[], metavar="COL", help="tells wordings apart"
    )
    check.add_argument(
        "--rater-slice", action="append", default=[], metavar="COL", help="repeat by kind of person"
    )
    check.add_argument(
        "--cluster", default="pair", metavar="COL", help="what is resampled (cluster_id; or unit)"
    )
    check.add_argument(
        "--sensitivity-cluster", default="", metavar="COL", help="another cluster, to compare"
    )
    check.add_argument(
        "--interval", choices=["percentile", "bca"], default="percentile", help="(percentile)"
    )
    check.add_argument(
        "--epsilon", type=float, default=0.2, help="of the alternative annotator test (0.2)"
    )
    check.add_argument("--out", type=Path, metavar="DIR", help="write the four report files too")
    check.set_defaults(run=_check)


def _report(arguments: argparse.Namespace) -> None:
    from study import open_study

    with open_study(arguments.dir) as study:
        out = report_study(study, arguments.out or arguments.dir / "report")
    console().print(f"Report: {out / 'report.html'}")


def report_study(study: Study, out: Path) -> Path:
    """Analyse a study, print the verdicts and write the report files."""
    from analysis import Scale, analyse
    from analysis.confidence_filter import ConfidenceRule
    from analysis.report import write_report
    from rubrics.errors import InputError

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
    with working("analysing"):
        analysis = analyse(
            ratings,
            study.units("all"),
            scales,
            margin=settings.margin,
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
            rubric_hashes=study.accepted_hashes(),
            verify=True,
        )
        write_report(analysis, _study_context(study, ratings, analysis), out)
    _print_verdicts(analysis)
    return out


def _study_context(study: Study, ratings: pd.DataFrame, analysis: Analysis) -> ReportContext:
    from analysis.report import ReportContext
    from study.pairs import prompts_noun

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


def _check(arguments: argparse.Namespace) -> None:
    from analysis import analyse
    from analysis.report import ReportContext, render_table_text, write_report
    from rubrics.errors import InputError
    from study.tables import read_rater_columns, read_ratings

    ratings, units = read_ratings(arguments.file)
    if ratings.empty:
        raise InputError(f"{arguments.file.name} has a header but no ratings")
    if arguments.units is not None:
        units = _with_units(units, arguments.units)
    ratings, scales, remarks = _scales(arguments, ratings)
    for remark in remarks:
        console().print(remark)
    with working("analysing"):
        analysis = analyse(
            ratings,
            units,
            scales,
            margin=arguments.margin,
            cluster=arguments.cluster,
            interval_method=arguments.interval,
            epsilon=arguments.epsilon,
            slices=arguments.slice,
            variants=arguments.variant,
            groups=arguments.group,
            raters=read_rater_columns(arguments.file) if arguments.rater_slice else None,
            rater_slices=arguments.rater_slice,
            sensitivity_cluster=arguments.sensitivity_cluster,
            source=arguments.file.name,
            verify=arguments.out is not None,
        )
    context = ReportContext(
        name=arguments.file.name,
        synthetic=False,
        facts={
            "file": arguments.file.name,
            "margin": arguments.margin,
            **_ratings_facts(ratings),
            **_verified(analysis),
        },
        notes=remarks,
    )
    for title, columns, rows in render_table_text(analysis, context):
        print_table(columns, rows, title=title)
    _print_verdicts(analysis)
    if arguments.out is not None:
        write_report(analysis, context, arguments.out)
        console().print(f"Report: {arguments.out / 'report.html'}")


def _with_units(beside: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The units file, plus what the ratings file itself says of its units."""
    from rubrics.errors import InputError
    from study.tables import read_table, row_number

    units = read_table(path)
    if "unit_id" not in units:
        units = units.rename(columns={"item_id": "unit_id"})
    if "unit_id" not in units:
        raise InputError(f"{path.name}: the column 'unit_id' is missing")
    again = units.duplicated("unit_id").to_numpy()
    if again.any():
        at = int(again.argmax())
        raise InputError(
            f"{path.name}, row {row_number(units, at)}: unit {units['unit_id'].iloc[at]!r} stands "
            "further up already; keep one row for each unit"
        )
    unknown = ~beside["unit_id"].isin(units["unit_id"])
    if unknown.any():
        unit = beside.loc[unknown, "unit_id"].iloc[0]
        raise InputError(f"{path.name} has no row for unit {unit!r}, which was rated; add it")
    own = [column for column in beside if column == "unit_id" or column not in units]
    return units.merge(beside[own], on="unit_id", how="left").fillna("")


def _scales(
    arguments: argparse.Namespace, ratings: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, Scale], list[str]]:
    """The rows asked for, their scales, and what was assumed."""
    if arguments.rubric is not None:
        ratings = _rows_of(ratings, arguments.rubric, declared=bool(arguments.categories))
    scales = {}
    remarks = []
    for name, labels in ratings.groupby("rubric", sort=True)["label"]:
        scale, remark = _scale(arguments, str(name), set(labels) - {""})
        scales[str(name)] = scale
        remarks += [remark] if remark else []
    return ratings, scales, remarks


def _known_rubric(name: str) -> Rubric | None:
    """A shipped rubric, or one from a file; None where the name is neither."""
    from rubrics import load_rubric, shipped_rubrics

    if name.replace("_", "-") in shipped_rubrics() or name.endswith(".toml"):
        return load_rubric(name)
    return None


def _rows_of(ratings: pd.DataFrame, wanted: str, *, declared: bool) -> pd.DataFrame:
    """The rows of one rubric; a file without rubrics is all of the one that is named."""
    from rubrics import load_rubric
    from rubrics.errors import InputError

    rubric = _known_rubric(wanted)
    name = wanted if rubric is None else rubric.name
    if (ratings["rubric"] == "").all():
        if rubric is None and not declared:
            load_rubric(wanted)  # says that there is no such rubric, and which there are
        return ratings.assign(rubric=name)
    names = ratings["rubric"].str.replace("_", "-") if rubric else ratings["rubric"]
    found = ratings[names == name]
    if found.empty:
        listed = ", ".join(sorted(set(ratings["rubric"])))
        raise InputError(f"no rating is on rubric {name!r}; the file has {listed}")
    return found


def _scale(arguments: argparse.Namespace, name: str, labels: Collection[str]) -> tuple[Scale, str]:
    """The scale as declared on the command line, else by the rubric, else the labels seen."""
    from dataclasses import replace

    from analysis import Scale
    from rubrics.errors import InputError

    rubric = _known_rubric(arguments.rubric or name)
    categories = tuple(_keys(arguments.categories))
    remark = ""
    if rubric is not None and not categories:
        scale = replace(Scale.from_rubric(rubric), name=name)
    elif categories:
        scale = Scale(name, categories)
    elif arguments.level in ("ordinal", "interval"):
        raise InputError(
            f"an {arguments.level} scale must be declared, not read off the labels: give all "
            "permitted labels in order, for example --categories 1,2,3,4,5"
        )
    else:
        scale = Scale(name, tuple(sorted(labels)))
        what = f"rubric {name!r}" if name else "the labels"
        remark = f"{what}: taken as nominal with the labels seen ({', '.join(scale.categories)}); "
        remark += "declare a scale with --level and --categories"
    if arguments.level:
        scale = replace(scale, level=arguments.level)
    if arguments.affirmative is not None:
        scale = replace(scale, affirmative=frozenset(_keys(arguments.affirmative)))
    return scale, remark


def _keys(text: str | None) -> list[str]:
    return [key.strip() for key in (text or "").split(",") if key.strip()]


def _print_verdicts(analysis: Analysis) -> None:
    say = console().print
    for note in analysis.notes:
        say(f"Note: {note}")
    for verdict in analysis.verdicts:
        say(verdict["sentence"])
    if not analysis.verdicts:
        say("No verdict: there are no model graders here to judge.")
