"""Rank graders by verdict, agreement and price (`Selection`), and tune the thresholds of graders
with probabilities, for study.toml (`Calibration`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from evenhand.analysis import Analysis, Verdict, rank_graders
from evenhand.analysis.dataset import Dataset
from evenhand.analysis.people.comparison import Rate
from evenhand.analysis.report import ReportContext, render_thresholds_text
from evenhand.analysis.report.source import format_number
from evenhand.analysis.results import ResultRow, TableRow, results_table
from evenhand.analysis.statistics import says
from evenhand.analysis.thresholds.tuning import NoReference, ThresholdResults, threshold_results
from evenhand.analysis.verdicts.judge import Candidate, limits_of, recommendations
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.errors import InputError
from evenhand.reporting.load import study_scales
from evenhand.reporting.panel import Line, Printable
from evenhand.study.settings.study_toml import change_config
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study


@dataclass(frozen=True, repr=False)
class Selection(Printable):
    """The graders of each rubric, the best choice first. With a `study`'s folder the lines have the
    commands that extend its sample. `notes` list how the labels were read.
    """

    analysis: Analysis
    notes: Sequence[str] = ()
    study: Path | None = None

    @cached_property
    def _ranking(self) -> dict[str, list[Candidate]]:
        """The graders by rubric, the best first."""
        return rank_graders(self.results, self.analysis.verdicts)

    @property
    def results(self) -> pd.DataFrame:
        """All figures of the analysis, defined in docs/statistics.md."""
        return self.analysis.results

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts in the order of the ranking, rubric by rubric."""
        return [grader.verdict for graders in self._ranking.values() for grader in graders]

    @property
    def recommendations(self) -> list[str]:
        """A sentence for each rubric: which grader to use, or what to do first."""
        return [advice.sentence for advice in recommendations(self._ranking)]

    @property
    def table(self) -> pd.DataFrame:
        """The ranking: a row for each rubric and grader, with the figures that it is ranked by.
        `usd` is the price of 1,000 units, NaN if not known. `front` is True for a grader if no
        other is as cheap and agrees as well.
        """
        graders = itertools.chain.from_iterable(self._ranking.values())
        return pd.DataFrame([_table_row(grader) for grader in graders])

    @property
    def lines(self) -> list[Line]:
        """A table for each rubric, the verdicts, how to read them, and the recommendations."""
        if not self._ranking:
            return [written("select.no_graders")]
        lines: list[Line] = []
        for rubric, graders in self._ranking.items():
            rows = [_text_row(grader) for grader in graders]
            lines.append((rubric, [*rows[0]], [[*row.values()] for row in rows]))
        for verdict in self.verdicts:
            lines.append(verdict["sentence"])
            if verdict["more_clusters"] and self.study is not None:
                lines.append(f"  evenhand extend {self.study} --pairs {verdict['more_clusters']}")
        return [
            *lines,
            *limits_of(self.analysis.verdicts),
            f"{written('select.brackets')} {written('verdict.bounds')}",
            written("select.rule", rule=self.analysis.rule),
            written("select.order"),
            *self.recommendations,
        ]


def _table_row(candidate: Candidate) -> dict[str, object]:
    """Return a candidate's row of `Selection.table`."""
    verdict, nan = candidate.verdict, math.nan
    record: dict[str, object] = {name: verdict[name] for name in ("rubric", "grader", "verdict")}
    for name, row in (("difference", candidate.difference), ("kappa", candidate.kappa)):
        figures = (row["estimate"], row["low"], row["high"]) if row else (nan, nan, nan)
        record |= zip((name, f"{name}_low", f"{name}_high"), figures, strict=True)
    for name, row in (("coverage", candidate.coverage), ("usd", candidate.price)):
        record[name] = row["estimate"] if row else nan
    return {**record, "front": candidate.best_buy, "sentence": verdict["sentence"]}


