"""What a report says about a study that its ratings do not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.rubrics import Published
    from evenhand.study.tables.evidence import Mark


@dataclass(frozen=True)
class ReportContext:
    """Where the ratings come from.

    `facts` are provenance in reading order (sample, seeds, rubric hashes, dates, versions, margin);
    `notes` are warnings such as labels that were set aside; `rubric_titles` are by rubric;
    `published` are the figures of others on a rubric. `texts`
    and `remarks` speak of units by (rubric, unit id): what raters read, each text under its name,
    and what people said beside their labels, by rater; `marks` says who marked which words of them.
    `replies` and `sorted` speak of a grader on
    a unit by (rubric, unit id, grader): what it replied, word for word, and how the lead sorted its
    disagreement with people (kind, note). `label_names` are the options' names by
    rubric and category. A `synthetic` report says so in all of its files.
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

    def title_of(self, rubric: str) -> str:
        """How a rubric is called in headings.

        >>> ReportContext("study", rubric_titles={"tone": "Tone of voice"}).title_of("tone")
        'Tone of voice'
        """
        return self.rubric_titles.get(rubric) or rubric or "Labels"
