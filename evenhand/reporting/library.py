"""The Python API, `import evenhand`: a function for each command that analyses or collects labels.

Each function takes labels in any of these forms: a table of pandas, polars, pyarrow or another
library, a dict of columns, a list of records, the path of a file or of a study's folder, or a
`Dataset`. The results print as the commands do, are displayed in notebooks, and have their figures
as DataFrames.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, get_origin

import pandas as pd

from evenhand.analysis import Analysis, Verdict
from evenhand.analysis.dataset import Dataset
from evenhand.analysis.report import ReportContext, render_notebook, render_table_text, write_report
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_source
from evenhand.reporting.keywords import taking  # a decorator that refuses other keywords
from evenhand.reporting.load import Source, from_study, is_file, is_study, load
from evenhand.reporting.panel import Line, Printable, as_text, verdict_lines
from evenhand.reporting.planning import Assumptions, Plan, Target, plan_ahead, plan_from
from evenhand.reporting.ratings_file.criteria import with_scores
from evenhand.reporting.ratings_file.dataframes import Names, as_texts, kinds_of, rows_of_file
from evenhand.reporting.ratings_file.declared import LabelOptions, ScaleOptions, Table
from evenhand.reporting.selecting import Calibration, Selection
from evenhand.study.settings.analysis import Rules
from evenhand.study.tables.columns import SHORT
from evenhand.study.tables.files import check_folder
from evenhand.study.tables.ratings import RATINGS_COLUMNS, validate_ratings

if TYPE_CHECKING:
    from evenhand.reporting import keyword_types
    from evenhand.reporting.gate import Comparison, Gate
    from evenhand.reporting.new_study import Labelling

    Labels = Table | Dataset | str | os.PathLike[str]
    """Labels in any of their forms."""


@dataclass(frozen=True, repr=False)
class Check(Printable):
    """Result of `check`: prints as the panel of `evenhand check`, and is a report in notebooks."""

    analysis: Analysis
    context: ReportContext

    @property
    def results(self) -> pd.DataFrame:
        """Table of all figures (docs/statistics.md): a row for each statistic and raters."""
        return self.analysis.results

    @property
    def verdicts(self) -> list[Verdict]:
        """Verdict on each rubric and grader, with its reason in a sentence and its figures."""
        return self.analysis.verdicts

    @property
    def notes(self) -> list[str]:
        """Notes to read before the figures."""
        return [*self.context.notes, *self.analysis.notes]

    def report(self, path: str | Path) -> Path:
        """Write report.html, report.md, report.json and results.csv into a folder, which is created
        if needed; return the path of the HTML page. Raises InputError if the folder cannot be made.
        """
        folder = Path(path)
        check_folder(folder)
        write_report(self.analysis, self.context, folder)
        return folder / "report.html"

    @property
    def lines(self) -> list[Line]:
        """The panel, and the verdicts with their limits."""
        return [*render_table_text(self.analysis, self.context), *verdict_lines(self.analysis)]

    def __str__(self) -> str:
        return as_text([*self.context.all_notes, *self.lines])  # the analysis' own notes are lines

    def _repr_html_(self) -> str:
        return render_notebook(self.analysis, self.context)


@taking()
def read(
    path: str | os.PathLike[str],
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
    `model` name the raters, or the columns of labels of a wide table, if the file does not give
    their kind. `columns` renames columns: `{"unit_id": "item"}` if items are in the column "item".
    `wide` is the pattern of the names of columns, one for each rater and rubric, as in
    `"{rater}_{rubric}"`; `sheet` is the name of one in a workbook.

    Returns a row for each rating: the columns of `ratings` (see data/README.md), with "" and NaN
    where the file has no value, then all other columns of the file, as text. `item_id` becomes
    `unit_id`. `.attrs["notes"]`, which `check` shows, lists how columns were read and what was left
    out. Raises InputError, naming the row, if the file cannot be read or is invalid.
    """
    options = ScaleOptions(
        format=format,
        kinds=kinds_of(human, model),
        columns=_columns(columns),
        wide=wide,
        sheet=sheet,
        normalise=False,  # `check` asks whether names that look alike are one
        in_python=True,
    )
    rows, reading = rows_of_file(Path(path), options)
    further_columns = [column for column in rows if column not in RATINGS_COLUMNS]
    table = validate_ratings(rows, Path(path).name).join(rows[further_columns])
    table.attrs["notes"] = [*reading.notes]
    return table


