"""A grader is improved: on parted labels, within its money, the same after any interruption."""

import hashlib
import random
import re
import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.cli.main import main
from evenhand.cli.verbs import BAD_INPUT, OVER_BUDGET
from evenhand.errors import InputError
from evenhand.graders import GradingOptions, RequestLimits, grade
from evenhand.reporting.analysing import analyse_study, choice_lines
from evenhand.reporting.improving import (
    Improved,
    ImproveOptions,
    Trial,
    forecast_improving,
    improve,
    labels_to_learn,
)
from evenhand.reporting.load import from_study, load
from evenhand.reporting.noting import operator
from evenhand.rubrics import load_rubric
from evenhand.study import Study, open_study
from evenhand.study.lead.imports import import_ratings
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.decisions import acts, contents_read, ends_of, parts_of
from evenhand.study.store.schema import attacked_grades
from evenhand.study.store.schema import grades as grades_table
from harness.replies import Call, Reply, completion
from harness.studies import with_labels, with_settings
from tests.graders.bench import Bench
from tests.graders.killing import killed_after
from tests.rubrics.texts import TEXTS

pytestmark = pytest.mark.slow

PAIRS = 60
KIND = load_rubric(TEXTS / "kind.toml")
PROMPT = '''
template = """
{words}
Is the response kind?
{{response}}
Answer yes or no.
"""
answer_line = "last"
'''
SKILL = {"GOOD": 0.97, "POOR": 0.6}
"""How often the server's answer is right, by a word of the prompt; 0.75 under the rubric's text."""
GRADE, TRIAL = ("rater_id", "unit_id", "order", "draw"), ("attack", "target", "side")
PRICE = 0.01
"""US dollars for a request, by the prices below and the tokens that the server counts."""


def luck(*of: str) -> float:
    return int.from_bytes(hashlib.sha256("|".join(of).encode()).digest()[:6]) / 2**48


def truth(unit: str) -> str:
    return "yes" if luck("truth", unit) < 0.5 else "no"


def said(who: str, unit: str, skill: float) -> str:
    other = {"yes": "no", "no": "yes"}
    return truth(unit) if luck(who, unit) < skill else other[truth(unit)]


def grades(call: Call) -> Reply:
    """An answer that is right as often as its prompt is good."""
    words = next((word for word in SKILL if word in call.user + call.system), "")
    prompt = re.sub(r"\[\[.+?\]\]|p\d{4}", "", call.user)[:200]
    return completion(said(words + prompt[:40], call.unit, SKILL.get(words, 0.75)))


def candidates(folder: Path, words: Sequence[str] = ("GOOD care", "POOR care", "POOR too")) -> Path:
    folder.mkdir(exist_ok=True)
    for n, each in enumerate(words):
        (folder / f"c{n}.toml").write_text(PROMPT.format(words=each), "utf-8")
    return folder


def labelled(bench: Bench, name: str, **given: object) -> Study:
    """Pairs with labels of three people, and prices by which a request costs a cent."""
    study = bench.study(pairs=PAIRS, rubrics=[KIND], name=name, **given)
    labels = {
        who: [said(who, unit, 0.95) for unit in sorted(study.rubric_units(study.rubrics["kind"]))]
        for who in ("ann", "ben", "cem")
    }
    with_labels(study, labels, "kind")
    prices = f'\n[prices]\n"{bench.openai}" = {{ input = 11.0, output = 100.0 }}\n'
    return with_settings(study, prices)


def options(bench: Bench, folder: Path, **more: object) -> ImproveOptions:
    return ImproveOptions(
        rubric="kind",
        grader=bench.openai,
        grading=GradingOptions(method="label"),
        candidates=folder,
        **more,
    )


def changed(study: Study, settings: dict[str, dict[str, object]]) -> Study:
    study.close()
    change_config(study.folder, settings)
    return open_study(study.folder)


FAST = RequestLimits(concurrency=8, wait_scale=0.001)


@pytest.fixture
def study(bench: Bench) -> Study:
    bench.script = grades
    return labelled(bench, "study")


Looked = tuple[Study, Improved]


@pytest.fixture(scope="module")
def improved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    """A study whose grader was improved, to look at."""
    folder = tmp_path_factory.mktemp("improved")
    with pytest.MonkeyPatch.context() as environment:
        bench = Bench(folder, environment)
        bench.script = grades
        study = labelled(bench, "study")
        found = improve(study, options(bench, candidates(folder / "c")), FAST)
    yield study, found
    study.close()
    bench.close()


