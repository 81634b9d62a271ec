"""The store: labels and grades as events, their totals, and the languages of labels."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.exporting import exported_ratings
from evenhand.study import Study, open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.imports import import_ratings
from evenhand.study.session.sessions import raters_to_split_by
from evenhand.study.settings.study_toml import BackgroundQuestion
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.store.schema import grades, labels, told_totals
from evenhand.study.store.store import (
    TOTALS_COLUMNS,
    Store,
    grade_totals,
    models_that_answered,
)
from evenhand.study.tables.formats import read_table, write_table
from evenhand.study.tables.ratings import RATINGS_COLUMNS, validate_ratings
from harness.studies import submit, task_of, work_through
from tests.ratings_files import read_ratings

ROOT = Path(__file__).parents[3]


def attempt(unit: str, **fields: object) -> GradeAttempt:
    usual = {"rater_id": "g", "rubric": "refusal", "rubric_hash": "h"}
    return GradeAttempt(unit_id=unit, **usual | fields)  # type: ignore[arg-type]


def first_unit(study: Study) -> str:
    return study.rubric_units(study.rubrics["refusal"])[0]


def test_sqlite_is_durable_and_in_wal_mode(make_study):
    with make_study().store.read() as connection:
        for name, value in (("journal_mode", "wal"), ("synchronous", 2)):  # 2: FULL
            assert connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() == value


def test_the_latest_attempt_counts_and_the_first_stays(make_study):
    store = make_study().store
    for wrong in ({}, {"label": "1", "unscored_reason": "refusal"}):
        with pytest.raises(ValueError, match="a label or a reason"):
            attempt("u", **wrong)
    store.add_grades([attempt("u", unscored_reason="request_failed"), attempt("v", label="1")])
    assert store.finished_grades("g", "refusal", ["h"]) == {("v", "", 0)}
    store.add_grades([attempt("u", label="2", p_positive=0.25, probabilities={"2": 1.0})])
    assert store.finished_grades("g", "refusal", ["h"]) == {("v", "", 0), ("u", "", 0)}
    ratings = store.ratings({"refusal": ["h"]}).set_index("unit_id")
    assert ratings.loc["u", "label"] == "2"
    assert ratings.loc["u", "p_positive"] == 0.25
    with store.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(grades)).scalar_one() == 3


def test_responses_come_later_and_never_change(make_study):
    study = make_study(responses=None)
    assert study.subjects() == []
    assert len(study.units()) == 6
    rows = [{"pair_id": "p0001", "subject": "s", "side": side, "response": "text"} for side in "ab"]
    frame = pd.DataFrame(rows)
    assert [study.store.add_responses(frame) for _ in range(2)] == [2, 0]
    with pytest.raises(InputError, match="another response to p0001 side a"):
        study.store.add_responses(frame.assign(response="other"))
    assert len(study.units()) == 5 + 3
    assert study.store.texts_of([("p0001", "s")])["p0001", "s"][1] == {"a": "text", "b": "text"}


@pytest.mark.slow
def test_ratings_go_out_and_come_in_again(make_study, tmp_path):
    study, other = make_study(), make_study()
    work_through(AnnotationDesk(study), "r1", 20, 1.5, 3)
    fields = {"label": "4", "probabilities": {"4": 0.75}, "p_positive": 0.75}
    study.store.add_grades([attempt(first_unit(study), **fields)])
    for suffix in ("csv", "jsonl", "parquet"):
        write_table(study.ratings(), tmp_path / f"out.{suffix}")
        ratings, _ = read_ratings(tmp_path / f"out.{suffix}")
        assert ratings.reset_index(drop=True).equals(study.ratings())
    assert [import_ratings(other, ratings, "out") for _ in range(2)] == [(21, 0), (0, 21)]
    # Imported labels fill places: of 3 raters a unit, these units now want 2 more.
    assert AnnotationDesk(other).progress("r1") == (20, 60)
    by = list(ratings.columns)[:3]
    one, two = (each.sort_values(by).reset_index(drop=True) for each in (other.ratings(), ratings))
    assert one.equals(two)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("{unit},refusal,r,human,9", "row 2: label '9' is none of 1, 2, 3, 4, 5"),
        ("{unit},politeness,r,human,1", "row 2: the study has no rubric 'politeness'"),
        ("p9|s|a,refusal,r,human,1", "row 2: the study has no response item 'p9|s|a'"),
        ("{unit},,r,human,1", "row 2: the rubric is empty"),
        ("{unit},refusal,r,human,", "row 2: neither a label nor an unscored_reason"),
        ("{unit},refusal,r,model,", "row 2: neither a label nor an unscored_reason"),
    ],
)
def test_imported_ratings_must_fit_the_study(make_study, tmp_path, row, says):
    study, path = make_study(), tmp_path / "bad.csv"
    header = "unit_id,rubric,rater_id,rater_kind,label\n"
    path.write_text(header + row.format(unit=first_unit(study)) + "\n")
    ratings, _ = read_ratings(path)
    with pytest.raises(InputError) as raised:
        import_ratings(study, ratings, "bad.csv")
    assert says in str(raised.value)
    assert study.ratings().empty


def test_a_grade_from_elsewhere_may_be_a_probability_alone(make_study):
    study = make_study()
    about = {"rater_id": "g", "rater_kind": "model", "label": "", "p_positive": "0.25"}
    ratings = rating(study, **about)
    assert [import_ratings(study, ratings, "grades.csv") for _ in range(2)] == [(1, 0), (0, 1)]
    kept = study.ratings().iloc[0]
    assert (kept["label"], kept["p_positive"], kept["unscored_reason"]) == ("", 0.25, "")
    totals = grade_totals(study.store).iloc[0]
    assert (totals["labelled"], totals["unscored"]) == (1, 0)
    person = ratings.assign(rater_kind="human", rater_id="ann")
    with pytest.raises(InputError, match="neither a label"):
        import_ratings(study, person, "grades.csv")


def test_a_store_of_another_version_is_refused(make_study):
    study = make_study()
    with study.store.write() as connection:
        connection.execute(sa.text("update meta set value = '0' where key = 'schema'"))
    study.close()
    with pytest.raises(InputError, match="of version 0"):
        open_study(study.folder)


WRITER = """
import sys
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from harness.studies import submit, task_of
with open_study(sys.argv[1]) as study:
    desk = AnnotationDesk(study)
    while task := task_of(desk, "r1"):
        print(task.task_id, submit(desk, "r1", task, task.rubric.categories[0]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.load)])
