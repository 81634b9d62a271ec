"""Texts as HTML for the pages around the panel: shown literally, never read as Markdown or HTML, or
drawn as the panel draws them.

Every text is escaped; tags come from the closed list that `rendered` makes.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import streamlit as st

from evenhand.annotate_app.languages import (
    ENGLISH,
    Language,
    codes_english_first,
    known_languages,
    language,
)
from evenhand.annotate_app.payload import block_label, drawn_code, own_words, tree_of, turn_label
from evenhand.annotate_app.text_trees import FOLLOWED, Node, rendered
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import TextBlock


def show(*parts: str) -> None:
    """Put parts that were made here onto the page."""
    st.html("".join(parts))


def heading(text: str, level: int = 2, lang: str | None = None) -> str:
    return f'<h{level} dir="auto"{lang_attribute(lang)}>{html.escape(text)}</h{level}>'


def block(text: str, kind: str = "text", label: str = "", lang: str | None = None) -> str:
    """A text with its line breaks, under its `label`.

    `lang` is its language, where that may differ from the page's: "" if unknown.
    """
    inside = html.escape(text)
    code = lang_attribute(lang)
    return f'{label_above(label)}<div class="evenhand-{kind}" dir="auto"{code}>{inside}</div>'


def label_above(label: str) -> str:
    """The label above a text; nothing where there is none."""
    return f'<p class="evenhand-label" dir="auto">{html.escape(label)}</p>' if label else ""


def lang_attribute(code: str | None) -> str:
    """The attribute that names a text's language; none for the page's own."""
    return "" if code is None else f' lang="{html.escape(code)}"'


def marked_block(pieces: Iterable[tuple[str, str]], label: str) -> str:
    """A quoted text in pieces; those that someone marked come with a note on it."""
    inside = "".join(
        f"<mark>{html.escape(text)}</mark><small>{html.escape(note)}</small>"
        if note
        else html.escape(text)
        for text, note in pieces
    )
    return f'{label_above(label)}<div class="evenhand-quote" dir="auto">{inside}</div>'


def items(terms: Iterable[tuple[str, Iterable[str]]], lang: str | None = None) -> str:
    """A list of terms, each with its descriptions."""
    described = [(term, [*filter(None, texts)]) for term, texts in terms]
    kind, name = ("dl", "dt") if any(texts for _, texts in described) else ("ul", "li")
    lines = []
    for term, texts in described:
        lines.append(f'<{name} dir="auto">{html.escape(term)}</{name}>')
        lines += [f'<dd dir="auto">{html.escape(text)}</dd>' for text in texts]
    return f'<{kind} class="evenhand-items"{lang_attribute(lang)}>{"".join(lines)}</{kind}>'


def in_every_language(key: str, tag: str = "p") -> str:
    """A sentence in every language; our style shows only the reader's."""
    return "".join(
        f'<{tag} class="evenhand-said" lang="{code}">{html.escape(language(code).say(key))}</{tag}>'
        for code in codes_english_first()
    )


def plain(text: str) -> str:
    """A text as the label of a Streamlit widget, which is read as Markdown.

    >>> plain("*A* or [B]")
    '\\\\*A\\\\* or \\\\[B\\\\]'
    """
    return re.sub(r"([\\`*_{}\[\]()<>#+\-.!|~$:&])", r"\\\1", text)


def show_complaint(complaint: str) -> None:
    """Show an error as plain text: Streamlit's own error box would read it as Markdown."""
    sentence = complaint[:1].upper() + complaint[1:].rstrip(".") + "."
    st.html(f'<p class="evenhand-complaint" role="alert">{html.escape(sentence)}</p>')


_EMPTY = ("br", "hr")


def drawn_text(text: str, kind: str = "text", label: str = "", lang: str | None = None) -> str:
    """A text of the study's lead, its Markdown drawn; links open in a new window."""
    nodes = rendered(text, links=True, under=1)
    reader = language(lang) if lang in known_languages() else ENGLISH
    inside = _html(nodes, reader) if nodes else html.escape(text)
    look = f"evenhand-{kind} evenhand-drawn" if nodes else f"evenhand-{kind}"
    direction, code = _direction(text), lang_attribute(lang)
    return f'{label_above(label)}<div class="{look}" dir="{direction}"{code}>{inside}</div>'


