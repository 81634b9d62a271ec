"""Labels that are sets of options, in every way in which files and studies have them: from the
file to a verdict on each option, and back.
"""

import json
import shlex
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.load import from_file, load
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.disagreements import adjudication_queue, decide
from harness.studies import TOPICS_HEAD, label_all
from tests.cases import refused
from tests.commands import Run

pytestmark = pytest.mark.journey

KINDS = {"ann": "human", "ben": "human"}
PEOPLE = ScaleOptions(kinds=KINDS)
OPTIONS = ("rude", "off-topic", "spam")
SETS = [
    [option for option, is_on in zip(OPTIONS, chosen, strict=True) if is_on]
    for chosen in product((True, False), repeat=3)
]
WAYS = {
    "semicolons": lambda chosen: ";".join(chosen) or "none",
    "commas": lambda chosen: ", ".join(chosen) or "none",
    "hashes": lambda chosen: "#".join(chosen) or "none",
    "bars": lambda chosen: "|".join(chosen) or "none",
    "JSON": lambda chosen: json.dumps(list(chosen)),
    "Python": lambda chosen: repr(list(chosen)),
    "NumPy": lambda chosen: "[" + " ".join(map(repr, chosen)) + "]",
    "backwards": lambda chosen: ";".join(reversed(chosen)) or "none",
}


def table(write: Callable[[Sequence[str]], object]) -> pd.DataFrame:
    """Forty units with every set, on which ben differs from ann in every fifth."""
    own = [SETS[n % 8] for n in range(40)]
    others = [SETS[(n + (n % 5 == 0)) % 8] for n in range(40)]
    cells = {name: list(map(write, sets)) for name, sets in zip(KINDS, (own, others), strict=True)}
    return pd.DataFrame({"unit_id": [f"u{n}" for n in range(40)], **cells})


def figures(given: pd.DataFrame | Path, **declared: object) -> pd.DataFrame:
    found = load(given, ScaleOptions(kinds=KINDS, several=True, **declared))  # type: ignore[arg-type]
    return found.changed(resamples=20).analyse().results


def test_the_way_in_which_sets_are_written_changes_no_figure(tmp_path: Path) -> None:
    of_lists = figures(table(WAYS["JSON"]))
    assert set(of_lists["rubric"]) == {"labels"} | {f"labels/{option}" for option in OPTIONS}
    pd.testing.assert_frame_equal(figures(table(list)), of_lists)
    first = load(table(list), ScaleOptions(kinds=KINDS, several=True)).ratings
    for way, write in WAYS.items():
        table(write).to_csv(tmp_path / "r.csv", index=False)
        found = load(tmp_path / "r.csv", ScaleOptions(kinds=KINDS, several=True)).ratings
        pd.testing.assert_frame_equal(found, first, obj=way)


def test_a_declared_option_is_no_word_for_a_missing_label() -> None:
    cells = ["na", "rude", "na;rude", "N/A", "set()"]
    declared = ScaleOptions(kinds=KINDS, several=True, categories=("rude", "na"))
    found = load(pd.DataFrame({"ann": cells, "ben": cells}), declared).ratings
    answers = found[(found["rater_id"] == "ann") & (found["rubric"] == "labels/na")]["label"]
    assert answers.tolist() == ["yes", "no", "yes", "", "no"]


@pytest.mark.parametrize("way", ["bars", pytest.param("semicolons", marks=pytest.mark.slow)])
def test_sets_are_no_categories_unless_declared(run: Run, here: Path, way: str) -> None:
    table(WAYS[way]).to_csv("r.csv", index=False)
    command = ["check", "r.csv", "--resamples", "20", "--human", "ann,ben"]
    said = run.refused(*command)
    assert "r.csv, row 2, column 'ann': the label" in said
    assert "looks like a set of options (off-topic, rude, spam); add --several" in said
    advised = shlex.split(said.split("or --categories ")[1].split(" to take")[0])
    done = run(*command, "--categories", *advised)
    assert (done.returncode, done.stderr) == (0, "")
    done = run(*command, "--several")
    assert (done.returncode, done.stderr) == (0, "")
    assert "labels: read as sets of 3 options (off-topic, rude, spam)" in done.stdout


@pytest.mark.parametrize(
    "labels",
    [
        ("agree, weakly", "agree, strongly", "disagree"),  # the comma is part of the names
        ("C#", "Java", "C"),
        ("yes", "no; see note", "unsure"),
        ("1/2", "1", "2"),
    ],
)
def test_marks_within_names_are_no_sets(labels: Sequence[str]) -> None:
    named = pd.DataFrame({"ann": labels * 4, "ben": labels * 4})
    assert load(named, PEOPLE).scales[""].categories == tuple(sorted(labels))


def test_numbers_with_a_decimal_comma_may_be_meant() -> None:
    labels = ["1", "1,5", "2", "5", "2,5", "2"]
    with pytest.raises(InputError, match=r"; if the labels are numbers, write a decimal point"):
        load(pd.DataFrame({"ann": labels, "ben": labels}), PEOPLE)


def test_labels_with_commas_are_kept_where_a_scale_beside_the_file_has_them(tmp_path: Path) -> None:
    table(WAYS["commas"]).to_csv(tmp_path / "r.csv", index=False)
    every = sorted({WAYS["commas"](each) for each in SETS})
    scale = f'[scales.topics]\nlevel = "nominal"\ncategories = {json.dumps(every)}\n'
    (tmp_path / "r.scales.toml").write_text(scale)
    assert load(tmp_path / "r.csv", PEOPLE).scales["topics"].categories == tuple(every)


