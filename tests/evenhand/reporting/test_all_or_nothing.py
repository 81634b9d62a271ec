"""A study is made whole or not at all: killed at every step, it has the judge's labels or is not
there, and the same command makes it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import InputError
from evenhand.study import open_study

LABELS = 40
PROGRAM = """
import json, os, signal, sys, tempfile
from pathlib import Path
import sqlalchemy as sa
import evenhand as eh
from evenhand.cli.main import main
from evenhand.reporting.new_study import ItemOptions
from evenhand.reporting.labelling import LabelOptions, preview_items
from evenhand.study import open_study

home, items = Path(sys.argv[1]), sys.argv[2]
os.environ["TMPDIR"] = tempfile.tempdir = str(home)
asked = dict(question="Good?", options=["yes", "no"], judge="verdict")
words = f"--question Good? --options yes,no --judge verdict".split()
WAYS = {
    "new": lambda folder: main(["new", str(folder), "--items", items, *words]),
    "label": lambda folder: eh.label(items, folder, **asked),
    "preview": lambda folder: preview_items(
        Path(items), LabelOptions(items=ItemOptions(**asked))
    ),
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
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(items)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    for way, step, killed, at_once, again, left in steps:
        assert at_once in (None, LABELS), (way, step)
        assert again == (None if way == "preview" else LABELS), (way, step)
        assert left == [], (way, step)
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