@taking()
def open_study(folder: str | os.PathLike[str]) -> Dataset:
    """Load a study's folder as a `Dataset`, for `check` and the other functions.

    `.ratings` and `.units` are its tables, `.counted(name)` the ratings of one rubric that count.
    Nothing is written, and no interim analysis is counted, so that labels since the last
    `evenhand report` get no verdict. Raises InputError if the folder holds no study.
    """
    from evenhand import study as studies

    with studies.open_study(Path(folder)) as study:
        return with_scores(from_study(study))


@taking("RatingsKeywords")
def check(ratings: Labels, **options: Unpack[keyword_types.RatingsKeywords]) -> Check:
    """Measure how well annotators and graders agree, and decide whether a grader can replace an
    annotator.

    `ratings` is a table of pandas, polars, pyarrow or another library, a dict of columns, a list of
    records, or a path. A table is *long*, a row for each rating with `unit_id` (or `item_id`),
    `rater_id`, `rater_kind` (human or model) and `label`, as `read` returns it; or *wide*, a row
    for each unit and a column of labels for each rater named by `human` and `model`, or for each
    rater and rubric, with names of the pattern `wide`: `"{rater}_{rubric}"`. A wide table's units
    are identified by its column `unit_id` or `item_id`, else by its index; a missing cell (None,
    NaN) is no rating, an empty text one without a label. In a long table without `rater_kind`,
    `human` and `model` name the raters who count. `columns` renames columns: `{"unit_id": "item"}`
    if items are in the column "item". All other columns describe the units, and so do the columns
    of `units`, a table or file with a `unit_id`. Resampled are the clusters of `cluster_id` among
    them, or of the column named by `cluster`.

    The scale is declared: `categories` are all permitted labels, in order; `level` is "nominal",
    "ordinal" or "interval"; `affirmative` are the labels that count as yes, `sides` the two that
    favour side a and side b; `thresholds` are by grader. `rubric` picks one of several in a long
    table, or names a shipped rubric or a rubric's file with its scale. Without `level` three or
    more consecutive whole numbers, such as 1 to 5, are ordinal, and other labels nominal. Without
    `categories` they are the labels in the table. Notes report both.

    With `several` a label is a set of options: "a;b", a JSON list, or "none". Each option is then a
    rubric of its own, such as "labels/a", with a verdict; `categories` are all options.

    Invisible differences between labels or names are removed: invisible characters, outer or double
    spaces and `.0`. Those that look alike (case, punctuation, leading zeros) raise InputError,
    unless `normalise` is True (they are the same) or False (they are not). `missing` are codes for
    "no label", such as `[99]`; a label that may be one, or cannot be a label, raises InputError.

    Units that repeat an item are no more evidence than one of them: without `cluster_id`, a column
    that identifies items (`item`, `id`, `prompt` and others, or one that repeats as names and texts
    do) is the cluster, and a note names it. With `independent` every unit is a cluster.

    A file is read as by `evenhand check`, in any of its formats (`read`), with its sidecar. A
    study's folder is analysed as by `evenhand report`, which counts an interim analysis of new
    labels; a `Dataset`, from `open_study`, does not. Both have their scales and units, so that
    only settings may be given with them.

    All other keywords are settings of the analysis as in study.toml, such as `cluster="topic"`,
    `margin=0.05`, `slices=["topic"]`, `resamples=500` or `seed=1` (see `analysis.analyse`).
    `name` is a table's name in messages and the report; messages name a row by its index.

    Raises InputError, one sentence on what is wrong and what to do; for an unknown keyword it names
    the nearest.

    >>> import pandas as pd
    >>> labels = {"ann": "yyyynnnn" * 10, "ben": "yyynnnnn" * 10}
    >>> labels["grader"] = "yyyynnnn" * 5 + "yyynnnnn" * 5
    >>> table = pd.DataFrame({rater: list(letters) for rater, letters in labels.items()})
    >>> result = check(table, human=["ann", "ben"], model="grader", categories=["y", "n"])
    >>> kappa = result.results.query("statistic == 'cohen_kappa' and subset == 'all'")
    >>> kappa.set_index(["rater_a", "rater_b"]).loc[("ann", "ben"), "estimate"].item()
    0.75
    >>> [verdict["verdict"] for verdict in result.verdicts]
    ['can_replace']
    """
    source, declared = _source_and_options(ratings, options)
    return Check(*analyse_source(source, declared, verify=True))


