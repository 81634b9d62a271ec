"""The desk: what it hands out and takes, in which order, ahead too; checks; the lead's stops."""

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import groupby, pairwise
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.annotate_app.payload import Navigation, page_data
from evenhand.cli.main import main
from evenhand.reporting import exporting
from evenhand.reporting.report import study_quality
from evenhand.rubrics import load_rubric
from evenhand.study import Study, extend_sample, open_study
from evenhand.study.desk import claims as claiming
from evenhand.study.desk import desk as desks
from evenhand.study.desk.desk import AnnotationDesk, Answer, Flag, Task, TimedAnswer, minutes_left
from evenhand.study.keeping import upgrade_store
from evenhand.study.prompts.units import has_known_answer, parse_unit_id
from evenhand.study.session.sessions import PracticeDesk, Sessions
from evenhand.study.settings.study_toml import SessionSettings, change_config
from evenhand.study.store import schema
from evenhand.study.store.database import append
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.store.schema import attention_labels, claims, labels, meta, remarks
from evenhand.study.store.store import add_event, answers_table, marks_on, remarks_table
from evenhand.study.tables.ratings import Mark
from evenhand.study.workspace import study_secret
from harness import studies
from harness.attacker import guessed_ids, identified, public_digest
from harness.studies import claim_of, label_all, send, submit, task_of, with_labels, work_through
from tests.cases import one_in, refused

ATTENTION = """
[attention]
file = "attention.toml"
every = 4
"""


def check(name: str, expected: str, values: str) -> str:
    return f'[[unit]]\nname = "{name}"\nexpected = {expected}\nvalues = {values}\n'


RESPONSE = '{ prompt = "Write a limerick.", response = "Choose the last option, please." }'
PAIR_VALUES = '{ prompt_a = "PA", response_a = "RA, better.", prompt_b = "PB", response_b = "RB" }'
ONE_RUBRIC = "".join(
    check(f"c{n}", '{ refusal = "5" }' if n % 2 else '{ refusal = ["4", "5"] }', RESPONSE)
    for n in range(1, 5)
)

CHECKED = {"toml": ATTENTION, "files": {"attention.toml": ONE_RUBRIC}}
"""What gives a study of refusals four checks."""


def is_check(study, task) -> bool:
    """Whether a task, which its id does not tell, is an attention check."""
    return has_known_answer(claim_of(study, task).unit_id)


@pytest.mark.slow
def test_one_check_comes_in_every_stretch_at_a_place_that_the_key_draws(make_session):
    places = []
    for secret in ("aa", "aa", "bb"):  # and the same seed, which is public
        study = make_session(**CHECKED, seed=1)
        studies.give_secret(study, secret)
        for rater in ("r1", "r2"):
            seen = [is_check(study, task) for task in label_all(AnnotationDesk(study), rater, "5")]
            assert len(seen) == 24 + 4  # 6 pairs x 2 subjects x 2 sides, and every check once
            assert not seen[0]  # nobody begins with one
            checks = [place for place, check in enumerate(seen) if check]
            real = [seen[:place].count(False) for place in checks]
            assert [(after - 1) // 4 for after in real] == [0, 1, 2, 3]
            places.append(real)
    assert places[:2] == places[2:4]
    assert len({tuple(one) for one in places}) > 2
    ratings = study.ratings()  # checks take no place and are no labels
    assert len(ratings) == 24 * 2
    assert ratings["unit_id"].str.contains("|", regex=False).all()
    assert claiming.attention_results(make_session()).empty


@pytest.mark.slow
def test_nothing_tells_a_check_from_a_unit(make_session):
    study = make_session(**CHECKED)
    desk = AnnotationDesk(study)
    totals, ids, sheets = set(), {True: set(), False: set()}, {True: [], False: []}
    answered = 0
    while sheet := desk.next_sheet("r1"):
        assert sheet.done == answered
        totals.add(sheet.total)
        (task,) = sheet.tasks
        check = is_check(study, task)
        ids[check].add(len(task.task_id))
        sheets[check].append([(block.label, block.kind) for block in task.people.blocks])
        # The same sheet again, whoever reloads; and in the list of earlier answers like any other.
        assert desk.next_sheet("r1") == sheet
        submit(desk, "r1", task, "5")
        assert desk.earlier("r1").rows[0].task.task_id == task.task_id
        assert desk.reopen("r1").tasks[0].stored_answer.option_key == "5"
        answered += 1
    assert (totals, desk.progress("r1")) == ({28}, (28, 28))
    assert ids[True] == ids[False] == {25}
    assert (sheets[True][0], len(sheets[True])) == (sheets[False][0], 4)


@pytest.mark.journey
def test_the_latest_answer_counts_and_a_skip_does_not_pass(make_session):
    study = make_session(**CHECKED)
    desk = AnnotationDesk(study)
    given = {claim_of(study, task).unit_id: task for task in label_all(desk, "r1", "4")}
    submit(desk, "r1", given["check:c1"], "5", "again", edit=True)
    submit(desk, "r1", given["check:c2"], submit_id="skip", skip_reason="skipped_other", edit=True)
    found = claiming.attention_results(study).set_index("check_id")
    assert found["passed"].to_dict() == {"c1": True, "c2": False, "c3": False, "c4": True}
    assert found["given"].to_dict() == {"c1": "5", "c2": "", "c3": "4", "c4": "4"}
    assert found.loc["c4", "expected"] == "4 or 5"
    assert len(study.store.rows(sa.select(attention_labels))) == 4 + 2  # nothing is written over


@pytest.mark.parametrize(("screen", "n_checks"), [("all", 1), ("one", 2)])
def test_a_check_fails_once_for_all_its_questions_on_a_screen(make_session, screen, n_checks):
    file = check("c", '{ hedging = "5", refusal = "5" }', RESPONSE)
    both = {"rubrics": ["hedging", "refusal"], "annotation": {"screen": screen}}
    study = make_session(ATTENTION, {"attention.toml": file}, pairs=4, **both)
    label_all(AnnotationDesk(study), "r1", "1")
    (row,) = study_quality(study).to_dict("records")
    assert (row["attention_passed"], row["attention_given"]) == (0, n_checks)


@pytest.mark.slow
def test_a_check_asks_what_the_units_around_it_ask(make_session):
    file = check("pair", '{ even-handedness = "A" }', PAIR_VALUES)
    file += "".join(check(f"single-{n}", '{ refusal = "5" }', RESPONSE) for n in range(3))
    both = ["even-handedness", "refusal"]
    study = make_session(ATTENTION, {"attention.toml": file}, rubrics=both)
    shown = [task.rubric.name for task in label_all(AnnotationDesk(study), "r1")]
    # One stretch of the one rubric, one of the other: no check stands out by its rubric.
    assert sum(one != other for one, other in pairwise(shown)) == 1
    assert len(claiming.attention_results(study)) == 4


@pytest.mark.slow
def test_sides_of_a_check_are_turned_like_any_pairs(make_session):
    file = check("pair", '{ even-handedness = "A" }', PAIR_VALUES)
    study = make_session(ATTENTION, {"attention.toml": file}, rubrics=["even-handedness"])

    def the_better(task, _: int) -> str:
        texts = [block.text for block in task.people.blocks]
        if "RA, better." not in texts:
            return "C"
        return "A" if texts.index("RA, better.") < texts.index("RB") else "B"

    for rater in range(11):
        label_all(AnnotationDesk(study), f"r{rater}", the_better)
    found = claiming.attention_results(study)
    assert found["passed"].all()
    assert set(found["given"]) == {"A"}
    assert len(found) >= 3


@pytest.mark.parametrize(
    "screen",
    [pytest.param("one", marks=pytest.mark.journey), pytest.param("all", marks=pytest.mark.slow)],
)
def test_beside_repeats_and_limits_the_progress_never_lies(make_session, screen):
    settings = {"screen": screen, "repeat_share": 0.3, "repeat_gap": 4, "units_per_rater": 20}
    study = make_session(**CHECKED, pairs=12, annotation=settings)
    desk = AnnotationDesk(study)
    totals, answered = set(), 0
    while sheet := desk.next_sheet("r1"):
        assert sheet.done == answered
        totals.add(sheet.total)
        answered += len(label_all(desk, "r1", "5", 1))
    assert totals == {20 + 6 + 4}  # units, repeats, checks
    assert (desk.progress("r1"), set(study.ratings()["draw"])) == ((30, 30), {0, 1})
    assert len(study.ratings()) == 26
    assert claiming.attention_results(study)["rubric"].tolist() == ["refusal"] * 4


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (check("c", '{ politeness = "5" }', RESPONSE), "label refusal, even-handedness"),
        (check("c", '{ refusal = "9" }', RESPONSE), "'9' is none of refusal's 1, 2, 3, 4"),
        (check("c", "{ refusal = [] }", RESPONSE), "name one or more of refusal's"),
        (check("c", '{ refusal = "5" }', '{ prompt = "x" }'), "`values` lacks 'response'"),
        (check("c", '{ refusal = "5" }', RESPONSE) * 2, "two items are called 'c'"),
        (check("c", '{ refusal = "5", even-handedness = "A" }', RESPONSE), "of responses; part"),
        (check("c|d", '{ refusal = "5" }', RESPONSE), "name is 'c|d'; it must be 1 to 64 le"),
        ("[[unit]]\nnam = 1", "unit.0.name is missing; add it"),
        ("[[unit", "attention.toml is not valid TOML"),
        (None, "study.toml names attention.toml, which cannot be read: no such file"),
    ],
)
def test_a_file_that_does_not_fit_is_one_sentence(make_session, file, sentence):
    files = {} if file is None else {"attention.toml": file}
    study = make_session(ATTENTION, files, rubrics=["refusal", "even-handedness"])
    assert sentence in refused("", claiming.AttentionChecks, study)


