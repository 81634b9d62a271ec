"""Texts as HTML for the pages around the panel (in which annotators label): shown literally, or as
the panel draws them (Markdown, code, conversations, passages).

Every text is escaped, and Streamlit reads none as Markdown or HTML. Tags come from the closed list
that `markdown_nodes` makes. `language` is always the language of the person who reads the page.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import streamlit as st

from evenhand.annotate_app import languages
from evenhand.annotate_app.languages import ENGLISH, Language
from evenhand.annotate_app.payload import block_label, drawn_code, own_words, tree_of, turn_label
from evenhand.annotate_app.text_trees import FOLLOWED, Node, markdown_nodes
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import TextBlock

_LETTERS_TO_COUNT = 4_000  # from the beginning, as in the panel's markdown.js


def show(*parts: str) -> None:
    """Draw parts, which are HTML made by this module, on the page."""
    st.html("".join(parts))


def heading(text: str, level: int = 2, lang: str | None = None) -> str:
    """Return a heading of this level, 1 to 6."""
    return f'<h{level} dir="auto"{lang_attribute(lang)}>{html.escape(text)}</h{level}>'


def block(text: str, kind: str = "text", label: str = "") -> str:
    """Return a text with its line breaks, under its `label`; `kind` chooses its style."""
    return f'{label_above(label)}<div class="evenhand-{kind}" dir="auto">{html.escape(text)}</div>'


def label_above(label: str) -> str:
    """Return the label above a text; "" for no label."""
    return f'<p class="evenhand-label" dir="auto">{html.escape(label)}</p>' if label else ""


def lang_attribute(code: str | None) -> str:
    """Return the HTML attribute `lang` for a code ("" if the language is unknown); "" for None."""
    return "" if code is None else f' lang="{html.escape(code)}"'


def marked_block(pieces: Iterable[tuple[str, str]], label: str) -> str:
    """Return a quoted text from its pieces, (text, note); a piece with a note is marked."""
    safe = [(html.escape(text), html.escape(note)) for text, note in pieces]
    marked = (f"<mark>{text}</mark><small>{note}</small>" if note else text for text, note in safe)
    quote = f'<div class="evenhand-quote" dir="auto">{"".join(marked)}</div>'
    return f"<div>{label_above(label)}{quote}</div>"


def items(terms: Iterable[tuple[str, Iterable[str]]], lang: str | None = None) -> str:
    """Return terms with their descriptions as an HTML list; a plain one if none is described."""
    described = [(term, [*filter(None, texts)]) for term, texts in terms]
    list_tag, term_tag = ("dl", "dt") if any(texts for _, texts in described) else ("ul", "li")
    lines = []
    for term, texts in described:
        lines.append(f'<{term_tag} dir="auto">{html.escape(term)}</{term_tag}>')
        lines += [f'<dd dir="auto">{html.escape(text)}</dd>' for text in texts]
    attributes = f'class="evenhand-items"{lang_attribute(lang)}'
    return f"<{list_tag} {attributes}>{''.join(lines)}</{list_tag}>"


def in_every_language(key: str, tag: str = "p") -> str:
    """Return a sentence in every language; our style shows only the reader's."""
    texts = {code: languages.language(code).say(key) for code in languages.codes_english_first()}
    return "".join(
        f'<{tag} class="evenhand-said" lang="{code}">{html.escape(text)}</{tag}>'
        for code, text in texts.items()
    )


def plain(text: str) -> str:
    """Return a text escaped for the label of a Streamlit widget, which is read as Markdown.

    >>> plain("*A* or [B]")
    '\\\\*A\\\\* or \\\\[B\\\\]'
    """
    return re.sub(r"([\\`*_{}\[\]()<>#+\-.!|~$:&])", r"\\\1", text)


def show_complaint(complaint: str) -> None:
    """Show an error as plain text: Streamlit's own error box would read it as Markdown."""
    sentence = complaint[:1].upper() + complaint[1:].rstrip(".") + "."
    st.html(f'<p class="evenhand-complaint" role="alert">{html.escape(sentence)}</p>')


def drawn_text(text: str, kind: str = "text", label: str = "", lang: str | None = None) -> str:
    """Return a text of the lead, if any, its Markdown drawn; links open in a new window."""
    if not text:
        return ""
    nodes = markdown_nodes(text, links=True, under=1)  # so that its first headings are h2
    language = languages.language(lang) if lang in languages.known_languages() else ENGLISH
    inside = _html(nodes, language) if nodes else html.escape(text)
    style = f"evenhand-{kind} evenhand-drawn" if nodes else f"evenhand-{kind}"
    attributes = f'class="{style}" dir="{_direction(text)}"{lang_attribute(lang)}'
    return f"{label_above(label)}<div {attributes}>{inside}</div>"


