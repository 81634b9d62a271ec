"""Remarks of results rows, as codes; the one table of their texts is `remarks.toml`.

The note of a row is text for readers. Whatever the analysis or the report must know of a row again
- whether its threshold is tuned, why it has no interval - is the code of a remark, never the text:
any text here may be reworded and no verdict changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenhand.texts import table_of

Code = Literal[
    # Reasons for having no estimate, or no interval.
    "no_variation", "no_pairable_units", "no_labels", "no_eligible_annotator", "no_times",
    "no_unlabelled_units", "not_known", "not_resampled", "no_resample_differs", "not_testable",
    "nothing_kept", "one_side_only", "category_not_used", "grader_not_informative",
    "hard_labels", "outside_zero_one", "people_agree_by_chance", "no_sharpness_fits",
    "promise_needs_more", "promise_out_of_reach", "too_few_clusters", "too_few_labels",
    "too_few_labels_for_interval", "too_few_raters", "too_few_shared_by_grader",
    "too_few_shared_by_humans", "too_few_subjects", "subjects_not_linked", "subject_unbeaten",
    "undefined",
    # Reliability of an interval.
    "resamples_undefined", "many_resamples_undefined", "most_resamples_undefined",
    "as_clusters_allow", "as_sampled", "pooled_clusters", "unequal_chances",
    "few_rarer", "zero_variance",
    # Recommended thresholds, and reasons.
    "tuned", "default", "not_identifiable", "wins_held_out", "does_not_win_held_out",
    "no_better_threshold", "few_clusters", "agrees_by_chance", "interval_too_wide",
    "coarse_draws",
    # Meaning of a row, or finding.
    "constant_rater", "declared_cut", "default_threshold", "declared_threshold", "errors_differ",
    "few_labelled", "labelled_by_people", "one_side_left_out", "people_or_more", "peoples_own",
    "promised_at", "prompts_differ", "sharpness_assumed", "sides_differ", "tuned_on",
    "uncorrected_p", "unscored",
    # Level and comparison of a verdict.
    "decided_at", "margin", "margin_share", "pooled_pairs", "no_level", "noise_may_explain",
    "nothing_varies", "people",
    # Text for readers only.
    "text",
]  # fmt: skip

_TABLES = table_of("evenhand.analysis", "remarks.toml")
TEXTS: dict[Code, str] = _TABLES["notes"]
"""Text of a remark in the notes of results.csv, by default its code; braces hold its detail."""
WORDS: dict[Code, str] = _TABLES["report"]
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
