"""What people read in a report, on a terminal and on the lead's pages: every sentence in one file.

The sentences stand in `texts.toml`, by room and name; `written` fills in their `{fields}`. What is
wrong with somebody's input is said where it is found, and what an annotator reads stands in
`annotate_app`.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

_FILE = "texts.toml"


@cache
def texts() -> dict[str, str]:
    """All sentences by `room.name`."""
    content = tomllib.loads(files("evenhand").joinpath(_FILE).read_text("utf-8"))
    return {f"{room}.{name}": text for room, own in content.items() for name, text in own.items()}


def written(key: str, /, **fields: object) -> str:
    """The sentence of a key with its fields filled in; KeyError where either is not there.

    A field is put in as it is, braces and all, and formatted as its place says.

    >>> written("recommend.use_at", grader="openai:gpt-5", rubric="hedging", threshold=0.1312)
    'Use openai:gpt-5 for hedging at threshold 0.131.'
    """
    return texts()[key].format(**fields)
