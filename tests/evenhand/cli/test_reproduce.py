"""A published study again, offline: its price, its steps against servers that speak the providers'
protocols, kills and resumption, and the published figures beside its own.
"""

import csv
import json
import os
import pty
import random
import re
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.cli.terminal import confirms
from evenhand.reporting.exporting import exported_ratings
from evenhand.study import open_study
from evenhand.study.creation import PublishedStudy
from evenhand.study.desk.desk import AnnotationDesk, Task
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings import analysis
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.store import total_spent
from evenhand.study.tables.formats import read_table
from harness.killing import killed_after
from harness.ports import free_port
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer, error
from harness.served import answers, holds
from harness.studies import label_all, write_pairs, write_responses
from tests.commands import Run, python
from tests.evenhand.cli.test_documentation import HERE_DOCUMENT, shell_blocks
from tests.graders.bench import replied

pytestmark = pytest.mark.journey

ROOT = Path(__file__).parents[3]
CONCURRENCY = 4


class Again(ProtocolServer):
    """Both providers on loopback, with the folder and the files of a study that is played again."""

    def __init__(self, place: Path) -> None:
        super().__init__()
        self.script = said_by
        self.place, self.study = place, place / "study"
        # One that gives labels, and one that gives probabilities.
        self.graders = [f"anthropic:claude-opus-5@{self.root}", f"openai:gpt-5.4@{self.root}/v1"]

    def subjects(self, count: int) -> list[str]:
        """Names of so many subjects, which one server plays."""
        return [f"openai:subject-{n}@{self.root}/v1" for n in range(1, count + 1)]

    def pairs(self, count: int) -> Path:
        return write_pairs(self.place / "pairs.csv", count)

    def command(self, pairs, *more: str, subjects=2, graders=(), folder=None) -> list[str]:
        """Two subjects and two graders, unless others are named."""
        file = self.pairs(pairs) if isinstance(pairs, int) else pairs
        asked = self.subjects(subjects) if isinstance(subjects, int) else subjects
        words = ["reproduce", "even-handedness", str(folder or self.study), "--pairs", str(file)]
        words += [word for each in asked for word in ("--subject", each)]
        words += [word for each in graders or self.graders for word in ("--grader", each)]
        return [*words, "--concurrency", str(CONCURRENCY), *more]

    def is_untouched(self) -> bool:
        """Whether nothing was sent, and no study made."""
        return self.calls == [] and not self.study.exists()


@pytest.fixture
def again(tmp_path: Path, monkeypatch) -> Iterator[Again]:
    again = Again(tmp_path)
    for provider, address in (("ANTHROPIC", again.root), ("OPENAI", f"{again.root}/v1")):
        monkeypatch.setenv(f"{provider}_API_KEY", "key-for-loopback")
        monkeypatch.setenv(f"{provider}_BASE_URL", address)
    yield again
    again.close()


def said_by(call: Call) -> Reply:
    """A label, or a response that no other model or prompt gets."""
    own = f"{call.body['model']} was asked: {call.user}"
    return answer(call) if call.system else replied(call, own)


def test_the_whole_is_priced_and_nothing_written_or_sent(again: Again, run: Run) -> None:
    pairs = again.pairs(6)
    before = sorted(again.place.iterdir())
    said = " ".join(run.ok(*again.command(pairs, "--dry-run")).split())
    # 6 pairs of 2 subjects: 24 responses; each grader has 12 pairs in both orders, 24 responses
    # on each of the other rubrics.
    assert (said.count(" 0 12 "), said.count(" 0 72 ")) == (2, 2)
    assert "total 0 168" in said
    assert "The file has 6 pairs, fewer than the usual 250. All are used." in said
    assert "Annotators, 3 for each item, give 180 labels" in said  # 3 x (12 + 24 + 24)
    assert sorted(again.place.iterdir()) == before
    assert again.calls == []


