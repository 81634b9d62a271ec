"""The keywords of `import evenhand` for type checkers and editors, written from the settings and
options that they become.

`python -m docs.keywords` writes evenhand/reporting/keyword_types.pyi.
"""

from __future__ import annotations

from pathlib import Path

from evenhand.reporting.keywords import keyword_types

STUB = Path(__file__).resolve().parents[1] / "evenhand" / "reporting" / "keyword_types.pyi"
HEAD = """# Written by `python -m docs.keywords`.

import os
from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from evenhand.analysis.labels.scale import Level
from evenhand.reporting.ratings_file.dataframes import Names
from evenhand.reporting.ratings_file.declared import Table
"""


def stub() -> str:
    """Return the stub: a TypedDict for each set of keywords."""
    text = HEAD
    for name, types in keyword_types().items():
        if name:
            lines = [f"    {keyword}: {kind}".replace("'", '"') for keyword, kind in types.items()]
            text += "\n".join(["", f"class {name}(TypedDict, total=False):", *lines, ""])
    return text


if __name__ == "__main__":
    STUB.write_text(stub(), "utf-8")
