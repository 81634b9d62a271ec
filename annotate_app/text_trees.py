"""Texts as trees of plain data, from which the panel and the other pages build what is shown:
Markdown, code in colours, passages, JSON that folds.

Only a closed list of nodes can be in the tree. No HTML passes through (it is text like any other),
no address of a response can be followed, no image is loaded. What the study's lead wrote -
guidelines, consent - may have links.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit, getLine
from markdown_it.rules_inline import StateInline
from markdown_it.tree import SyntaxTreeNode

from evenhand.rubrics.rendering import passages_of

# What is shown of code is the text itself, character by character; of JSON the same values as they
# are written, set out in lines. A text that cannot be drawn so is shown as it is.

Node = str | list[Any]
"""A text, or [tag, attributes, child, child, ...]."""

LONGEST = 50_000
"""Characters; a longer text is shown as it is written."""
MOST_PARTS = 20_000
"""More are too many for a page."""

_DEEPEST_JSON = 40


@lru_cache(maxsize=64)
def coloured(text: str, language: str) -> tuple[Node, ...] | None:
    """A program's text with its words, strings, numbers and comments in colours; None where it is
    too long.

    >>> coloured("return 'x'  # done", "python")[0]
    ['span', {'class': 'is-keyword'}, 'return']
    """
    from pygments import lex
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment, Keyword, Name, Number, String

    if len(text) > LONGEST:
        return None
    looks = {Comment: "is-comment", Keyword: "is-keyword"}
    looks |= {String: "is-string", Number: "is-number"}
    looks |= {Name.Function: "is-name", Name.Class: "is-name"}
    nodes: list[Node] = []
    for token, word in lex(text, get_lexer_by_name(language, stripnl=False, ensurenl=False)):
        look = next((name for kind, name in looks.items() if token in kind), "")
        nodes.append(["span", {"class": look}, word] if look else word)
    shown = "".join(node if isinstance(node, str) else node[2] for node in nodes)
    return tuple(nodes) if shown == text and len(nodes) <= MOST_PARTS else None


class _Written(str):
    """A number as it is written."""

    __slots__ = ()


@lru_cache(maxsize=64)
def folded(text: str, open_to: int = 2) -> tuple[Node, ...] | None:
    """A JSON text as lines, objects and lists from `open_to` levels on folded; None where it is no
    object or list, or too long or too deep.

    >>> folded('{"a": [1.50, "b"]}')[0][:3]
    ['details', {'start': 1}, ['summary', {}, '{ 1 }']]
    """
    if len(text) > 4 * LONGEST:
        return None
    try:
        held = json.loads(text, parse_int=_Written, parse_float=_Written, object_pairs_hook=tuple)
        nodes = [_node(held, "", 0, open_to)]
    except (ValueError, RecursionError):
        return None
    parts = sum(1 for _ in _all(nodes))
    return tuple(nodes) if isinstance(held, (tuple, list)) and parts <= MOST_PARTS else None


@lru_cache(maxsize=64)
def in_passages(text: str, heading: str) -> tuple[Node, ...] | None:
    """A list of passages, each under its number and source, and with what else is said of it
    folded; None where it is none. `heading` has the fields `at` and `of`.

    >>> in_passages('["It rained."]', "{at} of {of}")
    (['section', {'class': 'passage'}, ['h3', {}, '1 of 1'], ['div', {}, 'It rained.']],)
    """
    nodes: list[Node] = []
    passages = passages_of(text) if len(text) <= 4 * LONGEST else []
    for at, (said, source, rest) in enumerate(passages, 1):
        title = f"{heading.format(at=at, of=len(passages))}{' - ' * bool(source)}{source[:200]}"
        about = folded(json.dumps(rest), 0) or () if rest else ()
        nodes.append(
            ["section", {"class": "passage"}, ["h3", {}, title], ["div", {}, said], *about]
        )
    return tuple(nodes) if nodes and sum(1 for _ in _all(nodes)) <= MOST_PARTS else None


def _node(value: Any, key: str, depth: int, open_to: int) -> Node:
    if depth > _DEEPEST_JSON:
        raise ValueError("nested too deeply")
    name: list[Node] = [["span", {"class": "is-name"}, f"{_quoted(key)}: "]] if key else []
    if isinstance(value, (tuple, list)):
        if isinstance(value, tuple):  # an object: keys and values, and a key may come twice
            size, entries = f"{{ {len(value)} }}", value
        else:
            size, entries = f"[ {len(value)} ]", tuple(("", content) for content in value)
        inside = [_node(content, entry, depth + 1, open_to) for entry, content in entries]
        is_open = {"start": int(depth < open_to)}
        return ["details", is_open, ["summary", {}, *name, size], *inside]
    look, text = "is-number", str(value) if isinstance(value, _Written) else json.dumps(value)
    if isinstance(value, str) and not isinstance(value, _Written):
        look, text = "is-string", _quoted(value)
    return ["div", {}, *name, ["span", {"class": look}, text]]


def _quoted(text: str) -> str:
    """A text as JSON has it; its line breaks are shown as such."""
    return json.dumps(text, ensure_ascii=False).replace("\\n", "\n")


def _all(nodes: list[Any]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if isinstance(node, list):
            yield from _all(node[2:])


# Formulas in Markdown are kept whole and verbatim; the panel typesets them, and shows the signs
# that graders read on a key. A formula is known by its delimiters: `\( \)`, `\[ \]`, `$$ $$`,
# `\begin{X} \end{X}`, and on one line `$ $`, where neither touches a space on its inner side and no
# digit follows, so that $5 and $6 are prices (as Pandoc takes them).

_CLOSED_BY = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_DOLLARS = re.compile(r"\$(?!\s)(?:[^\\$\n]|\\.)++(?<!\s)\$(?!\d)")
_BEGIN = re.compile(r"\\begin\{(\w{1,40}\*?)\}")


def _closer(text: str, at: int) -> str:
    """The delimiter that closes a formula which begins here; "" where none begins."""
    if begin := _BEGIN.match(text, at):
        return f"\\end{{{begin[1]}}}"
    return _CLOSED_BY.get(text[at : at + 2], "")


def _in_a_line(state: StateInline, silent: bool) -> bool:
    """Take a formula as a whole, if one begins at the state's place."""
    end = _end_of_formula(state)
    if end < 0:
        return False
    if not silent:
        state.push("formula", "span", 0).content = state.src[state.pos : end]
    state.pos = end
    return True