def units_asked(bench: Bench) -> set[str]:
    return {call.unit for call in bench.calls}


def test_the_best_candidate_is_found_proved_and_told(study, bench, tmp_path):
    found = improve(study, options(bench, candidates(tmp_path / "c")), FAST)
    assert (found.outcome, found.best and found.best.origin) == ("better", "c0.toml")
    assert found.gain is not None
    assert found.gain.low > 0
    assert found.verdict is not None
    assert found.sentence.startswith(f"{found.best.rater_id}, compared with {found.old.rater_id}:")
    assert found.verdict["sentence"] in found.sentence
    assert "+GOOD care" in found.difference
    assert float(found.run.spent) == pytest.approx(PRICE * len(bench.calls), rel=0.01)
    ((rubric, end),) = ends_of(study.store)
    assert (rubric, end["outcome"], end["new"]) == ("kind", "better", found.best.rater_id)
    assert len(end["rounds"][0]["kappas"]) == 4, "candidates that failed are kept too"
    kept = study.folder / "prompts" / f"{found.best.grading.prompt.hash}.toml"
    assert kept.read_text("utf-8") == (tmp_path / "c" / "c0.toml").read_text("utf-8")
    graders = found.run.graders
    counts = {each.rater_id: (each.already, each.planned, each.scored) for each in graders}
    assert counts[found.best.rater_id] == (0, 96, 96), "each unit is planned once"
    assert sum(planned for _, planned, _ in counts.values()) == len(bench.calls)
    asked = len(bench.calls)
    study = changed(study, {"names": {found.old.rater_id: "Old"}})
    again = improve(study, options(bench, tmp_path / "c"), FAST)
    assert again.sentence.startswith(f"{found.best.rater_id}, compared with Old:")
    assert len(bench.calls) == asked
    assert (again.gain, again.run.spent) == (found.gain, 0), "the same labels are the same reading"
    assert again.verdict == found.verdict, "what the audit found is part of it at once"
    assert not found.known_before
    assert len(ends_of(study.store)) == 1


def test_a_judge_whose_labels_were_imported_is_beaten_and_never_asked(study, bench, tmp_path):
    units = sorted(study.rubric_units(study.rubrics["kind"]))
    judged = [said("their-judge", unit, 0.6) for unit in units]
    with_labels(study, {"their-judge": judged}, "kind", graders=["their-judge"])
    asked = replace(options(bench, candidates(tmp_path / "c", ["GOOD"])), grader="their-judge")
    with pytest.raises(InputError, match="name a model to try in its place with --candidate"):
        improve(study, asked, FAST)
    asked = replace(asked, others=[bench.openai])
    forecasts = forecast_improving(study, asked)
    found = improve(study, asked, FAST)
    assert found.old.rater_id == "their-judge"
    assert (found.outcome, found.best and found.best.origin) == ("better", "c0.toml")
    assert "their-judge" not in {each.rater_id for each in (*forecasts, *found.run.graders)}
    assert "--- kind" in found.difference, "nobody knows what the judge read"
    rows = labels_to_learn(study, asked)
    assert set(rows["agrees"]) == {"yes", "no"}


def test_candidates_never_see_learn_and_losers_never_see_prove(improved: Looked) -> None:
    study, found = improved
    parts = parts_of(study.store, "kind")
    by_rater: dict[str, set[str]] = {}
    ratings = study.ratings()
    for row in ratings[ratings["rater_kind"] == "model"].itertuples():
        by_rater.setdefault(row.rater_id, set()).add(parts[row.unit_id.partition("|")[0]])
    assert by_rater.pop(found.old.rater_id) == {"choose", "prove"}
    assert by_rater.pop(found.best.rater_id) == {"choose", "prove"}
    assert list(by_rater.values()) == [{"choose"}, {"choose"}]
    dataset = from_study(study)
    of_best = dataset.ratings[dataset.ratings["rater_id"] == found.best.rater_id]
    assert {parts[unit.partition("|")[0]] for unit in of_best["unit_id"]} == {"prove"}
    graders = set(dataset.ratings.loc[dataset.ratings["rater_kind"] == "model", "rater_id"])
    assert graders == {found.old.rater_id, found.best.rater_id}, "losers are in no report"