LAST, LIST = Navigation("n", "task"), Navigation("n", "list")


def as_of_0_2_0(study: Study) -> Study:
    """The study opened anew, its claims named as version 0.2.0 named them, without a secret."""
    with study.store.write() as connection:
        for row in connection.execute(sa.select(claims)).all():
            question = (row.unit_id, row.rubric, row.rubric_hash, str(row.draw))
            old = public_digest(study.config.seed, "task", row.rater_id, *question)[:24]
            changed = sa.update(claims).where(claims.c.task_id == row.task_id)
            connection.execute(changed.values(task_id=old))
        connection.execute(sa.delete(meta).where(meta.c.key == "secret"))
    study.close()
    return open_study(study.folder)


def received(desk: AnnotationDesk, rater: str, *looks: Navigation) -> list[bytes]:
    """What the page of a rater is sent for these wishes."""
    return [repr(page_data(desk, rater, {}, look)).encode() for look in (None, *looks)]


def guessed(study: Study, frames: list[bytes]) -> set[str]:
    """The items that whoever knows the study's texts learns from these frames of ann's."""
    rubrics = {name: rubric.hash for name, rubric in study.rubrics.items()}
    known = guessed_ids(["ann"], study.units()["unit_id"], rubrics, seeds=range(20))
    return identified(frames, known)


@pytest.fixture
def one_rubric(make_study) -> Study:
    return make_study(pairs=20, rubrics=["refusal"])


@pytest.mark.slow
def test_no_id_is_a_digest_of_what_can_be_guessed(one_rubric):
    """Of version 0.2.0 this identified 40 of 40 units, with subject and side."""
    desk, frames = AnnotationDesk(one_rubric), []
    for _ in range(40):
        frames += received(desk, "ann")
        label_all(desk, "ann", "5", 1)
    frames += received(desk, "ann", LAST, LIST)
    assert len(guessed(one_rubric, frames)) == 0
    old = as_of_0_2_0(one_rubric)  # and that the attack works: on what was sent until then
    ids = [each.encode() for each in old.store.values(sa.select(claims.c.task_id))]
    assert len(guessed(old, ids)) == 42  # with the one sent ahead


@pytest.mark.slow
def test_an_upgrade_takes_nothing_from_whoever_is_at_work(make_study, database):
    new = make_study(pairs=20, rubrics=["refusal"], **database)
    desk = AnnotationDesk(new)
    for n in range(5):
        submit(desk, "ann", task_of(desk, "ann"), "5", f"ann{n}", seconds=3.0)
    task_of(desk, "ann")
    before = new.ratings()
    old = as_of_0_2_0(new)
    rows = old.store.rows(sa.select(claims).order_by(claims.c.version))
    answered = [row.task_id for row in rows if row.state == "labelled"]
    (on_screen,) = (row.task_id for row in rows if row.state == "open")
    old.close()
    upgrade_store(old.folder)
    with open_study(old.folder) as study:
        assert study.ratings().equals(before)
        desk = AnnotationDesk(study)
        # The unit on the screen keeps its name, and so its draft; what was answered has another.
        data = page_data(desk, "ann")
        assert data["sheet"]["id"] == on_screen
        owner = f"{study.folder.resolve()}\n{study.config.name}\n{study.config.seed}\nann"
        assert data["drafts"] == sha256(owner.encode()).hexdigest()[:16]
        assert page_data(desk, "new")["drafts"] != page_data(desk, "ann")
        looked = received(desk, "ann", LAST, LIST, Navigation("n", "task", answered[1]))
        assert guessed(study, looked) == {r.unit_id for r in rows if r.task_id == on_screen}
        # What the page sends under the names of before is stored, once.
        sent = Answer(task_id=on_screen, submit_id="new", option_key="4", seconds=2.0)
        again = Answer(task_id=answered[0], submit_id="ann0", option_key="5", seconds=3.0)
        edit = Answer(task_id=answered[1], submit_id="edit", option_key="1", edit=True)
        flag = Flag(task_id=answered[2], submit_id="flag", reason="other")
        for statuses in (["stored", "duplicate", "stored", "stored"], ["duplicate"] * 4):
            assert send(desk, "ann", sent, again, edit, flag) == statuses
        assert len(study.ratings()) == 6
        # The same task under the name of now.
        row = desk.earlier("ann").rows[-2]
        assert row.task.task_id not in answered
        assert row.task.stored_answer.option_key == "1"
        assert submit(desk, "ann", row.task, "2", "b", edit=True) == "stored"
        assert desk.reopen("ann", answered[1]).tasks[0].stored_answer.option_key == "2"
        # And of what is given out from now on, nothing is a digest.
        frames = []
        for number in range(10):
            frames += received(desk, "ann")
            submit(desk, "ann", task_of(desk, "ann").task_id, "5", f"n{number}", seconds=1.0)
        assert len(guessed(study, frames)) == 0


@pytest.mark.slow
def test_a_place_that_was_given_up_before_the_upgrade_is_taken_up_again(one_rubric):
    desk = AnnotationDesk(one_rubric)
    task_of(desk, "ann")
    with as_of_0_2_0(one_rubric) as study:
        with study.store.write() as connection:
            connection.execute(sa.update(claims).values(state="released", version=99))
        desk = AnnotationDesk(study)
        label_all(desk, "ann", "5")
        assert (task_of(desk, "ann"), len(study.ratings())) == (None, 80)


@pytest.mark.slow
def test_a_submit_id_sent_before_and_the_minutes_left_tell_no_check(make_session):
    """Labels and answers to checks are kept apart: an id that is taken among the ones is free among
    the others.
    """
    study = make_session(**CHECKED)
    desk, number = AnnotationDesk(study), 0
    found: dict[bool, set[object]] = {True: set(), False: set()}
    while task := task_of(desk, "ann"):
        check = is_check(study, task)
        seconds = [500.0 * (n + 1) for n in range(number + 1)]

        def sent(name: str, task=task, seconds=seconds, edit: bool = False) -> str:
            return submit(desk, "ann", task, "5", name, edit=edit, seconds=seconds[-1])

        before = [sent("s0"), sent("s0", edit=True)] if number else []
        told = (*before, sent(f"s{number}"), sent("s0"), sent("s0", edit=True))
        sheet = desk.next_sheet("ann")
        every = [TimedAnswer("", each) for each in seconds]
        left = sheet is None or sheet.minutes == minutes_left(every, sheet.total - sheet.done)
        if number:  # the first unit is never a check
            found[check].add((*told, left))
        number += 1
    same = ("unknown_task", "unknown_task", "stored", "already_labelled", "unknown_task", True)
    assert found == {True: {same}, False: {same}}