def drawn_rubric(rubric: Rubric, reader: Language) -> str:
    """A rubric as it is explained before the work: its words, its options and their examples."""
    lang = rubric.language
    # A rubric may speak of the unit's own columns: here they are named, not filled in.
    named = {name: f"[{name.replace('_', ' ')}]" for name in rubric.variables}
    people = rubric.for_people(named)
    options = []
    for option in rubric.kind.listed:
        examples = [reader.say("session.example", text=text) for text in option.examples]
        options.append((option.name, [option.description, *examples]))
    title = own_words(people.title)
    return (
        heading(title or people.question, 1, lang)
        + (heading(people.question, lang=lang) if title else "")
        + drawn_text(own_words(people.instructions), lang=lang)
        + heading(reader.say("session.options"))
        + (items(options, lang) if options else block(rubric.kind.permitted_in(reader.say)))
    )


def drawn_blocks(blocks: Sequence[TextBlock], reader: Language, display: str) -> str:
    """A unit's texts as its raters see them: what both sides share, then the sides in columns.
    `display` is the study's way to show responses.
    """
    return side_by_side([(block.side, drawn_block(block, reader, display)) for block in blocks])


def side_by_side(parts: Iterable[tuple[str, str]]) -> str:
    """Texts in columns as on the raters' page, by side; "" is what both sides share."""
    columns: dict[str, str] = {}
    for side, part in parts:
        columns[side] = columns.get(side, "") + part
    inside = "".join(
        f'<div class="evenhand-{"side" if side else "shared"}">{column}</div>'
        for side, column in sorted(columns.items())
    )
    return f'<div class="evenhand-sides">{inside}</div>'


def drawn_block(block: TextBlock, reader: Language, display: str) -> str:
    """A text of a unit under its label: Markdown, code, turns or an image as such."""
    label, look = label_above(block_label(block, reader)), ""
    if block.image:
        source, alt = html.escape(block.image.uri), html.escape(block.image.alt)
        image = f'<img src="{source}" alt="{alt}">'
        return f'<div>{label}<div class="evenhand-quote">{image}</div></div>'
    if code := drawn_code(block, reader):
        is_code = code[0][0] != "section"
        inside, look = _html(code, reader), "evenhand-drawn" + " evenhand-code-block" * is_code
    elif nodes := tree_of(block, display):
        inside, look = _html(nodes, reader), "evenhand-drawn"
    elif block.turns:
        names = [(turn.role, turn_label(turn, reader)) for turn in block.turns]
        if block.kind == "response" and names[1:] and names[-1][0] == "assistant":  # it is rated
            names[-1] = "rated", f"{names[-1][1]} · {reader.say('panel.last_turn')}"
        inside = "".join(
            f'<div class="evenhand-turn {role}">{label_above(name)}'
            f'<div dir="auto">{html.escape(turn.text)}</div></div>'
            for turn, (role, name) in zip(block.turns, names, strict=True)
        )
    elif block.is_missing or not block.text.strip():
        why = "image_missing" if block.is_missing else f"empty_{block.kind}"
        inside = f"<em>{html.escape(reader.say(f'panel.{why}'))}</em>"
    else:
        inside = html.escape(block.text)
    way = "ltr" if look.endswith("code-block") else _direction(block.text)
    quote = f'<div class="evenhand-quote {look}" dir="{way}" lang="">{inside}</div>'
    return f"<div>{label}{quote}</div>"


def _html(nodes: Iterable[Node], reader: Language) -> str:
    """The nodes of a tree, as `rendered` makes them."""
    return "".join(_element(node, reader) for node in nodes)


def _element(node: Node, reader: Language) -> str:
    if isinstance(node, str):
        return html.escape(node)
    tag, attributes, *children = node
    if tag in _EMPTY:
        return f"<{tag}>"
    inside, written = _html(children, reader), "".join(_attributes(tag, attributes))
    if attributes.get("class") == "address":
        inside = f" ({inside})"
    if attributes.get("class") == "image":
        inside = html.escape(reader.say("panel.image", alt=children[0]))
    return f"<{tag}{written}>{inside}</{tag}>"


def _attributes(tag: str, attributes: dict[str, object]) -> Iterable[str]:
    if tag == "pre":
        yield ' dir="ltr"'
    if look := attributes.get("class"):
        yield f' class="{look}"'
    start = attributes.get("start")
    if tag == "ol" and isinstance(start, int):
        yield f' start="{start}"'
    if tag == "details" and start:
        yield " open"
    address = str(attributes.get("href", ""))
    if tag == "a" and address.startswith(FOLLOWED):
        yield f' href="{html.escape(address)}" target="_blank" rel="noopener noreferrer"'


def _direction(text: str) -> str:
    """The direction in which most of a text runs, by its letters; its parts stand on that side."""
    kinds = Counter(map(unicodedata.bidirectional, text[:4_000]))
    return "rtl" if kinds["R"] + kinds["AL"] > kinds["L"] else "ltr"