def test_permuting_the_labels_kept_for_the_proof_changes_no_choice_and_no_request(bench, tmp_path):
    bench.script = grades
    folder, seen = candidates(tmp_path / "c"), []
    for name in ("plain", "permuted"):
        study = labelled(bench, name)
        trial = Trial(study, options(bench, folder))
        if name == "permuted":
            trial.note_parts("test")
            own = trial.ratings()
            own = own[own["unit_id"].map(trial.clusters).map(trial.parts) == "prove"]
            rng = random.Random(5)
            labels = own["label"].tolist()
            rng.shuffle(labels)
            assert labels != own["label"].tolist()
            import_ratings(study, own.assign(label=labels), "test")
        bench.calls.clear()
        found = improve(study, options(bench, folder), FAST)
        asked = sorted((call.unit, str(call.body["messages"])) for call in bench.calls)
        choice = replace(found.choice, rounds=found.choice.rounds)
        seen.append((asked, choice, [each.rater_id for each in found.candidates]))
        outcomes = found.gain
    assert seen[0] == seen[1]
    assert outcomes.after < 0.3, "the labels were permuted"


def test_another_winner_at_the_same_labels_is_another_reading_and_costs_level(
    study, bench, tmp_path
):
    first = improve(study, options(bench, candidates(tmp_path / "c")), FAST)
    more = candidates(tmp_path / "d", ["GOOD again"])
    second = improve(study, options(bench, more), FAST)
    third = improve(study, options(bench, candidates(tmp_path / "e", ["GOOD thrice"])), FAST)
    assert [each.gain.look for each in (first, second, third)] == [1, 2, 3]
    assert third.gain.level < second.gain.level


def test_where_no_candidate_is_better_the_labels_for_the_proof_are_not_read(study, bench, tmp_path):
    found = improve(study, options(bench, candidates(tmp_path / "c", ["POOR"])), FAST)
    assert (found.outcome, found.best, found.gain) == ("not_shown", None, None)
    assert "were not read" in found.sentence
    parts = parts_of(study.store, "kind")
    assert {parts[unit.partition("|")[0]] for unit in units_asked(bench)} == {"choose"}


def test_the_budget_is_never_passed_and_more_money_goes_on(study, bench, tmp_path):
    asked, calls = options(bench, candidates(tmp_path / "c")), 0
    for _ in range(60):
        found = improve(study, asked, replace(FAST, budget=1.0))
        new, calls = len(bench.calls) - calls, len(bench.calls)
        assert new * PRICE <= 1.0
        assert float(found.run.spent) <= 1.0
        if not found.run.over_budget:
            break
        assert (found.outcome, found.sentence) == ("", "")
    assert found.outcome == "better"
    with study.store.read() as connection:
        kept = [
            connection.execute(sa.select(*(table.c[name] for name in key)).distinct()).all()
            for table, key in ((grades_table, GRADE), (attacked_grades, (*GRADE, *TRIAL)))
        ]
    assert sum(map(len, kept)) == calls, "no question is asked twice"


PROGRAM = """
import sys
from pathlib import Path
from evenhand.graders import GradingOptions, RequestLimits
from evenhand.reporting.improving import ImproveOptions, improve
from evenhand.study import open_study

improve(
    open_study(sys.argv[1]),
    ImproveOptions(
        rubric="kind",
        grader=sys.argv[2],
        grading=GradingOptions(method="label"),
        candidates=Path(sys.argv[3]) if sys.argv[3] else None,
        proposals=int(sys.argv[4]),
    ),
    RequestLimits(concurrency=8, wait_scale=0.001),
)
"""


