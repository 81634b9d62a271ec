"""Links from one of the lead's pages to another, with what is to be chosen there; and tiles, whose
number leads to the rows that it counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st

from evenhand.annotate_app.logins.lead_login import place_of
from evenhand.annotate_app.plain_text import block, plain, show


@dataclass(frozen=True)
class Way:
    """A sentence or number that leads to the page with this title. `chosen` are the values that
    fields take there, by their keys; such a field is bound to the address.
    """

    title: str
    said: str
    chosen: Mapping[str, str] = field(default_factory=dict)

    def show(self) -> None:
        page = st.Page(lambda: None, title=self.title, url_path=place_of(self.title))
        st.page_link(page, label=plain(self.said), query_params=self.chosen)


@dataclass(frozen=True)
class Tile:
    """A question, the number that answers it, and how to read it."""

    question: str
    answer: Way
    said: str = ""


def show_tiles(tiles: Sequence[Tile]) -> None:
    """Draw tiles beside one another, as many as fit."""
    with st.container(key="tiles"):
        for number, tile in enumerate(tiles):
            with st.container(key=f"tile-{number}"):
                show(block(tile.question, "question"))
                tile.answer.show()
                show(block(tile.said, "said"))