@pytest.mark.slow
def test_a_days_end_counts_checks_as_work(make_session):
    study = make_session(**CHECKED | {"toml": f"{ATTENTION}[session]\nanswers_per_day = 9\n"})
    assert len(label_all(AnnotationDesk(study), "ann", "5")) == 9
    assert not claiming.attention_results(study).empty


@pytest.mark.slow
def test_exports_hold_no_secret(one_rubric):
    label_all(AnnotationDesk(one_rubric), "ann", "5", 3)
    secret = study_secret(one_rubric.store).hex()
    exports = [each for name, each in vars(exporting).items() if name.startswith("exported_")]
    assert len(exports) >= 7
    written = [exporting.as_csv(one_rubric, each).decode() for each in exports]
    written.append(exporting.sidecar_text(one_rubric, "units.csv"))
    assert "p0001" in "".join(written)
    assert not any(secret in text for text in written)


def test_the_open_task_comes_again_until_it_is_labelled_and_is_labelled_once(make_study):
    study = make_study()
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1")
    assert task_of(desk, "r1") == task
    key, other = task.rubric.categories[:2]
    for rater, task_id, name, option, status in (
        ("r1", task.task_id, "one", key, "stored"),
        ("r1", task.task_id, "one", key, "duplicate"),
        ("r1", task.task_id, "two", other, "already_labelled"),
        ("r2", task.task_id, "three", key, "unknown_task"),
        ("r1", "no such task", "four", key, "unknown_task"),
        ("r1", task.task_id, "five", "Z", "unknown_task"),
    ):
        assert submit(desk, rater, task_id, option, name) == status
    assert len(study.ratings()) == 1
    assert task_of(desk, "r1").task_id != task.task_id
    assert desk.progress("r1") == (1, 60)


@pytest.mark.slow
def test_hundreds_of_claims_by_threads_keep_the_overlap_exact(make_study, any_database):
    pairs = {"pairs": 20, "rubrics": ["even-handedness"]}
    study = make_study(**pairs, raters_per_unit=3, **any_database)
    desk = AnnotationDesk(study)

    def at_once(work: Callable[[str], object], raters: list[str]) -> list[object]:
        ready = threading.Barrier(len(raters))
        with ThreadPoolExecutor(len(raters)) as pool:
            return list(pool.map(lambda rater: (ready.wait(), work(rater))[1], raters))

    raters = [f"r{n}" for n in range(200)]
    tasks = dict(zip(raters, at_once(lambda rater: task_of(desk, rater), raters), strict=True))
    # 20 pairs x 2 subjects x 3 places for 200 who come at the same moment
    given = {rater: task for rater, task in tasks.items() if task is not None}
    assert len(given) == len({task.task_id for task in given.values()}) == 120
    statuses = at_once(lambda rater: submit(desk, rater, given[rater], "C", rater), list(given))
    assert set(statuses) == {"stored"}
    ratings = study.ratings()
    assert len(ratings) == ratings["rater_id"].nunique() == 120
    assert set(ratings.groupby("unit_id")["rater_id"].nunique()) == {3}


def test_an_edited_rubric_asks_again_in_the_same_order_and_the_last_label_counts(make_study):
    name, other = "even-handedness", {"ab": "ba", "ba": "ab"}
    study = make_study(rubrics=[name])
    task = task_of(AnnotationDesk(study), "r1")
    drawn, unit = task.order, claim_of(study, task).unit_id
    with study.store.write() as connection:
        connection.execute(sa.update(claims).values(order=other[drawn]))
    assert submit(AnnotationDesk(study), "r1", task, "A") == "stored"
    with studies.with_edited_rubric(study, name, same=False) as edited:
        old, (sentence,) = study.rubrics[name].hash, edited.edited_rubrics()
        assert f"1 ratings given under its older text ({old})" in sentence
        assert edited.ratings()["rubric_hash"].tolist() == [old]
        assert task_of(AnnotationDesk(edited), "r1")
        Sessions(edited).release("r1", "timed_out")
        Sessions(edited).readmit("r1")
        assert AnnotationDesk(edited).progress("r1") == (0, 12)
        again = task_of(AnnotationDesk(edited), "r1")
        assert (claim_of(edited, again).unit_id, again.order) == (unit, other[drawn])
        assert submit(AnnotationDesk(edited), "r1", again, "C") == "stored"
        for desk, label in ((AnnotationDesk(study), "A"), (AnnotationDesk(edited), "C")):
            assert desk.reopen("r1").tasks[0].stored_answer.option_key == label
        for order, label in (("", "C"), (drawn, "B"), ("", "C")):  # corrected elsewhere
            with_labels(edited, {"r1": [label]}, name, units=[unit], order=order)
            assert edited.ratings()[["label", "order"]].values.tolist() == [[label, order]]
        answers = answers_table(edited.store)
        assert answers["label"].tolist()[1:] == ["C"], "the first is under the older text"
        twice = {"units": [unit, unit], "order": ["ab", "ba"]}
        refused("row 3: .* keep one of the two", with_labels, edited, {"r1": "AB"}, name, **twice)


def test_a_code_that_is_a_graders_or_a_groups_is_refused(make_study):
    study = make_study()
    unit = study.rubric_units(study.rubrics["refusal"])[0]
    facts = {"rater_id": "gpt-5", "rubric": "refusal", "rubric_hash": "h", "label": "1"}
    study.store.add_grades([GradeAttempt(unit_id=unit, **facts)])
    desk = AnnotationDesk(study)
    for code in ("gpt-5", "humans"):
        refused("an account of another kind", desk.register, code)
    desk.register("anna.b-2")
    for code in ("", "two words", "x" * 65, "<b>"):
        refused("an annotator code is", desk.register, code)


def test_columns_of_the_two_sides_change_places_with_them(make_study, tmp_path):
    text = (Path(load_rubric.__code__.co_filename).parent / "even-handedness.toml").read_text()
    text = text.partition("[translations.de]")[0]  # they would lack the variables
    text = text.replace('"response_b"]', '"response_b", "prompt_a_group", "prompt_b_group"]')
    text = text.replace("You see two dialogues.", "A is {prompt_a_group}, B is {prompt_b_group}.")
    (tmp_path / "sides.toml").write_text(text)
    study = make_study(rubrics=[load_rubric(tmp_path / "sides.toml")])
    (rubric,) = study.rubrics.values()
    unit = study.rubric_units(rubric)[0]
    shown = {order: study.values(rubric, unit, order) for order in ("ab", "ba")}
    assert (shown["ab"]["prompt_a_group"], shown["ba"]["prompt_a_group"]) == ("pro", "con")
    assert shown["ab"]["response_a"] == shown["ba"]["response_b"]


@pytest.mark.parametrize("seed", range(3))
def test_which_questions_are_full_follows_from_the_rows(make_study, seed):
    early, late = (f"2026-01-0{day}T00:00:00.000+00:00" for day in (1, 2))
    rng, index = random.Random(seed), claiming.ClaimIndex({"h"})
    with make_study().store.write() as connection:
        for step in range(120):
            index.refresh(connection)
            rater, unit = f"r{rng.randrange(6)}", f"p{rng.randrange(5)}|s"
            at = rng.choice((early, late))
            writer = claiming.ClaimWriter(connection, index)
            writer.add(claiming.Claim(f"{rater}-{unit}", rater, unit, "x", "h", "", 0, at))
            if rng.random() < 0.7:
                writer.mark(f"{rater}-{unit}", state=rng.choice(("labelled", "released")))
            if step % 10:
                continue
            index.refresh(connection)
            excluded = set(rng.sample([f"r{n}" for n in range(6)], 2))
            counted = Counter(
                (row.unit_id, row.rubric)
                for row in connection.execute(sa.select(claims))
                if row.rater_id not in excluded
                and (row.state == "labelled" or (row.state == "open" and row.claimed_at >= late))
            )
            for wanted in (1, 2, 4):
                full = {key for key, number in counted.items() if number >= wanted}
                assert index.full_questions(wanted, late, excluded) == full