def drawn_rubric(rubric: Rubric, language: Language) -> str:
    """Return a rubric as it is explained before the work: instructions, options and examples."""
    lang = rubric.language
    # A rubric may quote an item's columns: here they are named, not filled in.
    people = rubric.for_people({name: f"[{name.replace('_', ' ')}]" for name in rubric.variables})
    options = []
    for option in rubric.kind.listed:
        examples = [language.say("session.example", text=text) for text in option.examples]
        options.append((option.name, [option.description, *examples]))
    titles = filter(None, (language.say("panel.guidelines"), own_words(people.title)))
    return (
        heading(": ".join(titles), 1, lang)
        + heading(people.question, lang=lang)
        + drawn_text(own_words(people.instructions), lang=lang)
        + heading(language.say("session.options"))
        + (items(options, lang) if options else block(rubric.kind.permitted_in(language.say)))
    )


def drawn_blocks(blocks: Sequence[TextBlock], language: Language, display: str) -> str:
    """Return a unit's texts as its raters see them: what both sides share, then the sides in
    columns. `display` is the study's way to show responses, "text" or "markdown".
    """
    return side_by_side([(block.side, drawn_block(block, language, display)) for block in blocks])


def side_by_side(parts: Iterable[tuple[str, str]]) -> str:
    """Return HTML in columns as on the raters' page, by side; "" is what both sides share."""
    columns: dict[str, str] = {}
    for side, part in parts:
        columns[side] = columns.get(side, "") + part
    inside = "".join(
        f'<div class="evenhand-{"side" if side else "shared"}" id="side-{side}">{column}</div>'
        for side, column in sorted(columns.items())
    )
    return f'<div class="evenhand-sides">{inside}</div>'


def drawn_block(block: TextBlock, language: Language, display: str) -> str:
    """Return a text of a unit under its label: Markdown, code, turns or an image as such."""
    label, style, is_code = label_above(block_label(block, language)), "", False
    if block.image:
        source, alt = html.escape(block.image.uri), html.escape(block.image.alt)
        image = f'<img src="{source}" alt="{alt}">'
        return f'<div>{label}<div class="evenhand-quote">{image}</div></div>'
    if code := drawn_code(block, language):
        inside, is_code = _html(code, language), code[0][0] != "section"  # the tag of a passage
        style = "evenhand-drawn evenhand-code-block" if is_code else "evenhand-drawn"
    elif nodes := tree_of(block, display):
        inside, style = _html(nodes, language), "evenhand-drawn"
    elif block.turns:
        names = [(turn.role, turn_label(turn, language)) for turn in block.turns]
        if block.kind == "response" and len(names) > 1 and names[-1][0] == "assistant":
            names[-1] = "rated", f"{names[-1][1]} · {language.say('panel.last_turn')}"
        inside = "".join(
            f'<div class="evenhand-turn {role}">{label_above(name)}'
            f'<div dir="auto">{html.escape(turn.text)}</div></div>'
            for turn, (role, name) in zip(block.turns, names, strict=True)
        )
    elif block.is_missing or not block.text.strip():
        notice = "image_missing" if block.is_missing else f"empty_{block.kind}"
        inside = f"<em>{html.escape(language.say(f'panel.{notice}'))}</em>"
    else:
        inside = html.escape(block.text)
    direction = "ltr" if is_code else _direction(block.text)
    quote = f'<div class="evenhand-quote {style}" dir="{direction}" lang="">{inside}</div>'
    return f"<div>{label}{quote}</div>"


def _html(nodes: Iterable[Node], language: Language) -> str:
    """Return nodes of a tree of `text_trees` as HTML."""
    return "".join(_element(node, language) for node in nodes)


def _element(node: Node, language: Language) -> str:
    """Return a node as HTML; a description of an image in the reader's words."""
    if isinstance(node, str):
        return html.escape(node)
    tag, attributes, *children = node
    if tag in ("br", "hr"):
        return f"<{tag}>"
    inside = _html(children, language)
    if attributes.get("class") == "address":  # of a link that cannot be clicked, after its words
        inside = f" ({inside})"
    if attributes.get("class") == "image":
        inside = html.escape(language.say("panel.image", alt=children[0]))
    return f"<{tag}{''.join(_attributes(tag, attributes))}>{inside}</{tag}>"


def _attributes(tag: str, attributes: dict[str, object]) -> Iterable[str]:
    """Yield the attributes of an element, each after a space."""
    if tag == "pre":
        yield ' dir="ltr"'
    if style := attributes.get("class"):
        yield f' class="{style}"'
    start = attributes.get("start")
    if tag == "ol" and isinstance(start, int):
        yield f' start="{start}"'
    if tag == "details" and start:  # 1 if it is open
        yield " open"
    address = str(attributes.get("href", ""))
    if tag == "a" and address.startswith(FOLLOWED):
        yield f' href="{html.escape(address)}" target="_blank" rel="noopener noreferrer"'


def _direction(text: str) -> str:
    """Return the direction, "ltr" or "rtl", of most letters at the beginning of a text."""
    kinds = Counter(map(unicodedata.bidirectional, text[:_LETTERS_TO_COUNT]))
    return "rtl" if kinds["R"] + kinds["AL"] > kinds["L"] else "ltr"
