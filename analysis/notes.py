"""Remarks of results rows, as codes; the one table of their texts is `remarks.toml`.

The note of a row is text for readers. Whatever the analysis or the report must know of a row again
- whether its threshold is tuned, why it has no interval - is the code of a remark, never the text:
any text here may be reworded and no verdict changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.texts import table_of

Code = str
"""Code of a remark, of which the texts are in `remarks.toml`."""
_TABLES = table_of("evenhand.analysis", "remarks.toml")
TEXTS: dict[str, str] = _TABLES["notes"]
"""Text of a remark in the notes of results.csv, by default its code; braces hold its detail."""
WORDS: dict[str, str] = _TABLES["report"]
"""Text of a remark in the report, where it differs from the note."""


@dataclass(frozen=True)
class Remark:
    """A remark on a row: its code, and the `detail` that varies.

    >>> Remark("few_clusters", (30,)).text, Remark("no_labels").text, Remark("no_labels").words
    ('fewer than 30 clusters', 'no_labels', 'no labels')
    """

    code: Code
    detail: tuple[object, ...] = ()

    @property
    def text(self) -> str:
        """Text of the remark in the notes of results.csv."""
        return TEXTS.get(self.code, self.code).format(*self.detail)

    @property
    def words(self) -> str:
        """Text of the remark in the report."""
        return WORDS[self.code].format(*self.detail) if self.code in WORDS else self.text


Reason = Code | Remark
"""Reason why a value is undefined."""
Remarks = tuple[Remark, ...]
Note = str | Remark | Remarks
"""Accepted forms of a note: a text is for readers only, and may hold several separated by "; "."""


def join_notes(*notes: Note) -> Remarks:
    """Join notes in order, leaving out empty ones.

    >>> text_of(join_notes(Remark("constant_rater"), "", "mean over 3 pairs"))
    'constant_rater; mean over 3 pairs'
    """
    remarks: list[Remark] = []
    for note in notes:
        if isinstance(note, str):
            remarks += (Remark("text", (each,)) for each in note.split("; ") if each)
        else:
            remarks += (note,) if isinstance(note, Remark) else note
    return tuple(remarks)


def text_of(remarks: Remarks) -> str:
    """Return the note of a row."""
    return "; ".join(remark.text for remark in remarks)


def says(remarks: Remarks, code: Code) -> bool:
    """Return True if one of the remarks has this code.

    >>> says(join_notes("tuned by hand"), "tuned"), says((Remark("tuned"),), "tuned")
    (False, True)
    """
    return any(remark.code == code for remark in remarks)


def reason_in_words(remarks: Remarks) -> str:
    """Return the reason for an undefined value, within a sentence: the first remark.

    >>> reason_in_words(join_notes(Remark("no_variation"), "3 subjects"))
    'no variation'
    """
    return remarks[0].words if remarks else "undefined"
