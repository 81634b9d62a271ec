r"""Formulas in a response's Markdown, kept verbatim: annotators judge the signs that graders read.

A formula is known by its delimiters: `\( \)`, `\[ \]`, `$$ $$`, `\begin{X} \end{X}`, and on one
line `$ $`, where neither touches a space on its inner side and no digit follows, so that $5 and $6
are prices (as Pandoc takes them).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit, getLine
from markdown_it.rules_inline import StateInline

_CLOSED_BY = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_BEGIN = re.compile(r"\\begin\{(\w{1,40}\*?)\}")


def keep_formulas(parser: MarkdownIt) -> None:
    """Make a parser leave formulas as they are."""
    parser.inline.ruler.before("escape", "formula", _in_a_line)
    parser.block.ruler.before(
        "fence", "formula", _over_lines, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.block.ruler.before("lheading", "paragraph with formula", _within_lines)
    parser.block.ruler.at("table", _whole_table, {"alt": ["paragraph", "reference"]})


def _closer(text: str, at: int) -> str:
    """The delimiter that closes a formula which begins here; "" where none begins."""
    if begin := _BEGIN.match(text, at):
        return f"\\end{{{begin[1]}}}"
    return _CLOSED_BY.get(text[at : at + 2], "")


def _in_a_line(state: StateInline, silent: bool) -> bool:
    """Take a formula as text, if one begins at the state's place."""
    end = _end(state)
    if end < 0:
        return False
    if not silent:
        first, *others = state.src[state.pos : end].split("\n")
        state.pending += first
        for line in others:
            state.push("softbreak", "br", 0)
            state.pending += line
    state.pos = end
    return True


def _end(state: StateInline) -> int:
    """The place after the formula that begins at the state's place, or -1."""
    text, at = state.src, state.pos
    if text[at] not in "\\$":
        return -1
    closer = _closer(text, at)
    if not closer:
        return _end_of_dollars(text, at, state.posMax) if text[at] == "$" else -1
    # Searched once for each closer: unclosed formulas would cost the square of the length.
    missing = state.env.setdefault("unclosed formulas", set())
    if (text, closer) in missing:
        return -1
    found = text.find(closer, at + 2, state.posMax)
    if found < 0:
        missing.add((text, closer))
        return -1
    return found + len(closer)


def _end_of_dollars(text: str, at: int, limit: int) -> int:
    line_end = text.find("\n", at, limit)
    stop = limit if line_end < 0 else line_end
    if at + 1 >= stop or text[at + 1].isspace():
        return -1
    found = text.find("$", at + 1, stop)
    while found > 0 and _is_escaped(text, found):
        found = text.find("$", found + 1, stop)
    if found < 0 or text[found - 1].isspace() or text[found + 1 : found + 2].isdigit():
        return -1
    return found + 1


def _is_escaped(text: str, at: int) -> bool:
    first = at
    while first and text[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


def _over_lines(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Take a formula of several lines as one paragraph, whatever its lines look like."""
    if state.is_code_block(start):
        return False
    text, at = state.src, state.bMarks[start] + state.tShift[start]
    closer = _closer(text, at)
    seen = state.env.setdefault("unclosed formula lines", {})
    if not closer or start < seen.get(closer, 0):
        return False
    for line in range(start, end):
        first = at + 2 if line == start else state.bMarks[line] + state.tShift[line]
        # A blank line ends it, and so does the end of a quote or a list item.
        if state.isEmpty(line) or (line > start and state.sCount[line] < state.blkIndent):
            seen[closer] = line
            return False
        if text.find(closer, first, state.eMarks[line]) >= 0:
            return line > start and _added(state, start, line, silent)
    seen[closer] = end
    return False


def _added(state: StateBlock, start: int, last: int, silent: bool) -> bool:
    if silent:
        return True
    state.push("paragraph_open", "p", 1)
    inner = state.push("inline", "", 0)
    inner.content = state.getLines(start, last + 1, state.blkIndent, False).strip()
    inner.map, inner.children = [start, last + 1], []
    state.push("paragraph_close", "p", -1)
    state.line = last + 1
    return True


def _within_lines(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Take a paragraph in which a formula goes on over lines: none of its lines begins a list, a
    heading or a quote.
    """
    around, state.parentType = state.parentType, "paragraph"
    line, goes_on = start, False
    while line == start or not _ends_paragraph(state, line, end):
        closed = _closed_on(state, line, end)
        goes_on |= closed > line
        line = closed + 1
    state.parentType = around
    return goes_on and _added(state, start, line - 1, silent)


def _ends_paragraph(state: StateBlock, line: int, end: int) -> bool:
    if line >= end or state.isEmpty(line):
        return True
    if state.sCount[line] < 0 or state.is_code_block(line):
        return False
    rules = state.md.block.ruler.getRules("paragraph")
    return any(rule(state, line, end, True) for rule in rules)


def _closed_on(state: StateBlock, line: int, end: int) -> int:
    """The line that closes what this one leaves open; the line itself where nothing does."""
    unclosed = state.env.setdefault("unclosed over lines", {})
    at = state.bMarks[line]
    while closer := _left_open(state.src[at : state.eMarks[line]]):
        if line < unclosed.get(closer, 0):
            return line
        closed, at = line, -1
        while at < 0:
            closed += 1
            if closed >= end or state.isEmpty(closed):
                unclosed[closer] = closed
                return line
            at = state.src.find(closer, state.bMarks[closed], state.eMarks[closed])
        line, at = closed, at + len(closer)
    return line


def _left_open(line: str) -> str:
    """The delimiter that closes the formula which a line leaves open; "" where it leaves none."""
    return next((closer for _, closer in _formulas(line) if closer), "")


def _formulas(line: str) -> Iterator[tuple[str, str]]:
    """The formulas of a line; one that it leaves open comes last, with what closes it."""
    at = 0
    while at < len(line):
        beyond = at + 1
        if line[at] == "`":  # nothing in code is a formula
            while line[beyond : beyond + 1] == "`":
                beyond += 1
            beyond = max(line.find(line[at:beyond], beyond) + beyond - at, beyond)
        elif closer := _closer(line, at):
            if (found := line.find(closer, at + 2)) < 0:
                yield line[at:], closer
                return
            beyond = found + len(closer)
            yield line[at:beyond], ""
        elif line[at] == "\\":
            beyond = at + 2
        elif line[at] == "$" and (found := _end_of_dollars(line, at, len(line))) > 0:
            beyond = found
            yield line[at:beyond], ""
        at = beyond


def _whole_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Take a table, unless it would lose something: the bars within a formula, or cells beyond
    those of its head. Such a one is shown as it is written.
    """
    before = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    if silent:
        return True
    rows = [getLine(state, line).strip() for line in range(start, state.line) if line != start + 1]
    width = len(_cells(rows[0]))
    if not any(_has_bar(row) or any(map(str.strip, _cells(row)[width:])) for row in rows):
        return True
    del state.tokens[before:]
    state.line = start
    return False


def _cells(row: str) -> list[str]:
    return escapedSplit(row.removeprefix("|").removesuffix("|"))


def _has_bar(row: str) -> bool:
    return any("|" in formula for formula, left_open in _formulas(row) if not left_open)