def _with_interval(row: TableRow | None) -> str:
    """Return a figure with its interval, rounded as in the report; "-" if undefined.

    >>> row = {"statistic": "human_ceiling_difference", "estimate": -0.001, "low": -0.03}
    >>> _with_interval(row | {"high": 0.021})
    '+0.00 [-0.03, +0.02]'
    """
    if row is None or math.isnan(row["estimate"]):
        return "-"
    figures = (row["estimate"], row["low"], row["high"])
    estimate, low, high = (format_number(figure, row["statistic"]) for figure in figures)
    return estimate if math.isnan(row["low"]) else f"{estimate} [{low}, {high}]"


def _rate_text(rate: Rate | None) -> str:
    """Return a rate with its interval; "-" if unknown.

    >>> _rate_text({"estimate": 0.9, "low": 0.804, "high": 0.95, "n": 60}), _rate_text(None)
    ('0.90 [0.80, 0.95]', '-')
    """
    if rate is None or rate["estimate"] is None or rate["low"] is None or rate["high"] is None:
        return "-"
    return f"{rate['estimate']:.2f} [{rate['low']:.2f}, {rate['high']:.2f}]"


def _worst_fault(candidate: Candidate) -> str:
    """Return the first part of the sample in which a grader fails, or else its largest bias."""
    bias, failing_parts = candidate.worst_bias, candidate.verdict["failing_parts"]
    if failing_parts:
        n_more = len(failing_parts) - 1
        return f"fails in {failing_parts[0]}" + (f" and {n_more} more" if n_more else "")
    if bias is None:
        return "none found"
    name = bias["statistic"].removeprefix("bias_").replace("_", " ")
    return f"{name} {format_number(bias['estimate'], bias['statistic'])}"


def _text_row(candidate: Candidate) -> dict[str, str]:
    """Return a candidate's row of the table in `Selection.lines`, as texts by column."""
    verdict, coverage, price = candidate.verdict, candidate.coverage, candidate.price
    return {
        "grader": verdict["grader"],
        "verdict": TITLES[verdict["verdict"]].short,
        "minus annotators' kappa": _with_interval(candidate.difference),
        "kappa": _with_interval(candidate.kappa),
        "TPR": _rate_text(verdict["rates"].get("tpr")),
        "TNR": _rate_text(verdict["rates"].get("tnr")),
        "coverage": f"{coverage['estimate']:.1%}" if coverage else "-",
        "worst fault": _worst_fault(candidate),
        "USD/1,000": f"{price['estimate']:.2f}" if price else "-",
        "front": "*" if candidate.best_buy else "",
    }


Thresholds = dict[str, dict[str, float]]  # thresholds by rubric and grader


@dataclass(frozen=True, repr=False)
class Calibration(Printable):
    """Thresholds tuned to one `objective`: the results by rubric, the `rows` of the chosen graders,
    and rubrics `left_out` because they have no labels of the `reference`.
    """

    results_by_rubric: Mapping[str, ThresholdResults]
    rows: Sequence[ResultRow]
    context: ReportContext
    objective: str
    reference: str
    left_out: Sequence[str] = ()

    @property
    def notes(self) -> list[str]:
        """Notes on how the labels were read."""
        return self.context.all_notes

    @property
    def results(self) -> pd.DataFrame:
        """The figures of all objectives (docs/statistics.md), by reference and grader."""
        return results_table(self.rows)

    @property
    def thresholds(self) -> Thresholds:
        """Recommended thresholds by rubric and grader: those better on held-out units."""
        recommended: Thresholds = {}
        for row in self.rows:
            is_recommendation = row["statistic"] == "threshold_recommended"
            is_tuned = says(row["remarks"], "tuned")  # else the present threshold is to be kept
            if is_recommendation and row["at"] == self.objective and is_tuned:
                recommended.setdefault(row["rubric"], {})[row["rater_b"]] = row["estimate"]
        return recommended

    @property
    def lines(self) -> list[Line]:
        """A table for each rubric and its advice; then the rubrics that were left out."""
        lines: list[Line] = []
        analysis = Analysis(list(self.rows))
        for tables, sentences in render_thresholds_text(analysis, self.context, self.objective):
            for table in tables:
                cells = [
                    [row.heading, *(f"{cell.text} {cell.interval}".strip() for cell in row.cells)]
                    for row in table.rows
                ]
                lines.append((table.caption, [table.stub, *table.columns], cells))
            lines += sentences
        if self.left_out:
            whom = written("naming.reference") if self.reference == "humans" else self.reference
            lines.append(written("calibrate.left_out", whom=whom, rubrics=", ".join(self.left_out)))
        return lines


