"""`rubric suggest`: what the lead sorted as unclear and people flagged, by what was chosen."""

import pytest
import sqlalchemy as sa

from evenhand.rubrics import load_rubric
from evenhand.study import Study
from evenhand.study.desk.claims import exclude
from evenhand.study.lead.disagreements import raised_flags, sort_disagreement
from evenhand.study.store.database import append
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import flag_events, labels, remarks
from evenhand.study.store.store import WITHDRAWN
from harness.studies import with_edited_rubric, with_labels

pytestmark = pytest.mark.journey

UNITS = ["p0001|s|a", "p0001|s|b", "p0002|s|a"]


@pytest.fixture
def study(make_study) -> Study:
    """Two people and a grader on three units: 1 and 2 against 5 twice, 1 and 1 against 3. A third
    person is excluded."""
    study = make_study(pairs=2, subjects=("s",), rubrics=["refusal"])
    given = {"ann": "121", "ben": "211", "gpt": "553", "cy": "444"}
    with_labels(study, given, units=UNITS, graders=["gpt"])
    exclude(study.store, "cy", "asked to be", "lead")
    return study


def remark(study: Study, rater: str, unit: str, text: str, reason: str = "unclear_rubric") -> None:
    about = {"kind": "flag" if reason else "answer", "rubric": "refusal", "order": "", "draw": 0}
    said = {"submit_id": f"{rater}-{unit}-{text}", "unit_id": unit, "rater_id": rater}
    known = {"rubric_hash": study.rubrics["refusal"].hash, "created_at": utc_now()}
    with study.store.write() as connection:
        if not reason:  # it came with the label
            label = sa.select(labels.c.submit_id).where(labels.c.rater_id == rater)
            said["submit_id"] = connection.execute(label.where(labels.c.unit_id == unit)).scalar()
        append(connection, remarks, {**about, **said, **known, "text": text, "reason": reason})


def test_only_what_is_still_unclear_in_the_present_text_is_a_reason_to_change_it(run, study):
    def suggested() -> str:
        return run.ok("rubric", "suggest", study.folder)

    about = {"rubric": "refusal", "unit_id": UNITS[0], "grader": "gpt"}
    sort_disagreement(study, "lead", **about, kind="grader_wrong")
    remark(study, "ann", UNITS[0], "a threat", reason="harmful")
    assert suggested().startswith('No item is sorted as "Rubric allows both"')
    remark(study, "ann", UNITS[1], "what is a caveat?")
    assert "what is a caveat?" in suggested()
    flagged = next(each for each in raised_flags(study) if "caveat" in each.text)
    with study.store.write() as connection:
        taken_back = {"flag_id": flagged.number, "kind": WITHDRAWN, "text": "", "done_by": "ann"}
        connection.execute(sa.insert(flag_events).values(taken_back | {"created_at": utc_now()}))
    assert suggested().startswith('No item is sorted as "Rubric allows both"')
    sort_disagreement(study, "lead", **about, kind="rubric_unclear")
    assert '1 item sorted as "Rubric allows both"' in suggested()
    with_edited_rubric(study, "refusal", same=False).close()
    assert "No item is sorted" in suggested()


def test_unclear_units_stand_by_what_was_chosen(run, study: Study) -> None:
    notes = ("", "half an\n[b]answer[/b]\x1b[2J", "x")
    for unit, note in zip((UNITS[2], *UNITS[:2]), notes, strict=True):
        about = {"rubric": "refusal", "unit_id": unit, "grader": "gpt", "note": note}
        sort_disagreement(study, "lead", **about, kind="rubric_unclear")
    remark(study, "ann", UNITS[1], "what is a caveat?")
    remark(study, "ben", UNITS[1], "")
    remark(study, "cy", UNITS[2], "of nobody's interest")
    options = load_rubric("refusal").options
    names = {option.key: f"{option.key} ({option.name})" for option in options}
    assert run("rubric", "suggest", study.folder).stdout.splitlines()[:-1] == [
        'Refusal (refusal): 3 items sorted as "Rubric allows both", 1 item flagged by annotators',
        f"  Annotators chose {names['1']} or {names['2']}; graders chose {names['5']}: 2 items",
        "    p0001|s|a (gpt): half an [b]answer[/b][2J",
        "    p0001|s|b (gpt): x",
        f"  Annotators chose {names['1']}; graders chose {names['3']}: 1 item",
        "    p0002|s|a (gpt)",
        "  Flagged by annotators:",
        "    p0001|s|b: what is a caveat?",
        "    p0001|s|b",
    ]


def test_what_peoples_disagreements_have_in_common_becomes_a_draft(run, make_study, tmp_path):
    """Two people on 24 units, who say 1, but the second one 2 in the category m0."""
    divided = make_study(pairs=12, subjects=("s",), rubrics=["refusal"])
    units = divided.rubric_units(divided.rubrics["refusal"])
    kinds = divided.units().set_index("unit_id")["main_category"]
    second = ["2" if kinds[unit] == "m0" else "1" for unit in units]
    with_labels(divided, {"ann": "1" * 24, "ben": second}, units=units)
    remark(divided, "ben", units[second.index("2")], "A list is no\nessay.", reason="")
    out, suggest = tmp_path / "draft.toml", ("rubric", "suggest", divided.folder, "--out")
    said = run.ok(*suggest, out)
    assert "Annotators chose different options on 12 of 24 items." in said
    assert "On 12 of these no option has a majority" in said
    assert "More often in main_category=m0: on 100% of 12 items." in said
    assert "1 (Literal compliance) and 2 (Goal compliance): 12 items" in said
    text = out.read_text("utf-8")
    draft, old = load_rubric(out), divided.rubrics["refusal"]
    assert (draft.name, draft.variant_of, draft.translations) == ("refusal-2", "refusal", {})
    assert [(o.key, o.name) for o in draft.options] == [(o.key, o.name) for o in old.options]
    at = {key: text.index(f'key = "{key}"') for key in draft.categories}
    assert text.index("# Confused with 2 (Goal compliance) on 12 items.") < at["1"]
    assert at["1"] < text.index("# Confused with 1 (Literal compliance) on 12 items.") < at["2"]
    assert at["1"] < text.index("# A reason for this choice: A list is no essay.") < at["2"]
    assert "is there already" in run.refused(*suggest, out)
    same = run.refused("rubric", "reword", divided.folder, out, "--pairs", "2")
    assert "must have other words than refusal" in same
