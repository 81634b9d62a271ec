r"""Formulas in a response's Markdown, kept verbatim: annotators judge the signs that graders read.

A formula is known by its delimiters: `\( \)`, `\[ \]`, `$$ $$`, `\begin{X} \end{X}`, and on one
line `$ $`, where neither touches a space on its inner side and no digit follows, so that $5 and $6
are prices (as Pandoc takes them).
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

_CLOSED_BY = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_BEGIN = re.compile(r"\\begin\{(\w{1,40}\*?)\}")


def keep_formulas(parser: MarkdownIt) -> None:
    """Make a parser leave formulas as they are."""
    parser.inline.ruler.before("escape", "formula", _in_a_line)
    parser.block.ruler.before(
        "fence", "formula", _over_lines, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )


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
