"""See the package: `python -m harness.exports TOOL FOLDER`."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from harness.exports import TOOLS

parser = argparse.ArgumentParser(prog="harness.exports")
parser.add_argument("tool", choices=TOOLS)
parser.add_argument("folder", type=Path)
given = parser.parse_args()
folder = given.folder.resolve()
(folder / "items").mkdir(parents=True, exist_ok=True)
import_module(f"harness.exports.{given.tool}").make(folder)
