"""Texts on the pages around the panel: shown literally, never read as Markdown or HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

import streamlit as st

from evenhand.annotate_app.languages import codes_english_first, language


def show(*parts: str) -> None:
    """Put parts that were made here onto the page."""
    st.html("".join(parts))


def heading(text: str, level: int = 2, lang: str | None = None) -> str:
    return f'<h{level} dir="auto"{lang_attribute(lang)}>{html.escape(text)}</h{level}>'


def block(text: str, kind: str = "text", label: str = "", lang: str | None = None) -> str:
    """A text with its line breaks, under its `label`.

    `lang` is its language, where that may differ from the page's: "" if unknown.
    """
    said = html.escape(text)
    own = lang_attribute(lang)
    return f'{label_above(label)}<div class="evenhand-{kind}" dir="auto"{own}>{said}</div>'


def label_above(label: str) -> str:
    """The label above a text; nothing where there is none."""
    return f'<p class="evenhand-label" dir="auto">{html.escape(label)}</p>' if label else ""


def lang_attribute(code: str | None) -> str:
    """The attribute that names a text's language; none for the page's own."""
    return "" if code is None else f' lang="{html.escape(code)}"'


def marked_block(pieces: Iterable[tuple[str, str]], label: str) -> str:
    """A quoted text in pieces; those that someone marked come with a note on it."""
    inside = "".join(
        f"<mark>{html.escape(text)}</mark><small>{html.escape(said)}</small>"
        if said
        else html.escape(text)
        for text, said in pieces
    )
    return f'{label_above(label)}<div class="evenhand-quote" dir="auto">{inside}</div>'


def items(terms: Iterable[tuple[str, Iterable[str]]], lang: str | None = None) -> str:
    """A list of terms, each with its descriptions."""
    lines = []
    for term, said in terms:
        lines.append(f'<dt dir="auto">{html.escape(term)}</dt>')
        lines += [f'<dd dir="auto">{html.escape(each)}</dd>' for each in said if each]
    return f'<dl class="evenhand-items"{lang_attribute(lang)}>{"".join(lines)}</dl>'


def said(key: str, tag: str = "p") -> str:
    """A sentence in every language; our style shows only the reader's."""
    shown = '<{tag} class="evenhand-said" lang="{code}">{text}</{tag}>'
    return "".join(
        shown.format(tag=tag, code=code, text=html.escape(language(code).say(key)))
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
