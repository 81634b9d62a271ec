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
from itertools import groupby
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit, getLine
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
    for at, (passage, source, rest) in enumerate(passages, 1):
        title = f"{heading.format(at=at, of=len(passages))}{' - ' * bool(source)}{source[:200]}"
        about = folded(json.dumps(rest), 0) or () if rest else ()
        nodes.append(
            ["section", {"class": "passage"}, ["h3", {}, title], ["div", {}, passage], *about]
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
# digit follows, so that $5 and $6 are prices (as Pandoc takes them). While the text is parsed, a
# character for private use stands for each; nothing in a formula is then Markdown.

_CLOSED_BY = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_DOLLARS = re.compile(r"\$(?!\s)(?:[^\\$\n]|\\.)++(?<!\s)\$(?!\d)")
_BEGIN = re.compile(r"\\begin\{(\w{1,40}\*?)\}")
_FIRST = 0xF0000
_STANDS_IN = re.compile("([\U000f0000-\U0010ffff])")
_ITEM = r"(?:[-+*]|\d{1,9}[.)])[ \t]"
_SIGN = re.compile(
    rf"(`+|~{{3,}})|^([ \t>]*+)({_ITEM}|#{{1,6}}[ \t]|\||(?<=[ \t>]))"
    r"|\]\([^\s()]*+|<\w+:[^\s<>]*+>|[\\$\U000f0000-\U0010ffff]",
    re.MULTILINE,
)
"""Where code, a part of the text, an address or a formula may begin, or such a character stands."""
_BLANK = re.compile(r"\n[ \t>]*+(?:\n|\Z)")


def _without_formulas(text: str) -> tuple[str, list[str]]:
    """The text with a character for private use for each formula outside of code, and what they
    stand for: formulas, and such characters of the text itself.
    """
    held, parts, done, at = list[str](), list[str](), 0, 0
    blank = stop = depth = 0
    """Where a blank line ends the part at hand, or a part within; of how many quotes it is one."""
    missing: dict[str, int] = {}
    """Up to where there is none of a delimiter: each is sought once, or the cost is a square."""
    while sign := _SIGN.search(text, at):
        (begin, at), (code, before, part) = sign.span(), sign.groups()
        quotes = before.count(">") if before else 0
        if begin >= blank:
            blank = end.start() if (end := _BLANK.search(text, begin)) else len(text)
        if begin >= stop or part or (quotes and not depth):
            ends = [r"(?![ \t]*+>)"] if quotes else []
            if part:  # an item ends where another of its list begins, else it is of one line
                is_item = part[0] not in "#|"
                ends.append(rf"[ \t>]{{0,{len(before)}}}{_ITEM}" if is_item else "")
            end = re.compile(rf"\n(?:{'|'.join(ends)})").search(text, at, blank) if ends else None
            depth, stop = 0, end.start() if end else blank
        if before is not None:
            depth = quotes
            continue
        named = _BEGIN.match(text, begin)
        usual = _CLOSED_BY.get(text[begin : begin + 2], "")
        closer = code or (f"\\end{{{named[1]}}}" if named else usual)
        whole = None
        if closer and missing.get(closer, 0) <= begin:
            limit = len(text) if code and len(code) > 2 else stop
            ending = re.compile(rf"(?<!`){code}(?!`)" if code else re.escape(closer))
            whole = ending.search(text, at if code else begin + 2, limit)
            missing[closer] = 0 if whole else limit
        elif not closer:
            whole = sign if _STANDS_IN.match(sign[0]) else _DOLLARS.match(text, begin)
        if whole and not code:
            marks = rf"\n[ \t]*(?:>[ \t]?){{0,{depth}}}" if depth else "\n"
            parts += [text[done:begin], chr(_FIRST + len(held))]
            held.append(re.sub(marks, "\n", text[begin : whole.end()]))
            done = whole.end()
        at = whole.end() if whole else max(at, begin + 2 * (sign[0] == "\\"))
    return "".join([*parts, text[done:]]), held


def _whole_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Take a table, unless it would lose something: cells beyond those of its head. Such a one is
    shown as it is written.
    """
    before = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    if silent:
        return True
    rows = [getLine(state, line).strip() for line in range(start, state.line) if line != start + 1]
    cells = [escapedSplit(row.removeprefix("|").removesuffix("|")) for row in rows]
    if not any(any(map(str.strip, row[len(cells[0]) :])) for row in cells):
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
    masked, held = _without_formulas(re.sub(r"\r\n?", "\n", text).replace("\0", "\ufffd"))
    tokens = _PARSER.parse(masked)
    inner = [token for parent in tokens for token in parent.children or ()]
    deepest = max((token.level for token in (*tokens, *inner)), default=0)
    if deepest > DEEPEST or len(tokens) + len(inner) + 2 * len(held) > MOST_PARTS:
        return None
    return tuple(_Tree(links, under, held).nodes(SyntaxTreeNode(tokens))) or None


def _set_apart(inside: list[Node]) -> list[list[Node]]:
    """The paragraphs of one: a formula of several lines that begins a line is one by itself."""
    paragraphs: list[list[Node]] = []
    for is_break, nodes in groupby(inside, lambda node: node[0] == "br"):
        if is_break:
            continue
        line = list(nodes)
        first = [part[0] for part in (line, *paragraphs[-1:])]
        if paragraphs and not any(node[0] == "span" and "\n" in node[2] for node in first):
            paragraphs[-1] += [["br", {}], *line]
        else:
            paragraphs.append(line)
    return paragraphs


class _Tree:
    """The nodes that a text is turned into, part by part."""

    def __init__(self, links: bool, under: int, held: list[str]) -> None:
        self.links, self.under, self.held = links, under, held
        self.headings: list[int] = []
        """The levels of the headings above the part at hand."""
        self.to_colour = _MOST_COLOURED

    def nodes(self, parent: SyntaxTreeNode) -> list[Node]:
        return [node for child in parent.children for node in self._node(child)]

    def _written(self, text: str) -> str:
        """A text of the parser as it was written, with its formulas."""
        return _STANDS_IN.sub(lambda sign: self.held[ord(sign[0]) - _FIRST], text)

    def _typed(self, text: str) -> list[Node]:
        """A text of the parser in which each formula is a node."""
        return [
            ["span", {"class": "formula"}, whole] if at % 2 and len(whole) > 1 else whole
            for at, part in enumerate(_STANDS_IN.split(text))
            if (whole := self._written(part))
        ]

    def _node(self, part: SyntaxTreeNode) -> list[Node]:
        match part.type:
            case "text" | "text_special":
                return self._typed(part.content)
            case "code_inline":
                return [["code", {}, self._written(part.content)]]
            case "fence" | "code_block":
                return [["pre", {}, ["code", {}, *self._code(part)]]]
            case "image":
                return [["span", {"class": "image"}, self._written(part.content)]]
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
        if part.type == "paragraph":
            return [["p", {}, *some] for some in _set_apart(inside)]
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
        text = self._written(part.content.removesuffix("\n"))
        language = next(iter(part.info.lower().split()), "")
        if language not in _COLOURED or len(text) > self.to_colour:
            return (text,)
        self.to_colour -= len(text)
        return coloured(text, language) or (text,)

    def _link(self, part: SyntaxTreeNode, inside: list[Node]) -> list[Node]:
        """A link; or its words, then where it would lead, as text: it cannot be followed."""
        address = str(part.attrs.get("href", ""))
        title = self._written(str(part.attrs.get("title") or ""))
        if self.links and address.startswith(FOLLOWED):
            return [["a", {"href": address}, *(inside or [address])]]
        is_written = inside == [address] or address in (f"mailto:{node}" for node in inside)
        target = f'{address} "{title}"' if title else address
        link: list[Node] = [["span", {"class": "link"}, *inside]]
        return link if is_written and not title else [*link, ["span", {"class": "address"}, target]]