def test_no_acknowledged_label_is_lost_by_kills(make_study, rounds):
    study, acknowledged = make_study(pairs=20 * rounds), set()
    for _ in range(rounds):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(study.folder)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        acknowledged.add(process.stdout.readline().split()[0])
        time.sleep(random.random() * 0.1)
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().splitlines()
        acknowledged |= {line.split()[0] for line in rest if line.endswith("stored")}
        process.wait()
    with study.store.read() as connection:
        stored = list(connection.execute(sa.select(labels.c.submit_id)).scalars())
    assert len(stored) == len(set(stored))
    assert acknowledged <= set(stored)
    # A label that was on disk when the kill came, before it was acknowledged: one a round at most.
    assert len(stored) <= len(acknowledged) + rounds


def rating(study, **fields: str):
    """One row for the first response unit, as a file would have it."""
    row = {"unit_id": first_unit(study), "rubric": "refusal", "rater_id": "r"}
    return validate_ratings(pd.DataFrame([row | {"rater_kind": "human", "label": "1"} | fields]))


def test_draws_may_be_missing_among_whole_numbers(make_study):
    two = pd.concat([rating(make_study()), rating(make_study(), rater_id="s")], ignore_index=True)
    given = two.assign(draw=pd.array([1, None], dtype="Int64"))
    assert validate_ratings(given)["draw"].tolist() == [1, 0]


