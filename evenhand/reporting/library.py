"""`import evenhand`: in a notebook or a script what the command line does with a file.

Each function takes labels in any of these forms: a table of pandas, polars, pyarrow or another
library, a dict of columns, a list of records, the path of a file or of a study's folder, or a
`Dataset`. What it returns prints as the command does, shows itself in notebooks, and has the
figures as DataFrames.
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
from evenhand.reporting.keywords import taking
from evenhand.reporting.load import from_study, is_file, is_study, load
from evenhand.reporting.panel import Line, Shown, as_text, verdict_lines
from evenhand.reporting.planning import Assumptions, Plan, Wanted, plan_ahead, plan_from
from evenhand.reporting.ratings_file.criteria import with_scores
from evenhand.reporting.ratings_file.dataframes import Names, as_texts, kinds_of, rows_of_file
from evenhand.reporting.ratings_file.declared import LabelOptions, ScaleOptions
from evenhand.reporting.selecting import Calibration, Selection
from evenhand.study.settings.analysis import Rules
from evenhand.study.tables.columns import SHORT
from evenhand.study.tables.files import check_folder
from evenhand.study.tables.ratings import RATINGS_COLUMNS, validate_ratings

if TYPE_CHECKING:
    from evenhand.reporting.gate import Comparison, Gate
    from evenhand.reporting.keyword_types import (
        LabelKeywords,
        PlanKeywords,
        RatingsKeywords,
        TuningKeywords,
    )
    from evenhand.reporting.load import Source
    from evenhand.reporting.new_study import Labelling
    from evenhand.reporting.ratings_file.declared import Table

    Labels = Table | Dataset | str | os.PathLike[str]
    """Labels in any of their forms."""


@dataclass(frozen=True, repr=False)
class Check(Shown):
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
        folder = Path(path)
        check_folder(folder)
        write_report(self.analysis, self.context, folder)
        return folder / "report.html"

    @property
    def lines(self) -> list[Line]:
        """The panel, and the verdicts with their limits."""
        return [*render_table_text(self.analysis, self.context), *verdict_lines(self.analysis)]

    def __str__(self) -> str:
        return as_text([*self.context.said, *self.lines])  # the analysis' own notes are lines

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
    `model` name the raters, or the columns of labels of a wide table, where the file does not give
    their kind. `columns` are its names of our columns: `{"unit_id": "item"}`. `wide` is how columns
    of each rater and rubric are called, as in `"{rater}_{rubric}"`; `sheet` is one of a workbook.

    Returns a row for each rating: the columns of `ratings` (see data/README.md), with "" and NaN
    where the file has none, then all other columns of the file, as text. `item_id` becomes
    `unit_id`. `.attrs["notes"]`, which `check` shows, lists how columns were read and what was left
    out.
    Raises InputError, naming the row, where the file cannot be read or breaks a rule.
    """
    options = ScaleOptions(
        format=format,
        kinds=kinds_of(human, model),
        columns=_columns(columns),
        wide=wide,
        sheet=sheet,
        in_python=True,
    )
    rows, reading = rows_of_file(Path(path), options)
    others = [column for column in rows if column not in RATINGS_COLUMNS]
    table = validate_ratings(rows, Path(path).name).join(rows[others])
    table.attrs["notes"] = reading.notes
    return table


@taking()
def open_study(folder: str | os.PathLike[str]) -> Dataset:
    """Load a study's folder: its ratings and units, with scales, settings and all that says which
    of them count.

    `check` takes it. `.ratings` and `.units` are its tables, `.counted(name)` the ratings of one
    rubric that count. Nothing is written, and no look at the labels is counted, so that there is no
    verdict on those that came in since the last `evenhand report`. Raises InputError where the
    folder holds no study.
    """
    from evenhand.study import open_study

    with open_study(Path(folder)) as study:
        return with_scores(from_study(study))