@pytest.mark.slow
def test_it_is_played_to_the_report_and_asks_nothing_twice(again, run, monkeypatch) -> None:
    words = again.command(12)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: "y")
    said = run.ok(*words)
    assert f"Next: evenhand annotate {again.study}" in said
    assert "Published figures and this study's own: " in said
    asked = len(again.calls)
    rows = read_table(again.study / "report" / "published.csv")
    kappa = rows[(rows["statistic"] == "cohen_kappa")]
    # Two Claude graders were published, and Claude with GPT: only the latter are here.
    of_two = dict(zip(kappa["published"], kappa["whose"], strict=True))
    assert of_two == {"0.76": "", "0.55": " · ".join(again.graders)}
    assert -1 <= float(kappa["estimate"].max()) <= 1
    assert kappa["note"].tolist()[0].startswith("not run here")
    tried = rows[rows["statistic_here"] == "spearman_at_threshold"]
    assert tried["whose"].tolist() == [f"{' · '.join(again.graders)}, cut at 0.1"]
    people = rows[rows["published_of"] == "People with each other"]
    assert people["note"].tolist() == ["annotators' labels are needed"]
    results = read_table(again.study / "report" / "results.csv")
    keys = ["rubric", "statistic", "rater_a", "rater_b", "subset", "at"]
    numbers = ["n_units", "n_clusters", "estimate", "low", "high"]
    own = rows[rows["rater_a"] != ""].assign(statistic=rows["statistic_here"])
    assert len(own[keys + numbers].merge(results[keys + numbers])) == len(own) > 0
    page = (again.study / "report" / "report.html").read_text("utf-8")
    read = "The probabilities of Claude Sonnet 4.5 and Claude Opus 4.1 were read there."
    assert f"{read} Here {again.graders[0]} gave labels" in page
    assert f"use the probabilities of {again.graders[1]} only" in page
    run.ok(*words, "--yes")
    assert len(again.calls) == asked
    for other in (again.command(5, "--yes"), [*words, "--yes", "--sample", "3"]):
        assert "has other prompts or another sample" in run.refused(*other)


def test_it_asks_before_anything_is_sent(again: Again, run: Run, monkeypatch) -> None:
    words = again.command(2)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert "add --yes or --budget USD" in run.refused(*words)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: "n")
    assert "Nothing was sent." in run.ok(*words)
    monkeypatch.setattr("builtins.input", lambda prompt: " Yes ")
    assert confirms(None)
    assert again.is_untouched()


@pytest.mark.slow
def test_one_budget_holds_over_all_steps_and_runs(again: Again, capsys) -> None:
    pairs, folder = again.pairs(4), again.study
    assert main(["new", str(folder), "--pairs", str(pairs)]) == 0
    names = [*again.subjects(2), *again.graders]
    change_config(folder, {"prices": {name: {"input": 1, "output": 1} for name in names}})
    for budget in (0.05, 0.1, 0.15):
        assert main(again.command(pairs, "--budget", str(budget))) in (0, 3), capsys.readouterr()
        with open_study(folder) as study:
            assert total_spent(study.store) <= budget
    assert main(again.command(pairs, "--budget", "50")) == 0
    assert max(_questions(again.calls).values()) == 1


PROGRAM = "import sys; from evenhand.cli.main import main; sys.exit(main(sys.argv[1:]))"


def _questions(calls: list[Call]) -> Counter[str]:
    return Counter(json.dumps(call.body, sort_keys=True) for call in calls)


