"""Remarks of results rows, as codes, and the one table of their texts.

The note of a row is text for readers. Whatever the analysis or the report must know of a row again
- whether its threshold is tuned, why it has no interval - is the code of a remark, never the text:
any text here may be reworded and no verdict changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    "bca_undefined", "as_clusters_allow", "as_sampled", "pooled_clusters", "unequal_chances",
    "few_rarer", "zero_variance",
    # Recommended thresholds, and reasons.
    "tuned", "default", "not_identifiable", "wins_held_out", "does_not_win_held_out",
    "no_better_threshold", "few_clusters", "agrees_by_chance", "interval_too_wide",
    "coarse_draws",
    # Meaning of a row, or finding.
    "constant_rater", "declared_cut", "default_threshold", "declared_threshold", "errors_differ",
    "few_labelled", "labelled_by_people", "one_side_left_out", "people_or_more", "peoples_own",
    "promised_at", "prompts_differ", "sharpness_assumed", "tuned_on", "uncorrected_p",
    "unscored",
    # Level and comparison of a verdict.
    "decided_at", "margin", "margin_share", "pooled_pairs", "no_level", "noise_may_explain",
    "nothing_varies", "people",
    # Text for readers only.
    "text",
]  # fmt: skip

TEXTS: dict[Code, str] = {
    "no_times": "no times",
    "peoples_own": "people labelled all of them: their own rate",
    "not_known": "not known",
    "one_side_only": "answers to one side of each pair only",
    "hard_labels": "hard labels taken as certain",
    "promise_needs_more": "no cut can promise this with {} units: label about {} more",
    "promise_out_of_reach": "no cut can promise this with {} units, or with twenty times as many",
    "too_few_labels": "too few labels",
    "too_few_labels_for_interval": "too few labels for an interval",
    "too_few_shared_by_grader": "fewer than {} units have labels of the grader and a human",
    "too_few_shared_by_humans": "fewer than {} units have labels of the grader and two humans",
    "resamples_undefined": "{} of {} resamples undefined",
    "many_resamples_undefined": "{} of {} resamples undefined: read the interval with care",
    "most_resamples_undefined": "{} of {} resamples undefined: no interval",
    "bca_undefined": "percentile interval, as BCa is undefined",
    "as_clusters_allow": "no resample differs: the interval is what {} clusters allow",
    "as_sampled": "of the pairs as they were picked, unweighted",
    "pooled_clusters": "interval from {:,} random groups of the {:,} clusters",
    "unequal_chances": "pairs were not equally likely to be picked",
    "few_rarer": "labels of a rarer category in only {} clusters: the interval may be too narrow",
    "zero_variance": "zero_variance ({} of {} annotators)",
    "wins_held_out": "wins held out",
    "does_not_win_held_out": "the tuned threshold does not win held out",
    "no_better_threshold": "no other threshold is better",
    "few_clusters": "fewer than {} clusters",
    "agrees_by_chance": "its verdicts agree no more than by chance",
    "interval_too_wide": "its interval spans over half of the scale",
    "coarse_draws": "{0} draws resolve steps of 1/{0}: a threshold of {1:.3g} needs {2} draws",
    "declared_cut": "the declared cut",
    "default_threshold": "the default threshold",
    "declared_threshold": "the declared threshold",
    "errors_differ": "errors differ by subject",
    "few_labelled": "fewer than {} units are labelled",
    "labelled_by_people": "{} of them labelled by people",
    "one_side_left_out": "{} answers to one side alone left out",
    "promised_at": "wrong in at most {:.3g} of studies at this look",
    "prompts_differ": "{} of {} clusters answered by both",
    "people_or_more": "as many as {:,} people or more",
    "sharpness_assumed": "fewer than {} units have two people's labels: taken to see as people do",
    "tuned_on": "tuned on {} pairs to match {} by {}",
    "uncorrected_p": "uncorrected {:.4g}",
    "unscored": "unscored: {}",
    "decided_at": "one-sided level {0:.3g}: look {1}; {2} comparisons at once",
    "margin": "margin {:.4g}",
    "margin_share": "{:.0%} of people's kappa",
    "pooled_pairs": "humans with few labels share one table",
    "no_level": "no level left for a bound",
    "noise_may_explain": "noise of all raters that changes with the property may explain the "
    "shift: {:+.3f} if so",
    "nothing_varies": "nothing varies: as far as clusters unseen so far may lie",
    "people": "for people like these {0}",
    "text": "{}",
}
"""Text of a remark in the notes of results.csv, by default its code; braces hold its detail."""

WORDS: dict[Code, str] = {
    "no_variation": "no variation",
    "no_pairable_units": "no unit shared by two",
    "no_labels": "no labels",
    "no_eligible_annotator": "no annotator has enough units",
    "too_few_clusters": "too few clusters for an interval",
    "too_few_subjects": "too few subjects",
    "subjects_not_linked": "some subjects were never compared, not even by way of others",
    "subject_unbeaten": "some subjects won, or lost, all comparisons with the others: no bound",
    "not_resampled": "not resampled",
    "no_resample_differs": "no resample differs from the data",
    "too_few_raters": "too few raters",
    "category_not_used": "nobody used the category",
    "grader_not_informative": "sensitivity + specificity - 1 may be 0",
    "no_unlabelled_units": "nothing graded beyond people's labels",
    "outside_zero_one": "beyond 0 to 1: its error rates are not those of all subjects",
    "zero_variance": "no variance to test ({} of {} annotators)",
    "nothing_kept": "nothing is kept",
    "not_testable": "no test possible",
    "people_agree_by_chance": "people agree with each other no better than chance",
    "no_sharpness_fits": "the grader's calls follow people's labels in a way that no sharpness "
    "explains",
    "constant_rater": "constant rater: always one category, so kappa cannot tell it from chance",
    "not_identifiable": "no best threshold can be identified",
    "nothing_varies": "nothing varies: the bound allows for clusters not seen yet",
    "sharpness_assumed": "fewer than {} units have labels by two annotators: the grader is assumed "
    "to see as sharply as people do",
}
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
    return tuple(remark for note in notes for remark in _remarks(note))


def _remarks(note: Note) -> Remarks:
    if isinstance(note, Remark):
        return (note,)
    if isinstance(note, str):
        return tuple(Remark("text", (each,)) for each in note.split("; ") if each)
    return note


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
