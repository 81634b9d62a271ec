"""Labels to learn from: what people and the old grader said of the units from which a better grader
may be proposed, for whoever writes prompts by hand or with another tool.

Nothing of the other parts is in it (`analysis.planning.parting`), and nothing is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.reporting.improving import ImproveOptions
    from evenhand.study import Study
    from evenhand.study.tables.evidence import Mark


def labels_to_learn(study: Study, options: ImproveOptions, *, done_by: str = "") -> pd.DataFrame:
    """Return a row for each labelled unit of *learn*, those on which the old grader differs from
    most people first: `unit_id`, the texts that raters read, people's `labels` and their
    `majority` ("" for a tie), the old `grader`'s label and whether it `agrees` ("" where it has
    none), people's `reasons` and the `words` that they marked. Labels are parted and the parts
    written down if they were not. Raises InputError as `improve` does.
    """
    import pandas as pd

    from evenhand.analysis.people.disagreements import GraderDisagreement
    from evenhand.reporting.improving import Trial
    from evenhand.reporting.quotes import quoted_marks, quoted_remarks, quoted_texts

    trial = Trial(study, options)
    old, rubric = trial.old_rater, trial.rubric.name
    clusters = trial.clusters_in("learn")
    graded = trial.grades_of(old, clusters)
    ratings = trial.ratings()
    people = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
    people = people.drop_duplicates(["unit_id", "rater_id"])
    said = {
        str(unit): dict(zip(own["rater_id"], own["label"], strict=True))
        for unit, own in people.groupby("unit_id")
    }
    units = [
        GraderDisagreement(rubric, old, unit, graded.get(unit, ""), said[unit], 0.0)
        for unit in sorted(trial.units_in(clusters))
    ]
    texts, marks = quoted_texts(study, units), quoted_marks(study, units)
    reasons = quoted_remarks(study, units)
    rows = []
    for each in units:
        key, majority = (rubric, each.unit_id), _majority(list(each.people.values()))
        agrees = ("yes" if each.label == majority else "no") if each.label and majority else ""
        given = reasons.get(key, {})
        rows.append(
            {
                "unit_id": each.unit_id,
                **texts.get(key, {}),
                "labels": "; ".join(each.people.values()),
                "majority": majority,
                "grader": each.label,
                "agrees": agrees,
                "reasons": "; ".join(given[who] for who in each.people if who in given),
                "words": "; ".join(_marked(texts[key], mark) for _, mark in marks.get(key, [])),
            }
        )
    trial.note_parts(done_by)
    found = pd.DataFrame(rows)
    return found.iloc[found["agrees"].ne("no").argsort(kind="stable")].reset_index(drop=True)


def _marked(texts: Mapping[str, str], mark: Mark) -> str:
    return texts.get(mark.text.replace("_", " ").capitalize(), "")[mark.start : mark.end]


def _majority(labels: list[str]) -> str:
    (most, count), *others = Counter(labels).most_common()
    return "" if others and others[0][1] == count else most