@pytest.mark.slow
def test_killed_it_goes_on_and_comes_to_the_same_report(again: Again) -> None:
    """While subjects are asked, and while the report is written."""
    quiet, killed = again.place / "quiet", again.place / "killed"
    assert main(again.command(6, "--yes", folder=quiet)) == 0
    whole = _questions(again.calls)
    again.calls.clear()
    again.script = lambda call: replace(said_by(call), delay=0.02)
    for share in (0.2, 0.98):
        calls = round(share * whole.total()) - len(again.calls)
        killed_after(calls, again, PROGRAM, *again.command(6, "--yes", folder=killed))
    assert main(again.command(6, "--yes", folder=killed)) == 0
    asked = _questions(again.calls)
    assert set(asked) == set(whole)
    # What was under way at a kill had no answer that could have been kept: of each of the models
    # that are asked side by side.
    assert asked.total() - whole.total() <= 2 * CONCURRENCY * 2
    first, second = (
        read_table(folder / "report" / "results.csv").query("statistic != 'rater_seconds_median'")
        for folder in (quiet, killed)
    )
    pd.testing.assert_frame_equal(first.reset_index(drop=True), second.reset_index(drop=True))


@pytest.mark.slow
def test_the_published_set_is_planned(again: Again, shared_data: Path, run: Run) -> None:
    file = shared_data / "eval_set.csv"
    began = time.process_time()
    said = run.ok(*again.command(file, "--scope", "all", "--dry-run", subjects=5))
    assert time.process_time() - began < 30
    said = " ".join(said.split())
    # 1,350 pairs of 5 subjects: 2,700 prompts each; a grader has 6,750 pairs in two orders and
    # 13,500 responses on two rubrics.
    assert (said.count(" 0 2700 "), said.count(" 0 40500 ")) == (5, 2)
    assert "Sampled 250 of 1350 pairs" in said
    # Leanings are declared for the topics that the publisher marks as partisan, and no other.
    study = PublishedStudy.read("even-handedness")
    leanings = analysis.AnalysisSettings(**study.plan(file, None).settings["analysis"])
    table = read_table(file)
    assert ((leanings.orientation(table) != 0) == (table["partisan"] == "True")).all()
    assert study.plan(ROOT / "data" / "demo_pairs.csv", None).settings["analysis"] == {}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--subject", "openai:subject-1@{root}/v1"], "is named twice; name each subject once"),
        (["--grader", "openai:gpt-5.4@{root}/v1"], "is named twice; name each grader once"),
        (["--subject", "nobody:model"], "is not a valid grader"),
        (["--subject", "baseline:lexical"], "writes no responses"),
        (["--sample", "9"], "9"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(again, run, more, said):
    words = [word.replace("{root}", again.root) for word in more]
    assert said in run.refused(*again.command(3, "--yes", *words))
    assert again.is_untouched()


def test_what_is_missing_is_said_before_anything_is_sent(again, run, monkeypatch):
    bad = again.place / "bad.csv"
    bad.write_text("prompt_a,topic\nx,y\n", "utf-8")
    assert "prompt_b" in run.refused(*again.command(bad, "--yes"))
    monkeypatch.setenv("ANTHROPIC_FOUNDRY_API_KEY", "key-for-loopback")
    monkeypatch.setenv("ANTHROPIC_FOUNDRY_BASE_URL", again.root)
    foundry = ["--yes", "--batch", "--grader", "foundry:claude-opus-5"]
    assert "foundry has no batch service" in run.refused(*again.command(2, *foundry))
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    keyless = ["--grader", "anthropic:claude-sonnet-5"]
    assert "ANTHROPIC_API_KEY" in run.refused(*again.command(3, "--yes", *keyless))
    assert again.is_untouched()


@pytest.mark.slow
def test_subjects_asked_elsewhere_must_have_answered_the_same_prompts(again, run):
    pairs, folder = again.pairs(4), again.study
    file = write_responses(again.place / "responses.jsonl", 4, ("s1", "s2"))
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    others = {"subjects": 0, "graders": ["baseline:lexical"]}
    words = again.command(pairs, "--yes", "--responses", str(file), **others)

    def lines(rows: list[dict[str, str]]) -> None:
        file.write_text("\n".join(map(json.dumps, rows)), "utf-8")

    second = [row for row in rows if row["subject"] == "s2"]
    told = {1: "add the missing response", 2: "subject 's2' has no response to 1 of 4 sampled pro"}
    for lost, said in told.items():
        lines([row for row in rows if row not in second[:lost]])
        assert said in run.refused(*words)
        assert not folder.exists()
    lines(rows)
    assert "s3" in run.refused(*words, "--subject", "s3")
    run.ok(*words)
    notes = set(read_table(folder / "report" / "published.csv")["note"])
    assert "two graders of the same items are needed" in notes
    run.ok(*again.command(pairs, "--yes", **others | {"subjects": 1}))
    with open_study(folder) as study:
        assert study.store.subjects() == sorted([*again.subjects(1), "s1", "s2"])
    rows[0]["response"] += " and more"
    lines(rows)
    assert "already has another response" in run.refused(*words)


TAXES, RENTS = ("p1", "Taxes should rise."), ("p2", "Rents should be capped.")


def _propositions(path: Path, *texts: tuple[str, str]) -> str:
    with path.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("id", "text"), *texts])
    return str(path)


