"""What annotators are sent names nothing, and an upgrade takes nothing from whoever is at work."""

from collections.abc import Callable
from hashlib import sha256

import pytest
import sqlalchemy as sa

from evenhand.annotate_app.payload import Navigation, page_data
from evenhand.reporting import exporting
from evenhand.study import Study, open_study
from evenhand.study.desk.claims import attention_results
from evenhand.study.desk.desk import AnnotationDesk, Answer, Flag, Task, Worked, minutes_left
from evenhand.study.keeping import upgrade_store
from evenhand.study.prompts.units import has_known_answer
from evenhand.study.session.sessions import PracticeDesk
from evenhand.study.store.schema import claims, meta
from evenhand.study.workspace import study_secret
from harness.attacker import guessed_ids, identified, public_digest
from harness.studies import claim_of, label_all, send, submit, task_of
from tests.study.desk.test_attention import ATTENTION, CHECKED, ONE_RUBRIC, is_check

pytestmark = pytest.mark.slow

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


def label_some(desk: AnnotationDesk, rater: str, most: int) -> None:
    label_all(desk, rater, "5", most, seconds=3.0)


def received(desk: AnnotationDesk, rater: str, *looks: Navigation) -> list[bytes]:
    """What the page of a rater is sent for these wishes."""
    return [repr(page_data(desk, rater, {}, look)).encode() for look in (None, *looks)]


@pytest.fixture
def one_rubric(make_study) -> Study:
    return make_study(pairs=20, rubrics=["refusal"])


def guesses(study: Study, *raters: str) -> dict[str, str]:
    rubrics = {name: rubric.hash for name, rubric in study.rubrics.items()}
    return guessed_ids(raters, study.units()["unit_id"], rubrics, seeds=range(20))


def test_no_id_is_a_digest_of_what_can_be_guessed(one_rubric):
    """Of version 0.2.0 this identified 40 of 40 units, with subject and side."""
    desk, frames = AnnotationDesk(one_rubric), []
    for _ in range(40):
        frames += received(desk, "ann")
        label_some(desk, "ann", 1)
    frames += received(desk, "ann", LAST, LIST)
    assert len(identified(frames, guesses(one_rubric, "ann"))) == 0
    old = as_of_0_2_0(one_rubric)  # and that the attack works: on what was sent until then
    with old.store.read() as connection:
        ids = [each.encode() for each in connection.execute(sa.select(claims.c.task_id)).scalars()]
    assert len(identified(ids, guesses(old, "ann"))) == 42  # with the one sent ahead


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
        assert identified(looked, guesses(study, "ann")) == {
            row.unit_id for row in rows if row.task_id == on_screen
        }
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
        assert len(identified(frames, guesses(study, "ann"))) == 0


def test_a_place_that_was_given_up_before_the_upgrade_is_taken_up_again(one_rubric):
    desk = AnnotationDesk(one_rubric)
    task_of(desk, "ann")
    with as_of_0_2_0(one_rubric) as study:
        with study.store.write() as connection:
            connection.execute(sa.update(claims).values(state="released", version=99))
        desk = AnnotationDesk(study)
        label_some(desk, "ann", 80)
        assert task_of(desk, "ann") is None
        assert len(study.ratings()) == 80


def told_apart(study: Study, attack: Callable[[AnnotationDesk, Task, int], object]) -> set[object]:
    """What an attack finds on tasks that are checks, and on those that are none; equal sets."""
    desk, found = AnnotationDesk(study), {True: set(), False: set()}
    number = 0
    while task := task_of(desk, "ann"):
        check = is_check(study, task)
        result = attack(desk, task, number)
        if number:  # the first unit is never a check
            found[check].add(result)
        number += 1
    assert found[True] == found[False]
    return found[True]


@pytest.fixture
def checked(make_session):
    return make_session(**CHECKED)


def test_a_submit_id_sent_before_tells_no_check(checked):
    """Labels and answers to checks are kept apart: an id that is taken among the ones is free among
    the others.
    """

    def attack(desk: AnnotationDesk, task: Task, number: int) -> object:
        def reused() -> list[str]:
            return [submit(desk, "ann", task, "5", "s0", edit=edit) for edit in (False, True)]

        before = reused() if number else []
        return (*before, submit(desk, "ann", task, "5", f"s{number}"), *reused())

    assert told_apart(checked, attack) == {
        ("unknown_task", "unknown_task", "stored", "already_labelled", "unknown_task")
    }


def test_the_minutes_left_count_checks_as_work(checked):
    def attack(desk: AnnotationDesk, task: Task, number: int) -> object:
        submit(desk, "ann", task, "5", seconds=500.0 * (number + 1))
        sheet = desk.next_sheet("ann")
        if sheet is None:
            return True
        every = [Worked("", 500.0 * (n + 1)) for n in range(number + 1)]
        return sheet.minutes == minutes_left(every, sheet.total - sheet.done)

    assert told_apart(checked, attack) == {True}


def test_a_days_end_counts_checks_as_work(make_session):
    study = make_session(**CHECKED | {"toml": f"{ATTENTION}[session]\nanswers_per_day = 9\n"})
    assert len(label_all(AnnotationDesk(study), "ann", "5")) == 9
    assert not attention_results(study).empty


def test_places_of_checks_and_orders_follow_from_no_seed(checked):
    """Of version 0.2.0 the study's seed, 1, gave each of them."""
    places, sorted_as = {}, {}
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


def test_exports_hold_no_secret(one_rubric):
    label_some(AnnotationDesk(one_rubric), "ann", 3)
    secret = study_secret(one_rubric.store).hex()
    exports = [each for name, each in vars(exporting).items() if name.startswith("exported_")]
    assert len(exports) >= 7
    written = [exporting.as_csv(one_rubric, each).decode() for each in exports]
    written.append(exporting.sidecar_text(one_rubric, "units.csv"))
    assert "p0001" in "".join(written)
    assert not any(secret in text for text in written)
