"""Texts as trees of plain data, from which pages and the annotators' panel build what is shown.
Three parts: code in colours, JSON that folds, retrieved passages; formulas in Markdown; Markdown.

Only a closed list of nodes can be in the tree. No HTML passes through (it is text like any other),
no address of a response can be followed, no image is loaded. What the study's lead wrote -
guidelines, consent - may have links.
"""

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

Node = str | list[Any]  # a text, or [tag, attributes, child, child, ...]

LONGEST = 50_000  # characters; a longer text is shown as it is written
MOST_PARTS = 20_000  # nodes; a text of more is too much for a page

_LONGEST_JSON = 4 * LONGEST
_DEEPEST_JSON = 40
_LONGEST_LINE = 200  # characters of a passage's source, or of the names of its other fields

# ---- code, JSON and passages ----
# Code is shown character by character, JSON with its values as they are written, set out in lines.
# A text that cannot be drawn in this way is shown as its source.


@lru_cache(maxsize=64)
def code_nodes(text: str, language: str) -> tuple[Node, ...] | None:
    """Return a program's text with its words, strings, numbers and comments in colours; None where
    it is too long.

    >>> code_nodes("return 'x'  # done", "python")[0]
    ['span', {'class': 'is-keyword'}, 'return']
    """
    from pygments import lex
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment, Keyword, Name, Number, String

    if len(text) > LONGEST:
        return None
    classes = {Comment: "is-comment", Keyword: "is-keyword", String: "is-string"}
    classes |= {Number: "is-number", Name.Function: "is-name", Name.Class: "is-name"}
    nodes: list[Node] = []
    for token, word in lex(text, get_lexer_by_name(language, stripnl=False, ensurenl=False)):
        # `token in kind` is True for a kind's subtypes, too, such as String.Double.
        css_class = next((name for kind, name in classes.items() if token in kind), "")
        nodes.append(["span", {"class": css_class}, word] if css_class else word)
    # Some lexers change the text, which must be shown as it is.
    shown = "".join(node if isinstance(node, str) else node[2] for node in nodes)
    return tuple(nodes) if shown == text and len(nodes) <= MOST_PARTS else None


class _Number(str):
    """A number of a JSON text with the digits that it is written with, such as 1.50."""

    __slots__ = ()


@lru_cache(maxsize=64)
def json_nodes(text: str, open_to: int = 2) -> tuple[Node, ...] | None:
    """Return a JSON text as lines, with objects and lists below `open_to` levels folded; None where
    it is no object or list, or too long or too deep.

    >>> json_nodes('{"a": [1.50, "b"]}')[0][2][2:]
    ['{', ['span', {'class': 'is-fold'}, '…}'], ' ', ['span', {'class': 'is-count'}, '1']]
    """
    if len(text) > _LONGEST_JSON:
        return None
    try:
        value = json.loads(text, parse_int=_Number, parse_float=_Number, object_pairs_hook=tuple)
        nodes = [_value_node(value, "", 0, open_to)]
    except (ValueError, RecursionError):
        return None
    return tuple(nodes) if isinstance(value, (tuple, list)) and _size(nodes) <= MOST_PARTS else None


@lru_cache(maxsize=64)
def passage_nodes(text: str, heading: str) -> tuple[Node, ...] | None:
    """Return a list of passages, each under its number and source, its other fields folded under
    their names; None where it is no such list. `heading` has the fields `at` and `of`.

    >>> passage_nodes('["It rained."]', "{at} of {of}")
    (['section', {'class': 'passage'}, ['h3', {}, '1 of 1'], ['div', {}, 'It rained.']],)
    """
    nodes: list[Node] = []
    passages = passages_of(text) if len(text) <= _LONGEST_JSON else []
    for number, (passage, source, fields) in enumerate(passages, 1):
        title = heading.format(at=number, of=len(passages))
        title += f" · {source[:_LONGEST_LINE]}" if source else ""
        node: list[Any] = ["section", {"class": "passage"}, ["h3", {}, title], ["div", {}, passage]]
        if fields and (folded := json_nodes(json.dumps(fields), open_to=0)):
            tag, attributes, _summary, *lines, _closing = list(folded[0])
            names = ", ".join(fields)[:_LONGEST_LINE]  # in a summary in place of that of JSON
            node.append([tag, attributes, ["summary", {}, names], *lines])
        nodes.append(node)
    return tuple(nodes) if nodes and _size(nodes) <= MOST_PARTS else None


