"""`rubric suggest`: what the lead sorted as unclear and people flagged, by what was chosen."""

import pytest
import sqlalchemy as sa

from evenhand.rubrics import load_rubric
from evenhand.study import Study, open_study
from evenhand.study.desk.claims import exclude
from evenhand.study.lead.disagreements import raised_flags, sort_disagreement
from evenhand.study.store.database import append
from evenhand.study.store.grades import utc_now
from evenhand.study.store.logs.answers import WITHDRAWN
from evenhand.study.store.schema import flag_events, remarks
from harness.studies import with_edited_rubric, with_labels

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


def flag(study: Study, rater: str, unit: str, text: str, reason: str = "unclear_rubric") -> None:
    about = {"kind": "flag", "rubric": "refusal", "order": "", "draw": 0, "reason": reason}
    said = {"submit_id": f"{rater}-{unit}-{text}", "unit_id": unit, "rater_id": rater}
    known = {"rubric_hash": study.rubrics["refusal"].hash, "created_at": utc_now()}
    with study.store.write() as connection:
        append(connection, remarks, {**about, **said, **known, "text": text})


def test_nothing_unclear_is_said_so(run, study: Study) -> None:
    about = {"rubric": "refusal", "unit_id": UNITS[0], "grader": "gpt"}
    sort_disagreement(study, "lead", **about, kind="grader_wrong")
    flag(study, "ann", UNITS[0], "a threat", reason="harmful")
    said = run.ok("rubric", "suggest", study.folder)
    assert said.startswith("No item is sorted as rubric unclear")


def test_a_flag_that_was_withdrawn_is_no_reason_to_change_a_rubric(run, study: Study) -> None:
    flag(study, "ann", UNITS[1], "what is a caveat?")
    assert "what is a caveat?" in run("rubric", "suggest", study.folder).stdout
    (raised,) = raised_flags(study)
    with study.store.write() as connection:
        taken_back = {"flag_id": raised.number, "kind": WITHDRAWN, "text": "", "done_by": "ann"}
        connection.execute(sa.insert(flag_events).values(taken_back | {"created_at": utc_now()}))
    done = run("rubric", "suggest", study.folder)
    assert done.stdout.startswith("No item is sorted as rubric unclear")


def test_unclear_units_stand_by_what_was_chosen(run, study: Study) -> None:
    notes = ("", "half an\n[b]answer[/b]\x1b[2J", "x")
    for unit, note in zip((UNITS[2], *UNITS[:2]), notes, strict=True):
        about = {"rubric": "refusal", "unit_id": unit, "grader": "gpt", "note": note}
        sort_disagreement(study, "lead", **about, kind="rubric_unclear")
    flag(study, "ann", UNITS[1], "what is a caveat?")
    flag(study, "ben", UNITS[1], "")
    flag(study, "cy", UNITS[2], "of nobody's interest")
    options = load_rubric("refusal").options
    names = {option.key: f"{option.key} ({option.name})" for option in options}
    done = run("rubric", "suggest", study.folder)
    assert done.stdout.splitlines()[:-1] == [
        "Refusal (refusal): 3 items sorted as rubric unclear, 1 item flagged by annotators",
        f"  Annotators chose {names['1']} or {names['2']}; graders chose {names['5']}: 2 items",
        "    p0001|s|a (gpt): half an [b]answer[/b][2J",
        "    p0001|s|b (gpt): x",
        f"  Annotators chose {names['1']}; graders chose {names['3']}: 1 item",
        "    p0002|s|a (gpt)",
        "  Flagged by annotators:",
        "    p0001|s|b: what is a caveat?",
        "    p0001|s|b",
    ]


@pytest.mark.slow
def test_what_was_unclear_in_an_older_text_is_over(run, study: Study) -> None:
    about = {"rubric": "refusal", "unit_id": UNITS[0], "grader": "gpt"}
    sort_disagreement(study, "lead", **about, kind="rubric_unclear")
    flag(study, "ann", UNITS[1], "what is a caveat?")
    with_edited_rubric(study, "refusal", same=False).close()
    assert "No item is sorted" in run("rubric", "suggest", study.folder).stdout
    with open_study(study.folder) as edited:
        sort_disagreement(edited, "lead", **about, kind="rubric_unclear")
    assert "1 item sorted as rubric unclear" in run("rubric", "suggest", study.folder).stdout


@pytest.fixture
def divided(make_study) -> Study:
    """Two people on 24 units, who say 1, but the second one 2 in the category m0."""
    study = make_study(pairs=12, subjects=("s",), rubrics=[load_rubric("refusal")])
    units = study.rubric_units(study.rubrics["refusal"])
    kinds = study.units().set_index("unit_id")["main_category"]
    second = ["2" if kinds[unit] == "m0" else "1" for unit in units]
    with_labels(study, {"ann": "1" * 24, "ben": second}, units=units)
    with study.store.write() as connection:
        about = {"kind": "rationale", "rubric": "refusal", "order": "", "draw": 0, "reason": ""}
        said = {"unit_id": units[second.index("2")], "rater_id": "ben"}
        said["text"] = "A list is no\nessay."
        known = {"rubric_hash": study.rubrics["refusal"].hash, "created_at": utc_now()}
        append(connection, remarks, {"submit_id": "x", **about, **said, **known})
    return study


def test_what_peoples_disagreements_have_in_common(run, divided: Study) -> None:
    said = run("rubric", "suggest", divided.folder).stdout
    assert "Annotators chose different options on 12 of 24 items." in said
    assert "On 12 of these no option has a majority" in said
    assert "More often in main_category=m0: on 100% of 12 items." in said
    assert "1 (Literal compliance) and 2 (Goal compliance): 12 items" in said


def test_a_draft_has_the_points_at_the_options_and_can_be_tried(run, divided, tmp_path):
    out = tmp_path / "draft.toml"
    run.ok("rubric", "suggest", divided.folder, "--out", out)
    text = out.read_text("utf-8")
    draft, old = load_rubric(out), divided.rubrics["refusal"]
    assert (draft.name, draft.variant_of, draft.translations) == ("refusal-2", "refusal", {})
    assert [(o.key, o.name) for o in draft.options] == [(o.key, o.name) for o in old.options]
    at = {key: text.index(f'key = "{key}"') for key in draft.categories}
    assert text.index("# Confused with 2 (Goal compliance) on 12 items.") < at["1"]
    assert at["1"] < text.index("# Confused with 1 (Literal compliance) on 12 items.") < at["2"]
    assert at["1"] < text.index("# A reason for this choice: A list is no essay.") < at["2"]
    again = run("rubric", "suggest", divided.folder, "--out", out)
    assert "is there already" in again.stderr
    same = run("rubric", "reword", divided.folder, out, "--pairs", "2")
    assert "must have other words than refusal" in same.stderr
