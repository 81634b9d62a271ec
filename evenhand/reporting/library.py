"""`import evenhand`: the analysis of anyone's ratings in a notebook or a script.

The same functions as behind `evenhand check`, on a DataFrame instead of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.reporting.ratings_file.dataframes import (
    Names,
    as_texts,
    kinds_of,
    long_rows,
    rows_of_file,
    units_as_texts,
)
from evenhand.reporting.ratings_file.declared import ScaleOptions

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis import Analysis, Verdict
    from evenhand.analysis.dataset import Dataset
    from evenhand.analysis.labels.scale import Level
    from evenhand.analysis.report import ReportContext


@dataclass(frozen=True, repr=False)
class Check:
    """Result of `check`: prints as the panel of `evenhand check`, shows itself in notebooks."""

    analysis: Analysis
    context: ReportContext

    @property
    def results(self) -> pd.DataFrame:
        """Table of all figures, a row for each statistic, raters and part of the sample. All are
        defined in docs/statistics.md.
        """
        return self.analysis.results

    @property
    def verdicts(self) -> list[Verdict]:
        """Verdicts, one for each rubric and grader: whether it can replace a human rater, the
        reason in a sentence, and the figures that decided.
        """
        return self.analysis.verdicts

    @property
    def notes(self) -> list[str]:
        """Notes to read before the figures."""
        return [*self.context.notes, *self.analysis.notes]

    def report(self, path: str | Path) -> Path:
        """Write report.html, report.md, report.json and results.csv into a folder, which is created
        if needed; returns the page. Raises InputError where the folder cannot be made.
        """
        from evenhand.analysis.report import write_report
        from evenhand.study.tables.atomic import check_folder

        folder = Path(path)
        check_folder(folder)
        write_report(self.analysis, self.context, folder)
        return folder / "report.html"

    def __str__(self) -> str:
        from evenhand.analysis.report import render_table_text
        from evenhand.reporting.panel import as_text, text_table, verdict_lines

        panel = render_table_text(self.analysis, self.context)
        tables = (text_table(columns, rows, title=title) for title, columns, rows in panel)
        return as_text([*self.context.notes, *tables, *verdict_lines(self.analysis)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from evenhand.analysis.report import render_notebook

        return render_notebook(self.analysis, self.context)


def read(
    path: str | Path,
    *,
    format: str | None = None,
    human: Names = (),
    model: Names = (),
    columns: Mapping[str, str] | None = None,
    wide: str = "",
    sheet: str = "",
) -> pd.DataFrame:
    """Read a ratings file, or an export of another tool, as a table for `check`.

    A CSV, TSV, JSONL or Parquet file, an Excel workbook, or an export of Label Studio, Inspect,
    MLflow and others (docs/formats.md), recognised by its content or named by `format`. `human` and
    `model` name the raters, or the columns of labels of a wide table, where the file does not give
    their kind. `columns` are its names of our columns: `{"unit_id": "item"}`. `wide` is how columns
    of each rater and rubric are called, as in `"{rater}_{rubric}"`; `sheet` is one of a workbook.

    Returns a row for each rating: the columns of `ratings` (see data/README.md), with "" and NaN
    where the file has none, then all other columns of the file, as text. `item_id` becomes
    `unit_id`. `.attrs["notes"]`, which `check` shows, lists how columns were read and what was left
    out.
    Raises InputError, naming the row, where the file cannot be read or breaks a rule.
    """
    from evenhand.study.tables.names import SHORT
    from evenhand.study.tables.ratings import RATINGS_COLUMNS, validate_ratings

    options = ScaleOptions(
        format=format,
        kinds=kinds_of(human, model),
        columns={SHORT.get(ours, ours): theirs for ours, theirs in (columns or {}).items()},
        wide=wide,
        sheet=sheet,
        in_python=True,
    )
    rows = rows_of_file(Path(path), options)
    others = [column for column in rows.table if column not in RATINGS_COLUMNS]
    found = validate_ratings(rows.table, Path(path).name).join(rows.table[others])
    found.attrs["notes"] = list(rows.notes)
    return found


def open_study(folder: str | Path) -> Dataset:
    """Load a study's folder: its ratings and units, with scales, settings and all that says which
    of them count.

    `check` takes it. `.ratings` and `.units` are its tables, `.counted(name)` the ratings of one
    rubric that count. Nothing is written, and no look at the labels is counted, so that there is no
    verdict on those that came in since the last `evenhand report`. Raises InputError where the
    folder holds no study.
    """
    from evenhand.reporting.load import from_study
    from evenhand.study import open_study

    with open_study(Path(folder)) as study:
        return from_study(study)


def check(
    ratings: pd.DataFrame | Dataset,
    *,
    human: Names = (),
    model: Names = (),
    units: pd.DataFrame | str | Path | None = None,
    rubric: str | None = None,
    categories: Names = (),
    level: Level | None = None,
    affirmative: Names | None = None,
    sides: Names | None = None,
    thresholds: Mapping[str, float] | None = None,
    normalise: bool = False,
    independent: bool = False,
    several: bool = False,
    wide: str = "",
    name: str = "ratings",
    **changes: Any,
) -> Check:
    """Measure how well human and model raters agree, and judge whether a model can replace a human
    rater.

    `ratings` is *long*, a row for each rating with `unit_id` (or `item_id`), `rater_id`,
    `rater_kind` (human or model) and `label`, as `read` gives it; or *wide*, a row for each unit
    and a column of labels for each rater that `human` and `model` name, or for each of them and
    each rubric, called as the pattern `wide` says: `"{rater}_{rubric}"`. A wide table's units are
    named by its column `unit_id` or `item_id`, else by its index; a missing cell (None, NaN) is no
    rating, an empty text one without a label. In a long table `human` and `model` may name the
    raters who count and say what they are, if there is no `rater_kind`. All other columns describe
    the units, and so do the columns of `units`, a table or file with a `unit_id`; `cluster_id`
    among them, or the column that `cluster` names, is what is resampled.

    The scale is declared: `categories` are all permitted labels, in order; `level` is "nominal",
    "ordinal" or "interval"; `affirmative` are the labels that count as yes, `sides` the two that
    favour side a and side b; `thresholds` are by grader. `rubric` picks one of several in a long
    table, and brings the scale of a shipped rubric or of a rubric's file. Without any of these, the
    labels seen are taken as nominal, and a note says so.

    With `several` a label is a set of options: "a;b", a JSON list, or "none". Each option is then a
    rubric of its own, such as "labels/a", with a verdict; `categories` are all options.

    Labels that differ only by case, outer space or `.0`, that read as missing (NaN, None, null) or
    that cannot be labels raise InputError. With `normalise` the first two kinds are corrected, and
    a note says how many cells that changed.

    Units that repeat an item are no more evidence than one of them: without `cluster_id`, a column
    that names items (`item`, `id`, `prompt` and others, or one that repeats as names and texts do)
    is what is resampled, and a note says which. With `independent` every unit is its own.

    Instead of a table, `ratings` may be a `Dataset`, as `open_study` gives one. It knows its name,
    scales and units, so that nothing but `changes` may be given with it.

    `changes` are settings of the analysis as in study.toml, such as `cluster="topic"`,
    `margin=0.05`, `slices=["topic"]`, `resamples=500` or `seed=1` (see `analysis.analyse`).
    `name` is what messages and the report call the ratings; messages name a row by its index.

    Raises InputError, one sentence that says what is wrong and what to do.

    >>> import pandas as pd
    >>> labels = {"ann": "yyyynnnn" * 10, "ben": "yyynnnnn" * 10}
    >>> labels["grader"] = "yyyynnnn" * 5 + "yyynnnnn" * 5
    >>> table = pd.DataFrame({rater: list(given) for rater, given in labels.items()})
    >>> found = check(table, human=["ann", "ben"], model="grader", categories=["y", "n"])
    >>> kappa = found.results.query("statistic == 'cohen_kappa' and subset == 'all'")
    >>> kappa.set_index(["rater_a", "rater_b"]).loc[("ann", "ben"), "estimate"].item()
    0.75
    >>> [verdict["verdict"] for verdict in found.verdicts]
    ['may_stand_in']
    """
    from evenhand.analysis.dataset import Dataset
    from evenhand.reporting.analysing import analyse_dataset
    from evenhand.reporting.load import from_rows

    scale = ScaleOptions(
        rubric=rubric,
        level=level,
        categories=as_texts(categories),
        affirmative=None if affirmative is None else as_texts(affirmative),
        sides=None if sides is None else as_texts(sides),
        thresholds=thresholds or {},
        kinds=kinds_of(human, model),
        normalise=normalise,
        independent=independent,
        several=several,
        wide=wide,
        settings=changes,
        in_python=True,
    )
    if isinstance(ratings, Dataset):
        declared = scale != ScaleOptions(settings=changes, in_python=True)
        if declared or units is not None or name != "ratings":
            raise InputError(
                "a Dataset knows its name, raters, scales and units; give only settings with it, "
                "such as margin=0.05"
            )
        return Check(*analyse_dataset(ratings.changed(**changes), verify=True))
    rows = long_rows(ratings, name, scale)
    rows = replace(rows, notes=[*getattr(ratings, "attrs", {}).get("notes", ()), *rows.notes])
    dataset = from_rows(rows, scale, units=_units(units))
    return Check(*analyse_dataset(dataset, verify=True))


def _units(given: pd.DataFrame | str | Path | None) -> tuple[pd.DataFrame, str] | None:
    """Return a table of units, and its name in messages."""
    from evenhand.study.tables.formats import read_table

    if given is None:
        return None
    if isinstance(given, (str, Path)):
        return read_table(given), Path(given).name
    return units_as_texts(given), "units"