def _value_node(value: Any, key: str, depth: int, open_to: int) -> Node:
    """Return the node of a JSON value after its key, if any: a line, or a fold if it has parts."""
    if depth > _DEEPEST_JSON:
        raise ValueError("nested too deeply")
    name: list[Node] = [["span", {"class": "is-name"}, f"{_quoted(key)}: "]] if key else []
    if isinstance(value, (tuple, list)):
        if isinstance(value, tuple):  # an object as pairs, since a key may come twice
            bracket, closing, entries = "{", "}", value
        else:
            bracket, closing, entries = "[", "]", tuple(("", content) for content in value)
        inside = [_value_node(content, entry, depth + 1, open_to) for entry, content in entries]
        inside.append(["div", {"class": "is-close"}, closing])
        fold = ["span", {"class": "is-fold"}, f"…{closing}"]  # shown while the lines are not
        count = ["span", {"class": "is-count"}, str(len(value))]
        summary: Node = ["summary", {}, *name, bracket, fold, " ", count]
        return ["details", {"start": int(depth < open_to)}, summary, *inside]  # 1: open
    if isinstance(value, str) and not isinstance(value, _Number):
        css_class, text = "is-string", _quoted(value)
    else:
        css_class = "is-number"
        text = str(value) if isinstance(value, _Number) else json.dumps(value)
    return ["div", {}, *name, ["span", {"class": css_class}, text]]


def _quoted(text: str) -> str:
    """Return a text as JSON has it; its line breaks are shown as such."""
    return json.dumps(text, ensure_ascii=False).replace("\\n", "\n")


def _size(nodes: list[Node]) -> int:
    """Return the number of nodes, with all that are in them."""
    return sum(1 if isinstance(node, str) else 1 + _size(node[2:]) for node in nodes)


# ---- formulas in Markdown ----
# A formula stands between delimiters: `\( \)`, `\[ \]`, `$$ $$`, `\begin{X} \end{X}`, and on one
# line `$ $`, where neither touches a space on its inner side and no digit follows, so that $5 and
# $6 are prices (as Pandoc takes them). Nothing in it is Markdown: of "$a*b*c$ is *x*" the parser
# reads "\U000f0000 is *x*", with a placeholder, a character for private use beyond all of the text.
# In the tree it is as written. The panel typesets it; a key shows its source, which graders read.

_CLOSED_BY = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_DOLLARS = re.compile(r"\$(?!\s)(?:[^\\$\n]|\\.)++(?<!\s)\$(?!\d)")
_BEGIN = re.compile(r"\\begin\{(\w{1,40}\*?)\}")
_FIRST_PLACEHOLDER = 0xF0000
_LAST_CHARACTER = "\U000fffff"
"""A text with a later character is shown as its source: too few would be left as placeholders."""
_ITEM = r"(?:[-+*]|\d{1,9}[.)])[ \t]"
_OPENING = re.compile(  # where code, a block, an address or a formula may begin
    rf"""(`+|~{{3,}})              # group 1: code
    | ^([ \t>]*+)                  # group 2: a line's indent, with > for each quote around it
      ({_ITEM}|\#{{1,6}}[ \t]|\||(?<=[ \t>]))  # group 3: a block's marker, or "" after an indent
    | \]\([^\s()]*+|<\w+:[^\s<>]*+>            # an address, in which no formula begins
    | [\\$]                                    # a formula, or a character that is escaped""",
    re.MULTILINE | re.VERBOSE,
)
_BLANK_LINE = re.compile(r"\n[ \t>]*+(?:\n|\Z)")


