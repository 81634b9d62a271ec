"""Reading a file of ratings (`read_export`), or of items to be rated (`read_items`), in its format:
the one that is named, or the first that recognises the content. In ratings an item is called a
unit. A judge is a model with labels in such a file.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from evenhand.errors import InputError
from evenhand.exchange.readers import annotation_tools, benchmarks, plain_files, traces
from evenhand.exchange.readers.rows import Export, ItemRows, ItemTable, NoRatingError, Reader, Rows
from evenhand.exchange.readers.source import TOOLS, Source
from evenhand.study.tables.formats import HEADLESS, read_table
from evenhand.texts import written

_LabelsByJudge = Mapping[str, Mapping[str, str]]  # labels by judge and unit
_MOST_NAMED = 8  # judges that a note names


@dataclass(frozen=True, kw_only=True)
class ToolFormat:
    """A format that a tool writes, by its `key` in tools.toml and texts.toml. In a table of items
    `cluster` is the column with one value for items that belong together, and `show` are those that
    raters read (empty: recognised by their names). `users_fields` is True where the tool's users
    name an item's texts. `without` tells, in an error, what a file without items holds ("": none).
    """

    key: str
    reader: Reader
    cluster: str = ""
    show: Sequence[str] = ()
    users_fields: bool = False
    without: str = ""

    @property
    def name(self) -> str:
        """The name for `--format`."""
        return self.key.replace("_", "-")

    def ratings(self, source: Source) -> Export:
        """Return the ratings in a file of this format. Raises InputError if it cannot be read."""
        rows = Rows(source)
        export = self.reader.ratings(rows, source)  # None: the ratings were added to `rows`
        return export or rows.export(written(f"exchange.{self.key}"))

    def items(self, source: Source) -> ItemTable | None:
        """Return the items in a file of this format; None if it is of another. Raises InputError if
        the file cannot be read, or holds ratings alone.
        """
        if not (self.reader.has_items or self.reader.recognises)(source):
            if self.without and self.reader.recognises(source):
                raise InputError(f"{source.name} holds {self.without}")
            return None
        rows = ItemRows(source, users_fields=self.users_fields)
        table = self.reader.items(rows, source)  # None: the items were added to `rows`
        return table or rows.items(written(f"exchange.{self.key}_items"), self.cluster, self.show)


TABLE = "table"  # CSV with any delimiter, JSONL and Parquet as `study.tables` reads them
_READERS = annotation_tools.READERS | benchmarks.READERS | plain_files.READERS | traces.READERS
_ORDER = (
    "excel", "inspect", "label_studio", "mlflow", "langfuse", "langsmith", "promptfoo", "deepeval",
    "argilla", "potato", "prodigy", "doccano", "phoenix", "opik", "weave", "braintrust",
    "lm_eval", "pair_votes", "hugging_face", "chat", "json",
)  # fmt: skip
_ITEM_TABLES = {key: TOOLS.get(key, {}).get("item_table", {}) for key in _ORDER}
_FORMATS = [ToolFormat(key=key, reader=_READERS[key], **_ITEM_TABLES[key]) for key in _ORDER]
ITEM_READERS = {tool_format.name: tool_format for tool_format in _FORMATS}
"""Formats of items by the name for `--format`, tried in this order."""
READERS = {name: ITEM_READERS[name] for name in ITEM_READERS if name != "chat"}
"""Formats of ratings by name, tried in this order; chats have no ratings."""
FORMATS = (TABLE, HEADLESS, *READERS)


def read_export(
    path: str | Path, named: str | None = None, *, several: bool = False, sheet: str = ""
) -> Export:
    """Read a file in the `named` format (whatever its case and hyphens), else in the one that its
    content suggests; a file that no reader recognises is a table. With `several` an answer may be a
    list of labels; `sheet` names one of a workbook. Raises InputError if that fails.
    """
    source = Source(Path(path), several=several, sheet=sheet)
    name = _format_called(named) if named else format_of(source)
    _check_sheet(source, name)
    if name in (TABLE, HEADLESS) or not source.path.exists():
        return Export(read_table(path, headed=name == TABLE))
    tool_format = READERS[name]
    if named and not tool_format.reader.recognises(source):
        likely = format_of(source)
        hint = f"; it looks like {likely}" if likely != TABLE else ""
        raise InputError(f"{source.name} is not in the format {name}{hint}")
    try:
        return tool_format.ratings(source)
    except NoRatingError as fault:
        advice = ""
        with suppress(InputError, RecursionError):  # then there are no items to rate either
            if tool_format.items(source) is not None:
                advice = " " + written("exchange.to_be_rated", file=source.name)
        raise InputError(f"{fault}{advice}") from None


def _format_called(typed: str) -> str:
    """Return the name of the format that a user typed. Raises InputError if there is none."""
    plain = typed.casefold().replace("_", "").replace("-", "")
    for name in FORMATS:
        if name.replace("-", "") == plain:
            return name
    raise InputError(f"there is no format {typed!r}; use {', '.join(FORMATS)}")


def _check_sheet(source: Source, name: str) -> None:
    """Raise InputError if a sheet is named of a file that is no workbook."""
    if source.sheet and name != "excel" and source.path.exists():
        raise InputError(f"{source.name} is no workbook of Excel; leave --sheet out")


def read_items(
    path: str | Path, judge: str = "", *, compared: bool = False, sheet: str = ""
) -> ItemTable:
    """Read a file of items in the format that its content suggests; a file that no reader
    recognises is a table. With `judge`, the labels of this scorer, feedback or assessment in the
    file become a column of this name. With `compared`, the votes on two answers become one row with
    both. `sheet` names one of a workbook. Raises InputError where the file cannot be read, holds no
    texts, or has no labels of the judge.
    """
    source = Source(Path(path), sheet=sheet)
    if sheet:
        _check_sheet(source, format_of(source))
    for name, tool_format in ITEM_READERS.items():
        may_be_votes = compared and name in ("pair-votes", "hugging-face")
        try:
            comparisons = annotation_tools.pairs(source) if may_be_votes else None
            items = comparisons or tool_format.items(source)
        except RecursionError:
            raise InputError(f"{source.name} is nested too deeply to be read") from None
        if items is not None:
            labels_by_judge = _labels_by_judge(tool_format, items, source)
            if judge:
                return _with_judge(items, judge, labels_by_judge, source.name)
            names = ", ".join(_judges_on(items, labels_by_judge)[:_MOST_NAMED])
            notes = [written("exchange.judges", names=names)] if names else []
            return replace(items, notes=[*items.notes, *notes])
    return ItemTable(read_table(path))


def _labels_by_judge(tool_format: ToolFormat, items: ItemTable, source: Source) -> _LabelsByJudge:
    """Return the labels by models, or by raters of an unknown kind, in a file of items: for each
    judge by unit. A judge is called by its rubric, or without one by its id; further judges of a
    rubric by both. Contradictory labels of a unit are "".
    """
    if tool_format.name not in READERS or not items.units:  # no ratings, or no ids to find them by
        return {}
    try:
        rows = tool_format.ratings(source).table
    except InputError:  # the file has no ratings
        return {}
    if not {"unit_id", "rubric", "rater_id", "label"} <= set(rows):  # not one rating a row
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
            labels[unit] = label if labels.get(unit, label) == label else ""  # "": contradictory
    return labels_by_judge


def _with_judge(items: ItemTable, judge: str, by_judge: _LabelsByJudge, file: str) -> ItemTable:
    """Return items with a judge's labels as a column. A table that has such a column, or whose ids
    are not known, stays as it is. Otherwise raises InputError if the judge has no labels on items.
    """
    labels, judges = by_judge.get(judge, {}), _judges_on(items, by_judge)
    if judge in judges:
        column = [labels.get(unit, "") for unit in items.units]
        return replace(items, table=items.table.assign(**{judge: column}))
    if judge in items.table or not items.units:
        return items
    if labels:
        raise InputError(
            f"{file}: the labels of {judge!r} are not on the items but on other parts of the "
            "file, such as steps within a trace; name a file of these alone"
        )
    hint = f"it has those of {', '.join(judges)}" if judges else "it has no model's labels"
    raise InputError(f"{file} has no labels of the judge {judge!r}; {hint}")


def _judges_on(items: ItemTable, labels_by_judge: _LabelsByJudge) -> list[str]:
    """Return the judges with labels on items, not on other parts of the file alone."""
    units = set(items.units)
    return [judge for judge, labels in labels_by_judge.items() if units & labels.keys()]


def format_of(source: Source) -> str:
    """Return the name of the format of a file; `table` where no reader recognises it."""
    return next((name for name in READERS if READERS[name].reader.recognises(source)), TABLE)