@taking("RatingsKeywords")
def gate(
    ratings: Labels,
    grader: str,
    require: str | None = None,
    *,
    baseline: str | os.PathLike[str] | None = None,
    new_rubric: bool = False,
    **options: Unpack[keyword_types.RatingsKeywords],
) -> Gate:
    """Decide whether a grader passes, as `evenhand gate` does: by the rule `require`, such as
    "verdict, kappa.low > 0.6", by being unchanged since a `baseline` file, or by both. With neither
    the rule is the verdict.

    The result is true only if all checks are met. It has `passed` (True, False, None if
    inconclusive), `exit_code`, `sentence`, `verdict`, and the `table` of checks. For `new_rubric`
    see `compare`; the other keywords are those of `check`, `rubric` also with a study.

    >>> labels = {"ann": "yyyynnnn" * 10, "ben": "yyynnnnn" * 10}
    >>> labels["grader"] = "yyyynnnn" * 5 + "yyynnnnn" * 5
    >>> columns = {rater: list(letters) for rater, letters in labels.items()}
    >>> declared = {"human": ["ann", "ben"], "model": "grader", "categories": ["y", "n"]}
    >>> result = gate(columns, "grader", **declared)
    >>> result.passed, result.exit_code, result.verdict
    (True, 0, 'can_replace')
    >>> print(gate(columns, "grader", "kappa > 0.9", **declared).checks[0].line)
    not met  kappa (cohen_kappa), estimate: 0.872984, required > 0.9
    """
    from evenhand.reporting import gate as gates

    source, declared = _source_and_options(ratings, options, of_study=["rubric"])
    file = None if baseline is None else Path(baseline)
    return gates.gate(
        source, grader, require=require, baseline=file, options=declared, new_rubric=new_rubric
    )


@taking("RatingsKeywords")
def compare(
    ratings: Labels,
    grader: str,
    against: str = "",
    *,
    baseline: str | os.PathLike[str] | None = None,
    new_rubric: bool = False,
    **options: Unpack[keyword_types.RatingsKeywords],
) -> Comparison:
    """Compare a grader with its baseline, as `evenhand baseline compare` does: unchanged, changed
    or inconclusive.

    `baseline` is a file of `evenhand baseline save`, and `ratings` have the grader's present
    labels, under the name `against` if its name has changed. Without a baseline two graders in the
    same ratings are compared, `grader` with `against`. `new_rubric` allows a baseline of an older
    text of the rubric. The other keywords are those of `check`, except that scales and clusters are
    the baseline's.

    The result has `changed` (True, False, None if inconclusive), `sentence`, the `table` of figures
    by rubric, and their `results`.

    >>> people = {"ann": list("yyyynnnn" * 10), "ben": list("yyynnnnn" * 10)}
    >>> graders = {"old": list("yyyynnnn" * 10), "new": list("nnyynnyy" * 10)}
    >>> compare(people | graders, "old", "new", human=people, model=graders).changed
    True
    """
    from evenhand.reporting import gate as gates

    source, declared = _source_and_options(ratings, options, of_study=["rubric"])
    file = None if baseline is None else Path(baseline)
    return gates.compare(
        source, grader, against=against, baseline=file, options=declared, new_rubric=new_rubric
    )