def calibrate(
    dataset: Dataset,
    rubric: str | None = None,
    *,
    grader: str | None = None,
    reference: str = "humans",
    objective: str = "kappa",
    on_stage: Callable[[str], None] | None = None,
) -> Calibration:
    """Tune thresholds on one rubric or all, and show those of one grader or all.

    `reference` is the rater to match: "humans" (annotators' majority), or any rater. Without a
    `rubric`, rubrics without that reference are left out. `on_stage` is called with the name of
    each stage. Raises InputError if there is no such rubric, if the reference is on none, or if
    there are no probabilities to tune a threshold on.
    """
    hashes = dataset.facts.rubric_hashes
    rubrics = hashes or dataset.scales  # both by rubric; a study has hashes of every rubric
    if rubric and rubric not in rubrics:
        source = dataset.name if hashes is None else "the study"
        raise InputError(f"{source} has no rubric {rubric!r}; it has {', '.join(rubrics)}")
    results: dict[str, ThresholdResults] = {}
    first_error: NoReference | None = None
    for name, scale in dataset.scales.items():
        if rubric and name != rubric:
            continue
        if on_stage:
            on_stage(f"tuning thresholds on {name}")
        try:
            results[name] = threshold_results(
                dataset.ratings,
                dataset.units,
                scale,
                dataset.settings,
                reference=reference,
                seed=dataset.seed,
                rubric_hashes=hashes.get(scale.part_of or name) if hashes else None,
                excluded=dataset.facts.excluded,
            )
        except NoReference as error:
            first_error = first_error or error
    all_rows = [row for tuned in results.values() for row in tuned.rows]
    if first_error and not all_rows:
        raise first_error
    rows = [row for row in all_rows if grader in (None, row["rater_b"])]  # None: of all graders
    if not rows:
        of_grader = f" of {grader}" if grader else ""
        raise InputError(f"there are no probabilities{of_grader} to tune a threshold on")
    context = ReportContext(
        name=dataset.name,
        synthetic=dataset.synthetic,
        facts={},
        notes=dataset.notes,
        rubric_titles=dataset.titles,
    )
    left_out = [] if rubric else [name for name in dataset.scales if name not in results]
    return Calibration(results, rows, context, objective, reference, left_out)


def write_tuned_thresholds(study: Study, tuned: Calibration) -> None:
    """Write the recommended thresholds into study.toml, and their basis into the store."""
    from evenhand.study.store.logs.decisions import TUNED_THRESHOLDS, TunedThreshold

    scales = study_scales(study)
    # The store first: a tuned threshold must never appear in study.toml as if set by hand.
    entries = [
        TunedThreshold(
            rubric=rubric,
            grader=grader,
            threshold=threshold,
            objective=tuned.objective,
            reference=tuned.reference,
            instead_of=scales[rubric].untuned_threshold_for(grader),
            clusters=sorted(tuned.results_by_rubric[rubric].clusters[grader]),
        )
        for rubric, thresholds in tuned.thresholds.items()
        for grader, threshold in thresholds.items()
    ]
    TUNED_THRESHOLDS.append(study.store, entries)
    write_thresholds(study, tuned.thresholds)


def write_thresholds(study: Study, thresholds: Mapping[str, Mapping[str, float]]) -> None:
    """Write thresholds by rubric and grader into study.toml, leaving the rest of it as it is."""
    changes = {f"thresholds.{rubric}": graders for rubric, graders in thresholds.items()}
    change_config(study.folder, changes)