class _MaskedText:
    r"""A Markdown `text` with a placeholder for each formula outside of code, and the `formulas`.
    The > of quotes at the beginning of a formula's lines are no part of it.

    >>> _MaskedText("> - So $$a\n>   + b$$.\n> - $c$ or $$d\n> - e$$").formulas
    ['$$a\n  + b$$', '$c$']
    """

    def __init__(self, source: str) -> None:
        self._first_code = max(_FIRST_PLACEHOLDER, max(map(ord, source), default=0) + 1)
        self._placeholder = re.compile(f"([{chr(self._first_code)}-\U0010ffff])")
        self.formulas: list[str] = []
        pieces, copied_to = list[str](), 0
        for start, end, quote_depth in _formulas_in(source):
            pieces += [source[copied_to:start], chr(self._first_code + len(self.formulas))]
            newline = rf"\n[ \t]*(?:>[ \t]?){{0,{quote_depth}}}" if quote_depth else "\n"
            self.formulas.append(re.sub(newline, "\n", source[start:end]))
            copied_to = end
        self.text = "".join([*pieces, source[copied_to:]])

    def unmasked(self, text: str) -> str:
        """Return a piece of the text with its formulas as they were written."""
        return "".join(piece for piece, _ in self.pieces(text))

    def pieces(self, text: str) -> list[tuple[str, bool]]:
        """Split a piece of the text into formulas, marked with True, and what is between them."""
        parts = self._placeholder.split(text)  # of which every second is a placeholder
        parts[1::2] = [self.formulas[ord(code) - self._first_code] for code in parts[1::2]]
        return [(part, index % 2 == 1) for index, part in enumerate(parts) if part]


def _formulas_in(source: str) -> Iterator[tuple[int, int, int]]:
    """Yield the start, the end and the number of quotes around each formula outside of code. It
    ends in the block in which it begins: "- $$a\\n- b$$" has none. Blocks, by where they end:

    - an item of a list: before the next item that is not indented more;
    - a heading, or a row of a table: with its line;
    - a quote, with any block in it: before a line without >;
    - these and all other text: at a blank line.
    """
    position = blank_line = block_end = quote_depth = 0
    missing_before: dict[str, int] = {}
    while opening := _OPENING.search(source, position):
        start, (code, indent, marker) = opening.start(), opening.groups()
        begins_quote = ">" in (indent or "") and not quote_depth  # which is of the line before
        if start >= blank_line:
            blank = _BLANK_LINE.search(source, start)
            blank_line = blank.start() if blank else len(source)
        if start >= block_end or marker or begins_quote:  # a new block
            block_end, quote_depth = _block_end(opening, blank_line), 0
        if indent is not None:  # a line's indent, or a marker: neither code nor a formula
            quote_depth, position = indent.count(">"), opening.end()
            continue
        end = _end_of(opening, block_end, missing_before)
        if end and not code:
            yield start, end, quote_depth
        # A backslash that begins no formula escapes the character after it.
        position = end or (start + 2 if opening[0] == "\\" else opening.end())


def _block_end(opening: re.Match[str], blank_line: int) -> int:
    """Return where the block that begins with an opening ends: at the latest at a blank line."""
    _code, indent, marker = opening.groups()
    next_lines = []  # patterns of lines before which it ends
    if ">" in (indent or ""):
        next_lines.append(r"(?![ \t]*+>)")
    if marker:
        is_item = marker[0] not in "#|"
        next_lines.append(rf"[ \t>]{{0,{len(indent)}}}{_ITEM}" if is_item else "")  # "": any line
    pattern = re.compile(rf"\n(?:{'|'.join(next_lines)})")
    end = pattern.search(opening.string, opening.end(), blank_line) if next_lines else None
    return end.start() if end else blank_line


def _end_of(opening: re.Match[str], block_end: int, missing_before: dict[str, int]) -> int:
    """Return where the code or formula that begins with an opening ends; 0 if none begins there.
    `missing_before` has by closing delimiter a position before which there is none: no search is
    repeated, as that would take too long in a text of nothing but openings.
    """
    source, start, code = opening.string, opening.start(), opening[1] or ""
    closer = code or _CLOSED_BY.get(source[start : start + 2], "")
    if environment := _BEGIN.match(source, start):
        closer = f"\\end{{{environment[1]}}}"
    if not closer:
        formula = _DOLLARS.match(source, start)
        return formula.end() if formula else 0
    if missing_before.get(closer, 0) > start:
        return 0
    content_start = opening.end() if code else start + 2  # a delimiter such as $$ is that long
    # A block of code (``` or ~~~) goes on over blank lines, all else ends with its block.
    limit = len(source) if len(code) > 2 else block_end
    pattern = re.compile(rf"(?<!`){code}(?!`)" if code else re.escape(closer))
    closing = pattern.search(source, content_start, limit)
    missing_before[closer] = 0 if closing else limit
    return closing.end() if closing else 0