@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.thorough)])
def test_a_run_that_is_killed_finds_the_same(bench: Bench, tmp_path: Path, kills: int) -> None:
    bench.script = grades
    folder = candidates(tmp_path / "c")
    quiet = improve(labelled(bench, "quiet"), options(bench, folder), FAST)
    total = len(bench.calls)
    study = labelled(bench, "killed")
    bench.script = lambda call: replace(grades(call), delay=0.01)
    killed = 0
    for _ in range(kills):
        calls = random.randint(1, 2 * total // (kills + 2))
        killed += killed_after(calls, bench, PROGRAM, study.folder, bench.openai, folder, 0)
    assert killed > 0
    time.sleep(0.05)
    found = improve(study, options(bench, folder), FAST)
    assert len(bench.calls) <= 2 * total + 8 * killed, "at most what was under way is asked twice"
    kept = [study.folder.parent / name / "prompts" for name in ("quiet", "killed")]
    hashes = [each.best.grading.prompt.hash for each in (quiet, found)]
    texts = [
        (folder / f"{digest}.toml").read_bytes()
        for folder, digest in zip(kept, hashes, strict=True)
    ]
    assert texts[0] == texts[1]
    assert (found.choice, found.gain, found.difference) == (
        quiet.choice, quiet.gain, quiet.difference,
    )  # fmt: skip


def test_a_dry_run_asks_and_writes_nothing(study, bench, tmp_path, capsys):
    asked = options(bench, candidates(tmp_path / "c"))
    forecast = forecast_improving(study, asked)
    before = [path.read_bytes() for path in sorted(study.folder.glob("study.db"))]
    study.close()
    command = ["improve", str(study.folder), "--rubric", "kind", "--grader", bench.openai]
    command += ["--method", "label", "--candidates", str(tmp_path / "c")]
    assert main([*command, "--dry-run"]) == 0
    assert bench.calls == []
    assert [path.read_bytes() for path in sorted(study.folder.glob("study.db"))] == before
    assert main([*command, "--budget", "0.05"]) == OVER_BUDGET
    assert main(command) == 0
    assert len(bench.calls) <= sum(each.new for each in forecast)
    printed = capsys.readouterr().out
    assert "Better. Kappa with annotators is" in printed
    assert "With 30 test clusters, a gain in kappa of about" in printed
    assert "evenhand grade" in printed
    with open_study(study.folder) as again:
        log = acts(again.store)
    mine = log[log["done_by"] == operator()]
    assert set(mine["kind"]) == {"grades"}
    assert "improve kind: better" in set(mine["detail"])


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        (PROMPT.replace("Is the response kind?", "Is it rude?"), "Is the response kind?"),
        (PROMPT.replace("yes or no", "yes"), "'no'"),
    ],
)
def test_a_candidate_that_asks_something_else_is_refused(study, bench, tmp_path, prompt, wanted):
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "other.toml").write_text(prompt.format(words="Well."), "utf-8")
    with pytest.raises(InputError, match=re.escape(wanted)):
        improve(study, options(bench, folder), FAST)
    assert bench.calls == []
    assert parts_of(study.store, "kind") == {}


def test_the_better_grader_grades_the_rest_and_can_be_frozen(study, bench, tmp_path):
    found = improve(study, options(bench, candidates(tmp_path / "c")), FAST)
    bench.calls.clear()
    study.close()
    assert main(shlex.split(found.command)[1:]) == 0
    with open_study(study.folder) as again:
        parts, ratings = parts_of(again.store, "kind"), again.ratings()
    graded = ratings[ratings["rater_id"] == found.best.rater_id]
    assert len(graded) == 2 * PAIRS
    assert {parts[unit.partition("|")[0]] for unit in units_asked(bench)} == {"learn"}
    frozen = tmp_path / "better.json"
    freeze = ["baseline", "save", str(study.folder), "--file", str(frozen)]
    assert main([*freeze, "--grader", found.best.rater_id]) == 0
    assert frozen.is_file()


def test_too_few_labels_are_refused_with_a_number(bench: Bench, tmp_path: Path) -> None:
    study = bench.study(pairs=20, rubrics=[KIND])
    units = sorted(study.rubric_units(study.rubrics["kind"]))
    with_labels(study, {"ann": [truth(unit) for unit in units]}, "kind")
    with pytest.raises(InputError, match=r"has 20 labelled clusters.*label about 60"):
        improve(study, options(bench, candidates(tmp_path / "c")), FAST)