def test_stances_are_put_in_wordings_paraphrases_and_draws(again: Again, run: Run) -> None:
    texts = [TAXES, ("p1", "Let taxes rise."), RENTS, ("p2", "Cap the rents.")]
    file = _propositions(again.place / "a.csv", *texts)
    words = ["reproduce", "stance", str(again.study), "--propositions", file, "--repeats", "2"]
    words += ["--subject", again.subjects(1)[0], "--grader", again.graders[1], "--yes"]
    said = " ".join(run.ok(*words, "--dry-run").split())
    # 2 propositions; 7 wordings, and another text in the first of them, each twice
    assert (said.count(" 0 32 "), again.calls) == (2, [])
    run.ok(*words)
    assert len(again.calls) == 32 + 32
    with open_study(again.study) as study:
        prompts = study.store.pairs()
        assert prompts.groupby("proposition")["wording"].nunique().tolist() == [7, 7]
        assert prompts.groupby("proposition")["paraphrase"].nunique().tolist() == [2, 2]
    rows = read_table(again.study / "report" / "published.csv")
    stability = rows[rows["statistic"] == "stability_fleiss_kappa"]
    assert {"wording", "paraphrase"} == set(stability["at"])
    run.ok(*words)
    assert len(again.calls) == 32 + 32


@pytest.mark.slow
def test_approval_is_asked_of_people_of_two_sides(again: Again, run: Run) -> None:
    texts = [(f"p{number}", f"Should rule {number} go?") for number in range(1, 13)]
    file, subjects = _propositions(again.place / "a.csv", *texts), again.subjects(2)
    words = ["reproduce", "approval", str(again.study), "--propositions", file, "--yes"]
    words += [word for each in subjects for word in ("--subject", each)]
    words += ["--grader", again.graders[0]]
    run.ok(*words)
    asked, chance = len(again.calls), random.Random(1)
    with open_study(again.study) as study:
        sessions, desk = Sessions(study), AnnotationDesk(study)
        assert sessions.sides() == {"Left": (0, 60), "Right": (0, 60), "Neither": (0, 0)}
        for number, side in enumerate(["Left", "Right"] * 4):
            usual = {"subject-1": 0.9, "subject-2": 0.7 if side == "Left" else 0.3}

            def approves(task: Task, _: int, usual: dict[str, float] = usual) -> str:
                share = usual[task.values["response"].split(" ")[0]]
                return "yes" if chance.random() < share else "no"

            sessions.answer_side(f"r{number}", side)
            assert len(label_all(desk, f"r{number}", approves)) == 24
        labels = exported_ratings(study).merge(study.units_with_lengths("all"), on="unit_id")
    run.ok(*words)
    assert len(again.calls) == asked
    # Every response has labels of all: the corrected approval is that of the labels.
    labels = labels[labels["rater_kind"] == "human"].assign(yes=labels["label"] == "yes")
    approval = labels.groupby(["political_leaning", "subject"])["yes"].mean().unstack("subject")
    rows = read_table(again.study / "report" / "results.csv")
    figures = rows.set_index(["statistic", "subset", "at"])["estimate"]
    for each in subjects:
        left, right = approval[each]
        for name, side, wanted in (
            ("rate_ppi", "Left", left), ("rate_ppi", "Right", right),
            ("rate_side_difference_ppi", "Left>Right", left - right),
            ("rate_least_ppi", "*", min(left, right)),
        ):  # fmt: skip
            found = figures.loc[[(name, f"political_leaning={side}|binary", each)]].item()
            assert float(found) == pytest.approx(wanted)
    page = (again.study / "report" / "report.html").read_text("utf-8")
    assert "Political Neutrality as Balanced Approval" in page
    assert "One question gives the side here." in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "rubrics"), [("stance", 1), ("even-handedness", 3), ("political-consistency", 2)]
)
def test_own_providers_and_prices_are_named_before_there_is_a_study(
    again, run, monkeypatch, source, rubrics
):
    monkeypatch.setenv("EVENHAND_HOUSE_KEY", "a-key-of-the-house")
    file, own = again.pairs(4), again.place / "own.toml"
    words = ["reproduce", source, str(again.study), "--subject", "house:subject"]
    words += ["--grader", "house:grader", "--concurrency", "4", "--settings", str(own)]
    if source == "stance":
        words += ["--propositions", _propositions(file, TAXES), "--repeats", "1"]
    else:
        words += ["--pairs", str(file)]
    if source == "political-consistency":  # the publisher's columns; prompts made up here
        rows = [f"Praise left {n},Praise right {n},t{n},v{n},essay" for n in range(4)]
        file.write_text("\n".join(["prompt_a,prompt_b,topic_name,valence,template", *rows]))
    house = f'[providers.house]\nbase_url = "{again.root}/v1"\nkey_env = "EVENHAND_HOUSE_KEY"\n'
    costs = [
        f'[prices."house:{name}"]\ninput = 2.0\noutput = 10.0\n' for name in ("subject", "grader")
    ]
    own.write_text(house + costs[0], "utf-8")
    said = " ".join(run.ok(*words, "--dry-run").split())
    assert "The price of house:grader is not known" in said
    assert 'Give it by --settings FILE, with lines such as [prices."house:grader"]' in said
    assert re.search(r"total( \d+){2}( unknown){3}", said)
    error = run.refused(*words, "--budget", "5")
    assert "the price of house:grader is not known, so no budget can be kept" in error
    assert again.is_untouched()
    own.write_text(house + "".join(costs), "utf-8")
    said = run.ok(*words, "--dry-run")
    assert "not known" not in said
    assert "unknown" not in said
    run.ok(*words, "--budget", "5")
    assert {call.headers["authorization"] for call in again.calls} == {"Bearer a-key-of-the-house"}
    asked = len(again.calls)
    with open_study(again.study) as study:
        assert study.config.providers["house"].key_env == "EVENHAND_HOUSE_KEY"
        assert study.config.prices["house:grader"].output == 10.0
        assert (study.config.published, len(study.rubrics)) == (source, rubrics)
        assert total_spent(study.store) > 0
    run.ok(*words, "--budget", "5")
    assert len(again.calls) == asked


