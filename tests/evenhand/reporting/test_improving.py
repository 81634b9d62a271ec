"""The main paths of `improve`; what else there is to it, and GEPA: tests/graders."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
import pytest

from evenhand.cli.main import BAD_INPUT, OVER_BUDGET, main
from evenhand.errors import InputError
from evenhand.graders import GradingOptions, grade
from evenhand.reporting import improving
from evenhand.reporting.analysing import analyse_study, choice_lines
from evenhand.reporting.load import from_study, load
from evenhand.reporting.noting import operator
from evenhand.reporting.suggestions import MOST_CHARACTERS, RefusedProposal, checked, forecast_gepa
from evenhand.study import Study, open_study
from evenhand.study.store.logs.decisions import acts, parts_of
from harness.studies import with_labels
from tests.cases import refused
from tests.graders import test_improving as of_graders
from tests.graders.bench import Bench
from tests.graders.conftest import _environment, bench, one_certificate
from tests.graders.test_improving import FAST, KIND, PROMPT, candidates, options, study, truth

pytestmark = pytest.mark.journey
__all__ = ["_environment", "bench", "one_certificate", "study"]


@pytest.fixture(scope="module")
def improved(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Study, improving.Improvement]]:
    """A study whose grader was improved, to look at."""
    folder = tmp_path_factory.mktemp("improved")
    with pytest.MonkeyPatch.context() as environment:
        bench = Bench(folder, environment)
        bench.script = of_graders.grades
        study = of_graders.labelled(bench, "study")
        found = improving.improve(study, options(bench, candidates(folder / "c")), FAST)
    yield study, found
    study.close()
    bench.close()


def test_candidates_never_see_learn_and_losers_never_see_prove(improved) -> None:
    study, found = improved
    parts, ratings = parts_of(study.store, "kind"), study.ratings()
    models = ratings[ratings["rater_kind"] == "model"]
    seen = models["unit_id"].str.partition("|")[0].map(parts).groupby(models["rater_id"]).agg(set)
    assert seen.pop(found.old.rater_id) == {"choose", "prove"}
    assert seen.pop(found.best.rater_id) == {"choose", "prove"}
    assert seen.tolist() == [{"choose"}, {"choose"}]
    assert of_graders.judged_on(study, found.best.rater_id) == {"prove"}
    dataset = from_study(study)
    graders = set(dataset.ratings.loc[dataset.ratings["rater_kind"] == "model", "rater_id"])
    assert graders == {found.old.rater_id, found.best.rater_id}, "losers are in no report"
    assert dataset.facts.looks == {"kind": 1}, "the report has the same look as the verdict"


def test_a_winner_is_judged_where_it_was_not_chosen_and_lacks_no_answers_elsewhere(improved):
    study, found = improved
    assert of_graders.coverage(study, found.best.rater_id) == 1.0
    assert of_graders.coverage(study, found.old.rater_id) == 1.0, "nobody asked it about learn"
    analysis, context = analyse_study(study, verify=False)
    (told,) = [fact for name, fact in context.facts.items() if name.startswith("improved")]
    assert f"cost ${float(found.run.spent):.2f}." in told
    (verdict,) = [each for each in analysis.verdicts if each["grader"] == found.best.rater_id]
    assert "answer" not in verdict["sentence"] + verdict["reason"]
    (said,) = [note for note in context.notes if found.best.rater_id in note]
    assert "is evaluated on 60 of the 120 items that annotators labelled" in said
    (asked,) = [note for note in context.notes if "It was not asked about the others" in note]
    assert f"{found.old.rater_id} is evaluated on 96 of the 120 items" in asked
    (gone,) = [note for note in context.notes if "left out here" in note]
    losers = {each.rater_id for each in found.candidates} - {found.best.rater_id}
    assert all(each in gone for each in losers)


def test_an_export_says_where_grades_do_not_count(improved, tmp_path, run):
    (study, found), out = improved, tmp_path / "ratings.csv"
    run.ok("export", study.folder, "--out", out)
    of_study, of_file = from_study(study), load(out)
    rows = [
        sorted(zip(each.ratings["rater_id"], each.ratings["unit_id"], strict=True))
        for each in (of_study, of_file)
    ]
    assert rows[0] == rows[1]
    assert of_file.scales["kind"].withheld == of_study.scales["kind"].withheld
    assert any("is evaluated on 60 of the 120 items" in note for note in of_file.notes)
    assert found.best.rater_id in out.read_text("utf-8"), "the table itself is complete"
    key = ("coverage", found.best.rater_id)
    rows = [each for each in of_file.analyse().rows if (each["statistic"], each["rater_b"]) == key]
    assert [each["estimate"] for each in rows] == [1.0]
    there = ["export", study.folder, "--format", "wide", "--out", tmp_path / "w.csv"]
    assert "is evaluated on 60 of the 120 items" in run.ok(*there)


def test_where_no_candidate_is_better_the_labels_for_the_proof_are_not_read(study, bench, tmp_path):
    found = improving.improve(study, options(bench, candidates(tmp_path / "c", ["POOR"])), FAST)
    assert (found.outcome, found.best, found.gain) == ("not_shown", None, None)
    assert "were not read" in found.sentence
    assert of_graders.parts_asked(study, bench) == {"choose"}


def test_a_dry_run_asks_and_writes_nothing(study, bench, tmp_path, run):
    forecast = improving.forecast_improving(study, options(bench, candidates(tmp_path / "c")))
    before = (study.folder / "study.db").read_bytes()
    study.close()
    command = ["improve", study.folder, "--rubric", "kind", "--grader", bench.openai]
    command += ["--method", "label", "--candidates", tmp_path / "c"]
    assert "cost at most" in run.ok(*command, "--dry-run")
    assert bench.calls == []
    assert (study.folder / "study.db").read_bytes() == before
    assert run(*command, "--budget", "0.05").returncode == OVER_BUDGET
    told = run.ok(*command)
    assert len(bench.calls) <= sum(each.new for each in forecast)
    assert "Better. Kappa with annotators is" in told
    assert "With 30 test clusters, a gain in kappa of about" in told
    assert "evenhand grade" in told
    with open_study(study.folder) as again:
        log = acts(again.store)
    mine = log[log["done_by"] == operator()]
    assert set(mine["kind"]) == {"grades"}
    assert "improve kind: better" in set(mine["detail"])


def test_what_cannot_be_tried_is_refused_before_anything_is_asked(study, bench, tmp_path):
    folder = candidates(tmp_path / "c", [])
    for prompt, wanted in (
        (None, "has no candidates"),
        (PROMPT.replace("Is the response kind?", "Is it rude?"), "Is the response kind?"),
        (PROMPT.replace("yes or no", "yes"), "'no'"),
    ):
        if prompt:
            (folder / "other.toml").write_text(prompt.format(words="Well."), "utf-8")
        refused(re.escape(wanted), improving.improve, study, options(bench, folder), FAST)
    refused("there is nothing to try", improving.improve, study, options(bench, None), FAST)
    assert (bench.calls, parts_of(study.store, "kind")) == ([], {})
    few = bench.study(pairs=20, rubrics=[KIND], name="few")
    with_labels(few, {"ann": [truth(unit) for unit in sorted(few.rubric_units(KIND))]}, "kind")
    with pytest.raises(InputError, match=r"has 20 labelled clusters.*label about 60"):
        improving.improve(few, options(bench, candidates(tmp_path / "d")), FAST)
    command = ["improve", str(study.folder), "--rubric", "unknown", "--grader", bench.openai]
    assert main(command) == BAD_INPUT


def test_what_may_be_learned_from_is_written_and_nothing_is_asked(study, bench, tmp_path, run):
    grade(study, [bench.openai], GradingOptions(method="label", rubrics=["kind"]), FAST)
    bench.calls.clear()
    file = tmp_path / "learn.csv"
    command = ["improve", study.folder, "--rubric", "kind", "--grader", bench.openai]
    told = run.ok(*command, "--method", "label", "--learn", file)
    assert "24 training items" in " ".join(told.split())
    assert bench.calls == []
    written = pd.read_csv(file, dtype=str, keep_default_na=False)
    parts, table = parts_of(study.store, "kind"), study.ratings()
    assert {parts[unit.partition("|")[0]] for unit in written["unit_id"]} == {"learn"}
    assert len(written) == 24
    assert list(written["agrees"]) == sorted(written["agrees"]), "what it got wrong comes first"
    row = written.iloc[0]
    people = table[(table["unit_id"] == row["unit_id"]) & (table["rater_kind"] == "human")]
    assert sorted(row["labels"].split("; ")) == sorted(people["label"])
    assert row["agrees"] == "no"
    assert row["majority"] != row["grader"]
    assert "p0" in row["Response"]


def test_a_proposal_is_priced_as_the_longest_and_asked_as_the_old_grader_is(study, bench, tmp_path):
    trial = improving.Trial(study, options(bench, candidates(tmp_path / "c", ["GOOD"])))
    gepa = trial.gepa_input()
    assert (gepa.instructions, gepa.grader) == (KIND.instructions, trial.old.rater_id)
    assert {unit.graded for unit in gepa.units} == {""}
    ((forecast,), proposed) = forecast_gepa(study, replace(gepa, proposals=2), bench.openai)
    assert (forecast.new, forecast.cost[1] > 0.02) == (2, True)
    trial.add(proposed)
    tried = trial.candidates[1:]
    assert [grader.origin[:18] for grader in tried] == ["proposal 1 by GEPA", "proposal 2 by GEPA"]
    assert {len(grader.grading.prompt.instructions) for grader in tried} == {MOST_CHARACTERS}
    assert {grader.grader for grader in tried} == {bench.openai}


def test_no_level_is_told_as_the_reason() -> None:
    end = {"old": "o", "new": "n", "rounds": [{"clusters": 9, "kappas": {"o": 0.1, "n": 0.2}}]}
    for more, wanted in (
        ({}, "gained too little"),
        ({"no_level": True}, "No error rate was left"),
        ({"gives_way": "Not better: it gives way."}, "it gives way"),
    ):
        assert wanted in choice_lines(end | {"outcome": "not_shown", **more})[1]


@pytest.mark.parametrize(("words", "why"), [
    ("", "no instructions"),
    ("a" * (MOST_CHARACTERS + 1), f"more than {MOST_CHARACTERS}"),
    ("Read {response} first.", "name {response}"),
    *((line, "changes the question") for line in ("Care.\nQuestion: Is it rude?",
      "- (yes) Rude: It is rude.", "yes) It is rude.", "> (yes) It is rude.", "yes = now rude",
      "Question : Is it rude?", "The question is now: is it rude?",
      "\N{FULLWIDTH LEFT PARENTHESIS}yes\N{FULLWIDTH RIGHT PARENTHESIS} It is rude.",
      "The material stands between tags. It is an instruction.", "Answer with 5.",
      "Options: yes, no, maybe")),
    ("Judge its tone  alone.", "are those of the rubric"),
])  # fmt: skip
def test_words_that_ask_something_else_are_refused(words: str, why: str) -> None:
    with pytest.raises(RefusedProposal, match=re.escape(why)):
        checked(words, KIND)
    usual = "1. Read it.\n(a) Then decide.\n(yes) Kind: It is kind.\nIs the response kind?"
    assert checked(usual, KIND) == usual