def _lossless_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table, as a rule of markdown-it does. A table with cells beyond those of its head,
    which would be lost, counts as none and stays as written. Its second line is of dashes.
    """
    before = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    if silent:
        return True
    rows = [getLine(state, line).strip() for line in range(start, state.line) if line != start + 1]
    cells = [escapedSplit(row.removeprefix("|").removesuffix("|")) for row in rows]
    surplus = [cell for row in cells for cell in row[len(cells[0]) :]]  # cells[0]: the head
    if not any(map(str.strip, surplus)):
        return True
    del state.tokens[before:]
    state.line = start
    return False


# ---- Markdown ----

DEEPEST = 24
"""A response that is nested more deeply, whose inner parts the parser would drop, is shown as its
source; so is one that is too long, or has too many parts for a page."""

FOLLOWED = ("https://", "http://", "mailto:")  # beginnings of addresses that a link may have

# The parser drops without a word what is nested below its bound; ours is reached before.
_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": 4 * DEEPEST})
_PARSER.enable(["table", "strikethrough"])
_PARSER.disable("reference")  # a definition would be on no page, and graders read it
_PARSER.block.ruler.at("table", _lossless_table, {"alt": ["paragraph", "reference"]})
_TAGS = {"paragraph": "p", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li"}
_TAGS |= {"softbreak": "br", "hardbreak": "br"}  # as most chats show it
_TAGS |= {tag: tag for tag in ("blockquote", "thead", "tbody", "tr", "th", "td")}
_TAGS |= {tag: tag for tag in ("em", "strong", "s", "hr")}
_COLOURED = {
    "bash", "c", "c++", "cpp", "cs", "csharp", "css", "go", "html", "java", "javascript", "js",
    "json", "jsx", "kotlin", "php", "powershell", "py", "python", "r", "rb", "ruby", "rust",
    "scala", "sh", "sql", "swift", "toml", "ts", "tsx", "typescript", "xml", "yaml", "yml",
}  # fmt: skip
"""Languages whose code is coloured in Markdown, in which the response itself names the language."""
_MOST_COLOURED = 6_000
"""Characters of code that are coloured in a response: lexers take long for some texts."""
_LOWEST_HEADING = 6


@lru_cache(maxsize=256)
def markdown_nodes(text: str, *, links: bool = False, under: int = 2) -> tuple[Node, ...] | None:
    """Return a Markdown text as the nodes of its blocks; None where it must be shown as its source.
    `links` are for what the study's lead wrote, `under` is the level of the heading above it.

    >>> markdown_nodes("See [the law](https://example.org/law).", links=True)[0][3]
    ['a', {'href': 'https://example.org/law'}, 'the law']
    """
    if len(text) > LONGEST or max(text, default="") > _LAST_CHARACTER:
        return None
    masked = _MaskedText(re.sub(r"\r\n?", "\n", text).replace("\0", "\ufffd"))
    tokens = _PARSER.parse(masked.text)
    inner = [token for parent in tokens for token in parent.children or ()]
    deepest = max((token.level for token in (*tokens, *inner)), default=0)
    parts = len(tokens) + len(inner) + 2 * len(masked.formulas)
    if deepest > DEEPEST or parts > MOST_PARTS:
        return None
    return tuple(_Tree(links, under, masked).nodes(SyntaxTreeNode(tokens))) or None


def _paragraphs(nodes: list[Node]) -> list[list[Node]]:
    """Split a paragraph before and after lines that begin with a formula of several lines."""

    def has_formula_first(line: list[Node]) -> bool:
        return line[0][0] == "span" and "\n" in line[0][2]

    paragraphs: list[list[Node]] = []
    # `node[0]` is a node's tag; of a text it is the first letter, so never "br" or "span".
    by_break = groupby(nodes, lambda node: node[0] == "br")
    for line in (list(group) for is_break, group in by_break if not is_break):
        if not paragraphs or has_formula_first(line) or has_formula_first(paragraphs[-1]):
            paragraphs.append(line)
        else:
            paragraphs[-1] += [["br", {}], *line]
    return paragraphs


class _Tree:
    """The nodes of a parsed text, with its formulas; `links` and `under` as in `markdown_nodes`."""

    def __init__(self, links: bool, under: int, masked: _MaskedText) -> None:
        self._links, self._under, self._masked = links, under, masked
        self._headings: list[int] = []
        """Levels of the headings above the present part."""
        self._colours_left = _MOST_COLOURED

    def nodes(self, parent: SyntaxTreeNode) -> list[Node]:
        """Return the nodes of all parts within a part of the parsed text."""
        return [node for child in parent.children for node in self._nodes_of(child)]

    def _nodes_of(self, part: SyntaxTreeNode) -> list[Node]:
        match part.type:
            case "text" | "text_special":
                return [
                    ["span", {"class": "formula"}, piece] if is_formula else piece
                    for piece, is_formula in self._masked.pieces(part.content)
                ]
            case "code_inline":
                return [["code", {}, self._masked.unmasked(part.content)]]
            case "fence" | "code_block":
                return [["pre", {}, ["code", {}, *self._code(part)]]]
            case "image":
                return [["span", {"class": "image"}, self._masked.unmasked(part.content)]]
            case "heading":
                tag, css_class = self._heading(int(part.tag[1]))
                return [[tag, {"class": css_class}, *self.nodes(part)]]
            case "link":
                return self._link(part, self.nodes(part))
            case "table":
                return [["div", {"class": "wide"}, ["table", {}, *self.nodes(part)]]]
        inside, attributes = self.nodes(part), dict[str, Any]()
        if part.type not in _TAGS or part.hidden:  # inline text, and paragraphs of a tight list
            return inside
        if part.type == "paragraph":
            return [["p", {}, *paragraph] for paragraph in _paragraphs(inside)]
        alignment = str(part.attrs.get("style", "")).removeprefix("text-align:")
        if part.type == "ordered_list":
            attributes = {"start": int(part.attrs.get("start", 1))}
        elif alignment in ("left", "center", "right"):
            attributes = {"class": alignment}
        return [[_TAGS[part.type], attributes, *inside]]

    def _heading(self, level: int) -> tuple[str, str]:
        """Return a heading's tag, one level below the heading that it stands under (the text's or
        the page's), and the class for the size that was meant.
        """
        while self._headings and self._headings[-1] >= level:
            self._headings.pop()
        self._headings.append(level)
        return f"h{min(self._under + len(self._headings), _LOWEST_HEADING)}", f"h{level}"

    def _code(self, part: SyntaxTreeNode) -> tuple[Node, ...]:
        """Return a block of code, in colours if its language is known and is not too much."""
        text = self._masked.unmasked(part.content.removesuffix("\n"))
        language = next(iter(part.info.lower().split()), "")
        if language not in _COLOURED or len(text) > self._colours_left:
            return (text,)
        self._colours_left -= len(text)
        return code_nodes(text, language) or (text,)

    def _link(self, part: SyntaxTreeNode, inside: list[Node]) -> list[Node]:
        """Return a link; or its words, then its address as text: it cannot be followed."""
        address = str(part.attrs.get("href", ""))
        title = self._masked.unmasked(str(part.attrs.get("title") or ""))
        if self._links and address.startswith(FOLLOWED):
            return [["a", {"href": address}, *(inside or [address])]]
        is_written = inside == [address] or address in (f"mailto:{node}" for node in inside)
        target = f'{address} "{title}"' if title else address
        link: list[Node] = [["span", {"class": "link"}, *inside]]
        return link if is_written and not title else [*link, ["span", {"class": "address"}, target]]