def _end_of_formula(state: StateInline) -> int:
    """The place after the formula that begins at the state's place, or -1."""
    text, at = state.src, state.pos
    if text[at] not in "\\$":
        return -1
    closer = _closer(text, at)
    if not closer:
        closed = _DOLLARS.match(text, at, state.posMax)
        return closed.end() if closed else -1
    # Searched once for each closer: unclosed formulas would cost the square of the length.
    missing = state.env.setdefault("unclosed formulas", set())
    if (text, closer) in missing:
        return -1
    end = text.find(closer, at + 2, state.posMax)
    if end < 0:
        missing.add((text, closer))
        return -1
    return end + len(closer)


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
    """Take a paragraph whose formula spans lines: none begins a list, a heading or a quote."""
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
    while closer := next(
        (lacks for _, lacks in _formulas(state.src[at : state.eMarks[line]]) if lacks), ""
    ):
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


def _formulas(line: str) -> Iterator[tuple[str, str]]:
    """The formulas of a line, each with the delimiter that it lacks to be closed; "" if none."""
    at = 0
    while at < len(line):
        beyond = at + 1
        if line[at] == "`":  # nothing in code is a formula
            while line[beyond : beyond + 1] == "`":
                beyond += 1
            beyond = max(line.find(line[at:beyond], beyond) + beyond - at, beyond)
        elif closer := _closer(line, at):
            if (end := line.find(closer, at + 2)) < 0:
                yield line[at:], closer
                return
            beyond = end + len(closer)
            yield line[at:beyond], ""
        elif line[at] == "\\":
            beyond = at + 2
        elif closed := _DOLLARS.match(line, at):
            beyond = closed.end()
            yield closed[0], ""
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
    cells = [escapedSplit(row.removeprefix("|").removesuffix("|")) for row in rows]
    has_more_cells = any(any(map(str.strip, row[len(cells[0]) :])) for row in cells)
    has_bar = any("|" in formula for row in rows for formula, end in _formulas(row) if not end)
    if not (has_bar or has_more_cells):
        return True
    del state.tokens[before:]
    state.line = start
    return False


# Markdown

DEEPEST = 24
"""A response that is nested more deeply, whose inner parts the parser would drop, is shown as its
source; so is one that is too long, or has too many parts for a page."""

FOLLOWED = ("https://", "http://", "mailto:")
"""Addresses that a link may have; each opens in a new window."""

