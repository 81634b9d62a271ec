"""Labels to learn from: what people and the old grader said of the units from which a better grader
may be proposed, by hand, by another tool or by GEPA.

Nothing of the other parts is in it (`analysis.planning.parting`), and nothing is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study import Study
    from evenhand.study.tables.evidence import Mark


@dataclass(frozen=True)
class LearnUnit:
    """A unit to learn from: the `texts` that raters read, by their names, people's `labels`, the
    label that the grader gave ("" for none), and people's `reasons` and the `words` they marked.
    """

    unit_id: str
    texts: Mapping[str, str]
    labels: Sequence[str]
    graded: str
    reasons: Sequence[str] = field(default=())
    words: Sequence[str] = field(default=())

    @property
    def majority(self) -> str:
        """The label that most people gave; "" where two were given as often."""
        (most, count), *others = Counter(self.labels).most_common(2)
        return "" if others and others[0][1] == count else most

    @property
    def agrees(self) -> str:
        """Whether the grader gave people's majority, "yes" or "no"; "" where one is missing."""
        if not (self.graded and self.majority):
            return ""
        return "yes" if self.graded == self.majority else "no"


def units_to_learn(
    study: Study, rubric: str, ratings: pd.DataFrame, grader: str, graded: Mapping[str, str]
) -> list[LearnUnit]:
    """Return the units that people labelled in these ratings, with a grader's labels by unit."""
    from evenhand.analysis.people.disagreements import GraderDisagreement
    from evenhand.reporting.quotes import quoted_marks, quoted_remarks, quoted_texts

    people = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
    people = people.drop_duplicates(["unit_id", "rater_id"])
    labels = {
        str(unit): dict(zip(given["rater_id"], given["label"], strict=True))
        for unit, given in people.groupby("unit_id")
    }
    units = [
        GraderDisagreement(rubric, grader, unit, graded.get(unit, ""), given, 0.0)
        for unit, given in sorted(labels.items())
    ]
    texts, marks = quoted_texts(study, units), quoted_marks(study, units)
    remarks = quoted_remarks(study, units)
    found = []
    for each in units:
        key = rubric, each.unit_id
        reasons = remarks.get(key, {})
        found.append(
            LearnUnit(
                each.unit_id,
                texts.get(key, {}),
                list(each.people.values()),
                each.label,
                [reasons[who] for who in each.people if who in reasons],
                [_marked(texts[key], mark) for _, mark in marks.get(key, [])],
            )
        )
    return found


def table_of(units: Sequence[LearnUnit]) -> pd.DataFrame:
    """Return a row for each unit, those on which the grader differs from most people first."""
    import pandas as pd

    found = pd.DataFrame(
        {
            "unit_id": each.unit_id,
            **each.texts,
            "labels": "; ".join(each.labels),
            "majority": each.majority,
            "grader": each.graded,
            "agrees": each.agrees,
            "reasons": "; ".join(each.reasons),
            "words": "; ".join(each.words),
        }
        for each in units
    )
    return found.iloc[found["agrees"].ne("no").argsort(kind="stable")].reset_index(drop=True)


def _marked(texts: Mapping[str, str], mark: Mark) -> str:
    return texts.get(mark.text.replace("_", " ").capitalize(), "")[mark.start : mark.end]
