"""Traces: what tools record of an application's steps. The uppermost step that has an answer is an
item; what steps below it retrieved is its context, and the model that they asked is its subject.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from evenhand.exchange.readers.items import ItemRows
from evenhand.exchange.readers.source import Record, text_of
from evenhand.exchange.readers.texts import documents, texts_of
from evenhand.texts import written

_RETRIEVER = "retriever"
_NO_ANSWER = (_RETRIEVER, "embedding", "reranker", "tool", "parser", "prompt", "event", "guardrail")
"""Kinds of steps that answer nobody."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """One step of a trace: `given` and `made` are its input and output, `documents` what it
    retrieved, if it says so apart. `unit` is its id among the file's ratings, `item_id` the tool's
    own, and `ids` are the columns by which the tool finds it again. An `inner` one is no item.
    """

    id: str
    trace: str
    parent: str
    kind: str
    given: object
    made: object
    unit: str
    item_id: str
    ids: Record
    inner: bool = False
    model: str = ""
    documents: object = None
    expected: object = None
    cluster: str = ""
    about: Record = field(default_factory=dict)

    @property
    def answers(self) -> bool:
        empty = self.inner or self.made in (None, "", [], {})
        return not empty and self.kind.casefold() not in _NO_ANSWER

    @property
    def retrieved(self) -> str:
        if self.documents:
            return documents(self.documents)
        return documents(self.made) if self.kind.casefold() == _RETRIEVER else ""


def add_traces(rows: ItemRows, spans: Iterable[Span]) -> None:
    """Add the items of all traces: of each the uppermost spans that answer."""
    traces: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        traces[span.trace].append(span)
    for own in traces.values():
        known = {span.id for span in own}
        below: dict[str, list[Span]] = defaultdict(list)
        for span in own:
            below[span.parent if span.parent in known else ""].append(span)
        found = _uppermost(below)
        if not found:
            rows.leave_out(written("left_out.no_answer"))
        for span in found:
            _add(rows, span, _under(span, below))


def _uppermost(below: dict[str, list[Span]]) -> list[Span]:
    level, seen = below.get("", []), {""}
    while level:
        if found := [span for span in level if span.answers]:
            return found
        new = list(dict.fromkeys(span.id for span in level if span.id not in seen))
        seen |= set(new)
        level = [each for name in new for each in below.get(name, ())]
    return []


def _under(span: Span, below: dict[str, list[Span]]) -> list[Span]:
    """The span and all below it, in the order of the file within each level."""
    found, seen = [span], {span.id}
    for each in found:
        new = [own for own in below.get(each.id, ()) if own.id not in seen]
        seen |= {own.id for own in new}
        found += new
    return found


def _add(rows: ItemRows, span: Span, under: list[Span]) -> None:
    retrieved = [text for each in under if (text := each.retrieved)]
    models = [each.model for each in under if each.model]
    rows.add(
        span.unit,
        texts_of(
            span.given,
            span.made,
            context="\n\n".join(dict.fromkeys(retrieved)) or None,
            expected=span.expected,
        ),
        item_id=span.item_id,
        subject=span.model or (models[-1] if models else ""),
        cluster=span.cluster,
        ids=span.ids,
        about=span.about,
    )


def name_of(*values: object) -> str:
    """The first of these that is a name or a number."""
    return next(filter(None, map(text_of, values)), "")