_DROPS_BELOW = 4 * DEEPEST
_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": _DROPS_BELOW})
_PARSER.enable(["table", "strikethrough"])
_PARSER.disable("reference")  # a definition would be on no page, and graders read it
_PARSER.inline.ruler.before("escape", "formula", _in_a_line)
_PARSER.block.ruler.before(
    "fence", "formula", _over_lines, {"alt": ["paragraph", "reference", "blockquote", "list"]}
)
_PARSER.block.ruler.before("lheading", "paragraph with formula", _within_lines)
_PARSER.block.ruler.at("table", _whole_table, {"alt": ["paragraph", "reference"]})
_TAGS = {"paragraph": "p", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li"}
_TAGS |= {"softbreak": "br", "hardbreak": "br"}  # as most chats show it
_TAGS |= {tag: tag for tag in ("blockquote", "thead", "tbody", "tr", "th", "td")}
_TAGS |= {tag: tag for tag in ("em", "strong", "s", "hr")}
_COLOURED = {
    *("bash", "c", "c++", "cpp", "cs", "csharp", "css", "go", "html", "java", "javascript", "js"),
    *("json", "jsx", "kotlin", "php", "powershell", "py", "python", "r", "rb", "ruby", "rust"),
    *("scala", "sh", "sql", "swift", "toml", "ts", "tsx", "typescript", "xml", "yaml", "yml"),
}
_MOST_COLOURED = 6_000
"""What code in Markdown is coloured: of these languages, so many characters of a response. It names
them itself, and lexers take long for some texts."""
_LOWEST = 6


@lru_cache(maxsize=256)
def rendered(text: str, *, links: bool = False, under: int = 2) -> tuple[Node, ...] | None:
    """The text as the nodes of its blocks; None where it must be shown as its source. `links` are
    for what the study's lead wrote, `under` is the level of the heading above it.

    >>> rendered("See [the law](https://example.org/law).", links=True)[0][3]
    ['a', {'href': 'https://example.org/law'}, 'the law']
    """
    if len(text) > LONGEST:
        return None
    tokens = _PARSER.parse(text)
    inner = [token for each in tokens for token in each.children or ()]
    deepest = max((token.level for token in (*tokens, *inner)), default=0)
    if deepest > DEEPEST or len(tokens) + len(inner) > MOST_PARTS:
        return None
    return tuple(_Tree(links, under).nodes(SyntaxTreeNode(tokens))) or None


class _Tree:
    """The nodes that a text is turned into, part by part."""

    def __init__(self, links: bool, under: int) -> None:
        self.links, self.under = links, under
        self.headings: list[int] = []
        """The levels of the headings above the part at hand."""
        self.to_colour = _MOST_COLOURED

    def nodes(self, parent: SyntaxTreeNode) -> list[Node]:
        return [node for child in parent.children for node in self._node(child)]

    def _node(self, part: SyntaxTreeNode) -> list[Node]:
        match part.type:
            case "text" | "text_special":
                return [part.content] if part.content else []
            case "code_inline":
                return [["code", {}, part.content]]
            case "fence" | "code_block":
                return [["pre", {}, ["code", {}, *self._code(part)]]]
            case "image" | "formula":
                return [["span", {"class": part.type}, part.content]]
            case "heading":
                tag, look = self._heading(int(part.tag[1]))
                return [[tag, {"class": look}, *self.nodes(part)]]
            case "link":
                return self._link(part, self.nodes(part))
            case "table":
                return [["div", {"class": "wide"}, ["table", {}, *self.nodes(part)]]]
        inside, attributes = self.nodes(part), dict[str, Any]()
        if part.type not in _TAGS or part.hidden:  # lines, and paragraphs of a tight list
            return inside
        aligned = str(part.attrs.get("style", "")).removeprefix("text-align:")
        if part.type == "ordered_list":
            attributes = {"start": int(part.attrs.get("start", 1))}
        elif aligned in ("left", "center", "right"):
            attributes = {"class": aligned}
        return [[_TAGS[part.type], attributes, *inside]]

    def _heading(self, level: int) -> tuple[str, str]:
        """A tag that neither skips a level below the page's own headings nor is above one of them,
        and the size that was meant.
        """
        while self.headings and self.headings[-1] >= level:
            self.headings.pop()
        self.headings.append(level)
        return f"h{min(self.under + len(self.headings), _LOWEST)}", f"h{level}"

    def _code(self, part: SyntaxTreeNode) -> tuple[Node, ...]:
        text, (language, *_) = part.content.removesuffix("\n"), (*part.info.lower().split(), "")
        if language not in _COLOURED or len(text) > self.to_colour:
            return (text,)
        self.to_colour -= len(text)
        return coloured(text, language) or (text,)

    def _link(self, part: SyntaxTreeNode, inside: list[Node]) -> list[Node]:
        """A link; or its words, then where it would lead, as text: it cannot be followed."""
        address, title = str(part.attrs.get("href", "")), part.attrs.get("title")
        if self.links and address.startswith(FOLLOWED):
            return [["a", {"href": address}, *(inside or [address])]]
        is_written = inside == [address] or address in (f"mailto:{node}" for node in inside)
        target = f'{address} "{title}"' if title else address
        link: list[Node] = [["span", {"class": "link"}, *inside]]
        return link if is_written and not title else [*link, ["span", {"class": "address"}, target]]