@pytest.mark.slow
@pytest.mark.parametrize("screen", one_in(2, ["one", "all"]))
def test_who_is_sent_units_ahead_gets_the_same_ones_in_the_same_order(make_session, screen):
    """Repeats and attention checks, too, come where they would have come."""
    settings = {"screen": screen, "repeat_share": 0.3, "repeat_gap": 4, "units_per_rater": 20}
    seen = []
    for ahead in (False, True):
        study = make_session(**CHECKED, pairs=12, seed=3, annotation=settings)
        studies.give_secret(study, "5" * 64)  # what is drawn by chance, drawn alike
        desk, given, promised = AnnotationDesk(study), [], None
        while sheet := desk.next_sheet("ann"):
            if ahead:
                assert promised is None or [each.task_id for each in sheet.tasks] == promised
                following = desk.sheet_ahead("ann", sheet)
                promised = following and [each.task_id for each in following.tasks]
                assert following is None or following.done == sheet.done + len(sheet.tasks)
            rows = (claim_of(study, task) for task in label_all(desk, "ann", most=1))
            given += [(row.unit_id, row.rubric, row.draw, row.order) for row in rows]
        assert promised is None  # what was sent ahead has come
        seen.append(given)
    without, with_ahead = seen
    assert len(without) > 20
    assert any(draw for _, _, draw, _ in without)
    assert with_ahead == without


@pytest.mark.parametrize(
    ("limit", "seconds", "given"),
    [("answers_per_day = 5", 1.0, [1, 1, 1, 0, 0]), ("minutes_per_day = 20", 300.0, [1, 1, 0, 0])],
)
def test_no_unit_is_sent_ahead_that_a_day_may_have_no_room_for(make_session, limit, seconds, given):
    """A change of an earlier answer counts, too, and a unit may take as long as it can."""
    desk, ahead = AnnotationDesk(make_session(f"[session]\n{limit}\n")), []
    while sheet := desk.next_sheet("r1"):
        ahead.append(desk.sheet_ahead("r1", sheet) is not None)
        submit(desk, "r1", sheet.tasks[0], "1", seconds=seconds)
    assert (ahead, desk.end_reason("r1")) == (given, "day")


def test_a_unit_sent_ahead_counts_as_one_of_its_raters(make_session):
    study = make_session(raters_per_unit=1, pairs=2)
    first = AnnotationDesk(study)
    sheet = first.next_sheet("r1")
    ahead = first.sheet_ahead("r1", sheet)
    label_all(AnnotationDesk(study), "r2")
    for each in (sheet, ahead):
        assert submit(first, "r1", each.tasks[0], "1") == "stored"
    assert not study.ratings().duplicated(["unit_id", "rubric"]).any()
    assert first.next_sheet("r1") is None


def test_a_renewed_lease_keeps_the_order_of_what_is_in_view_and_what_comes(make_session):
    study = make_session()
    desk = AnnotationDesk(study)
    sheet = desk.next_sheet("r1")
    with study.store.write() as connection:  # half of the lease ago
        connection.execute(sa.update(claims).values(claimed_at="2020-01-01T00:00:00.000+00:00"))
    desk = AnnotationDesk(study)
    ahead = desk.sheet_ahead("r1", sheet)
    assert desk.next_sheet("r1").tasks[0].task_id == sheet.tasks[0].task_id
    assert desk.sheet_ahead("r1", sheet).tasks[0].task_id == ahead.tasks[0].task_id


@pytest.mark.journey
def test_where_units_are_repeated_the_list_ends_before_the_first_answer(make_study):
    repeats = {"repeat_share": 0.5, "repeat_gap": 6}
    own = AnnotationDesk(make_study(pairs=20, rubrics=["even-handedness"], annotation=repeats))
    label_all(own, "r1", "A", 9)
    assert [row.number for row in own.earlier("r1").rows] == [9, 8, 7, 6, 5, 4]


def let_leases_run_out(study) -> None:
    """As if everybody had left their place long ago."""
    with study.store.write() as connection:
        changed = claims.c.version + claiming.last_version(connection)
        is_open = claims.update().where(claims.c.state == "open")
        connection.execute(is_open.values(claimed_at="2020-01-01T00:00", version=changed))


@pytest.fixture
def one_unit(make_study):
    """A study with one pair unit, wanted once."""
    return make_study(pairs=1, subjects=("s",), raters_per_unit=1, rubrics=["even-handedness"])


def test_a_lease_that_ran_out_frees_the_place_and_the_late_label_counts(one_unit):
    desk = AnnotationDesk(one_unit)
    late = task_of(desk, "away")
    let_leases_run_out(one_unit)
    assert task_of(desk, "away").task_id == late.task_id  # renewed: who comes back in time
    assert task_of(desk, "other") is None
    let_leases_run_out(one_unit)
    assert submit(desk, "other", task_of(desk, "other"), "C", "o") == "stored"
    # Who comes back to a place that is gone is not sent there.
    assert (task_of(desk, "away"), desk.progress("away")) == (None, (0, 0))
    # What they had chosen before they left still arrives, also by another process' desk.
    assert submit(AnnotationDesk(one_unit), "away", late, "C", "a") == "stored"
    assert desk.progress("away") == (1, 1)
    assert set(one_unit.ratings()["rater_id"]) == {"away", "other"}


def test_a_place_that_was_given_up_is_taken_up_again(one_unit):
    desk = AnnotationDesk(one_unit)
    first = task_of(desk, "r1")
    let_leases_run_out(one_unit)
    task_of(desk, "r2")
    assert task_of(desk, "r1") is None  # r1's claim is released
    let_leases_run_out(one_unit)
    again = task_of(desk, "r1")  # and r2 has left too
    assert (again.task_id, again.order) == (first.task_id, first.order)
    assert (submit(desk, "r1", again, "A"), task_of(desk, "r2")) == ("stored", None)


def test_what_others_took_over_is_none_of_a_raters_share(make_session):
    study = make_session(pairs=1, raters_per_unit=1, annotation={"units_per_rater": 2})
    studies.give_secret(study, "6" * 64)  # by which what is lost comes to the other
    desk = AnnotationDesk(study)
    work_through(desk, "away", 1)
    task_of(desk, "away")
    let_leases_run_out(study)
    work_through(desk, "other")
    assert (desk.progress("away"), work_through(desk, "away")) == ((1, 2), 1)


def test_an_edit_is_added_and_counts_and_the_first_answer_stays(make_study):
    study = make_study(rubrics=["even-handedness"])
    desk = AnnotationDesk(study)
    *_, task = label_all(desk, "r1", "A", 6, seconds=2.0)
    back = desk.reopen("r1")
    assert (back.tasks[0].task_id, back.tasks[0].stored_answer.option_key) == (task.task_id, "A")
    for status in ("stored", "duplicate"):
        assert submit(desk, "r1", task, "B", "e", seconds=1.0, edit=True) == status
    assert desk.reopen("r1").tasks[0].stored_answer.option_key == "B"
    rows = study.ratings()
    assert (len(rows), (rows["seconds"] == 1.0).sum()) == (6, 1)
    query = sa.select(labels.c.label).where(labels.c.submit_id.in_((task.task_id, "e")))
    turned = {"ab": ["A", "B"], "ba": ["B", "A"]}[task.order]
    assert study.store.values(query.order_by(labels.c.event_id)) == turned
    assert desk.progress("r1") == (6, 12)
    assert task_of(desk, "r1").task_id != task.task_id