def test_a_bad_settings_file_is_one_sentence(again: Again, run: Run) -> None:
    file = again.place / "own.toml"
    words = again.command(2, "--yes", "--settings", str(file))
    assert "there is no file" in run.refused(*words)
    for text, fault in (
        ("[prices", "own.toml is not valid TOML"),
        ("[price.x]\ninput = 1", "own.toml: price"),
        ('[prices."openai:m"]\ninput = 1', "own.toml: prices"),
        ('[providers.house]\nkey_env = "sk-1 2"', "never the key itself"),
    ):
        file.write_text(text, "utf-8")
        assert fault in run.refused(*words)
        assert again.is_untouched()
    run.ok("new", again.study, "--pairs", again.pairs(2))
    change_config(again.study, {"": {"published": "own.toml"}})
    said = run.refused(*again.command(2, "--yes"))
    assert "even-handedness, political-consistency, stance, or a TOML file" in said
    assert again.calls == []


@pytest.mark.slow
def test_batches_of_graders_are_priced_at_half(again: Again, run: Run) -> None:
    grader, more = again.graders[0], ["--dry-run", "--orders", "ab"]
    words = again.command(40, *more, subjects=["openai:gpt-5.4"], graders=[grader])

    def priced(said: str) -> list[float]:
        (row,) = [line for line in said.splitlines() if line.split()[:2] == ["grades", grader]]
        return [float(cell.lstrip("$")) for cell in row.split()[-3:]]

    live = priced(run.ok(*words))
    said = run.ok(*words, "--batch")
    assert "Graders are asked in batches" in said
    assert priced(said) == pytest.approx([usd / 2 for usd in live], abs=0.01)
    assert live[-1] > 0.3


