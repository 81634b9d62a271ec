"""What a report quotes of a study: the texts of units and what people said beside their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.analysis.people.disagreements import GraderDisagreement
    from evenhand.study import Study

UnitTexts = dict[tuple[str, str], dict[str, str]]


def quoted_texts(study: Study, disagreements: list[GraderDisagreement]) -> UnitTexts:
    """What raters read, by (rubric, unit id), each text under its name."""
    from evenhand.study.questions import Question

    units = list(dict.fromkeys((each.rubric, each.unit_id) for each in disagreements))
    asked = [Question(unit, study.rubrics[rubric], "ab") for rubric, unit in units]
    return {
        key: {name.replace("_", " ").capitalize(): text for name, text in values.items()}
        for key, values in zip(units, study.values_of(asked), strict=True)
    }


def quoted_remarks(study: Study, disagreements: list[GraderDisagreement]) -> UnitTexts:
    """The latest reason that each person gave for a label or a flag, by (rubric, unit id)."""
    from evenhand.study.store.remarks import remarks_table

    wanted = {(each.rubric, each.unit_id) for each in disagreements}
    said: UnitTexts = {}
    for remark in remarks_table(study.store).to_dict("records"):
        key = (remark["rubric"], remark["unit_id"])
        words = ": ".join(part for part in (remark["reason"], remark["text"]) if part)
        if key in wanted and words:
            said.setdefault(key, {})[remark["rater_id"]] = words
    return said
