"""Runs the notebooks of docs/notebooks and keeps what their cells show.

`python -m docs.run_notebooks FOLDER`, where FOLDER has the data that they read. Without what
differs from run to run: times, and the versions of what ran them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).with_name("notebooks")


def executed(notebook: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of its cells, run in a folder. Raises where a cell fails."""
    found: nbformat.NotebookNode = nbformat.read(notebook, as_version=4)
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(found, timeout=300, resources=place, coalesce_streams=True).execute()
    for cell in found.cells:
        cell.metadata.pop("execution", None)
    found.metadata.language_info = {"name": "python"}
    return found


def main(folder: str) -> None:
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        nbformat.write(executed(notebook, Path(folder)), notebook)


if __name__ == "__main__":
    main(*sys.argv[1:])