@taking("RatingsKeywords")
def check(ratings: Labels, **options: Unpack[RatingsKeywords]) -> Check:
    """Measure how well human and model raters agree, and judge whether a model can replace a human
    rater.

    `ratings` is a table of pandas, polars, pyarrow or another library, a dict of columns, a list of
    records, or a path. A table is *long*, a row for each rating with `unit_id` (or `item_id`),
    `rater_id`, `rater_kind` (human or model) and `label`, as `read` gives it; or *wide*, a row for
    each unit and a column of labels for each rater that `human` and `model` name, or for each of
    them and each rubric, called as the pattern `wide` says: `"{rater}_{rubric}"`. A wide table's
    units are named by its column `unit_id` or `item_id`, else by its index; a missing cell (None,
    NaN) is no rating, an empty text one without a label. In a long table `human` and `model` may
    name the raters who count and say what they are, if there is no `rater_kind`. `columns` are the
    table's names of our columns, `{"unit_id": "item"}`. All other columns describe the units, and
    so do the columns of `units`, a table or file with a `unit_id`; `cluster_id` among them, or the
    column that `cluster` names, is what is resampled.

    The scale is declared: `categories` are all permitted labels, in order; `level` is "nominal",
    "ordinal" or "interval"; `affirmative` are the labels that count as yes, `sides` the two that
    favour side a and side b; `thresholds` are by grader. `rubric` picks one of several in a long
    table, and brings the scale of a shipped rubric or of a rubric's file. Without `level` three or
    more whole numbers in a row, such as 1 to 5, are ordinal, and a note says so; other labels are
    nominal. Without `categories` the labels seen are taken, and a note says so, too.

    With `several` a label is a set of options: "a;b", a JSON list, or "none". Each option is then a
    rubric of its own, such as "labels/a", with a verdict; `categories` are all options.

    Labels and names are read in one spelling where nobody sees a difference: without invisible
    characters, outer or double spaces and `.0`. Those that look alike (case, punctuation, leading
    zeros) raise InputError, unless `normalise` says that they are the same, or with False that they
    are not. `missing` are labels that say that there is none, such as `[99]`; what may be one, and
    what cannot be a label, raises InputError.

    Units that repeat an item are no more evidence than one of them: without `cluster_id`, a column
    that names items (`item`, `id`, `prompt` and others, or one that repeats as names and texts do)
    is what is resampled, and a note says which. With `independent` every unit is its own.

    A file is read as `evenhand check` reads it, in any of its formats (`read`), with what lies
    beside it. A study's folder is analysed as `evenhand report` does, which counts a look at new
    labels; a `Dataset`, as `open_study` gives one, counts none. Both know their scales and units,
    so that nothing but settings may be given with them.

    All other keywords are settings of the analysis as in study.toml, such as `cluster="topic"`,
    `margin=0.05`, `slices=["topic"]`, `resamples=500` or `seed=1` (see `analysis.analyse`).
    `name` is what messages and the report call a table; messages name a row by its index.

    Raises InputError, one sentence that says what is wrong and what to do: a keyword that there is
    not names the nearest.

    >>> import pandas as pd
    >>> labels = {"ann": "yyyynnnn" * 10, "ben": "yyynnnnn" * 10}
    >>> labels["grader"] = "yyyynnnn" * 5 + "yyynnnnn" * 5
    >>> table = pd.DataFrame({rater: list(given) for rater, given in labels.items()})
    >>> found = check(table, human=["ann", "ben"], model="grader", categories=["y", "n"])
    >>> kappa = found.results.query("statistic == 'cohen_kappa' and subset == 'all'")
    >>> kappa.set_index(["rater_a", "rater_b"]).loc[("ann", "ben"), "estimate"].item()
    0.75
    >>> [verdict["verdict"] for verdict in found.verdicts]
    ['can_replace']
    """
    return Check(*analyse_source(*_asked(ratings, options), verify=True))


@taking("RatingsKeywords")
def gate(
    ratings: Labels,
    grader: str,
    require: str | None = None,
    *,
    baseline: str | os.PathLike[str] | None = None,
    new_rubric: bool = False,
    **options: Unpack[RatingsKeywords],
) -> Gate:
    """Decide whether a grader passes, as `evenhand gate` does: by the rule `require`, such as
    "verdict, kappa.low > 0.6", by a `baseline` file that it must be unchanged from, or both. With
    neither the rule is the verdict.

    The result is true only if all is met. It has `passed` (True, False, None where we cannot tell),
    `exit_code`, `sentence`, `verdict`, and the `table` of checks. For `new_rubric` see `compare`;
    the other keywords are those of `check`, `rubric` also with a study.

    >>> labels = {"ann": "yyyynnnn" * 10, "ben": "yyynnnnn" * 10}
    >>> labels["grader"] = "yyyynnnn" * 5 + "yyynnnnn" * 5
    >>> columns = {rater: list(given) for rater, given in labels.items()}
    >>> who = {"human": ["ann", "ben"], "model": "grader", "categories": ["y", "n"]}
    >>> found = gate(columns, "grader", **who)
    >>> found.passed, found.exit_code, found.verdict
    (True, 0, 'can_replace')
    >>> print(gate(columns, "grader", "kappa > 0.9", **who).checks[0].line)
    not met  kappa (cohen_kappa), estimate: 0.872984, required > 0.9
    """
    from evenhand.reporting.gate import gate

    source, asked = _asked(ratings, options, of_study=["rubric"])
    file = None if baseline is None else Path(baseline)
    return gate(
        source, grader, require=require, baseline=file, options=asked, new_rubric=new_rubric
    )


