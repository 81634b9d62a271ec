"""Facts about a study for its report that are not in its ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.rubrics import Published
    from evenhand.study.settings.published import PublishedFigures
    from evenhand.study.tables.evidence import Mark


@dataclass(frozen=True)
class BesidePublished:
    """The figures of others that a study declares, the graders whose own stand beside them, and
    sentences on how the study differs from theirs.
    """

    published: PublishedFigures
    graders: Sequence[str] = ()
    differences: Sequence[str] = ()


@dataclass(frozen=True)
class ReportContext:
    """Description of the study behind the ratings.

    `facts` are provenance in reading order (sample, seeds, rubric hashes, dates, versions, margin);
    `notes` are warnings such as labels that were set aside; `rubric_titles` are by rubric;
    `published` are the figures of others on a rubric, `beside` those that the study declares.
    `label_names` are the options' names by rubric and category. `texts`, `remarks` and `marks` are
    by (rubric, unit id): what raters read, each text under its name; people's remarks with their
    labels, by rater; and (rater, words marked). `replies` and `sorted` are by (rubric, unit id,
    grader): the grader's replies, word for word, and how the lead sorted its disagreement with
    people (kind, note). `answered` are the models that answered, with their replies, by grader. A
    `synthetic` report is marked so in all of its files.
    """

    name: str
    synthetic: bool = False
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    notes: Sequence[str] = ()
    rubric_titles: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, Sequence[Published]] = field(default_factory=dict)
    label_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    texts: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    remarks: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    marks: Mapping[tuple[str, str], Sequence[tuple[str, Mark]]] = field(default_factory=dict)
    replies: Mapping[tuple[str, str, str], Sequence[str]] = field(default_factory=dict)
    sorted: Mapping[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)
    answered: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    beside: BesidePublished | None = None

    @property
    def said(self) -> list[str]:
        """The notes, and that the labels are synthetic where they are."""
        return [*self.notes, *([written("terminal.synthetic")] if self.synthetic else [])]

    def title_of(self, rubric: str) -> str:
        """Return the name of a rubric for headings.

        >>> ReportContext("study", rubric_titles={"tone": "Tone of voice"}).title_of("tone")
        'Tone of voice'
        """
        return self.rubric_titles.get(rubric) or rubric or "Labels"
