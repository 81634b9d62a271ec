"""Nothing is done by halves or in silence: a study that is killed at every step is whole or not
there, and what is added to a correct file by mistake - an invisible character, another spelling, a
code for a missing label, a helper column - changes no verdict without a word.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand import check
from evenhand.errors import InputError
from evenhand.study import open_study
from tests.cases import one_in
from tests.commands import python

ITEMS = 120
WHO = {"human": ["ann", "ben"], "model": "gpt"}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Two annotators and a grader on 120 items, wide: labels good, bad and mixed."""
    rng = np.random.default_rng(7)
    truth = rng.choice(["good", "bad", "mixed"], ITEMS)
    labels = {}
    for rater in ("ann", "ben", "gpt"):
        other = rng.choice(["good", "bad", "mixed"], ITEMS)
        labels[rater] = np.where(rng.random(ITEMS) < 0.85, truth, other)
    return pd.DataFrame({"item": [f"café {n}" for n in range(ITEMS)], **labels})


def verdict(table: object, **options: object) -> tuple[str, str]:
    found = check(table, **WHO, resamples=50, **options).verdicts[0]
    return found["verdict"], found["sentence"]


@pytest.fixture(scope="module")
def usual(table: pd.DataFrame) -> tuple[str, str]:
    return verdict(table)


def with_cells(table: pd.DataFrame, column: str, change: Callable[[str], str], share: float):
    rows = np.random.default_rng(1).random(len(table)) < share
    return table.assign(**{column: table[column].where(~rows, table[column].map(change))})


UNSEEN = ("{}\u200b", " {}", "{}\u00a0", "{}\ufe0f", "\u2060{}", "{}  ")
LOOK_ALIKE = ("{}.", "{}_", "'{}'")
CODES = ("99", "-", "?", "skip", "unknown", "None", "nan", "NULL", "n/a", "no answer", "garbage")


@pytest.mark.parametrize(("form", "column"), one_in(5, UNSEEN, ["item", "ben", "gpt"]))
def test_what_nobody_sees_changes_nothing(table, usual, form, column):
    assert verdict(with_cells(table, column, form.format, 0.5)) == usual


@pytest.mark.parametrize(
    ("column", "share", "form"), one_in(5, ["ben", "gpt"], [0.02, 0.5], [*LOOK_ALIKE, "capitals"])
)
def test_another_spelling_is_asked_about(table, usual, column, form, share):
    change = str.upper if form == "capitals" else form.format
    spelled = with_cells(table, column, change, share)
    with pytest.raises(InputError, match="normalise=True"):
        verdict(spelled)
    assert verdict(spelled, normalise=True) == usual


@pytest.mark.parametrize(("column", "share", "code"), one_in(5, ["ben", "gpt"], [0.02, 0.3], CODES))
def test_a_code_for_no_label_is_asked_about_or_reported(table, column, code, share):
    coded = with_cells(table, column, lambda _: code, share)
    blank = with_cells(table, column, lambda _: "", share)
    try:
        words = " ".join(check(coded, **WHO, resamples=50).notes)
    except InputError as refusal:
        words = str(refusal)
    assert code in words
    assert verdict(coded, missing=[code])[0] == verdict(blank)[0]


def test_helper_columns_are_no_items(table, usual):
    people = table[["ann", "ben"]]
    helpers = table.assign(
        soft_label=[
            str({each: list(row).count(each) / 2 for each in set(row)}) for row in people.to_numpy()
        ],
        votes=people.agg(lambda row: ",".join(sorted(row)), axis=1),
        majority_text=people.agg(lambda row: f"most said {sorted(row)[0]}, it seems", axis=1),
        annotators="ann,ben",
        response=[
            "I do not know what to say to that." if n % 3 else f"It is {n}." for n in range(ITEMS)
        ],
        label="good",
        order="ab",
    )
    assert verdict(helpers) == usual


NAMES = ["rater_kind", "order", "draw", "label", "seconds", "copies"]


@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_names_with_a_meaning_of_their_own_may_be_raters(table, usual, name):
    renamed = table.rename(columns={"ben": name})
    found = check(renamed, human=["ann", name], model="gpt", resamples=50).verdicts[0]
    assert (found["verdict"], found["sentence"]) == usual


@pytest.mark.parametrize(
    "kind", one_in(3, ["xlsx", "csv", "tsv", "dict", "jsonl", "parquet", "frame"])
)
def test_every_kind_of_file_gives_the_same(table: pd.DataFrame, tmp_path: Path, kind: str) -> None:
    """Numbers with gaps, spaces and a capital where nobody minds, in every door."""
    labels = {"good": 1.0, "bad": 0.0, "mixed": 2.0}
    numbers = table.assign(**{rater: table[rater].map(labels) for rater in ("ann", "ben", "gpt")})
    numbers.loc[5, "ben"] = np.nan
    usual = check(numbers, **WHO, resamples=50)
    file = tmp_path / f"labels.{kind}"
    given: object = file
    if kind in ("csv", "tsv"):
        numbers.to_csv(file, index=False, sep="," if kind == "csv" else "\t")
    elif kind == "jsonl":
        numbers.to_json(file, orient="records", lines=True)
    elif kind == "xlsx":
        numbers.to_excel(file, index=False)
    elif kind == "parquet":
        numbers.to_parquet(file)
    else:
        given = numbers if kind == "frame" else {name: numbers[name].tolist() for name in numbers}
    found = check(given, **WHO, resamples=50)
    columns = ["statistic", "rater_a", "rater_b", "subset", "at", "n_units", "estimate", "low"]
    pd.testing.assert_frame_equal(found.results[columns], usual.results[columns])
    assert [each["verdict"] for each in found.verdicts] == [
        each["verdict"] for each in usual.verdicts
    ]


