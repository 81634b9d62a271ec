"""Reading a file of ratings (`read_export`) or items (`read_items`) with the reader of its format:
the one that is named, or the first that recognises the content.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from evenhand.errors import InputError
from evenhand.exchange.readers import annotation_tools, benchmarks, plain_files, traces
from evenhand.exchange.readers.rows import Export, ItemRows, ItemTable, NoRatingError, Rows
from evenhand.exchange.readers.source import TOOLS, Source
from evenhand.study.tables.formats import HEADLESS, read_table
from evenhand.texts import written

_MOST_NAMED = 8
TABLE = "table"
"""CSV with any delimiter, JSONL and Parquet as `study.tables` reads them."""
_BY_TOOL = annotation_tools.READERS | benchmarks.READERS | plain_files.READERS | traces.READERS
_RATING_TOOLS = (
    "excel", "inspect", "label_studio", "mlflow", "langfuse", "langsmith", "promptfoo", "deepeval",
    "argilla", "potato", "prodigy", "doccano", "phoenix", "opik", "weave", "braintrust",
    "lm_eval", "pair_votes", "hugging_face", "json",
)  # fmt: skip
READERS = {tool.replace("_", "-"): _BY_TOOL[tool] for tool in _RATING_TOOLS}
"""Readers by the name for `--format`, tried in this order."""
FORMATS = (TABLE, HEADLESS, *READERS)


def _ratings(name: str, source: Source) -> Export:
    """Return the ratings in a file of this format."""
    rows, tool = Rows(source), name.replace("-", "_")
    return READERS[name].ratings(rows, source) or rows.export(written(f"exchange.{tool}"))


def _items(name: str, source: Source) -> ItemTable | None:
    """Return the items of a file in this format, else None; ratings alone raise InputError."""
    tool = name.replace("-", "_")
    reader, fields = _BY_TOOL[tool], TOOLS.get(tool, {})
    if not (reader.has_items or reader.recognises)(source):
        if "without" in fields and reader.recognises(source):
            raise InputError(f"{source.name} holds {fields['without']}")
        return None
    rows = ItemRows(source, fields=fields.get("users_fields", False))
    if table := reader.items(rows, source):
        return table
    how_read = written(f"exchange.{tool}_items")
    return rows.items(how_read, fields.get("cluster", ""), fields.get("show", ()))


_ORDER = [*(name for name in READERS if name != "json"), "chat", "json"]
ITEM_READERS = {name: partial(_items, name) for name in _ORDER}
"""Readers of items by format, tried in this order; chats have no ratings."""


def read_export(
    path: str | Path, form: str | None = None, *, several: bool = False, sheet: str = ""
) -> Export:
    """Read a file in the format named (whatever its case and hyphens), else in the one that its
    content suggests; a file that no reader recognises is a table. With `several` an answer may be a
    list of labels; `sheet` names one of a workbook. Raises InputError where it cannot be read, or
    is not of that format.
    """
    source = Source(Path(path), several=several, sheet=sheet)
    plain = form.casefold().replace("_", "").replace("-", "") if form else ""
    matches = [name for name in FORMATS if name.replace("-", "") == plain]
    if form and not matches:
        raise InputError(f"there is no format {form!r}; use {', '.join(FORMATS)}")
    name = matches[0] if form else format_of(source)
    _check_sheet(source, name)
    if name in (TABLE, HEADLESS) or not source.path.exists():
        return Export(read_table(path, headed=name == TABLE))
    if form and not READERS[name].recognises(source):
        likely = format_of(source)
        also = f"; it looks like {likely}" if likely != TABLE else ""
        raise InputError(f"{source.name} is not in the format {name}{also}")
    try:
        return _ratings(name, source)
    except NoRatingError as fault:
        try:
            items = _items(name, source)
        except (InputError, RecursionError):
            items = None
        advice = written("exchange.to_be_rated", file=source.name) if items is not None else ""
        raise InputError(f"{fault} {advice}".rstrip()) from None


def _check_sheet(source: Source, name: str) -> None:
    """Raise InputError where a sheet is named of a file that is no workbook."""
    if source.sheet and name != "excel" and source.path.exists():
        raise InputError(f"{source.name} is no workbook of Excel; leave --sheet out")


def read_items(
    path: str | Path, judge: str = "", *, compared: bool = False, sheet: str = ""
) -> ItemTable:
    """Read a file of items in the format that its content suggests; a file that no reader
    recognises is a table. With `judge`, the labels of this scorer, feedback or assessment in the
    file become a column of this name. With `compared`, votes between two answers give a row for the
    two. `sheet` names one of a workbook.

    Raises InputError where the file cannot be read, holds no texts, or has no labels of the judge.
    """
    source = Source(Path(path), sheet=sheet)
    if sheet:
        _check_sheet(source, format_of(source))
    for name, items in ITEM_READERS.items():
        may_be_votes = compared and name in ("pair-votes", "hugging-face")  # a row is then a vote
        try:
            table = (annotation_tools.pairs(source) if may_be_votes else None) or items(source)
        except RecursionError:
            raise InputError(f"{source.name} is nested too deeply to be read") from None
        if table is not None:
            return _with_judge(table, name, judge, source)
    return ItemTable(read_table(path))


def _labels_of_judges(name: str, items: ItemTable, source: Source) -> dict[str, dict[str, str]]:
    """Return the labels by models, or by raters of an unknown kind, in a file of items: for each
    judge by unit. A judge is called after its rubric, else by its id; further ones of a rubric by
    both.
    """
    if name not in READERS or not items.units:
        return {}
    try:
        rows = _ratings(name, source).table
    except InputError:  # the file has no ratings
        return {}
    if not {"unit_id", "rubric", "rater_id", "label"} <= set(rows):
        return {}
    labels_by_judge: dict[str, dict[str, str]] = {}
    rater_by_judge: dict[str, str] = {}
    for row in rows[rows["rater_kind"].isin(["model", ""])].to_dict("records"):
        rubric, rater, unit = row["rubric"], row["rater_id"], row["unit_id"]
        judge = rubric or rater
        if rater_by_judge.setdefault(judge, rater) != rater:
            judge = f"{rubric}/{rater}"
        if label := row["label"]:
            labels = labels_by_judge.setdefault(judge, {})
            labels[unit] = label if labels.get(unit, label) == label else ""  # contradictory
    return labels_by_judge


def _with_judge(items: ItemTable, reader: str, judge: str, source: Source) -> ItemTable:
    """Return items with a judge's labels as a column, or a note on the judges in the file."""
    by_judge, name = _labels_of_judges(reader, items, source), source.name
    on_items = [other for other in by_judge if not by_judge[other].keys().isdisjoint(items.units)]
    if judge in on_items:
        labels = [by_judge[judge].get(unit, "") for unit in items.units]
        return replace(items, table=items.table.assign(**{judge: labels}))
    if judge and items.units and judge not in items.table:
        if judge in by_judge:
            raise InputError(
                f"{name}: the labels of {judge!r} are not on the items but on other parts of the "
                "file, such as steps within a trace; name a file of these alone"
            )
        hint = f"it has those of {', '.join(on_items)}" if on_items else "it has no model's labels"
        raise InputError(f"{name} has no labels of the judge {judge!r}; {hint}")
    if on_items and not judge:
        note = written("exchange.judges", names=", ".join(on_items[:_MOST_NAMED]))
        return replace(items, notes=[*items.notes, note])
    return items


def format_of(source: Source) -> str:
    """Return the name of the format of a file; `table` where no reader recognises it."""
    recognised = (name for name, reader in READERS.items() if reader.recognises(source))
    return next(recognised, TABLE)
