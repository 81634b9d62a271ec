"""Draws the pictures and tables of architecture.md from the imports.

`python docs/draw_architecture.py` writes them anew between the page's markers;
tests/test_architecture.py fails where the page shows other packages or arrows than the code has.
"""

from __future__ import annotations

import re
from pathlib import Path

import grimp

import evenhand

PAGE = Path(__file__).with_name("architecture.md")
PACKAGE = Path(evenhand.__file__).parent
_DRAWN = re.compile(r"(<!-- drawn: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SHELLS = {"__main__"}


def renewed(page: str) -> str:
    """The page with the drawing of the folder that each marker names."""
    graph = grimp.build_graph("evenhand", cache_dir=None)

    def drawn(found: re.Match[str]) -> str:
        folder = found[2]
        arrows, outside = arrows_within(graph, folder)
        return f"{found[1]}\n{picture(arrows)}\n\n{table(folder, arrows, outside)}\n\n{found[3]}"

    return _DRAWN.sub(drawn, page)


def arrows_within(
    graph: grimp.ImportGraph, folder: str
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """What each room of a folder imports: of its neighbours, and of the house outside."""
    prefix = f"{folder}."
    rooms = sorted({child.removeprefix(prefix) for child in graph.find_children(folder)} - _SHELLS)
    within: dict[str, set[str]] = {}
    outside: dict[str, set[str]] = {}
    for room in rooms:
        modules = {prefix + room} | graph.find_descendants(prefix + room)
        imported = {to for each in modules for to in graph.find_modules_directly_imported_by(each)}
        near = {name.removeprefix(prefix) for name in imported if name.startswith(prefix)}
        within[room] = {name.partition(".")[0] for name in near} - {room}
        far = {name for name in imported if not f"{name}.".startswith(prefix)}
        outside[room] = {_short(name) for name in far - {"evenhand"}}
    return within, outside


def _short(module: str) -> str:
    """A room's name; of a study's also which of its rooms: the analysis may have two of them.

    >>> _short("evenhand.study.tables.ratings"), _short("evenhand.rubrics.model")
    ('study.tables', 'rubrics')
    """
    _, room, *inner = module.split(".")
    return ".".join([room, *inner[:1]]) if room == "study" else room


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


def table(folder: str, arrows: dict[str, set[str]], outside: dict[str, set[str]]) -> str:
    """A row for each room: files and lines of Python, and all that it imports."""
    beyond = any(outside.values())
    heads = ["package", "files", "lines", "imports", *(["from outside"] if beyond else [])]
    aligned = ["---", "---:", "---:", "---", *(["---"] if beyond else [])]
    lines = [heads, aligned]
    for room, below in arrows.items():
        files = _files(PACKAGE.joinpath(*folder.split(".")[1:], room))
        counted = sum(len(file.read_text("utf-8").splitlines()) for file in files)
        row = [f"`{room}`", str(len(files)), f"{counted:,}", ", ".join(sorted(below))]
        lines.append([*row, *([", ".join(sorted(outside[room]))] if beyond else [])])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _files(room: Path) -> list[Path]:
    return sorted(room.rglob("*.py")) if room.is_dir() else [room.with_suffix(".py")]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