LABELS = 40
PROGRAM = """
import json, os, signal, sys, tempfile
from pathlib import Path
import sqlalchemy as sa
import evenhand as eh
from evenhand.cli.main import main
from evenhand.reporting.new_study import create_items, preview_only
from evenhand.reporting.ratings_file.declared import LabelOptions
from evenhand.study import open_study

home, items = Path(sys.argv[1]), sys.argv[2]
os.environ["TMPDIR"] = tempfile.tempdir = str(home)
asked = dict(question="Good?", options=["yes", "no"], judge="verdict")
words = f"--question Good? --options yes,no --judge verdict".split()
WAYS = {
    "new": lambda folder: main(["new", str(folder), "--items", items, *words]),
    "label": lambda folder: eh.label(items, folder, **asked),
    "preview": lambda folder: preview_only(create_items, Path(items), LabelOptions(**asked)),
}

def made(way, folder, step=0):
    seen = 0
    def reached():
        nonlocal seen
        seen += 1
        if seen == step:
            os.kill(os.getpid(), signal.SIGKILL)
    def audited(event, arguments):
        if event in ("os.mkdir", "os.rename", "os.rmdir", "os.remove", "sqlite3.connect"):
            if str(home) in str(arguments[0]):
                reached()
    if step:
        sys.addaudithook(audited)
        sa.event.listen(
            sa.Engine,
            "after_cursor_execute",
            lambda _, __, statement, *___: reached() if statement.startswith("INSERT") else None,
        )
        sa.event.listen(sa.Engine, "commit", lambda *_: reached())
    WAYS[way](folder)

def labels(folder):
    if not folder.exists():
        return None
    with open_study(folder) as study:
        return len(study.ratings())

for way in WAYS:
    made(way, home / f"{way}-0")  # everything is imported before the first is killed
    step = 0
    while True:
        step += 1
        folder = home / f"{way}-{step}"
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            made(way, folder, step)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = labels(folder)
        if not killed and way != "new" or not folder.exists():
            made(way, folder)
        left = sorted(p.name for p in home.iterdir() if p.name.startswith((f".{way}-{step}.",
                      "evenhand-new-")))
        print(json.dumps([way, step, os.WIFSIGNALED(status), killed, labels(folder), left]))
        if not os.WIFSIGNALED(status):
            break
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_a_kill_at_any_step_leaves_a_whole_study_or_none(tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    pd.DataFrame(
        {
            "question": [f"What is {n}?" for n in range(LABELS)],
            "output": [f"It is {n}, as one can see." for n in range(LABELS)],
            "verdict": ["yes", "no"] * (LABELS // 2),
        }
    ).to_csv(items, index=False)
    done = python("-c", PROGRAM, tmp_path, items)
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    for way, step, killed, at_once, again, left in steps:
        assert at_once in (None, LABELS), (way, step)
        assert again == (None if way == "preview" else LABELS), (way, step)
        # What was killed leaves what it was building, aside.
        assert all(name.startswith((f".{way}-", "evenhand-new-")) for name in left), (way, step)
        assert killed or (way, step) in [(way, max(n for w, n, *_ in steps if w == way))]
    for way in ("new", "label", "preview"):
        states = [at_once for name, _, killed, at_once, *_ in steps if name == way and killed]
        assert len(states) > 10  # it was killed before it began, in the midst and, but for
        assert None in states  # a preview, when the study was there
        assert LABELS in states or way == "preview"


def test_a_study_that_is_there_is_compared_with_the_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": [f"q{n}" for n in range(6)],
            "question": "What is it?",
            "output": [f"It is {n}, as one can see." for n in range(6)],
            "verdict": ["yes", "no"] * 3,
        }
    )
    folder = tmp_path / "s"
    asked = {"question": "Good?", "options": ["yes", "no"]}
    eh.label(frame, folder, **asked)
    assert _graded(folder) == 0
    again = eh.label(frame, folder, **asked, judge="verdict")
    assert again.notes[1:] == [
        "Labels of verdict that the study did not have: 6. They are stored now, and annotators "
        "never see them."
    ]
    assert eh.label(frame, folder, judge="verdict").notes[1:] == []
    assert _graded(folder) == 6
    more = pd.concat([frame, frame.tail(2).assign(id=["new-1", "new-2"])])
    told = "Items of the file that the study does not have: 2, new-1 first."
    assert told in eh.label(more, folder).notes[1]
    with pytest.raises(InputError, match=told):
        eh.label(more, folder, **asked)
    other = frame.assign(output=[*frame["output"][:5], "It is nothing, as one can see."])
    told = "Items of the file that have another text in the study: 1, q5 first."
    assert told in eh.label(other, folder).notes[1]
    asked_otherwise = frame.assign(question=["What was it?", *frame["question"][1:]])
    told = "Items of the file that have another text in the study: 1, q0 first."
    assert told in eh.label(asked_otherwise, folder).notes[1]
    with pytest.raises(InputError, match=told):
        eh.label(asked_otherwise, folder, **asked)
    assert _graded(folder) == 6


def test_turns_are_compared_with_turns(tmp_path: Path) -> None:
    chat = [{"role": role, "content": f"Say {role}."} for role in ("user", "assistant") * 2]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"id": "c1", "messages": chat}) + "\n")
    asked = {"question": "Good?", "options": ["yes", "no"], "each_turn": True}
    eh.label(tmp_path / "chats.jsonl", tmp_path / "s", **asked)
    assert eh.label(tmp_path / "chats.jsonl", tmp_path / "s").notes[1:] == []


def _graded(folder: Path) -> int:
    with open_study(folder) as study:
        return len(study.ratings())