@taking("RatingsKeywords")
def compare(
    ratings: Labels,
    grader: str,
    against: str = "",
    *,
    baseline: str | os.PathLike[str] | None = None,
    new_rubric: bool = False,
    **options: Unpack[RatingsKeywords],
) -> Comparison:
    """Compare a grader with what it was: unchanged, changed, or we cannot tell yet.

    `baseline` is a file of `evenhand baseline save`, and `ratings` have the grader's labels of now,
    under the name `against` if it has another one now: what `evenhand baseline compare` does.
    Without a baseline two graders in the same ratings are compared, `grader` with `against`.
    `new_rubric` allows a baseline of an older text of the rubric. The other keywords are those of
    `check`, of which scales and clusters are the baseline's.

    The result has `changed` (True, False, None where we cannot tell), `sentence`, the `table` of
    figures by rubric, and their `results`.

    >>> people = {"ann": list("yyyynnnn" * 10), "ben": list("yyynnnnn" * 10)}
    >>> graders = {"old": list("yyyynnnn" * 10), "new": list("nnyynnyy" * 10)}
    >>> found = compare(people | graders, "old", "new", human=people, model=graders)
    >>> found.changed
    True
    """
    from evenhand.reporting.gate import compare

    source, asked = _asked(ratings, options, of_study=["rubric"])
    file = None if baseline is None else Path(baseline)
    return compare(
        source, grader, against=against, baseline=file, options=asked, new_rubric=new_rubric
    )


@taking("RatingsKeywords")
def select(ratings: Labels, **options: Unpack[RatingsKeywords]) -> Selection:
    """Rank graders, as `evenhand select` does: which one for which rubric, at what price.

    The result has the ranking as a `table`, `recommendations`, `verdicts` and all `results`. The
    keywords are those of `check`.

    >>> labels = {"ann": "yyyynnnn" * 10, "ben": "yyynnnnn" * 10}
    >>> labels |= {"good": "yyyynnnn" * 5 + "yyynnnnn" * 5, "bad": "nnyyyynn" * 10}
    >>> columns = {rater: list(given) for rater, given in labels.items()}
    >>> found = select(columns, human=["ann", "ben"], model=["good", "bad"], categories=["y", "n"])
    >>> found.table[["grader", "verdict"]].values.tolist()
    [['good', 'can_replace'], ['bad', 'do_not_use']]
    """
    source, asked = _asked(ratings, options)
    analysis, context = analyse_source(source, asked)
    study = source if isinstance(source, Path) and is_study(source) else None
    return Selection(analysis, context.said, study)


@taking("TuningKeywords")
def calibrate(
    ratings: Labels,
    *,
    grader: str | None = None,
    reference: str = "humans",
    objective: str = "kappa",
    **options: Unpack[TuningKeywords],
) -> Calibration:
    """Tune the threshold from which a grader's probabilities count as a yes, as
    `evenhand calibrate` does: by an `objective` (kappa, agreement, f1, youden or prevalence), to
    the `reference`, which is people's majority or any rater.

    Probabilities are a column `p_positive` of a long table. The result has the recommended
    `thresholds`, by rubric and grader, and the `results` of all objectives. Nothing is written to a
    study. The other keywords are those of `check`, `rubric` also with a study.
    """
    from evenhand.reporting.selecting import calibrate

    source, asked = _asked(ratings, options, of_study=["rubric"])
    # Of a file only the rubric's rows are read, whatever the rubric is called there.
    return calibrate(
        load(source, asked),
        None if is_file(source) else asked.rubric,
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
    **options: Unpack[PlanKeywords],
) -> Plan:
    """Plan how many pairs and people a verdict takes, and a `statistic` whose 95% CI is to have a
    `half_width` (kappa, alpha, rate or threshold), as `evenhand plan` does.

    Without a `pilot` it goes by what is assumed of the raters: `agreement` and `prevalence`, or on
    a `scale` such as "1-5" `correlation` and `mean`; `raters`, `overlap`, `subjects`, `likeness`,
    `strictness` and `power` (see `Assumptions`). With labels as `check` takes them, and its
    keywords, it says how many more decide. The result has its `tables` as DataFrames.

    >>> found = plan(statistic="mean", half_width=0.05)
    >>> found.tables["sizes"]["labelled"].tolist()
    [384, 260, 224, 206, 196]
    """
    wanted = Wanted(statistic, half_width)
    named = {field.name for field in fields(Assumptions)}
    assumed: dict[str, Any] = {name: value for name, value in options.items() if name in named}
    others: dict[str, Any] = {name: value for name, value in options.items() if name not in named}
    if pilot is not None:
        for name in assumed:
            raise InputError(f"{name}= is an assumption for planning without a pilot; leave it out")
        source, asked = _asked(pilot, others)
        analysis, context = analyse_source(source, asked, why=True)
        return plan_from(analysis, wanted, context.said)
    for name in others:
        if name not in Rules.model_fields:
            raise InputError(f"{name}= is about the labels of a pilot; give its table or path")
    return plan_ahead(Assumptions(**assumed), wanted, others)


