"""Draws the pages' mermaid diagrams, so that the site needs no script from elsewhere to show them.

`python -m docs.draw_diagrams mermaid.min.js` with the file of that name from the npm package
`mermaid`. A diagram that has changed since stands on the site as its text, until it is drawn again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from docs.diagrams import DIAGRAM, picture_name
from harness.chromium import launched_chromium

DOCS = Path(__file__).parent
DRAW = """
async (text) => {
  mermaid.initialize({ startOnLoad: false, theme: "neutral", htmlLabels: false,
                       flowchart: { htmlLabels: false } });
  return (await mermaid.render("drawn", text)).svg;
}
"""


def draw_all(script: Path) -> None:
    texts = [page.read_text("utf-8") for page in sorted(DOCS.rglob("*.md"))]
    diagrams = {picture_name(found[1]): found[1] for t in texts for found in DIAGRAM.finditer(t)}
    for old in (DOCS / "pictures").glob("diagram-*.svg"):
        if f"pictures/{old.name}" not in diagrams:
            old.unlink()
    with sync_playwright() as playwright:
        page = launched_chromium(playwright).new_page()
        page.set_content("<body></body>")
        page.add_script_tag(path=script)
        for name, diagram in diagrams.items():
            (DOCS / name).write_text(page.evaluate(DRAW, diagram) + "\n", "utf-8")


if __name__ == "__main__":
    draw_all(Path(sys.argv[1]))