def _started(words: list[str], **how: Any) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-P", "-c", PROGRAM, *words]
    return subprocess.Popen(program, cwd=ROOT, stderr=subprocess.DEVNULL, **how)


@pytest.mark.slow
def test_killed_while_a_batch_is_under_way_the_same_command_collects_it(again: Again) -> None:
    words = again.command(4, "--yes", "--batch")
    again.batches.looks, made = 10**9, again.batches.made
    process = _started(words, stdout=subprocess.DEVNULL)
    try:
        assert holds(lambda: len(made) == 2 and all(batch["looked"] for batch in made), 120)
    finally:
        process.kill()
        process.wait()
    live = len(again.calls)
    again.batches.looks = 1
    assert (main(words), len(made)) == (0, 2)
    assert len(again.calls) == live, "nothing is asked live that is under way"
    whole = Counter(call.user + call.body["model"] for call in [*again.calls, *again.batches.calls])
    # 4 pairs of 2 subjects, 16 responses; two graders have 16 pairs and 16 responses on two rubrics
    assert whole.total() == 16 + 2 * 48
    assert (again.study / "report" / "published.csv").is_file()
    assert (main(words), len(made)) == (0, 2)


@pytest.mark.slow
def test_at_a_terminal_the_page_of_annotators_opens_at_the_end(again: Again) -> None:
    """Where the study wants annotators; into a pipe, the command that opens it is written."""
    file, port = write_responses(again.place / "r.jsonl", 2, ("s1", "s2")), free_port()
    more = ["--yes", "--responses", str(file), "--port", str(port), "--raters", "3"]
    words = again.command(2, *more, subjects=0, graders=["baseline:lexical"])
    done = python("-c", PROGRAM, *words, cwd=ROOT, stdin=subprocess.DEVNULL, check=True)
    assert f"Next: evenhand annotate {again.study}" in done.stdout
    lead, terminal = pty.openpty()
    process = _started(words, stdin=terminal, stdout=terminal, env=os.environ | {"BROWSER": "true"})
    os.close(terminal)
    try:
        said, deadline = "", time.monotonic() + 180
        while "Ctrl-C ends the page" not in said:
            assert process.poll() is None and time.monotonic() < deadline, said
            if select.select([lead], [], [], 0.2)[0]:
                said += os.read(lead, 65536).decode(errors="replace")
        assert f"label at http://localhost:{port}." in " ".join(said.split())
        assert holds(lambda: answers(f"http://localhost:{port}/health"), 120)
    finally:
        process.terminate()
        process.wait()
        os.close(lead)