def test_nothing_to_try_is_said(study: Study, bench: Bench, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for asked, said in ((empty, "has no candidates"), (None, "there is nothing to try")):
        with pytest.raises(InputError, match=said):
            improve(study, options(bench, asked), FAST)
    study.close()
    command = ["improve", str(study.folder), "--rubric", "unknown", "--grader", bench.openai]
    assert main(command) == BAD_INPUT


def test_the_report_tells_how_a_grader_was_improved(study, bench, tmp_path):
    found: Improved = improve(study, options(bench, candidates(tmp_path / "c")), FAST)
    _, context = analyse_study(study)
    (told,) = [value for name, value in context.facts.items() if name.startswith("improved")]
    assert found.best.rater_id in told
    assert "3 candidates" in told
    spent = f"cost ${PRICE * len(bench.calls):.2f}."
    assert spent in told, "the old grader's grades and the audit too"
    assert told.count("12 training") == 1
    study.close()
    assert main(shlex.split(found.command)[1:]) == 0
    with open_study(study.folder) as again:
        improve(again, options(bench, tmp_path / "c"), FAST)
        _, context = analyse_study(again)
    (later,) = [value for name, value in context.facts.items() if name.startswith("improved")]
    assert later == told, "told once, and what grading the rest cost is no part of it"


def figures(study: Study, grader: str, statistic: str) -> list[float]:
    analysis, _ = analyse_study(study, verify=False)
    return [
        row["estimate"]
        for row in analysis.rows
        if (row["statistic"], row["rater_b"], row["subset"]) == (statistic, grader, "all")
    ]


def test_a_winner_is_judged_where_it_was_not_chosen_and_lacks_no_answers_elsewhere(
    improved,
):
    study, found = improved
    assert figures(study, found.best.rater_id, "coverage") == [1.0]
    assert figures(study, found.old.rater_id, "coverage") == [1.0], "nobody asked it about learn"
    analysis, context = analyse_study(study, verify=False)
    (verdict,) = [each for each in analysis.verdicts if each["grader"] == found.best.rater_id]
    assert "answer" not in verdict["sentence"] + verdict["reason"]
    (said,) = [note for note in context.notes if found.best.rater_id in note]
    assert "is evaluated on 60 of the 120 items that annotators labelled" in said
    (asked,) = [note for note in context.notes if "asked it about these items only" in note]
    assert f"{found.old.rater_id} is evaluated on 96 of the 120 items" in asked
    (gone,) = [note for note in context.notes if "left out here" in note]
    losers = {each.rater_id for each in found.candidates} - {found.best.rater_id}
    assert all(each in gone for each in losers)


def test_a_grader_that_was_there_before_keeps_its_grades_unless_it_was_chosen(
    study, bench, tmp_path
):
    other = f"openai:other-model@{bench.root}/v1"
    name = "openai:other-model"
    study = with_settings(study, f'"{other}" = {{ input = 11.0, output = 100.0 }}\n')
    grade(study, [other], GradingOptions(method="label", rubrics=["kind"], scope="all"), FAST)
    (rater,) = study.ratings().query("rater_kind == 'model'")["rater_id"].unique()
    assert name in rater

    def own() -> int:
        ratings = from_study(study).ratings
        return int((ratings["rater_id"] == rater).sum())

    assert own() == 2 * PAIRS
    asked = replace(options(bench, candidates(tmp_path / "c")), others=[other])
    improve(study, asked, replace(FAST, budget=0.1))
    assert own() == 2 * PAIRS, "a run without money takes nothing away"
    found = improve(study, asked, FAST)
    assert found.best.rater_id != rater
    assert own() == 2 * PAIRS, "it was tried and not chosen"
    good = options(bench, None, others=[other])
    bench.script = lambda call: grades(call) if call.body["model"] == "test-model" else right(call)
    study2 = labelled_again(study, bench, tmp_path)
    grade(study2, [other], GradingOptions(method="label", rubrics=["kind"], scope="all"), FAST)
    won = improve(study2, good, FAST)
    assert won.best.rater_id == rater
    assert "had grades before it was tried here" in won.sentence
    ((_, end),) = ends_of(study2.store)
    assert "had grades before it was tried here" in choice_lines(end)[-1]
    ratings, parts = from_study(study2).ratings, parts_of(study2.store, "kind")
    left = ratings.loc[ratings["rater_id"] == rater, "unit_id"].str.partition("|")[0].map(parts)
    assert set(left) == {"learn", "prove"}, "it was chosen on choose, and it has no text of its own"


def judged_on(study: Study, rater: str) -> set[str]:
    """The parts in which a grader's labels count."""
    ratings, parts = from_study(study).ratings, parts_of(study.store, "kind")
    own = ratings.loc[ratings["rater_id"] == rater, "unit_id"]
    return set(own.str.partition("|")[0].map(parts))


def test_a_text_is_judged_on_nothing_that_led_to_it_whoever_reads_it(study, bench, tmp_path):
    asked = options(bench, candidates(tmp_path / "c"))
    (_, best, loser, _) = Trial(study, asked).graders
    one = frozenset(sorted(study.rubric_units(study.rubrics["kind"]))[:1])
    grade(study, [best.grader], replace(best.grading, units=one, scope="all"), FAST)
    found = improve(study, asked, FAST)
    assert found.best == best
    assert judged_on(study, best.rater_id) == {"prove"}, "a grade before takes nothing back"
    grade(study, [loser.grader], replace(loser.grading, scope="all"), FAST)
    assert judged_on(study, loser.rater_id) == {"choose", "prove"}, "it may hold labels of learn"
    other = replace(best.grading, scope="all", effort="high")
    grade(study, [best.grader], other, FAST)
    (rater,) = {
        each
        for each in study.ratings()["rater_id"]
        if each.endswith(best.rater_id[-8:]) and each != best.rater_id
    }
    assert judged_on(study, rater) == {"prove"}


def test_a_run_that_ends_early_leaves_no_missing_answers(study, bench, tmp_path):
    stopped = improve(study, options(bench, candidates(tmp_path / "c")), replace(FAST, budget=0.9))
    assert stopped.run.over_budget
    assert figures(study, stopped.old.rater_id, "coverage") == [1.0]
    _, context = analyse_study(study, verify=False)
    missing = {each.rater_id for each in stopped.candidates} - set(study.ratings()["rater_id"])
    assert not [note for note in context.notes for each in missing if each in note]


def right(call: Call) -> Reply:
    return completion(truth(call.unit))


def labelled_again(study: Study, bench: Bench, tmp_path: Path) -> Study:
    """Another study with the same labels and prices."""
    import shutil

    study.close()
    folder = tmp_path / "again"
    shutil.copytree(study.folder, folder)
    database = folder / "study.db"
    import sqlite3

    with sqlite3.connect(database) as connection:
        connection.execute("delete from grades")
        connection.execute("delete from lead_events where kind like 'improve%'")
    connection.close()
    return open_study(folder)


def test_the_command_asks_as_the_winner_was_asked(bench: Bench, tmp_path: Path) -> None:
    bench.script = grades
    study = labelled(bench, "a study's folder")
    way = GradingOptions(
        method="label", temperature=0.0, max_tokens=77, seed=0, draws=1, effort="low"
    )
    asked = replace(options(bench, candidates(tmp_path / "c")), grading=way)
    found = improve(study, asked, FAST)
    assert found.outcome == "better"
    before = {
        (name, str(value))
        for call in bench.calls
        if "GOOD" in call.user
        for name, value in call.body.items()
        if name != "messages"
    }
    bench.calls.clear()
    study.close()
    assert main(shlex.split(found.command)[1:]) == 0
    after = {(k, str(v)) for call in bench.calls for k, v in call.body.items() if k != "messages"}
    assert bench.calls
    assert after == before
    assert ("temperature", "0.0") in after
    assert ("seed", "0") in after
    assert "77" in dict(after).values()
    with open_study(study.folder) as again:
        ratings = again.ratings()
    graders = ratings[ratings["rater_kind"] == "model"].groupby("rater_id").size()
    assert graders[found.best.rater_id] == 2 * PAIRS


def test_other_grades_of_the_same_winner_are_another_reading(study, bench, tmp_path):
    asked = options(bench, candidates(tmp_path / "c"))
    first = improve(study, asked, FAST)
    drawn = replace(asked, grading=replace(asked.grading, draws=3))
    bench.script = lambda call: completion(
        said(f"{call.nth}", call.unit, 0.97 if "GOOD" in call.user else 0.75)
    )
    second = improve(study, drawn, FAST)
    assert (first.gain.look, second.gain.look) == (1, 2)


def test_labels_that_arrive_meanwhile_wait_for_the_next_run(bench: Bench, tmp_path: Path) -> None:
    study = bench.study(pairs=PAIRS + 3, rubrics=[KIND], name="growing")
    units = sorted(study.rubric_units(study.rubrics["kind"]))
    first, late = units[: 2 * PAIRS], units[2 * PAIRS :]
    people = ("ann", "ben", "cem")
    given = {who: [said(who, unit, 0.95) for unit in first] for who in people}
    with_labels(study, given, "kind", units=first)
    prices = f'\n[prices]\n"{bench.openai}" = {{ input = 11.0, output = 100.0 }}\n'
    study = with_settings(study, prices)
    arrived: list[str] = []

    def script(call: Call) -> Reply:
        if not arrived:
            arrived.append(call.unit)
            with open_study(study.folder) as other:
                with_labels(other, {"dan": [truth(unit) for unit in late]}, "kind", units=late)
                import_dan = {"dan": [truth(unit) for unit in first]}
                with_labels(other, import_dan, "kind", units=first)
        return grades(call)

    bench.script = script
    found = improve(study, options(bench, candidates(tmp_path / "c")), FAST)
    assert arrived
    assert found.outcome == "better"
    assert found.gain.units == 60, "dan's labels are not among them"
    assert len(parts_of(study.store, "kind")) == PAIRS


def test_where_no_gain_can_be_proved_nothing_is_asked(bench: Bench, tmp_path: Path) -> None:
    study = bench.study(pairs=PAIRS, rubrics=[KIND], name="perfect")
    units = sorted(study.rubric_units(study.rubrics["kind"]))
    with_labels(study, {who: [truth(unit) for unit in units] for who in ("ann", "ben")}, "kind")
    bench.script = right
    grade(study, [bench.openai], GradingOptions(method="label", rubrics=["kind"]), FAST)
    bench.calls.clear()
    folder = candidates(tmp_path / "c")
    with pytest.raises(InputError, match=r"no gain over .* can be shown"):
        improve(study, options(bench, folder), FAST)
    assert bench.calls == []
    assert parts_of(study.store, "kind") == {}
    labels_to_learn(study, options(bench, folder))
    with pytest.raises(InputError, match=r"no gain over .* can be shown"):
        improve(study, options(bench, folder), FAST)
    assert bench.calls == [], "nor where the parts are known"


def test_a_proof_that_is_hardly_to_be_expected_is_not_begun(study, bench, tmp_path):
    asked = options(bench, candidates(tmp_path / "c", ["POOR"]))
    trial = Trial(study, asked)
    units = [unit for each in trial.clusters_in("choose") for unit in trial.units[each]]
    wrong = [unit for unit in units if said("old", unit, 0.75) != truth(unit)]
    swapped = {*wrong[:9], *[unit for unit in units if unit not in wrong][:8]}

    def script(call: Call) -> Reply:  # the candidate mends nine of the old ones, and spoils eight
        label = said("old", call.unit, 0.75)
        if "POOR" in call.user and call.unit in swapped:
            label = {"yes": "no", "no": "yes"}[label]
        return completion(label)

    bench.script = script
    found = improve(study, asked, FAST)
    assert found.outcome == "not_shown"
    assert found.best is not None
    assert found.chance < 0.1
    assert found.gain is None
    assert "a test on 30 clusters would succeed in" in found.sentence
    parts = parts_of(study.store, "kind")
    assert {parts[unit.partition("|")[0]] for unit in units_asked(bench)} == {"choose"}
    assert contents_read(study.store, "kind") == []
    _, context = analyse_study(study)
    (told,) = [value for name, value in context.facts.items() if name.startswith("improved")]
    assert "gained too little there" in told


def test_where_no_level_is_left_nothing_is_asked(study, bench, tmp_path):
    study = changed(study, {"decision": {"looks": 1}})
    asked = options(bench, candidates(tmp_path / "c"))
    found = improve(study, asked, FAST)
    assert found.outcome == "better"
    bench.calls.clear()
    more = options(bench, candidates(tmp_path / "d", ["GOOD again"]))
    with pytest.raises(InputError, match="were read 1 times, and no error rate is left"):
        improve(study, more, FAST)
    assert bench.calls == []
    assert improve(study, asked, FAST).gain == found.gain, "what was found can be told again"
    wider = changed(study, {"decision": {"min_clusters": 60}})
    assert Trial(wider, asked).parts, "parts that are known stand"


def test_other_clusters_than_the_parted_ones_are_refused(study, bench, tmp_path):
    asked = options(bench, candidates(tmp_path / "c"))
    improve(study, asked, FAST)
    other = changed(study, {"analysis": {"cluster": "unit"}})
    bench.calls.clear()
    with pytest.raises(InputError, match=r"split by 'pair', and analysis\.cluster is now 'unit'"):
        improve(other, options(bench, candidates(tmp_path / "d", ["GOOD again"])), FAST)
    assert bench.calls == []
    withheld = from_study(other).scales["kind"].withheld
    assert len(withheld) == 4, "a report knows the parts by the clusters that were parted"


@pytest.mark.parametrize("most", [2, 3, 8])
def test_all_graders_together_have_no_more_requests_under_way_than_one(
    study, bench, tmp_path, most
):
    lock, under_way, seen = threading.Lock(), [0], []

    def script(call: Call) -> Reply:
        with lock:
            under_way[0] += 1
            seen.append(under_way[0])
        time.sleep(0.01)
        with lock:
            under_way[0] -= 1
        return grades(call)

    bench.script = script
    asked = options(bench, candidates(tmp_path / "c"))
    assert improve(study, asked, replace(FAST, concurrency=most)).outcome == "better"
    assert max(seen) <= most


def test_an_export_says_where_grades_do_not_count(improved, tmp_path, run):
    (study, found), out = improved, tmp_path / "ratings.csv"
    of_study = from_study(study)
    run.ok("export", study.folder, "--out", out)
    of_file = load(out)
    rows = [
        sorted(zip(each.ratings["rater_id"], each.ratings["unit_id"], strict=True))
        for each in (of_study, of_file)
    ]
    assert rows[0] == rows[1]
    assert of_file.scales["kind"].withheld == of_study.scales["kind"].withheld
    assert any("is evaluated on 60 of the 120 items" in note for note in of_file.notes)
    assert found.best.rater_id in out.read_text("utf-8"), "the table itself is complete"
    coverage = [
        row["estimate"]
        for row in of_file.analyse().rows
        if (row["statistic"], row["rater_b"]) == ("coverage", found.best.rater_id)
    ]
    assert coverage == [1.0]
    there = ["export", str(study.folder), "--format", "wide", "--out", str(tmp_path / "w.csv")]
    assert "is evaluated on 60 of the 120 items" in run.ok(*there)


def test_what_may_be_learned_from_is_written_and_nothing_is_asked(study, bench, tmp_path, capsys):
    grade(study, [bench.openai], GradingOptions(method="label", rubrics=["kind"]), FAST)
    bench.calls.clear()
    study.close()
    file = tmp_path / "learn.csv"
    command = ["improve", str(study.folder), "--rubric", "kind", "--grader", bench.openai]
    assert main([*command, "--method", "label", "--learn", str(file)]) == 0
    assert bench.calls == []
    written = pd.read_csv(file, dtype=str, keep_default_na=False)
    with open_study(study.folder) as again:
        parts = parts_of(again.store, "kind")
        table = again.ratings()
    assert {parts[unit.partition("|")[0]] for unit in written["unit_id"]} == {"learn"}
    assert len(written) == 24
    assert list(written["agrees"]) == sorted(written["agrees"]), "what it got wrong comes first"
    assert "no" in set(written["agrees"])
    row = written.iloc[0]
    people = table[(table["unit_id"] == row["unit_id"]) & (table["rater_kind"] == "human")]
    assert sorted(row["labels"].split("; ")) == sorted(people["label"])
    assert row["majority"] != row["grader"]
    assert "p0" in row["Response"]
    assert "24 training items" in " ".join(capsys.readouterr().out.split())


def test_the_verdict_on_a_winner_is_a_look_of_the_study(improved: Looked) -> None:
    study, found = improved
    assert found.verdict is not None
    assert from_study(study).facts.looks == {"kind": 1}, "the report has the same look"


def test_no_level_is_told_as_the_reason() -> None:
    end = {"old": "o", "new": "n", "rounds": [{"clusters": 9, "kappas": {"o": 0.1, "n": 0.2}}]}
    for more, wanted in (
        ({}, "gained too little"),
        ({"no_level": True}, "No error rate was left"),
        ({"gives_way": "Not better: it gives way."}, "it gives way"),
    ):
        assert wanted in choice_lines(end | {"outcome": "not_shown", **more})[1]
