"""Names of figures and tables: the anchor on the page and the name of its files."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace

from evenhand.analysis.report.blocks import Block, Chart, Part, ReportSection, Table

METHODS = "methods"
"""The paragraph to paste."""
_LONGEST = 110


def named(sections: Sequence[ReportSection]) -> list[ReportSection]:
    """The sections with a name for every figure and table, each made of its caption and used once:
    a second one of the same caption has a number.
    """
    # Other anchors on the page.
    taken = {"main", "overview", "appendix", METHODS} | {each.id for each in sections}
    taken |= {f"{each.id}-title" for each in sections}
    return [
        replace(
            section,
            blocks=_with_names(section.blocks, taken),
            parts=tuple(_part_with_names(part, taken) for part in section.parts),
        )
        for section in sections
    ]


def _part_with_names(part: Part, taken: set[str]) -> Part:
    return replace(part, open=_with_names(part.open, taken), folded=_with_names(part.folded, taken))


def _with_names(blocks: Iterable[Block], taken: set[str]) -> tuple[Block, ...]:
    return tuple(_with_name(block, taken) for block in blocks)


def _with_name(block: Block, taken: set[str]) -> Block:
    if isinstance(block, Chart):
        name = _new_name(block.caption, taken)
        tables = tuple(replace(each, name=_new_name(each.caption, taken)) for each in block.data)
        return replace(block, name=name, data=tables)
    if isinstance(block, Table):
        return replace(block, name=_new_name(block.caption, taken))
    return block


def _new_name(caption: str, taken: set[str]) -> str:
    stem = plain_name(caption)
    name, count = stem, 1
    while name in taken:
        count += 1
        name = f"{stem}-{count}"
    taken.add(name)
    return name


def plain_name(text: str) -> str:
    """A text as a file name that any system accepts.

    >>> plain_name("Refusal: Cohen κ of every two raters (synthetic)")
    'refusal-cohen-k-of-every-two-raters-synthetic'
    >>> plain_name("評価"), plain_name("../Größe")
    ('figure', 'grosse')
    """
    latin = text.replace("κ", "k").replace("α", "alpha").replace("π", "pi").replace("ß", "ss")
    bare = unicodedata.normalize("NFKD", latin).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", bare).strip("-")[:_LONGEST].strip("-") or "figure"