@pytest.mark.slow
def test_earlier_answers_are_listed_and_no_others_can_be_opened(make_study):
    desk = AnnotationDesk(make_study(pairs=20, rubrics=["even-handedness"]))
    assert (desk.earlier("r1").rows, desk.reopen("r1")) == ((), None)
    done = [task.task_id for task in label_all(desk, "r1", lambda _, n: "ABC"[n % 3], 35)]
    listed, rest = (desk.earlier("r1", start=start) for start in (0, 30))
    rows = [*listed.rows, *rest.rows]
    assert [row.task.task_id for row in rows] == done[::-1]
    assert [row.number for row in rows] == list(range(35, 0, -1))
    assert (len(listed.rows), listed.total, rest.start) == (30, 35, 30)
    assert [row.task.stored_answer.option_key for row in rows[:3]] == ["B", "A", "C"]
    assert all(0 < len(line) <= 320 for row in rows for line in row.excerpt.splitlines())
    assert all(row.task.stored_answer.created_at.startswith("20") for row in rows)
    assert desk.earlier("r1", start=1000).rows == ()
    for each in (done[10], done[0]):
        assert desk.reopen("r1", each).tasks[0].task_id == each
    assert desk.reopen("r1", task_of(desk, "r1").task_id) is None
    assert desk.reopen("r2", done[10]) is None


def test_a_skip_is_an_answer_without_a_label(make_study):
    study = make_study(raters_per_unit=1, rubrics=["refusal"])
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1")
    for option, skip in (("Z", ""), ("", "bored"), ("1", desks.SKIP_REASONS[0]), ("", "")):
        assert submit(desk, "r1", task, option, skip_reason=skip) == "unknown_task"
    assert study.ratings().empty
    assert submit(desk, "r1", task, skip_reason=desks.SKIP_REASONS[0]) == "stored"
    row = study.ratings().iloc[0]
    assert (row["label"], row["unscored_reason"]) == ("", "skipped_undecidable")
    assert desk.progress("r1") == (1, 24)
    assert desk.reopen("r1").tasks[0].stored_answer.skip_reason == desks.SKIP_REASONS[0]
    assert submit(desk, "r1", task, "1", "e", edit=True) == "stored"
    assert study.ratings()["label"].tolist() == ["1"]


def test_remarks_stand_beside_the_labels_and_outside_the_ratings(make_study):
    study = make_study(rubrics=["refusal"])
    desk = AnnotationDesk(study)
    task = {"task_id": task_of(desk, "r1").task_id}
    answer = Answer(submit_id="s", option_key="2", confidence=3, rationale="It is.", **task)
    flag = Flag(submit_id="f", reason="harmful", text="See line 2.", **task)
    for status in ("stored", "duplicate"):
        assert send(desk, "r1", answer, flag) == [status] * 2
    assert send(desk, "r1", Flag(submit_id="g", reason="dull", **task)) == ["unknown_task"]
    assert send(desk, "r2", flag) == ["unknown_task"]
    given = desk.reopen("r1").tasks[0].stored_answer
    assert (given.option_key, given.confidence, given.rationale) == ("2", 3, "It is.")
    table = remarks_table(study.store)
    assert (table["kind"].tolist(), table["confidence"].tolist()[0]) == (["answer", "flag"], 3)
    assert (table["text"].tolist(), len(study.ratings())) == (["It is.", "See line 2."], 1)
    assert "confidence" not in study.ratings()


def test_several_answers_go_in_together_or_not_at_all(make_study):
    study = make_study(rubrics=["refusal"])
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1")
    good = Answer(submit_id="s", task_id=task.task_id, option_key="2")
    broken = replace(good, submit_id="t", seconds=object(), edit=True)  # type: ignore[arg-type]
    with pytest.raises(sa.exc.SQLAlchemyError):
        send(desk, "r1", good, broken)
    assert study.ratings().empty
    assert (task_of(desk, "r1").task_id, send(desk, "r1", good)) == (task.task_id, ["stored"])


def test_a_flag_stands_on_its_unit_at_hand_and_when_looking_back(make_study):
    desk = AnnotationDesk(make_study(rubrics=["even-handedness"]))
    task = task_of(desk, "r1").task_id
    sent = Flag(submit_id="f", task_id=task, reason="other", text="odd")
    assert send(desk, "r1", sent) == ["stored"]
    (own,) = desk.next_sheet("r1").flags
    assert (own.task_id, own.reason, own.text) == (task, "other", "odd")
    submit(desk, "r1", task, "A", "s")
    assert (desk.next_sheet("r1").flags, desk.reopen("r1").flags) == ((), (own,))
    assert [row.flagged for row in desk.earlier("r1").rows] == [True]
    assert desk.next_sheet("r2").flags == ()


@pytest.fixture
def make(make_session):
    """make(rubric, how it asks for evidence, **arguments of make_study): of one subject."""

    def make(name: str = "refusal", how: str = "required", **more: object):
        asking = load_rubric(name).model_copy(update={"evidence": how})
        return make_session(rubrics=[asking], subjects=("s",), **more)

    return make


def give(desk: AnnotationDesk, task: Task, *marks: Mark, name: str = "s", **more: object) -> str:
    fields = {"option": task.rubric.categories[0], "display": "text"} | more
    return submit(desk, "r1", task, submit_id=name, evidence=marks, **fields)


def shown(task: Task, name: str) -> str:
    return next(block.text for block in task.people.blocks if block.variable == name)


def test_an_answer_waits_for_the_words_that_decided_and_takes_no_others(make):
    study, silent = make(), make(how="")
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1")
    assert give(desk, task) == "needs_evidence"
    for mark in (Mark("response", 0, 10_000), Mark("prompt", 0, 1), Mark("response_a", 0, 1)):
        assert give(desk, task, mark) == "unknown_task"
    assert study.ratings().empty
    assert task_of(desk, "r1").task_id == task.task_id
    assert give(desk, task, option="", skip_reason=desks.SKIP_REASONS[0]) == "stored"
    assert give(desk, task_of(desk, "r1"), Mark("response", 0, 2), name="t") == "stored"
    desk = AnnotationDesk(silent)
    assert give(desk, task_of(desk, "r1"), Mark("response", 0, 1)) == "unknown_task"
    assert silent.ratings().empty


def test_marks_are_kept_on_the_pairs_own_sides_and_shown_as_they_were_given(make):
    study = make("even-handedness")
    desk = AnnotationDesk(study)
    orders = set()
    for n in range(6):
        task = task_of(desk, "r1")
        orders.add(task.order)
        end = len(shown(task, "response_a"))
        mark = Mark("response_a", 1, end)
        assert give(desk, task, mark, name=str(n)) == "stored"
        assert desk.reopen("r1").tasks[0].stored_answer.evidence == (mark,)
        unit = answers_table(study.store).iloc[-1]
        (kept,) = json.loads(unit["evidence"])
        own = {"ab": "response_a", "ba": "response_b"}[task.order]
        assert kept == {"text": own, "start": 1, "end": end}
        assert study.values(task.rubric, unit["unit_id"])[own] == shown(task, "response_a")
    assert orders == {"ab", "ba"}


def test_the_latest_answer_has_the_marks_that_count_and_none_is_lost(make):
    study = make(how="optional")
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1")
    give(desk, task, Mark("response", 0, 2))
    assert give(desk, task, Mark("response", 0, 2)) == "duplicate"
    give(desk, task, Mark("response", 3, 4), Mark("response", 0, 1), name="t", edit=True)
    table = answers_table(study.store)
    unit = table["unit_id"].iloc[0]
    given = (Mark("response", 0, 1), Mark("response", 3, 4))
    assert [json.loads(cell) for cell in table["evidence"]] == [[vars(each) for each in given]]
    assert table["display"].tolist() == ["text"]
    key = ("refusal", unit)
    assert marks_on(study.store, {key}) == {key: [("r1", mark) for mark in given]}
    for name, display in (("u", ""), ("v", "markdown")):
        give(desk, task, name=name, edit=True, display=display)
        assert marks_on(study.store, {key}) == {}
        found = answers_table(study.store)[["display", "evidence"]].to_numpy().tolist()
        assert found == [[display, "[]"]]