def test_a_rater_is_of_one_kind_in_the_whole_study(make_study):
    study = make_study()
    import_ratings(study, rating(study), "one.csv")
    with pytest.raises(InputError, match=r"two\.csv, row 2: rater 'r' is model here and human in"):
        import_ratings(study, rating(study, rater_kind="model"), "two.csv")
    assert len(study.ratings()) == 1


def test_the_present_text_counts_even_after_a_detour(make_study):
    """Edited, graded again, edited back: the first grades are current again."""
    study = make_study()
    unit = first_unit(study)
    present = study.rubrics["refusal"].hash
    study.store.add_grades([attempt(unit, label="1", rubric_hash=present)])
    study.store.add_grades([attempt(unit, label="5", rubric_hash="another")])
    assert study.ratings()["label"].tolist() == ["1"]
    assert study.store.ratings({"refusal": ["another"]})["label"].tolist() == ["5"]


def test_an_import_may_take_back_what_another_said(make_study):
    study = make_study()
    for label in ("1", "2", "1"):
        when = "2026-01-01T00:00:00+00:00"
        assert import_ratings(study, rating(study, label=label, created_at=when), "f") == (1, 0)
        assert study.ratings()["label"].tolist() == [label]
        assert study.ratings()["rubric_hash"].tolist() == [study.rubrics["refusal"].hash]


def test_two_extensions_at_once_are_one(make_study):
    study = make_study(pairs=6, sample=2)
    sample = study.store.sample()
    more = [pair for pair in study.store.pairs()["pair_id"] if pair not in sample]
    study.store.extend_sample(sample, more[:1])
    with pytest.raises(InputError, match="the sample was enlarged meanwhile"):
        study.store.extend_sample(sample, [])


@pytest.mark.slow
def test_one_read_sees_one_state(make_study, database):
    """On PostgreSQL of version 0.2.0 each statement of a read saw a state of its own."""
    study = make_study(**database)
    other = Store.open(study.config.store, study.folder)
    count = sa.select(sa.func.count()).select_from(told_totals)
    told = {"rater_id": "r", "plan": "p", "total": 1, "created_at": "now"}
    with study.store.read() as connection:
        seen = [connection.execute(count).scalar_one()]
        with other.write() as writing:
            writing.execute(sa.insert(told_totals).values(told))
        seen.append(connection.execute(count).scalar_one())
    other.close()
    assert seen == [0, 0]
    with study.store.read() as connection:
        assert connection.execute(count).scalar_one() == 1
    with study.store.write() as connection:  # and whoever writes sees the latest, as ever
        assert connection.get_isolation_level() != "REPEATABLE READ"


# Totals of labels and of graders' work


def dated(unit: str, at: int, *, rater: str = "g", **fields: object) -> GradeAttempt:
    return attempt(unit, rater_id=rater, created_at=f"2026-11-{at:02d}", **fields)


def paid(model: str, tokens: tuple[int, int, int], usd: float | None = None) -> dict[str, object]:
    counts = dict(zip(("input", "output", "cached"), tokens, strict=True))
    facts: dict[str, object] = {"returned_model": model, "tokens": {**counts, "written": 0}}
    return facts if usd is None else facts | {"cost_usd": usd}


