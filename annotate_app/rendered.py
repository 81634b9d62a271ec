"""Markdown as a tree of plain data, from which the panel and the other pages build what is shown.

Only a closed list of nodes can be in the tree. No HTML passes through (it is text like any other),
no address of a response can be followed, no image is loaded, and formulas stay as they are
(`formulas`). What the study's lead wrote - guidelines, consent - may have links.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from evenhand.annotate_app.formulas import keep_formulas
from evenhand.annotate_app.structured import LONGEST, MOST_PARTS, Node, coloured

DEEPEST = 24
"""A response that is nested more deeply, whose inner parts the parser would drop, is shown as its
source; so is one that is too long, or has too many parts for a page."""

FOLLOWED = ("https://", "http://", "mailto:")
"""Addresses that a link may have; each is opened apart."""

_WORTH_A_PLACE = 12
_AHEAD = 2_000
"""Characters after the last text in which the next is searched; one further on is sent twice."""
_DROPS_BELOW = 4 * DEEPEST
_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": _DROPS_BELOW})
_PARSER.enable(["table", "strikethrough"])
_PARSER.disable("reference")  # a definition would be on no page, and graders read it
keep_formulas(_PARSER)
_TAGS = {
    "paragraph": "p",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "em": "em",
    "strong": "strong",
    "s": "s",
    "hr": "hr",
    "softbreak": "br",  # as most chats show it
    "hardbreak": "br",
}
_COLOURED = {
    *("bash", "c", "c++", "cpp", "cs", "csharp", "css", "go", "html", "java", "javascript", "js"),
    *("json", "jsx", "kotlin", "php", "powershell", "py", "python", "r", "rb", "ruby", "rust"),
    *("scala", "sh", "sql", "swift", "toml", "ts", "tsx", "typescript", "xml", "yaml", "yml"),
}
_MOST_COLOURED = 6_000
"""What code in Markdown is coloured: of these languages, so many characters of a response. It names
them itself, and lexers take long for some texts."""
_ABOVE, _LOWEST = 2, 6
"""The page's own headings are of the levels 1 and 2; there are six."""


@lru_cache(maxsize=256)
def rendered(text: str, *, links: bool = False) -> tuple[Node, ...] | None:
    """The text as the nodes of its blocks; None where it must be shown as its source. `links` are
    for what the study's lead wrote.

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
    return tuple(_Tree(links).nodes(SyntaxTreeNode(tokens))) or None


@lru_cache(maxsize=256)
def by_place(text: str) -> tuple[Node, ...] | None:
    """`rendered`, with texts by their place in the response, which then travels only once.

    Places count UTF-16 units, as browsers do.

    >>> by_place("a **rather important** thing")
    (['p', {}, 'a ', ['strong', {}, [4, 20]], ' thing'],)
    """
    nodes = rendered(text)
    astral = [at for at, each in enumerate(text) if each > "\uffff"]
    read = 0

    def placed(node: Node) -> Node:
        nonlocal read
        if not isinstance(node, str):
            return [*node[:2], *map(placed, node[2:])]
        beyond = read + len(node) + _AHEAD
        found = text.find(node, read, beyond) if len(node) >= _WORTH_A_PLACE else -1
        if found < 0:
            return node
        read = found + len(node)
        return [at + bisect_left(astral, at) for at in (found, read)]

    return nodes and tuple(map(placed, nodes))


class _Tree:
    """What a text is turned into, part by part."""

    def __init__(self, links: bool) -> None:
        self.links = links
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
            case "image":
                return [["span", {"class": "image"}, part.content]]
            case "heading":
                tag, look = self._heading(int(part.tag[1]))
                return [[tag, {"class": look}, *self.nodes(part)]]
            case "link":
                return self._link(part, self.nodes(part))
            case "table":
                return [["div", {"class": "wide"}, ["table", {}, *self.nodes(part)]]]
        inside = self.nodes(part)
        found = _TAGS.get(part.type)
        if found is None or part.hidden:  # lines, and the paragraphs of a list without blank lines
            return inside
        return [[found, _attributes(part), *inside]]

    def _heading(self, level: int) -> tuple[str, str]:
        """A tag that neither skips a level below the page's own headings nor is above one of them,
        and the size that was meant.
        """
        while self.headings and self.headings[-1] >= level:
            self.headings.pop()
        self.headings.append(level)
        return f"h{min(_ABOVE + len(self.headings), _LOWEST)}", f"h{level}"

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
        told = inside == [address] or address in (f"mailto:{each}" for each in inside)
        said = f'{address} "{title}"' if title else address
        beside: list[Node] = [["span", {"class": "address"}, said]] if title or not told else []
        return [["span", {"class": "link"}, *inside], *beside]


def _attributes(part: SyntaxTreeNode) -> dict[str, Any]:
    if part.type == "ordered_list":
        return {"start": int(part.attrs.get("start", 1))}
    aligned = str(part.attrs.get("style", "")).removeprefix("text-align:")
    return {"class": aligned} if aligned in ("left", "center", "right") else {}