@taking("RatingsKeywords")
def select(ratings: Labels, **options: Unpack[keyword_types.RatingsKeywords]) -> Selection:
    """Rank graders by rubric with their price, as `evenhand select` does.

    The result has the ranking as a `table`, `recommendations`, `verdicts` and all `results`. The
    keywords are those of `check`.

    >>> labels = {"ann": "yyyynnnn" * 10, "ben": "yyynnnnn" * 10}
    >>> labels |= {"good": "yyyynnnn" * 5 + "yyynnnnn" * 5, "bad": "nnyyyynn" * 10}
    >>> columns = {rater: list(letters) for rater, letters in labels.items()}
    >>> result = select(columns, human=["ann", "ben"], model=["good", "bad"], categories=["y", "n"])
    >>> result.table[["grader", "verdict"]].values.tolist()
    [['good', 'can_replace'], ['bad', 'do_not_use']]
    """
    source, declared = _source_and_options(ratings, options)
    analysis, context = analyse_source(source, declared)
    study = source if isinstance(source, Path) and is_study(source) else None
    return Selection(analysis, context.all_notes, study)


@taking("TuningKeywords")
def calibrate(
    ratings: Labels,
    *,
    grader: str | None = None,
    reference: str = "humans",
    objective: str = "kappa",
    **options: Unpack[keyword_types.TuningKeywords],
) -> Calibration:
    """Tune the threshold from which a grader's probabilities count as a yes, as
    `evenhand calibrate` does: by an `objective` (kappa, agreement, f1, youden or prevalence), to
    the `reference`: annotators' majority ("humans") or any rater.

    Probabilities are a column `p_positive` of a long table. The result has the recommended
    `thresholds`, by rubric and grader, and the `results` of all objectives. Nothing is written to a
    study. The other keywords are those of `check`, `rubric` also with a study.
    """
    from evenhand.reporting import selecting

    source, declared = _source_and_options(ratings, options, of_study=["rubric"])
    # A file is read for this rubric alone, perhaps under another name: None takes it as it is.
    return selecting.calibrate(
        load(source, declared),
        None if is_file(source) else declared.rubric,
        grader=grader,
        reference=reference,
        objective=objective,
    )


@taking("PlanKeywords")
def plan(
    pilot: Labels | None = None,
    *,
    statistic: str = "kappa",
    half_width: float = 0.1,
    **options: Unpack[keyword_types.PlanKeywords],
) -> Plan:
    """Plan the number of pairs and annotators for a verdict, and for a 95% CI of a `statistic`
    (kappa, alpha, rate, threshold, mean, difference) with a `half_width`, as `evenhand plan` does.

    Without a `pilot` the plan rests on assumptions about the raters: `agreement` and `prevalence`,
    or on a `scale` such as "1-5" `correlation` and `mean`; `raters`, `overlap`, `subjects`,
    `likeness`, `strictness` and `power` (see `Assumptions`). With a pilot, labels and keywords as
    for `check`, it has the number of further labels. The result has `tables` as DataFrames.

    >>> result = plan(statistic="mean", half_width=0.05)
    >>> result.tables["sizes"]["labelled"].tolist()
    [384, 260, 224, 206, 196]
    """
    target = Target(statistic, half_width)
    assumptions = {field.name for field in fields(Assumptions)}
    assumptions -= {"overlap"} if isinstance(options.get("overlap"), str) else set()  # of a pilot
    others: dict[str, Any] = dict(options)  # on a pilot's labels, and settings of the analysis
    assumed = {name: others.pop(name) for name in [*others] if name in assumptions}
    if pilot is not None:
        if name := next(iter(assumed), ""):
            raise InputError(f"{name}= is an assumption for planning without a pilot; leave it out")
        source, declared = _source_and_options(pilot, others)
        analysis, context = analyse_source(source, declared, why=True)  # with variance components
        return plan_from(analysis, target, context.all_notes)
    for name in others:
        if name not in Rules.model_fields or name == "overlap":
            raise InputError(f"{name}= is about the labels of a pilot; give its table or path")
    return plan_ahead(Assumptions(**assumed), target, settings=others)


