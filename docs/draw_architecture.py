"""Draws the pictures of architecture.md from the imports.

`python docs/draw_architecture.py` writes them between the page's markers;
tests/test_pages.py fails where the page shows other packages or arrows than the code has.
"""

from __future__ import annotations

import re
from pathlib import Path

import grimp

PAGE = Path(__file__).with_name("architecture.md")
_DRAWN = re.compile(r"(<!-- drawn: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SHELLS = {"__main__"}


def renewed(page: str) -> str:
    """The page with the drawing of the folder that each marker names."""
    graph = grimp.build_graph("evenhand", cache_dir=None)

    def drawn(found: re.Match[str]) -> str:
        return f"{found[1]}\n{picture(arrows_within(graph, found[2]))}\n\n{found[3]}"

    return _DRAWN.sub(drawn, page)


def arrows_within(graph: grimp.ImportGraph, folder: str) -> dict[str, set[str]]:
    """Return for each package of a folder those of its neighbours that it imports."""
    prefix = f"{folder}."
    rooms = sorted({child.removeprefix(prefix) for child in graph.find_children(folder)} - _SHELLS)
    within: dict[str, set[str]] = {}
    for room in rooms:
        modules = {prefix + room} | graph.find_descendants(prefix + room)
        imported = {to for each in modules for to in graph.find_modules_directly_imported_by(each)}
        near = {name.removeprefix(prefix) for name in imported if name.startswith(prefix)}
        within[room] = {name.partition(".")[0] for name in near} - {room}
    return within


def picture(arrows: dict[str, set[str]]) -> str:
    """The rooms as a Mermaid flowchart. An arrow that others lead round to is left out."""
    lines = ["```mermaid", "flowchart TD"]
    for room, below in arrows.items():
        round_about = set().union(*(_reached(arrows, other) for other in below))
        lines += [f"    {room} --> {other}" for other in sorted(below - round_about)]
        lines += (
            [] if below or any(room in others for others in arrows.values()) else [f"    {room}"]
        )
    return "\n".join([*lines, "```"])


def _reached(arrows: dict[str, set[str]], room: str) -> set[str]:
    """All rooms below this one."""
    return set().union(*({other} | _reached(arrows, other) for other in arrows[room]))


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
