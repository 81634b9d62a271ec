"""Statistics explained: column heading, name, one line, and the source of each.

The texts are in `glossary.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Entry:
    """`label` heads a column; `name` and `meaning` explain it; `source` is author and year."""

    label: str
    name: str
    meaning: str = ""
    source: str = ""


def _read() -> dict[str, Entry]:
    text = files("evenhand.analysis.report").joinpath("glossary.toml").read_text("utf-8")
    return {statistic: Entry(**fields) for statistic, fields in tomllib.loads(text).items()}


GLOSSARY: dict[str, Entry] = _read()


_BESIDE = (
    ("_p", "p", "corrected p"),
    ("_at_most", "at most", "the most that any bias may be"),
    ("_detectable", "80% power", "the bias found with 80% power"),
    ("_held_out", "held out", "at thresholds tuned on other clusters"),
)
"""What the name of a statistic may end in, with what it is then called."""


def entry_for(statistic: str) -> Entry:
    """The entry of a statistic; one without an entry goes by its own name.

    >>> entry_for("gwet_ac1").label, entry_for("some_new_index").name
    ('AC1', 'some new index')
    """
    plain = statistic.replace("_", " ")
    for ending, label, words in _BESIDE:
        if statistic not in GLOSSARY and statistic.endswith(ending):
            tested = entry_for(statistic.removesuffix(ending))
            return Entry(f"{tested.label}, {label}", f"{tested.name}, {words}")
    return GLOSSARY.get(statistic, Entry(plain, plain))