@taking("LabelKeywords")
def label(
    items: Table | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    port: int | None = None,
    open: bool = False,
    **keywords: Unpack[keyword_types.LabelKeywords],
) -> Labelling:
    """Have annotators label the rows of a file or a table, as `evenhand label` does: make a study
    of them in `folder` (FILE-study), or continue the one that is there.

    Ask a `question` with `options` or a `scale` such as "1-5", of which with `several` any number
    may apply, or a `rubric`. Options that are consecutive whole numbers are ordinal, others
    nominal, unless `level` is given. `show` names the columns that annotators read, in order;
    `subject` the column of the model that answered, `cluster` that of rows that belong together,
    `judge` one with labels of a judge, which annotators never see; `missing` are its codes for "no
    label". `sample` rows (250) are labelled by `raters` annotators (1), drawn by `seed`, with the
    shares of the columns `stratify`. With `each_turn` each turn of a conversation is rated by
    itself; two answers in a row are compared in `steps`.

    The result has the `folder`, a link for each annotator (`links`), the `command` that serves
    their page, and `serve()`, which serves it in the background. With `open` it is served at once
    and the first link opened in the browser.
    """
    from evenhand.local_page import app_port, open_when_up
    from evenhand.reporting.new_study import label_items

    source = Path(items) if isinstance(items, (str, os.PathLike)) else items
    if folder is None and not isinstance(source, Path):
        raise InputError("a table has no name for the study; name its folder: label(items, FOLDER)")
    study_folder = Path(f"{Path(str(source)).stem}-study" if folder is None else folder)
    values: dict[str, Any] = {name: value for name, value in keywords.items() if value is not None}
    option_names = [f"--{name.replace('_', '-')}" for name in values]  # as on the command line
    for name in ("show", "subject", "options", "stratify", "rubric", "missing"):
        if name in values:
            values[name] = list(as_texts(values[name]))
    options = LabelOptions(**values, in_python=True, given_options=option_names)
    labelling = label_items(source, study_folder, options, port=app_port(port))
    if open:
        labelling.serve()
        open_when_up(labelling.links[0], labelling.port)
    return labelling


def _source_and_options(
    ratings: Labels, keywords: Mapping[str, Any], of_study: Collection[str] = ()
) -> tuple[Source, ScaleOptions]:
    """Return the source of the labels, and the keywords as options. Raises InputError for an
    invalid value, and with a study or a `Dataset` if a keyword is no setting and not in `of_study`.
    """
    settings = {name: value for name, value in keywords.items() if name in Rules.model_fields}
    for name, value in settings.items():
        if isinstance(value, str) and get_origin(Rules.model_fields[name].annotation) is tuple:
            settings[name] = [value]  # a single text for a setting that takes several
    if "missing" in settings:
        settings["missing"] = as_texts(settings["missing"])
    options = {name: value for name, value in keywords.items() if name not in settings}
    options = {name: value for name, value in options.items() if value is not None}
    source = Path(ratings) if isinstance(ratings, (str, os.PathLike)) else ratings
    for name in sorted(options.keys() - set(of_study)):  # a study or a Dataset settles these
        if isinstance(source, Dataset):
            raise InputError(
                "a Dataset knows its name, raters, scales and units; give only settings with it, "
                "such as margin=0.05"
            )
        if isinstance(source, Path) and is_study(source):
            raise InputError(f"{name}= is for ratings; a study has rubrics of its own")
    human, model = options.pop("human", ()), options.pop("model", ())
    for name in ("categories", "affirmative", "sides"):
        if name in options:
            if name != "affirmative" and isinstance(options[name], (str, set, frozenset)):
                raise InputError(f'{name} is in order; give a list, such as {name}=["1", "2"]')
            options[name] = as_texts(options[name])
    if isinstance(units := options.get("units"), (str, os.PathLike)):
        options["units"] = Path(units)
    options["columns"] = _columns(options.get("columns"))
    options["thresholds"] = dict(options.get("thresholds") or {})
    for grader, value in options["thresholds"].items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"thresholds has {value!r} for {grader!r}; give a number from 0 to 1")
    kinds = kinds_of(human, model)
    return source, ScaleOptions(**options, kinds=kinds, settings=settings, in_python=True)


def _columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return the user's names of columns by ours, which may be short (`unit` for `unit_id`)."""
    return {SHORT.get(ours, ours): theirs for ours, theirs in (columns or {}).items()}