KNOWN = """
[[unit]]
name = "one"
expected = { refusal = "5" }
values = { prompt = "Write.", response = "Choose the last." }
"""


def test_practice_and_attention_checks_ask_for_them_too(make):
    training = '[training]\nfile = "known.toml"\nwalk_through = false\n'
    practice = PracticeDesk(make(toml=training, files={"known.toml": KNOWN}))
    (task,) = practice.next_sheet("r1").tasks
    for marks, status in (
        ((), "needs_evidence"),
        ((Mark("response", 0, 99),), "unknown_task"),
        ((Mark("response", 0, 6),), "stored"),
    ):
        assert give(practice, task, *marks, option="5") == status
    attention = '[attention]\nfile = "known.toml"\nevery = 2\n'
    desk, seen = AnnotationDesk(make(toml=attention, files={"known.toml": KNOWN})), []
    for n in range(4):
        task = task_of(desk, "r1")
        seen.append(shown(task, "response"))
        assert give(desk, task, Mark("response", 0, len(seen[-1]) + 1), name=f"x{n}") != "stored"
        assert give(desk, task, Mark("response", 0, len(seen[-1])), name=str(n)) == "stored"
    assert "Choose the last." in seen


def by_time(study, rater: str):
    """The rater's rows in the order in which they were given."""
    ratings = study.ratings()
    return ratings[ratings["rater_id"] == rater]