def test_attempts_add_up(make_study, database):
    store = make_study(**database).store
    low = paid("m-2", (100, 7, 50), 0.5) | {"low_mass": True}
    asked = paid("m-2", (100, 0, 50), 0.25) | {"method": "logprobs"}
    store.add_grades(
        [
            dated("u", 3, unscored_reason="refusal", provenance=paid("m-1", (100, 5, 0), 0.25)),
            dated("u", 4, label="1", prob_method="logprobs", provenance=low),
            dated("u", 4, label="1", draw=1, provenance=asked),
            dated("v", 5, unscored_reason="refusal", provenance=paid("m-2", (100, 1, 0), 1)),
            dated("w", 2, unscored_reason="request_failed", provenance={"error": "no"}),
            dated("x", 2, unscored_reason="refusal", provenance=paid("m-2", (0, 0, 0), 0)),
            dated("u", 6, rater="h", label="1", provenance=paid("n", (8, 2, 0))),
            dated("u", 6, rater="i", label="1"),
        ]
    )
    totals = grade_totals(store).set_index("rater_id")
    assert ("rater_id", *totals) == TOTALS_COLUMNS == tuple(grade_totals(make_study().store))
    first = totals.loc["g"].to_dict()
    assert set(json.loads(first.pop("models"))) == {"m-1", "m-2"}
    assert json.loads(first.pop("unscored_reasons")) == {"refusal": 2, "request_failed": 1}
    assert first == {
        "rubric": "refusal", "attempts": 6, "units": 4, "labelled": 2, "unscored": 3,
        "low_mass": 1, "without_probabilities": 1, "tokens_input": 400, "tokens_output": 13,
        "tokens_cached": 100, "cached_share": 0.25, "cost_usd": 2.0, "first_at": "2026-11-02",
        "last_at": "2026-11-05",
    }  # fmt: skip
    assert totals.loc["h", "tokens_input"] == 8
    assert pd.isna(totals.loc["h", "cost_usd"])  # no known price is not nothing
    assert totals.loc["i", ["tokens_input", "cached_share"]].isna().all()
    assert totals.loc["i", "models"] == "{}"


def test_the_models_of_a_grader_are_those_of_all_its_rubrics():
    models = [{"m": 2}, {"m": 1, "n": 4}, {}]
    totals = pd.DataFrame({"rater_id": [*"ggh"], "models": map(json.dumps, models)})
    assert models_that_answered(totals) == {"g": {"n": 4, "m": 3}}


# Languages in which people were asked


def label(study: Study, rater: str, language: str, name: str = "") -> None:
    desk = AnnotationDesk(study)
    task = task_of(desk, rater)
    assert submit(desk, rater, task, "1", name or rater, language=language) == "stored"


@pytest.fixture
def study(make_study) -> Study:
    return make_study(rubrics=["refusal"])


def test_a_label_keeps_the_language_and_the_text_shown(study):
    rubric = study.rubrics["refusal"]
    for rater, language in (("r-en", "en"), ("r-de", "de"), ("r-fr", "fr"), ("r-old", "")):
        label(study, rater, language)
    with study.store.read() as connection:
        rows = connection.execute(sa.select(labels)).all()
    found = {row.rater_id: (row.page_language, row.shown_hash, row.rubric_hash) for row in rows}
    assert found == {
        "r-en": ("en", rubric.hash, rubric.hash),
        "r-de": ("de", rubric.in_language("de").hash, rubric.hash),
        "r-fr": ("fr", rubric.hash, rubric.hash),  # not translated: the original was shown
        "r-old": ("", "", rubric.hash),
    }


@pytest.mark.slow
def test_the_export_has_the_language_where_it_is_not_english_alone(study, tmp_path):
    label(study, "r-en", "en")
    assert list(exported_ratings(study)) == list(RATINGS_COLUMNS)
    label(study, "r-de", "de")
    folder, out = study.folder, tmp_path / "ratings.csv"
    german = study.rubrics["refusal"].in_language("de").hash
    study.close()
    assert main(["export", str(folder), "--out", str(out)]) == 0
    table = read_table(out)
    assert list(table) == [*RATINGS_COLUMNS, "page_language", "shown_hash"]
    rows = table.set_index("rater_id")
    assert rows.loc["r-de", ["page_language", "shown_hash"]].tolist() == ["de", german]
    assert rows.loc["r-en", "page_language"] == "en"
    with open_study(folder) as again:
        assert len(table) == len(again.ratings())


def test_raters_can_be_split_by_their_language(study):
    assert "page_language" not in raters_to_split_by(study)
    label(study, "r-de", "de")
    label(study, "r-both", "de", "first")
    label(study, "r-both", "es", "second")
    table = raters_to_split_by(study)
    languages = dict(zip(table["rater_id"], table["page_language"], strict=True))
    assert languages == {"r-both": "", "r-de": "de"}  # whoever changed belongs to neither
    with pytest.raises(ValueError, match="cannot have the key 'page_language'"):
        BackgroundQuestion(key="page_language", question="Which?", options=("a", "b"))