@taking("LabelKeywords")
def label(
    items: Table | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    port: int | None = None,
    open: bool = False,
    **asked: Unpack[LabelKeywords],
) -> Labelling:
    """Have people rate the rows of a file or a table, as `evenhand label` does: make a study of
    them in `folder` (FILE-study), or go on with the one that is there.

    Say what to ask: a `question` with `options` or a `scale` such as "1-5", of which with `several`
    any number may apply, or a `rubric`. Options that are whole numbers in a row are ordinal, others
    nominal, unless `level` says otherwise. `show` names the columns that raters read, in order;
    `subject` the one that says who answered, `cluster` that of rows that belong together, `judge`
    one with labels of a judge, which raters never see; those of `missing` are none. `sample` rows
    are labelled (250) by `raters` people (1), drawn by `seed`, with the shares of the columns
    `stratify`. With `each_turn` each turn of a conversation is rated by itself; two answers in a
    row are compared in `steps`.

    Nothing is served until it is asked for: the result has the `folder`, a link for each person
    (`links`), the `command` that serves their page, and `serve()`, which does so in the background.
    With `open` that is done at once and the first link opened in the browser.
    """
    from evenhand.local_page import app_port, open_when_up
    from evenhand.reporting.new_study import label_items

    source = Path(items) if isinstance(items, (str, os.PathLike)) else items
    if folder is None and not isinstance(source, Path):
        raise InputError("a table has no name for the study; name its folder: label(items, FOLDER)")
    place = Path(f"{Path(str(source)).stem}-study" if folder is None else folder)
    options: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    given = [f"--{name.replace('_', '-')}" for name in options]
    for name in ("show", "subject", "options", "stratify", "rubric", "missing"):
        if name in options:
            options[name] = list(as_texts(options[name]))
    wanted = LabelOptions(**options, in_python=True, given=given)
    labelling = label_items(source, place, wanted, port=app_port(port))
    if open:
        labelling.serve()
        open_when_up(labelling.links[0], labelling.port)
    return labelling


def _asked(
    ratings: Labels, options: Mapping[str, Any], of_study: Collection[str] = ()
) -> tuple[Source, ScaleOptions]:
    """Return the source of the labels, and what is said of them. With a study or a `Dataset` only
    settings may be, and the keywords `of_study`.
    """
    settings = {name: given for name, given in options.items() if name in Rules.model_fields}
    for name, given in settings.items():
        if isinstance(given, str) and get_origin(Rules.model_fields[name].annotation) is tuple:
            settings[name] = [given]
    if "missing" in settings:
        settings["missing"] = as_texts(settings["missing"])
    others = {
        name: given for name, given in options.items() if name not in settings and given is not None
    }
    source = Path(ratings) if isinstance(ratings, (str, os.PathLike)) else ratings
    for name in others.keys() - set(of_study):
        if isinstance(source, Dataset):
            raise InputError(
                "a Dataset knows its name, raters, scales and units; give only settings with it, "
                "such as margin=0.05"
            )
        if isinstance(source, Path) and is_study(source):
            raise InputError(f"{name}= is for ratings; a study has rubrics of its own")
    human, model = others.pop("human", ()), others.pop("model", ())
    for name in ("categories", "affirmative", "sides"):
        if name in others:
            if name != "affirmative" and isinstance(others[name], (str, set, frozenset)):
                raise InputError(f'{name} is in order; give a list, such as {name}=["1", "2"]')
            others[name] = as_texts(others[name])
    if isinstance(units := others.get("units"), (str, os.PathLike)):
        others["units"] = Path(units)
    others["columns"] = _columns(others.get("columns"))
    others["thresholds"] = dict(others.get("thresholds") or {})
    for grader, at in others["thresholds"].items():
        if isinstance(at, bool) or not isinstance(at, (int, float)):
            raise InputError(f"thresholds has {at!r} for {grader!r}; give a number from 0 to 1")
    kinds = kinds_of(human, model)
    return source, ScaleOptions(**others, kinds=kinds, settings=settings, in_python=True)


def _columns(given: Mapping[str, str] | None) -> dict[str, str]:
    """A file's names of our columns, `{ours: theirs}`; ours may be short, such as `unit`."""
    return {SHORT.get(ours, ours): theirs for ours, theirs in (given or {}).items()}