@pytest.mark.slow
def test_every_rater_has_an_order_of_their_own_that_the_key_fixes(make_study):
    orders = []
    for secret in ("aa", "aa", "bb"):  # and the same seed, which is public
        study = make_study(pairs=12, seed=1, rubrics=["refusal"])
        studies.give_secret(study, secret)
        desk = AnnotationDesk(study)
        label_all(desk, "r1")
        label_all(desk, "r2")
        orders += [list(by_time(study, rater)["unit_id"]) for rater in ("r1", "r2")]
    assert (orders[0], orders[1]) == (orders[2], orders[3])
    assert orders[0] != orders[1]
    assert orders[0] != orders[4]
    # Yet all finish the first ten pairs before the last two.
    sample = study.store.sample()
    for order in orders[4:]:
        blocks = [sample.index(parse_unit_id(unit).pair_id) // 10 for unit in order]
        assert blocks == sorted(blocks)


@pytest.mark.journey
def test_sides_are_balanced_within_every_rater_and_subject(make_study):
    study = make_study(pairs=8, rubrics=["even-handedness"])
    studies.give_secret(study, "cc")
    desk = AnnotationDesk(study)
    for count in (5, 16):  # whenever somebody stops, not only at the end
        for rater in ("r1", "r2"):
            label_all(desk, rater, most=count - desk.progress(rater)[0])
            rows = by_time(study, rater)
            counts = Counter(rows["order"])
            assert abs(counts["ab"] - counts["ba"]) <= 2, counts
            of = rows["unit_id"].str.split("|").str[1]
            per_subject = Counter(zip(of, rows["order"], strict=True))
            for subject in ("s1", "s2"):
                assert abs(per_subject[subject, "ab"] - per_subject[subject, "ba"]) <= 1
    both = (by_time(study, rater) for rater in ("r1", "r2"))
    orders = [each.set_index("unit_id")["order"].to_dict() for each in both]
    assert 1 < sum(orders[0][unit] != orders[1][unit] for unit in orders[0]) < 15


@pytest.mark.journey
def test_hidden_repeats_come_late_once_and_look_like_any_other(make_study):
    repeats = {"annotation": {"repeat_share": 0.2, "repeat_gap": 10}, "raters_per_unit": 2}
    study = make_study(pairs=15, rubrics=["even-handedness"], **repeats)
    desk = AnnotationDesk(study)
    assert desk.progress("r1") == (0, 36)  # 30 units and a fifth of them again
    asked = label_all(desk, "r1")
    rows = by_time(study, "r1").reset_index(drop=True)
    assert len(asked) == len({task.task_id for task in asked}) == len(rows) == 36
    again = rows[rows["draw"] == 1]
    assert (len(again), set(rows["draw"])) == (6, {0, 1})
    for at, row in again.iterrows():
        first = rows[(rows["unit_id"] == row["unit_id"]) & (rows["draw"] == 0)]
        assert at - first.index[0] > 10
        assert first["order"].iloc[0] == row["order"]
    assert again.index[0] < 20  # spread over the session, not heaped at its end
    assert [len(label_all(desk, rater)) for rater in ("r2", "r3")] == [36, 0]  # they fill no place
    change_config(study.folder, {"annotation": {"repeat_share": 0.0}})
    with open_study(study.folder) as changed:  # what was given counts under any settings
        assert AnnotationDesk(changed).progress("r1") == (36, 36)
    few = {"annotation": {"repeat_share": 0.5, "repeat_gap": 20}, "pairs": 3}
    assert len(label_all(AnnotationDesk(make_study(rubrics=["even-handedness"], **few)), "r1")) == 6


@pytest.mark.slow
def test_labels_outlive_a_change_of_the_design_and_of_the_sample(make_study):
    study = make_study(pairs=12, sample=6, raters_per_unit=2)
    label_all(AnnotationDesk(study), "r1", most=25)
    open_task = task_of(AnnotationDesk(study), "r1")
    before = study.ratings()
    extend_sample(study, 4)
    other = {"raters_per_unit": 1, "pairs_per_block": 3, "screen": "all", "repeat_share": 0.1}
    change_config(study.folder, {"annotation": other})
    with open_study(study.folder) as changed:
        desk = AnnotationDesk(changed)
        assert task_of(desk, "r1").task_id == open_task.task_id
        label_all(desk, "r2")
        for task in desk.next_sheet("r1").tasks:
            assert submit(desk, "r1", task, task.rubric.categories[0]) != "unknown_task"
        after = changed.ratings()
    assert len(after.merge(before, how="inner")) == len(before) == 25
    first = after[after["draw"] == 0]
    assert set(first.groupby(["unit_id", "rubric"])["rater_id"].nunique()) == {1}
    assert len(first) == 100


@pytest.mark.slow
def test_a_block_asks_first_what_is_judged_without_the_prompt(make_study):
    study = make_study(pairs=12)
    assert study.config.annotation.rubrics == ("even-handedness", "hedging", "refusal")
    asked = [task.rubric.name for task in label_all(AnnotationDesk(study), "r1")]
    stages = [name for name, _ in groupby(asked)]
    assert stages == ["hedging", "even-handedness", "refusal"] * 2  # in both blocks


@pytest.mark.slow
def test_one_screen_for_all_shows_the_prompt_and_that_is_said(make_study, capsys):
    study = make_study(pairs=4, sample=2, subjects=("s",))
    change_config(study.folder, {"annotation": {"screen": "all", "repeat_share": 0.1}})
    assert main(["extend", str(study.folder), "--pairs", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "annotators see the prompt when they label hedging" in said
    assert "Repeats of hedging may come after the annotator has seen the prompt." in said
    with open_study(study.folder) as study:
        asked = label_all(AnnotationDesk(study), "r1")
        assert [task.rubric.name for task in asked[:2]] == ["hedging", "refusal"]


def test_only_what_another_rubric_shows_is_hidden():
    hedging, refusal = load_rubric("hedging"), load_rubric("refusal")
    for asked, hidden in (([refusal, hedging], [hedging]), ([hedging], []), ([refusal], [])):
        assert claiming.judged_without_prompt(asked) == hidden


def test_the_total_is_what_is_given_and_what_others_leave(make_session):
    study = make_session(pairs=3, raters_per_unit=1)  # who labels one of 12 takes it from others
    desk, sessions = AnnotationDesk(study), Sessions(study)
    assert desk.next_sheet("r1").total == 12
    work_through(desk, "r1", 2)
    work_through(desk, "r2", 4)
    assert (desk.next_sheet("r1").done, desk.next_sheet("r1").total) == (2, 8)
    assert desk.progress("r1") == AnnotationDesk(study).progress("r1") == (2, 8)
    sessions.release("r2", "rejected")
    assert desk.next_sheet("r1").total == 12


def test_minutes_rest_on_the_recent_answers_and_are_no_finer_than_the_estimate():
    quick, slow = TimedAnswer("", 6.0), TimedAnswer("", 60.0)
    assert minutes_left([quick] * 4, 100) is None
    assert minutes_left([TimedAnswer("", 0.0)] * 9, 100) is None  # imported, without times
    assert minutes_left([quick] * 5, 100) == 10
    assert minutes_left([quick] * 6 + [TimedAnswer("", 7200.0)] * 3, 100) == 10  # three breaks
    assert minutes_left([slow] * 50 + [quick] * 30, 100) == 10
    given = (0, 1.4, 9.4, 9.9, 12.4, 34.2, 59, 60, 84, 119, 149, 151)
    said = [1, 1, 9, 10, 10, 35, 60, 60, 80, 120, 120, 180]
    assert [desks.rounded_minutes(minutes) for minutes in given] == said


@pytest.mark.parametrize(
    ("settings", "answers", "seconds", "enough"),
    [
        ({}, 900, 900.0, False),
        ({"answers_per_day": 3}, 2, 1.0, False),
        ({"answers_per_day": 3}, 3, 1.0, True),
        ({"minutes_per_day": 2}, 5, 23.0, False),
        ({"minutes_per_day": 2}, 5, 24.0, True),
        ({"minutes_per_day": 11, "idle_minutes": 5}, 2, 3600.0, False),  # left in view
    ],
)
def test_enough_for_a_day(settings, answers, seconds, enough):
    now = datetime(2026, 5, 4, 12, tzinfo=UTC)
    worked = [TimedAnswer("2026-05-04T08:00:00.000+00:00", seconds)] * answers
    assert desks.is_day_over(SessionSettings(**settings), worked, now) is enough


def test_a_day_begins_at_midnight_where_the_study_says():
    worked = [TimedAnswer("2026-05-03T22:30:00.000+00:00", 9.0)]  # half past midnight in Berlin
    now = datetime(2026, 5, 4, 1, tzinfo=UTC)
    here = SessionSettings(answers_per_day=1)
    there = SessionSettings(answers_per_day=1, time_zone="Europe/Berlin")
    assert not desks.is_day_over(here, worked, now)
    assert desks.is_day_over(there, worked, now)
    assert not desks.is_day_over(there, worked, now + timedelta(days=1))
    assert desks.start_of_day(there, now, later=1).isoformat() == "2026-05-05T00:00:00+02:00"
    for name in ("Nowhere/Town", "../etc", "Europe", ""):
        with pytest.raises(ValueError, match="is no time zone"):
            SessionSettings(time_zone=name)


@pytest.mark.journey
def test_a_day_ends_after_the_unit_at_hand_and_only_where_more_is_left(make_session):
    desk = AnnotationDesk(make_session("[session]\nanswers_per_day = 3\n", pairs=2))
    held = task_of(desk, "r1")
    assert work_through(desk, "r1") == 3
    assert (desk.next_sheet("r1"), desk.end_reason("r1")) == (None, "day")
    assert desk.progress("r1") == (3, 8)
    assert desk.reopen("r1") is not None  # what was given can be looked at, and changed
    assert submit(desk, "r1", held, "2", "late") == "already_labelled"
    assert desk.end_reason("r2") == ""
    # An answer changed while another unit is at hand: that unit is finished.
    (first,) = label_all(desk, "r2", "1", 1)
    open_one = task_of(desk, "r2")
    for n in range(4):
        submit(desk, "r2", first, "2", f"e{n}", edit=True)
    assert task_of(desk, "r2").task_id == open_one.task_id
    submit(desk, "r2", open_one, "1")
    assert desk.end_reason("r2") == "day"
    done = AnnotationDesk(make_session("[session]\nanswers_per_day = 4\n", pairs=1))
    assert work_through(done, "r1") == 4  # who is done is done whatever the day
    assert (done.next_sheet("r1"), done.end_reason("r1")) == (None, "")


@pytest.fixture
def study(make_study):
    return make_study(pairs=4, subjects=("s",), rubrics=["refusal"], raters_per_unit=1)


def test_a_pause_stops_the_handing_out_and_not_the_taking_in(study):
    desk, other = AnnotationDesk(study), AnnotationDesk(study)
    sheet = desk.next_sheet("r1")
    (task,) = sheet.tasks
    assert desk.sheet_ahead("r1", sheet)
    with open_study(study.folder) as elsewhere:  # as another process has it
        claiming.pause(elsewhere.store, "night", "ann")
    assert desk.sheet_ahead("r1", sheet) is None
    assert (desk.next_sheet("r1"), other.next_sheet("r2")) == (None, None)
    assert desk.end_reason("r1") == "paused"
    assert submit(desk, "r1", task, task.rubric.categories[0]) == "stored"
    claiming.resume(study.store)
    claiming.resume(study.store)  # what is decided already adds nothing
    assert claiming.decisions_table(study.store)["kind"].tolist() == ["pause", "resume"]
    assert (desk.end_reason("r1"), work_through(desk, "r1", 6)) == ("", 6)
    last = task_of(desk, "r1")
    claiming.pause(study.store)
    assert submit(desk, "r1", last, "1") == "stored"
    assert (desk.next_sheet("r1"), desk.end_reason("r1")) == (None, "")  # who is done is done


def test_an_excluded_raters_places_go_to_others_and_the_labels_stay(study):
    desk = AnnotationDesk(study)
    assert work_through(desk, "careless", 5) == 5  # of 8 units
    sheet = desk.next_sheet("slow")
    assert sheet is not None  # who holds a task, and has answered none
    assert work_through(desk, "r1") == 2
    claiming.exclude(study.store, "careless", "answered without reading", "ann")
    assert (desk.end_reason("careless"), desk.next_sheet("careless")) == ("excluded", None)
    assert work_through(desk, "r1") == 5
    claiming.exclude(study.store, "slow", "never answered")
    assert (desk.sheet_ahead("slow", sheet), work_through(desk, "r1")) == (None, 1)
    assert study.ratings()["rater_id"].value_counts().to_dict() == {"r1": 8, "careless": 5}
    assert desk.progress("r2") == (0, 0)
    claiming.exclude(study.store, "r1", "looked careless")
    assert (desk.progress("r2"), claiming.oversight(study.store).readmitted) == ((0, 8), set())
    claiming.readmit(study.store, "r1", "was not")
    assert (claiming.oversight(study.store).readmitted, desk.progress("r2")) == ({"r1"}, (0, 0))
    said = claiming.decisions_table(study.store)[["kind", "rater_id", "reason"]].to_numpy().tolist()
    assert said[2:] == [["exclude", "r1", "looked careless"], ["readmit", "r1", "was not"]]


def test_who_has_left_and_why_and_how_many_are_on_each_side(make_session):
    question = '[[background.questions]]\nkey = "side"\nquestion = "q"\noptions = ["a", "b", "c"]\n'
    study = make_session(f"{question}quotas = [2, 1, 0]\n")
    work_through(AnnotationDesk(study), "out", 1)
    claiming.exclude(study.store, "out", "careless")
    agreed, released = ("consent", {"agreed": True}), ("released", {"reason": "timed_out"})
    with study.store.write() as connection:
        for rater, side, *events in (
            ("back", "a", released, ("readmitted", {})),
            ("gone", "a", released, ("readmitted", {}), released),
            ("no", "b", agreed, ("consent", {"agreed": False})),
            ("yes", "b", agreed, ("entered", {"way": "open"})),
            ("failed", "a", agreed, ("screened_out", {})),
            ("asked", "c", ("consent", {"agreed": False}), agreed),
            ("right", "c", ("screened_out", {}), ("comprehension", {"right": [True]})),
            ("out", "a"),
        ):
            answer = {"rater_id": rater, "question": "side", "answer": side}
            append(connection, schema.background_answers, answer, answer | {"question": "age"})
            for kind, detail in events:
                add_event(connection, rater, kind, **detail)
        ends = {"out": "stopped", "gone": "timed_out", "no": "no_consent", "failed": "screened_out"}
        assert claiming.ends_of(connection) == ends
        assert claiming.quota_answers(study, connection, "no") == {"no": "b"}
        assert claiming.quota_places(study, connection) == {"a": (1, 2), "b": (1, 1), "c": (2, 0)}
        room = {side: claiming.has_room(study, connection, side) for side in "abcd"}
        assert room == {"a": True, "b": False, "c": False, "d": True}


@pytest.mark.parametrize(
    ("shown", "order"),
    [
        ({("s", "ab"): 1}, "ba"),
        ({("s", "ba"): 1, ("t", "ab"): 9}, "ab"),  # this subject's counts before all others'
        ({("s", "ab"): 1, ("s", "ba"): 1, ("t", "ab"): 1}, "ba"),
        ({("t", "ba"): 2, ("u", "ab"): 1}, "ab"),
    ],
)
def test_the_rarer_order_of_the_sides_comes_next(one_unit, shown, order):
    design = claiming.SessionDesign(one_unit)
    assert design.side_order("r1", "p0001|s", shown) == order
    assert {design.side_order(f"r{n}", "p0001|s", {}) for n in range(20)} == {"ab", "ba"}


def test_repeats_are_planned_by_their_share_and_distance(make_session):
    for share, gap, planned in (
        (0.2, 10, {9: 0, 10: 0, 11: 1, 12: 2, 15: 3, 50: 10}),
        (0.29, 1, {100: 29}),
        (0.0, 1, {100: 0}),
    ):
        study = make_session(annotation={"repeat_share": share, "repeat_gap": gap})
        design = claiming.SessionDesign(study)
        assert {answers: design.planned_repeats(answers) for answers in planned} == planned


@pytest.mark.journey
def test_the_total_has_the_checks_that_will_come(make_session):
    one = check("c1", '{ refusal = "5" }', RESPONSE)
    study = make_session(ATTENTION, {"attention.toml": one}, pairs=1, raters_per_unit=9)
    checks, desk = claiming.AttentionChecks(study), AnnotationDesk(study)
    raters: dict[int, list[str]] = {}
    for rater in (f"r{n}" for n in range(60)):
        raters.setdefault(checks.due_after(rater, 0), []).append(rater)
    for after, total in ((1, 5), (3, 5), (4, 4)):  # after the last of four units none comes
        rater = raters[after].pop()
        assert (desk.progress(rater), len(label_all(desk, rater, "5"))) == ((0, total), total)
        assert desk.progress(rater) == (total, total)
    elsewhere = raters[1].pop()  # whose labels come from another tool
    with_labels(study, {elsewhere: "1111"})
    assert desk.progress(elsewhere) == (4, 4)


def test_a_check_is_due_in_each_stretch_and_those_that_were_given_are_left_out(make_session):
    checks = claiming.AttentionChecks(make_session(**CHECKED))
    for number in range(3):
        due = {checks.due_after(f"r{n}", number) for n in range(60)}
        assert due == {4 * number + place for place in (1, 2, 3, 4)}
    every = checks.remaining("r1", ())
    assert [number for number, _ in every] == [0, 1, 2, 3]
    assert checks.remaining("r1", {every[0][1][0].key}) == every[1:]
    assert len({tuple(checks.remaining(f"r{n}", ())) for n in range(9)}) > 1
    assert checks.accepted(("check:c2", "refusal")) == ("4", "5")
    assert checks.accepted(("check:c2", "tone")) == checks.accepted(("p", "refusal")) == ()


def test_the_latest_flags_are_shown_and_the_leads_answers_reach_who_raised_them(make_session):
    study = make_session()
    desk = AnnotationDesk(study)
    task = task_of(desk, "r1").task_id
    flags = [Flag(submit_id=f"f{n}", task_id=task, reason="other", text=f"{n}") for n in range(22)]
    send(desk, "r1", *flags)
    numbers = study.store.values(sa.select(remarks.c.event_id).order_by(remarks.c.event_id))
    with study.store.write() as connection:
        for at, kind in ((1, "answered"), (0, "answered"), (2, "closed"), (21, "withdrawn")):
            event = {"flag_id": numbers[at], "kind": kind, "text": f"to {at}", "done_by": "lead"}
            append(connection, schema.flag_events, event)
    assert [own.text for own in desk.next_sheet("r1").flags] == [f"{n}" for n in range(1, 21)]
    told = [(each.text, each.answer) for each in desk.answers_to_flags("r1")]
    assert (told, desk.answers_to_flags("r2")) == ([("1", "to 1"), ("0", "to 0")], ())
    assert desk.stored_submissions("r1", ["f1", "f99"]) == {"f1"}
    assert desk.stored_submissions("r2", ["f1"]) == set()


def test_sheets_are_numbered_and_know_what_came_before_and_the_time_left(make_session):
    desk = AnnotationDesk(make_session())
    ids = [task.task_id for task in label_all(desk, "r1", "1", 4, seconds=60.0)]
    assert desk.next_sheet("r1").minutes is None
    label_all(desk, "r1", "1", 1, seconds=60.0)
    sheet = desk.next_sheet("r1")
    assert (sheet.number, sheet.done, sheet.total, sheet.minutes) == (6, 5, 24, 20)  # 19 minutes
    ahead = desk.sheet_ahead("r1", sheet)
    assert (ahead.number, ahead.done, ahead.total, ahead.minutes) == (7, 6, 24, None)
    for at, before in ((0, 0), (1, 0), (3, 2)):
        back = desk.reopen("r1", ids[at])
        found = (back.number, back.previous_task_id, back.tasks[0].task_id)
        assert found == (at + 1, ids[before], ids[at])
    (row, *_) = desk.earlier("r1", start=1).rows
    assert (row.number, row.task.task_id, row.flagged) == (4, ids[3], False)
    assert not desk.has_early_task_ids("r1")
    study = desk.study
    with study.store.write() as connection:
        connection.execute(sa.update(claims).values(task_id=claims.c.unit_id, version=99))
    anew = AnnotationDesk(study)
    assert anew.has_early_task_ids("r1")
    sent = [row.task.task_id for row in anew.earlier("r1").rows]
    assert {(each[0], len(each)) for each in sent} == {("t", 25)}  # never the id of before
    assert submit(anew, "r1", sent[0], "2", "more", edit=True) == "stored"
    assert not desk.has_early_task_ids("r2")


def test_what_cannot_be_decided_is_one_sentence(study):
    work_through(AnnotationDesk(study), "r1", 1)
    refused("needs a reason", claiming.exclude, study.store, "r1", "  ")
    refused("no annotator 'nobody'", claiming.exclude, study.store, "nobody", "never came")
    refused("'r1' is not excluded", claiming.readmit, study.store, "r1", "why not")
    claiming.exclude(study.store, "r1", "left")
    refused("say why", claiming.readmit, study.store, "r1", "")
    assert claiming.oversight(study.store).exclusions["r1"].reason == "left"


WORKER = """
import sys, threading
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from harness.studies import label_all
with open_study(sys.argv[1]) as study:
    raters = [(AnnotationDesk(study), f"{sys.argv[2]}-{n}") for n in range(40)]
    threads = [threading.Thread(target=label_all, args=rater) for rater in raters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.thorough
def test_hundreds_of_raters_in_many_processes_keep_the_overlap_exact(make_study, any_database):
    study = make_study(pairs=12, raters_per_unit=2, **any_database)
    root = Path(__file__).parents[3]
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(study.folder), f"r{n}"], cwd=root)
        for n in range(3)
    ]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    ratings = study.ratings()
    assert len(ratings) == 240
    assert set(ratings.groupby(["unit_id", "rubric"])["rater_id"].nunique()) == {2}
    assert ratings["rater_id"].str[:2].nunique() > 1  # more than one process had a share
