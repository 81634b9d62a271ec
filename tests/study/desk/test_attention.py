"""Attention checks, told from real items by nobody; what annotators are sent names nothing."""

import itertools
from hashlib import sha256

import pytest
import sqlalchemy as sa

from evenhand.annotate_app.payload import Navigation, page_data
from evenhand.errors import InputError
from evenhand.reporting import exporting
from evenhand.study import Study, open_study
from evenhand.study.desk.claims import AttentionChecks, attention_results
from evenhand.study.desk.desk import AnnotationDesk, Answer, Flag, Worked, minutes_left
from evenhand.study.keeping import upgrade_store
from evenhand.study.prompts.units import has_known_answer
from evenhand.study.session.sessions import PracticeDesk
from evenhand.study.store.schema import attention_labels, claims, meta
from evenhand.study.workspace import study_secret
from harness.attacker import guessed_ids, identified, public_digest
from harness.studies import claim_of, give_secret, label_all, send, submit, task_of

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
        give_secret(study, secret)
        for rater in ("r1", "r2"):
            tasks = label_all(AnnotationDesk(study), rater, "5")
            seen = [is_check(study, task) for task in tasks]
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
    assert attention_results(make_session()).empty


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
        assert desk.reopen("r1").tasks[0].given.option_key == "5"
        answered += 1
    assert totals == {28}
    assert desk.progress("r1") == (28, 28)
    assert ids[True] == ids[False] == {25}
    assert sheets[True][0] == sheets[False][0]
    assert len(sheets[True]) == 4


def test_the_latest_answer_counts_and_a_skip_does_not_pass(make_session):
    study = make_session(**CHECKED)
    desk = AnnotationDesk(study)
    given = {claim_of(study, task).unit_id: task for task in label_all(desk, "r1", "4")}
    submit(desk, "r1", given["check:c1"], "5", "again", edit=True)
    submit(desk, "r1", given["check:c2"], submit_id="skip", skip_reason="skipped_other", edit=True)
    found = attention_results(study).set_index("check_id")
    assert found["passed"].to_dict() == {"c1": True, "c2": False, "c3": False, "c4": True}
    assert found["given"].to_dict() == {"c1": "5", "c2": "", "c3": "4", "c4": "4"}
    assert found.loc["c4", "expected"] == "4 or 5"
    with study.store.read() as connection:
        count = sa.select(sa.func.count()).select_from(attention_labels)
        assert connection.execute(count).scalar_one() == 4 + 2  # nothing is written over


@pytest.mark.slow
def test_a_check_asks_what_the_units_around_it_ask(make_session):
    file = check("pair", '{ even-handedness = "A" }', PAIR_VALUES) + "".join(
        check(f"single-{n}", '{ refusal = "5" }', RESPONSE) for n in range(3)
    )
    both = ["even-handedness", "refusal"]
    study = make_session(ATTENTION, {"attention.toml": file}, rubrics=both)
    shown = [task.rubric.name for task in label_all(AnnotationDesk(study), "r1")]
    # One stretch of the one rubric, one of the other: no check stands out by its rubric.
    assert sum(one != other for one, other in itertools.pairwise(shown)) == 1
    assert len(attention_results(study)) == 4


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
    found = attention_results(study)
    assert found["passed"].all()
    assert set(found["given"]) == {"A"}
    assert len(found) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("screen", ["one", "all"])
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
    assert desk.progress("r1") == (30, 30)
    assert set(study.ratings()["draw"]) == {0, 1}
    assert len(study.ratings()) == 26
    found = attention_results(study)
    assert found["rubric"].tolist() == ["refusal"] * 4


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (check("c", '{ politeness = "5" }', RESPONSE), "do not label the rubric 'polite"),
        (check("c", '{ refusal = "9" }', RESPONSE), "'9' is none of refusal's 1, 2, 3, 4"),
        (check("c", "{ refusal = [] }", RESPONSE), "name one or more of refusal's"),
        (check("c", '{ refusal = "5" }', '{ prompt = "x" }'), "`values` lacks 'response'"),
        (check("c", '{ refusal = "5" }', RESPONSE) * 2, "two items are called 'c'"),
        (check("c|d", '{ refusal = "5" }', RESPONSE), "name is 'c|d'; it must be 1 to 64 le"),
        ("[[unit]]\nnam = 1", "unit.0.name is missing; add it"),
        ("[[unit", "attention.toml is not valid TOML"),
        (None, "study.toml names attention.toml, which cannot be read: no such file"),
    ],
)
def test_a_file_that_does_not_fit_is_one_sentence(make_session, file, sentence):
    study = make_session(ATTENTION, {} if file is None else {"attention.toml": file})
    with pytest.raises(InputError) as raised:
        AttentionChecks(study)
    assert sentence in str(raised.value)


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
    with old.store.read() as connection:
        ids = [each.encode() for each in connection.execute(sa.select(claims.c.task_id)).scalars()]
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
    with old.store.read() as connection:
        rows = connection.execute(sa.select(claims).order_by(claims.c.version)).all()
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
        assert row.task.given.option_key == "1"
        assert submit(desk, "ann", row.task, "2", "b", edit=True) == "stored"
        assert desk.reopen("ann", answered[1]).tasks[0].given.option_key == "2"
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
        assert task_of(desk, "ann") is None
        assert len(study.ratings()) == 80


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
        every = [Worked("", each) for each in seconds]
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
    assert not attention_results(study).empty


@pytest.mark.slow
def test_places_of_checks_and_orders_follow_from_no_seed(make_session):
    """Of version 0.2.0 the study's seed, 1, gave each of them."""
    checked, places, sorted_as = make_session(**CHECKED), {}, {}
    for rater in ("ann", "ben"):
        tasks = label_all(AnnotationDesk(checked), rater, "5")
        dealt = [claim_of(checked, task).unit_id for task in tasks]
        sorted_as[rater] = [unit for unit in dealt if not has_known_answer(unit)]
        at = [place for place, unit in enumerate(dealt) if has_known_answer(unit)]
        places[rater] = [place - before for before, place in enumerate(at)]  # among the real ones
    assert [len(each) for each in places.values()] == [4, 4]
    for seed in range(100):
        guessed = {
            rater: [
                4 * n + 1 + int(public_digest(seed, "check", rater, str(n))[:8], 16) % 4
                for n in range(4)
            ]
            for rater in places
        }
        assert guessed != places
        for rater, units in sorted_as.items():
            by_seed = sorted(units, key=lambda unit: public_digest(seed, "place", rater, unit))
            assert by_seed != units


@pytest.mark.slow
def test_a_page_of_practice_that_stood_open_over_an_upgrade_is_heard(make_session):
    toml = '[training]\nfile = "training.toml"\nattempts = 2\n'
    study = make_session(toml, {"training.toml": ONE_RUBRIC})
    desk = PracticeDesk(study)
    task = desk.next_sheet("ann").tasks[0]
    question = next(iter(desk.units.questions.values()))
    old = public_digest(study.config.seed, "practice", "ann", *question.key, "0")[:24]
    assert task.task_id != old
    for status in ("stored", "duplicate"):
        assert submit(desk, "ann", old, "5", "p1") == status


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
