"""The functions of `import evenhand` give what their commands give, to the byte."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.reporting import planning
from evenhand.study import open_study
from evenhand.study.tables.formats import csv_bytes
from harness.judged_study import judged_study
from harness.ports import free_port
from harness.served import answers, holds

pytestmark = pytest.mark.slow

SCALE: dict[str, Any] = {"categories": ["no", "yes"], "affirmative": "yes", "resamples": 100}
OPTIONS = ["--categories", "no,yes", "--affirmative", "yes", "--resamples", "100"]


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people, a grader with probabilities and a plain one, on 90 units."""
    rng = np.random.default_rng(3)
    truth = rng.random(90) < 0.4
    rows = []
    for who, right in (("ann", 0.95), ("ben", 0.92), ("cem", 0.93), ("plain", 0.9), ("sure", 0.94)):
        said = np.where(rng.random(90) < right, truth, ~truth)
        for n, yes in enumerate(said):
            share = np.clip(0.35 + 0.3 * yes + rng.normal(0, 0.12), 0.01, 0.99)
            kind = "model" if who in ("plain", "sure") else "human"
            p = round(float(share), 3) if who == "sure" else np.nan
            label, method = "yes" if yes else "no", "verbalised" if p == p else ""
            rows.append((f"u{n}", who, kind, label, p, method))
    columns = ["unit_id", "rater_id", "rater_kind", "label", "p_positive", "prob_method"]
    path = tmp_path_factory.mktemp("same") / "ratings.csv"
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def results(ratings: Path) -> bytes:
    """results.csv of `evenhand check`."""
    out = ratings.with_name("out")
    assert main(["check", str(ratings), *OPTIONS, "--out", str(out)]) == 0
    return (out / "results.csv").read_bytes()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose graders give probabilities."""
    return judged_study(tmp_path_factory.mktemp("judged"))


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[str, int]:
    """What a command prints, and its exit code."""
    capsys.readouterr()
    code = main([str(each) for each in words])
    return capsys.readouterr().out, code


def forms(path: Path) -> list[Any]:
    """The same labels as a path and as a table."""
    return [path, str(path), pd.read_csv(path, keep_default_na=True)]


def test_gate(ratings: Path, results: bytes, capsys) -> None:
    for rule, code in ((None, 3), ("kappa > 0.99", 1), ("coverage >= 1", 0)):
        more = ["--require", rule] if rule else []
        words = ["gate", ratings, "--grader", "sure", *OPTIONS, *more]
        printed, ended = said(capsys, *words)
        told, _ = said(capsys, *words, "--json")
        for given in forms(ratings):
            found = eh.gate(given, "sure", rule, **SCALE)
            assert (found.exit_code, ended) == (code, code)
            assert found.passed is {0: True, 1: False, 3: None}[code]
            assert bool(found) == (code == 0)
            said_here = f"{found}\n".replace("level= and categories=", "--level and --categories")
            assert said_here == printed
            about = {"source": str(ratings), "notes": json.loads(told)["notes"]}
            assert found.as_dict() | about == json.loads(told)
            assert found.table["outcome"].tolist() == [each.outcome for each in found.checks]
            assert csv_bytes(found.results) == results
            assert found.sentence in shown(found)


def shown(found: Any) -> str:
    """What a notebook shows, as text without markup."""
    from html import unescape

    html = found._repr_html_()
    assert "<script" not in html
    return unescape(re.sub(r"<style>.*?</style>|<[^>]*>", "", html, flags=re.DOTALL))


def test_select(ratings: Path, results: bytes, capsys) -> None:
    printed, _ = said(capsys, "select", ratings, *OPTIONS)
    for given in forms(ratings):
        found = eh.select(given, **SCALE)
        assert f"{found}\n" == printed
        assert csv_bytes(found.results) == results
    table = found.table.set_index("grader")
    assert [verdict["grader"] for verdict in found.verdicts] == list(table.index)
    row = found.results.query(
        "statistic == 'human_ceiling_difference' and rater_b == 'plain' and subset == 'all'"
    )
    assert table.loc["plain", "difference"] == row["estimate"].item()
    for sentence in found.recommendations:
        assert sentence in shown(found)


def test_plan(ratings: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(planning, "PEOPLE", (3, 4))
    monkeypatch.setattr(planning, "SIZES", (50, 200))
    printed, _ = said(capsys, "plan", "--agreement", "0.9", "--subjects", "2", "--margin", "0.2")
    found = eh.plan(agreement=0.9, subjects=2, margin=0.2)
    assert f"{found}\n" == printed
    assert found.tables["sizes"]["pairs"].tolist() == [50, 200]
    printed, _ = said(capsys, "plan", ratings, *OPTIONS, "--half-width", "0.05")
    for given in forms(ratings):
        found = eh.plan(given, half_width=0.05, **SCALE)
        assert f"{found}\n" == printed
    tables = {"deciding", "components", "dependability", "intervals", "corrected"}
    assert set(found.tables) == tables
    assert found.tables["deciding"]["grader"].tolist() == ["plain", "sure"]
    assert found.tables["components"]["share"].sum() == pytest.approx(1)


def test_calibrate(study: Path, ratings: Path, capsys) -> None:
    printed, _ = said(capsys, "calibrate", study, "--rubric", "refusal", "--objective", "f1")
    for given in (study, eh.open_study(study)):
        found = eh.calibrate(given, rubric="refusal", objective="f1")
        assert f"{found}\n" == printed
    assert set(found.results["rubric"]) == {"refusal"}
    for given in forms(ratings):
        found = eh.calibrate(given, **SCALE)
        assert set(found.results["rater_b"]) == {"sure"}
        recommended = found.results.query("statistic == 'threshold_recommended' and at == 'kappa'")
        kept = {grader: t for each in found.thresholds.values() for grader, t in each.items()}
        tuned = recommended[recommended["note"].str.startswith("tuned")]
        assert kept == dict(zip(tuned["rater_b"], tuned["estimate"], strict=True))
    with pytest.raises(eh.InputError, match=r"the study has no rubric 'x'"):
        eh.calibrate(study, rubric="x")


def test_compare(ratings: Path, tmp_path: Path, capsys) -> None:
    file, now = tmp_path / "sure.json", tmp_path / "now.csv"
    said(capsys, "baseline", "save", ratings, "--grader", "sure", "--file", file, *OPTIONS)
    rows = pd.read_csv(ratings).query("rater_id == 'plain'")
    rows[["unit_id", "rater_id", "rater_kind", "label"]].to_csv(now, index=False)
    words = ["baseline", "compare", now, "--grader", "sure", "--file", file, "--against", "plain"]
    printed, _ = said(capsys, *words)
    told, _ = said(capsys, *words, "--json")
    for given in forms(now):
        found = eh.compare(given, "sure", "plain", baseline=file)
        assert f"{found}\n" == printed
        assert found.as_dict() | {"source": str(now)} == json.loads(told)
        assert {"drift", "rate_change"} <= set(found.results["statistic"])
        gated = eh.gate(given, "plain", baseline=file)
        assert (gated.checks, gated.passed) == (found.checks, found.passed)
    # Without a file: the two as they are in one table.
    beside = eh.compare(pd.read_csv(ratings), "sure", "plain", **SCALE)
    assert beside.checks[0].figures == found.checks[0].figures
    assert beside.checks[0].sentence == found.checks[0].sentence
    assert beside.notes == ("The labels of sure are the baseline that plain is compared with.",)
    with pytest.raises(eh.InputError, match="write grader='sure' and against='plain' if"):
        eh.compare(now, "plain", baseline=file)


def test_a_study_is_read_as_the_command_reads_it(study: Path, capsys) -> None:
    printed, _ = said(capsys, "select", study, "--resamples", "100")
    assert f"{eh.select(study, resamples=100)}\n" == printed
    told, code = said(capsys, "gate", study, "--grader", "fine", "--rubric", "refusal", "--json")
    found = eh.gate(study, "fine", rubric="refusal")
    assert found.as_dict() == json.loads(told)
    assert found.exit_code == code
    loaded = eh.gate(eh.open_study(study), "fine", rubric="refusal", require="coverage > 0")
    assert loaded.passed
    checked = eh.check(study, resamples=100)
    assert {verdict["grader"] for verdict in checked.verdicts} >= {"fine"}
    for given, why in ((study, "human= is for ratings"), (eh.open_study(study), "a Dataset knows")):
        with pytest.raises(eh.InputError, match=why):
            eh.select(given, human=["ann"])


ITEMS = pd.DataFrame(
    {
        "question": [f"What is {n} and one?" for n in range(12)],
        "output": [f"It is {n + 1}." for n in range(12)],
        "model": [f"m{n % 2}" for n in range(12)],
        "judge": ["yes", "no"] * 6,
    }
)
ASKED: dict[str, Any] = {
    "question": "Right?",
    "options": ["yes", "no"],
    "judge": "judge",
    "show": ["question", "output"],
}


def test_label_makes_the_study_of_the_command(here: Path, capsys, monkeypatch) -> None:
    serving = import_module("evenhand.annotate_app")
    monkeypatch.setattr(serving, "serve", lambda folder, port, public_host: 0)  # it does not return
    ITEMS.to_csv("items.csv", index=False)
    words = "label items.csv --question Right? --options yes,no --judge judge"
    words += " --show question,output --no-browser --port 8600"
    printed, _ = said(capsys, *words.split())
    made = {}
    given = {"path": "items.csv", "frame": ITEMS, "records": ITEMS.to_dict("records")}
    for name, items in given.items():
        found = eh.label(items, name, port=8600, **ASKED)
        assert found.folder == Path(name)
        assert found.command == f"evenhand annotate {name} --port 8600"
        (link,) = found.links
        assert link.startswith("http://localhost:8600/?invite=")
        assert f'<a href="{link}">' in found._repr_html_()
        told = str(found).replace(name, "items-study").split("http")[0]
        assert told == printed.split("http")[0]
        made[name] = found.folder
    made["command"] = Path("items-study")
    kept = {}
    for name, folder in made.items():
        with open_study(folder) as study:
            kept[name] = study.store.pairs(), study.units("all"), study.ratings()
    for name in given:
        for ours, theirs in zip(kept[name], kept["command"], strict=True):
            columns = [column for column in ours if column != "created_at"]
            pd.testing.assert_frame_equal(ours[columns], theirs[columns])
    again = eh.label(ITEMS, "frame")
    assert list(again.notes) == ["frame exists already: labelling continues."]
    with pytest.raises(eh.InputError, match="sample= is settled in frame"):
        eh.label(ITEMS, "frame", sample=3)
    with pytest.raises(eh.InputError, match="what is asked for is settled in frame"):
        eh.label(ITEMS.assign(output="Another answer."), "frame", **ASKED)
    named = ITEMS.set_index(pd.Index([f"q{n}" for n in range(12)], name="item_id"))
    with open_study(eh.label(named, "indexed", **ASKED).folder) as study:
        assert set(study.store.pairs()["pair_id"]) == set(named.index)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    """A labelling page that a program serves in the background while it does other things."""
    program = (
        "import evenhand as eh\n"
        "items = [{'response': 'one'}, {'response': 'two'}]\n"
        f"found = eh.label(items, 's', question='?', options=['a', 'b'], port={free_port()})\n"
        "found.serve()\n"
        "print(found.links[0], flush=True)\n"
        "input()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    yield process.stdout.readline().strip()
    process.communicate("\n", timeout=60)


def test_a_page_is_served_in_the_background(page: str) -> None:
    assert holds(lambda: answers(page), 60), page


def test_a_notebook_escapes_what_others_wrote() -> None:
    evil = "<img src=x onerror=alert(1)>"
    table = {"ann": list("yn") * 20, "ben": list("yyn") * 13 + ["n"], evil: list("yynn") * 10}
    who: dict[str, Any] = {"human": ["ann", "ben"], "model": evil, "resamples": 20}
    for found in (eh.check(table, **who), eh.gate(table, evil, **who), eh.select(table, **who)):
        assert "<img" not in found._repr_html_()
        assert "&lt;img" in found._repr_html_()
        assert evil in str(found)
