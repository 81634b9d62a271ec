"""Writes the page that nginx shows while the app is away.

`python deploy/nginx/write_away_page.py` writes deploy/nginx/away.html from away-template.html and
the app's sentences; tests/deploy/test_files.py fails if the file differs.
"""

from __future__ import annotations

import html
from pathlib import Path

from evenhand.annotate_app.html_texts import in_every_language
from evenhand.annotate_app.languages import ENGLISH

HERE = Path(__file__).parent
PAGE = HERE / "away.html"


def away_page() -> str:
    """Return the page. It needs nothing else, not even a script, so it has all languages."""
    page = (HERE / "away-template.html").read_text("utf-8")
    parts = {
        "title": html.escape(ENGLISH.say("page.away_title")),
        "text": in_every_language("page.away_text"),
    }
    for name, each in parts.items():
        page = page.replace(f"{{{name}}}", each)
    return page


if __name__ == "__main__":
    PAGE.write_text(away_page(), "utf-8")