def test_a_mix_of_marks_is_refused_with_a_proposal_that_works(run: Run, here: Path) -> None:
    mixed = table(WAYS["semicolons"])
    mixed["ben"] = mixed["ben"].str.replace(";", ",")
    mixed.to_csv("r.csv", index=False)
    command = ["check", "r.csv", "--resamples", "20", "--human", "ann,ben"]
    both = "--several --categories off-topic,rude,spam"
    assert f"add {both} to read sets" in run(*command).stderr
    said = run.refused(*command, "--several")
    assert "it cannot be told whether ; or , stands between options" in said
    assert "--categories off-topic,rude,spam" in said
    assert run(*command, *both.split()).returncode == 0


def test_python_is_told_in_its_own_words() -> None:
    with pytest.raises(InputError, match=r"add several=True to read sets, or categories=\["):
        eh.check(table(WAYS["commas"]), human=["ann", "ben"])


KEYS = ("billing", "bug", "praise")
TOPICS = TOPICS_HEAD + "".join(
    f'[[options]]\nkey = "{key}"\nname = "About {key}"\n' for key in KEYS
)


def said(true: np.ndarray, rng: np.random.Generator) -> str:
    return ";".join(np.array(KEYS)[true ^ (rng.random(3) < 0.05)]) or "none"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty messages with a judge's labels, labelled by three people."""
    folder, rng = tmp_path_factory.mktemp("topics"), np.random.default_rng(5)
    true = rng.random((60, 3)) < 0.45
    items = pd.DataFrame({"response": [f"Message {n}" for n in range(60)]})
    names = {key: f"About {key}" for key in KEYS}
    judged = [said(each, rng).split(";") for each in true]
    items["judge"] = [";".join(names.get(key, key) for key in reversed(keys)) for keys in judged]
    items.to_csv(folder / "items.csv", index=False)
    (folder / "topics.toml").write_text(TOPICS)
    words = ["new", str(folder / "study"), "--items", str(folder / "items.csv")]
    assert main([*words, "--rubric", str(folder / "topics.toml"), "--judge", "judge"]) == 0

    with open_study(folder / "study") as opened:
        desk = AnnotationDesk(opened)
        for rater in ("ann", "ben", "cat"):
            sets = dict(zip(items["response"], [said(each, rng) for each in true], strict=True))
            given = label_all(desk, rater, lambda task, _, sets=sets: sets[task.values["response"]])
            assert len(given) == 60
    return folder / "study"


@pytest.mark.slow
def test_every_option_has_a_verdict_and_the_whole_has_none(study: Path) -> None:
    assert main(["report", str(study)]) == 0
    results = pd.read_csv(study / "report" / "results.csv")
    parts = [f"topics/{key}" for key in KEYS]
    assert set(results["rubric"]) == {"topics", *parts}
    assert set(results[results["statistic"] == "non_inferiority"]["rubric"]) == set(parts)
    assert "krippendorff_alpha_masi" in set(results[results["rubric"] == "topics"]["statistic"])
    report = (study / "report" / "report.md").read_text("utf-8")
    assert "Topics: About bug" in report
    assert "The whole set has agreement by MASI and Jaccard distance, and no verdict." in report
    assert "Message" in (study / "report" / "disagreements.html").read_text("utf-8")


@pytest.mark.slow
def test_what_is_exported_gives_the_same(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "ratings.csv"
    assert main(["export", str(study), "--out", str(out)]) == 0
    assert pd.read_csv(out)["label"].str.contains(";").any()  # sets, as they were given
    assert "several = true" in (tmp_path / "ratings.scales.toml").read_text()
    again, own = load(out), load(study)
    assert list(again.scales) == list(own.scales) == [f"topics/{key}" for key in KEYS]
    assert again.titles["topics/bug"] == "Topics: About bug"
    found = [each.changed(resamples=50).analyse().results for each in (again, own)]
    pd.testing.assert_frame_equal(*(each.drop(columns="note") for each in found))


@pytest.mark.slow
def test_the_rubric_reads_a_file_that_names_none(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text('unit_id,ann,ben\na,"bug;billing",bug\nb,none,praise\n')
    options = ScaleOptions(rubric=str(study.parent / "topics.toml"), kinds=KINDS)
    dataset = from_file(file, options)
    assert list(dataset.scales) == [f"topics/{key}" for key in KEYS]
    billing = dataset.ratings[dataset.ratings["rubric"] == "topics/billing"]
    assert sorted(billing["label"]) == ["no", "no", "no", "yes"]
    file.write_text('unit_id,ann,ben\na,"bug;billing",bug\nb,none,N/A\nc,bug,bug\n')
    assert "Read as no label: N/A (1)." in from_file(file, options).notes
    file.write_text("unit_id,ann,ben\na,bug,spam\n")
    refused(r"row 2, column 'ben': .* names 'spam', none of billing", from_file, file, options)


@pytest.mark.slow
def test_decisions_gates_and_what_does_not_apply(study: Path, run: Run) -> None:
    with open_study(study) as opened:
        queue = adjudication_queue(opened)
        decide(opened, "lead", queue[0].unit_id, "topics", "praise; billing", "both are named")
        with pytest.raises(InputError, match="not a set of billing, bug, praise"):
            decide(opened, "lead", queue[1].unit_id, "topics", "spam", "no")
        labels = opened.ratings().query("rater_kind == 'adjudicator'")["label"]
    assert labels.tolist() == ["billing;praise"]
    asked = run.refused("gate", study, "--grader", "judge")
    assert "--rubric: topics/billing, topics/bug, topics/praise" in asked
    assert main(["gate", str(study), "--grader", "judge", "--rubric", "topics/bug"]) in (0, 3)
    assert main(["calibrate", str(study)]) == 2
    run.ok("quality", study)
    run.ok("rubric", "suggest", study)
    refused = run.refused("audit", "injection", study, "--grader", "baseline:lexical")
    assert "attacks ask for one" in refused