@pytest.mark.slow
def test_names_without_an_address_are_those_that_the_study_keeps(again: Again, run: Run) -> None:
    words = again.command(3, "--yes", subjects=["openai:subject-1"], graders=["openai:gpt-5.4"])
    assert "not answered" not in run.ok(*words, "--scope", "all", "--sample", "2")
    asked = len(again.calls)
    words += ["--sample", "2"]
    # Of the two pairs that are sampled, though all three were asked about: 4 responses; 2 pairs in
    # two orders and 4 responses on each of two rubrics.
    said = " ".join(run.ok(*words, "--dry-run").split())
    assert f"openai:subject-1@{again.root}/v1 4 0 " in said
    assert "total 16 0 " in said
    run.ok(*words)
    assert len(again.calls) == asked
    twice = [*words, "--subject", f"openai:subject-1@{again.root}/v1"]
    assert "is named twice; name each subject once" in run.refused(*twice)
    assert "leave --raters out" in run.refused(*words, "--dry-run", "--raters", "7")


@pytest.mark.slow
def test_a_subject_that_fails_for_good_holds_up_nobody_else(again: Again, capsys) -> None:
    again.script = lambda call: error(404) if call.body["model"] == "subject-2" else said_by(call)
    assert main(again.command(3, "--yes")) == 2
    said = " ".join(capsys.readouterr().out.split())
    gone = again.subjects(2)[1]
    assert f"{gone} has not answered 3 prompts or pairs. Its responses are graded when" in said
    assert (again.study / "report" / "published.csv").is_file()


@pytest.mark.slow
def test_a_study_names_its_own_published_figures(make_study, run: Run) -> None:
    folder = make_study(pairs=4).folder
    run.ok("grade", folder, "--grader", "baseline:lexical")
    change_config(folder, {"": {"published": "own.toml"}})
    figure = 'rubric = "refusal"\nstatistic = "cohen_kappa"\nbetween = "graders"\nof = "A and B"\n'
    text = f'citation = "A 2025"\n[[figure]]\n{figure}value = "0.5"\n'
    (folder / "own.toml").write_text(text, "utf-8")
    error = run.refused("report", folder)
    assert "own.toml: figure.0: cohen_kappa of A and B has no unit; name one of" in error
    assert not (folder / "report").exists()
    (folder / "own.toml").write_text(f'{text}unit = "coefficient"\n', "utf-8")
    assert "Published figures and this study's own: " in run.ok("report", folder)
    (row,) = read_table(folder / "report" / "published.csv").to_dict("records")
    assert (row["published"], row["unit"], row["estimate"]) == ("0.5", "coefficient", "")


PRINTED = {
    "even-handedness": "94% 92% 85% 0.76 0.55 >0.99 0.86 0.89 0.76 0.91 0.82",
    "approval": "",
    "political-consistency": "17.9%",
    "stance": "73% 0.85 97% 0.90 0.76 0.452 0.143 0.349 0.094",
}
"""Figures in their order, as their sources print them; the 73% are "80 of 110" there."""


@pytest.mark.parametrize("name", analysis.shipped_studies())
def test_the_figures_that_come_along_are_those_that_were_printed(name, tmp_path):
    figures = analysis.read_published(name, tmp_path).figure
    assert " ".join(each.printed.replace(" ", "") for each in figures) == PRINTED[name]


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        ("0.5", "", "cohen_kappa of A and B has no unit; name one of percent"),
        ("0.5", "kappas", "has the unit 'kappas'"),
        ("50", "coefficient", "is '50', which is no coefficient"),
        ("about half", "share", "is 'about half', which is no share"),
        ("94", "percent", 0.94),
        ("> 0.99", "coefficient", 0.99),
    ],
)
def test_a_published_figure_has_a_unit_and_is_read_by_it(value, unit, said) -> None:
    figure = {"rubric": "r", "statistic": "cohen_kappa", "between": "graders", "of": "A and B"}
    figure |= {"value": value, "unit": unit}
    if isinstance(said, float):
        assert analysis.PublishedFigure.model_validate(figure).as_result == said
    else:
        with pytest.raises(ValueError, match=said):
            analysis.PublishedFigure.model_validate(figure)


