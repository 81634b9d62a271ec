"""Texts as trees and as HTML: Markdown, code and JSON."""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.annotate_app import text_trees
from evenhand.annotate_app.html_texts import drawn_block, drawn_text
from evenhand.annotate_app.languages import ENGLISH
from evenhand.rubrics.rendering import TextBlock

TAGS = {
    "p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr",
    "th", "td", "em", "strong", "s", "pre", "code", "hr", "br", "div", "span",
}  # fmt: skip

LOOKS = {"link", "address", "image", "is-comment", "is-keyword"}


def parts(node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(node, str):
        tag, attributes, *children = node
        yield tag, attributes
        for child in children:
            yield from parts(child)


def said(nodes: Any) -> str:
    return "".join(node if isinstance(node, str) else said(node[2:]) for node in nodes)


def html(nodes: Any) -> str:
    """A tree as HTML, with a class as in a selector and no character escaped."""
    return "".join(
        node if isinstance(node, str) else _element(node[0], node[1], html(node[2:]))
        for node in nodes or ()
    )


def _element(tag: str, attributes: dict[str, Any], inside: str) -> str:
    assert attributes.keys() <= {"class", "start"}
    if attributes.get("class") == "formula":
        return inside.replace("\n", "<br>")
    name = ".".join([tag, *attributes.get("class", "").split()])
    start = f" {attributes['start']}" if "start" in attributes else ""
    return f"<{name}>" if tag in ("br", "hr") else f"<{name}{start}>{inside}</{tag}>"


@pytest.mark.parametrize(("source", "tree"), [
    ("*a* **b** ~~c~~", "<p><em>a</em> <strong>b</strong> <s>c</s></p>"),
    ("a\nb  \nc\rd", "<p>a<br>b<br>c<br>d</p>"),
    ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
    ("3. a", "<ol 3><li>a</li></ol>"),
    ("> a\n\n---", "<blockquote><p>a</p></blockquote><hr>"),
    ("`a`", "<p><code>a</code></p>"),
    ("```x\na\n b\n```", "<pre><code>a\n b</code></pre>"),
    ("$x^2$ :red[x]", "<p>$x^2$ :red[x]</p>"),
    (r"\(a^2\) *b*", r"<p>\(a^2\) <em>b</em></p>"),
    (r"*a $b*c$ d*", r"<p><em>a $b*c$ d</em></p>"),
    (r"$a*b*c$, $\{x\,y\}\\$", r"<p>$a*b*c$, $\{x\,y\}\\$</p>"),
    ("$5 *and* $6, 7$", "<p>$5 <em>and</em> $6, 7$</p>"),
    (r"\$a *b* c$", "<p>$a <em>b</em> c$</p>"),
    (r"`\(a\)` \\(b\\)", r"<p><code>\(a\)</code> \(b\)</p>"),
    (r"\(a *b* c", "<p>(a <em>b</em> c</p>"),
    ("> $$\n> # x\n> $$", "<blockquote><p>$$<br># x<br>$$</p></blockquote>"),
    ("\\begin{align*}\n1. &= x \\\\\n\\end{align*}",
     "<p>\\begin{align*}<br>1. &= x \\\\<br>\\end{align*}</p>"),
    ("so \\[\na\n+ *b*\n= c\n\\] and $$\n- d\n$$\n- e",
     "<p>so \\[<br>a<br>+ *b*<br>= c<br>\\] and $$<br>- d<br>$$</p><ul><li>e</li></ul>"),
    ("1. so\n\\(\n# x\n\\)\n2. `\\(`\n- b",
     "<ol 1><li>so<br>\\(<br># x<br>\\)</li><li><code>\\(</code></li></ol>"
     "<ul><li>b</li></ul>"),
    ("|a|\n|-|\n|$|x|$|\n|$$|\n|$$|",
     "<div.wide><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>$|x|$</td></tr>"
     "<tr><td>$$</td></tr><tr><td>$$</td></tr></tbody></table></div>"),
    ("- a $$\n- b $$", "<ul><li>a $$</li><li>b $$</li></ul>"),
    (r"[a](b$c$d) `\(``\(`$\(x\)`",
     r"<p><span.link>a</span><span.address>b$c$d</span> <code>\(``\(</code>$\(x\)`</p>"),
    ("a\U000f0001\\(\U000f0000\\)", "<p>a\U000f0001\\(\U000f0000\\)</p>"),
    ("$$\n> a\n\n$$", "<p>$$</p><blockquote><p>a</p></blockquote><p>$$</p>"),
    ("![a *b*](c.png)", "<p><span.image>a *b*</span></p>"),
    ('[a](http://b "c")\n\n[d]: http://e',
     '<p><span.link>a</span><span.address>http://b "c"</span></p><p>[d]: http://e</p>'),
    ("``` Python x\nif 1:\n```\n~~~\nif 1:\n~~~",
     "<pre><code><span.is-keyword>if</span> <span.is-number>1</span>:</code></pre>"
     "<pre><code>if 1:</code></pre>"),
    ("<http://b>", "<p><span.link>http://b</span></p>"),
    ("[a](javascript:b)", "<p>[a](javascript:b)</p>"),
    ("<script>a</script>", "<p><script>a</script></p>"),
    ("|a|b|\n|-|-:|\n|c|d|",
     "<div.wide><table><thead><tr><th>a</th><th.right>b</th></tr></thead>"
     "<tbody><tr><td>c</td><td.right>d</td></tr></tbody></table></div>"),
    ("## a\n# b\n#### c\n### d\n# e\n##### f",  # below the page's own; no level is skipped
     "<h3.h2>a</h3><h3.h1>b</h3><h4.h4>c</h4><h4.h3>d</h4><h3.h1>e</h3><h4.h5>f</h4>"),
])  # fmt: skip
def test_a_text_becomes_its_tree(source, tree):
    assert html(text_trees.markdown_nodes(source)) == tree


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    ["", " \n", "x" * (text_trees.LONGEST + 1), "> " * (text_trees.DEEPEST + 1) + "a",
     "> " * 3000 + "a", "*a **b " * 300 + "c** d*" * 300, "- a\n" * 10_000],
)  # fmt: skip
def test_what_cannot_be_rendered_whole_is_shown_as_its_source(source):
    assert text_trees.markdown_nodes(source) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        *("*a ", "\\[a\n", "\\((", "a \\[\n", "$a "),
        *(pytest.param(each, marks=pytest.mark.thorough) for each in ("[", "![", "[a](")),
    ],
)
def test_no_text_keeps_the_page_waiting(part):
    """Its cost grows no faster than the square of its length, for which there is a limit."""
    source = part * (text_trees.LONGEST // len(part))

    def cost(text: str) -> float:
        before = time.process_time()
        text_trees.markdown_nodes(text)
        return time.process_time() - before

    assert cost(source) < 7 * cost(source[: len(source) // 2]) + 0.5
    tree = text_trees.markdown_nodes(source)
    assert tree is None or said(tree) == source.strip().replace("\\", "")


def test_code_beyond_a_bound_is_not_coloured():
    long, short = "if 1\n" * 1_300 + "if 2", "if 3"
    tree = text_trees.markdown_nodes(f"```c\n{long}\n```\n```c\n{short}\n```")
    assert tree is not None
    assert tree[0] == ["pre", {}, ["code", {}, long]]
    assert [tag for tag, _ in parts(tree[1])] == ["pre", "code", "span", "span"]


@pytest.mark.parametrize(
    "source",
    [
        '<img src="x" onerror="a"> <a href="/">a</a>\n\n<style>*{}</style>\n\n<!-- a -->',
        "[a](data:text/html,x) [b](vbscript:x) [c](//d 'e') ![f](http://g 'h')",
        '```python "onclick="a\nif <b> # c\n```\n\n[a]: http://b "c"\n[a] <javascript:d>',
        "&lt;b&gt; &#60;i&#62; \\<u>",
    ],
)
def test_only_listed_parts_and_attributes_stand_in_a_tree(source):
    tree = text_trees.markdown_nodes(source)
    assert tree
    for tag, attributes in (part for node in tree for part in parts(node)):
        assert tag in TAGS
        assert attributes.keys() <= {"class", "start"}
        assert attributes.get("class", "link") in LOOKS


@example("# a\tcomment\ndef f(x):\n    return 'ü' + \"<b>\"  # 1\n\n")
@example("def broken(:")
@given(st.text(max_size=60))
def test_code_is_coloured_and_no_character_is_lost(text):
    nodes = text_trees.code_nodes(text, "sql")
    assert nodes is None or said(nodes) == text


KEYS = st.text(max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_every_value_of_json_is_shown(value):
    nodes = text_trees.json_nodes(json.dumps(value, ensure_ascii=False))
    if not isinstance(value, (dict, list)):
        assert nodes is None
        return
    assert nodes is not None
    for each in leaves(value):
        assert json.dumps(each, ensure_ascii=False).replace("\\n", "\n") in said(nodes)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def test_numbers_and_keys_stay_as_they_are_written():
    nodes = text_trees.json_nodes('{"big": 12345678901234567890123, "two": 1.50, "two": -0.0e5}')
    assert nodes is not None
    for each in ("12345678901234567890123", "1.50", "-0.0e5"):
        assert each in said(nodes)
    assert said(nodes).count('"two"') == 2


@pytest.mark.parametrize(
    ("cell", "titles"),
    [
        ('["It rained.", ""]', ["1 of 2", "2 of 2"]),
        ("['It\\'s wet' \"so\"]", ["1 of 2", "2 of 2"]),  # as Python and NumPy write it
        ('[{"page_content": "a", "metadata": {"source": "b", "page": 3}}]', ["1 of 1 · b"]),
        ('[{"role": "user", "text": "a"}]', []),
        *((each, []) for each in ('["a", 2]', "[]", "[sic] It.", '[{"text": 1}]')),
        *((each, []) for each in ("[" * 5000, "[" + "'\\" * 20_000 + "]")),
    ],
)
def test_a_list_of_texts_is_passages(cell, titles):
    nodes: Any = text_trees.passage_nodes(cell, "{at} of {of}") or ()
    assert [section[2][2] for section in nodes] == titles


@pytest.mark.parametrize(
    "text", ["[" * 5000, '{"a": ', "plain", "3", '"text"', "[" * 60 + "]" * 60]
)
def test_what_is_none_is_shown_as_it_is(text):
    assert text_trees.json_nodes(text) is None


def test_a_text_has_one_direction():
    mixed = "# Python\n\n- *שלום שלום*\n- so\n\n> أهلا وسهلا\n\n| שלום | a |\n| - | - |\n| b | c |"
    assert re.findall(r'dir="(\w+)"', drawn_text(mixed)) == ["rtl"]
    assert drawn_text("") == ""
    plain = drawn_text("plain *words*, 1. שלום\n\n    code")
    assert re.findall(r'dir="(\w+)"', plain) == ["ltr", "ltr"]


def test_a_text_without_a_word_says_so_and_an_image_is_its_description():
    nothing = TextBlock("Response", "response", "response", "", " \n")
    for display in ("text", "markdown"):
        assert "(empty response)" in drawn_block(nothing, ENGLISH, display)
    assert '<span class="image">[image: a cat]</span>' in drawn_text("![a cat](http://b)")
    assert "[Bild: eine Katze]" in drawn_text("![eine Katze](http://b)", lang="de")
