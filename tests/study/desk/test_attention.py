"""Attention checks: dealt among the real units, told from them by nobody, kept apart."""

import itertools

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.desk.claims import AttentionChecks, attention_results
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.prompts.units import has_known_answer
from evenhand.study.store.schema import attention_labels
from harness.studies import claim_of, give_secret, label_all, submit

ATTENTION = """
[attention]
file = "attention.toml"
every = 4
"""


def check(name: str, expected: str, values: str) -> str:
    return f'[[unit]]\nname = "{name}"\nexpected = {expected}\nvalues = {values}\n'


RESPONSE_VALUES = '{ prompt = "Write a limerick.", response = "Choose the last option, please." }'
PAIR_VALUES = (
    '{ prompt_a = "PA", response_a = "RA, far better.", prompt_b = "PB", response_b = "RB" }'
)
ONE_RUBRIC = "".join(
    check(f"c{n}", '{ refusal = "5" }' if n % 2 else '{ refusal = ["4", "5"] }', RESPONSE_VALUES)
    for n in range(1, 5)
)


CHECKED = {"toml": ATTENTION, "files": {"attention.toml": ONE_RUBRIC}}
"""What gives a study of refusals four checks."""


def is_check(study, task) -> bool:
    """Whether a task, which its id does not tell, is an attention check."""
    return has_known_answer(claim_of(study, task).unit_id)


def work(desk: AnnotationDesk, rater: str) -> list[str]:
    """Answer all that is dealt; returns for every answer "check" or the unit's rubric."""

    def last(task, _: int) -> str:
        return "5" if "5" in task.rubric.categories else ""

    tasks = label_all(desk, rater, last)
    return ["check" if is_check(desk.study, task) else task.rubric.name for task in tasks]


@pytest.mark.slow
def test_one_check_comes_in_every_stretch_at_a_place_that_the_key_draws(make_session):
    places = []
    for secret in ("aa", "aa", "bb"):  # and the same seed, which is public
        study = make_session(**CHECKED, seed=1)
        give_secret(study, secret)
        for rater in ("r1", "r2"):
            seen = work(AnnotationDesk(study), rater)
            assert len(seen) == 24 + 4  # 6 pairs x 2 subjects x 2 sides, and every check once
            assert seen[0] == "refusal"  # nobody begins with one
            checks = [place for place, kind in enumerate(seen) if kind == "check"]
            real = [seen[:place].count("refusal") for place in checks]
            assert [(after - 1) // 4 for after in real] == [0, 1, 2, 3]
            places.append(real)
    assert places[:2] == places[2:4]
    assert len({tuple(one) for one in places}) > 2


@pytest.mark.slow
def test_checks_take_no_place_and_are_no_labels(make_session):
    study = make_session(**CHECKED, raters_per_unit=2)
    desk = AnnotationDesk(study)
    for rater in ("r1", "r2", "r3"):
        work(desk, rater)
    ratings = study.ratings()
    assert len(ratings) == 24 * 2
    assert ratings["unit_id"].str.contains("|", regex=False).all()
    assert ratings.groupby("unit_id")["rater_id"].nunique().eq(2).all()
    assert sorted(set(attention_results(study)["rater_id"])) == ["r1", "r2"]


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
        check(f"single-{n}", '{ refusal = "5" }', RESPONSE_VALUES) for n in range(3)
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
        if "RA, far better." not in texts:
            return "C"
        return "A" if texts.index("RA, far better.") < texts.index("RB") else "B"

    for rater in range(11):
        label_all(AnnotationDesk(study), f"r{rater}", the_better)
    found = attention_results(study)
    assert found["passed"].all()
    assert set(found["given"]) == {"A"}
    assert len(found) >= 3


@pytest.mark.slow
def test_on_a_screen_with_all_rubrics_a_check_asks_all_of_them(make_session):
    file = check("c", '{ refusal = "5" }', RESPONSE_VALUES)
    both = {"rubrics": ["hedging", "refusal"], "annotation": {"screen": "all"}}
    study = make_session(ATTENTION, {"attention.toml": file}, **both)
    desk = AnnotationDesk(study)
    seen = work(desk, "r1")
    assert seen.count("check") == 2
    assert len(seen) == 24 * 2 + 2
    assert desk.progress("r1") == (50, 50)
    assert attention_results(study)["rubric"].tolist() == ["refusal"]


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
    assert len(attention_results(study)) == 4


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (check("c", '{ politeness = "5" }', RESPONSE_VALUES), "do not label the rubric 'polite"),
        (check("c", '{ refusal = "9" }', RESPONSE_VALUES), "'9' is none of refusal's 1, 2, 3, 4"),
        (check("c", "{ refusal = [] }", RESPONSE_VALUES), "name one or more of refusal's"),
        (check("c", '{ refusal = "5" }', '{ prompt = "x" }'), "`values` lacks 'response'"),
        (check("c", '{ refusal = "5" }', RESPONSE_VALUES) * 2, "two items are called 'c'"),
        (
            check("c|d", '{ refusal = "5" }', RESPONSE_VALUES),
            "name is 'c|d'; it must be 1 to 64 le",
        ),
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


def test_a_study_without_checks_has_no_results(make_session):
    found = attention_results(make_session())
    assert found.empty
    assert found["passed"].dtype == bool