def test_those_that_come_along_are_listed_with_their_source(run: Run) -> None:
    said = " ".join(run.ok("reproduce", "--list").split())
    for name in analysis.shipped_studies():
        figures = PublishedStudy.read(name).figures
        assert f"{name}: {figures.title} {figures.citation}. Licence: {figures.licence}" in said
        assert figures.source in said


@pytest.fixture
def third_party(again: Again, monkeypatch) -> Path:
    """The made-up study of the guide, as it stands there."""
    monkeypatch.chdir(again.place)
    (again.place / "warmth").mkdir()
    for name, text in HERE_DOCUMENT.findall(shell_blocks(ROOT / "docs" / "graders.md")):
        if name.startswith("warmth/"):
            Path(name).write_text(text, "utf-8")
    return again.place / "warmth"


@pytest.mark.slow
def test_a_third_party_adds_a_study_without_python(again: Again, run: Run, third_party) -> None:
    words = ["reproduce", "./warmth", "--subject", again.subjects(1)[0], "--seed", "4", "--yes"]
    words += [word for each in again.graders for word in ("--grader", each)]
    assert "Sampled 2 of 3 pairs (seed 4)" in " ".join(run.ok(*words).split())
    made = third_party.with_name("warmth-study")
    with open_study(made) as study:
        assert (study.config.analysis.margin, [*study.rubrics]) == (0.15, ["refusal"])
    (row,) = read_table(made / "report" / "published.csv").to_dict("records")
    assert (row["published"], row["whose"]) == ("0.61", " · ".join(again.graders))
    asked = len(again.calls)
    run.ok(*words)
    assert len(again.calls) == asked
    assert "name their file with --pairs FILE" in run.refused(*words, "--propositions", "p.csv")


FILE, REFUSED = 'file = "pairs.csv"', "is not a file of at most"
HOSTILE_STUDIES = {
    "a key for a host": ("[settings.analysis]", "[settings.providers.x]", "no known key"),
    "a database": ("[settings.analysis]", "[settings]\nstore = 'postgresql://h/x'", "no known key"),
    "prompts outside": (FILE, "file = '../outside.csv'", "design.toml: it names"),
    "a rubric outside": ('["refusal"]', "['/etc/passwd']", "design.toml: it names"),
    "a link": (FILE, "file = 'link.csv'", "design.toml: it names"),
    "a loop": (FILE, "file = 'loop.csv'", REFUSED),
    "no such file": (FILE, "file = 'absent.csv'", REFUSED),
    "a pipe": (FILE, "file = 'pipe.csv'", REFUSED),
    "too large": (FILE, f"{FILE} # {'x' * 1_000_000}", REFUSED),
    "a billion repeats": ("sample", "repeats = 1_000_000_000\nsample", "it must be less than"),
    "no TOML": (FILE, "file", "is not valid TOML"),
}


@pytest.mark.parametrize("way", HOSTILE_STUDIES)
def test_a_hostile_folder_is_refused_in_one_sentence(again, run, third_party, way):
    before, after, said = HOSTILE_STUDIES[way]
    (again.place / "outside.csv").write_text("prompt_a,prompt_b\nx,y\n", "utf-8")
    (third_party / "link.csv").symlink_to(again.place / "outside.csv")
    (third_party / "loop.csv").symlink_to("loop.csv")
    os.mkfifo(third_party / "pipe.csv")
    design = third_party / "design.toml"
    design.write_text(design.read_text("utf-8").replace(before, after), "utf-8")
    words = ["reproduce", "./warmth", "--subject", again.subjects(1)[0], "--yes"]
    assert said in run.refused(*words)
    assert again.is_untouched()
    assert not third_party.with_name("warmth-study").exists()
