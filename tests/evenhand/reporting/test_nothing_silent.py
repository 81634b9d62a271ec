"""Nothing is done by halves or in silence: a study that is killed at every step is whole or not
there; what is added to a correct file by mistake - an invisible character, another spelling, a code
for a missing label, a helper column, its rows once more - changes no verdict without a word.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.exporting import material_of
from evenhand.reporting.load import item_column, load
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study import open_study
from tests.cases import one_in, refused
from tests.commands import python

pytestmark = pytest.mark.journey

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


def verdict(table, **options):
    found = eh.check(table, **WHO | {"resamples": 10} | options).verdicts[0]
    return found["verdict"], found["sentence"]


@pytest.fixture(scope="module")
def usual(table):
    return verdict(table)


def with_cells(table, column, change, share):
    rows = np.random.default_rng(1).random(len(table)) < share
    return table.assign(**{column: table[column].where(~rows, table[column].map(change))})


UNSEEN = ("{}\u200b", " {}", "{}\u00a0", "{}\ufe0f", "\u2060{}", "{}  ")
LOOK_ALIKE = ("{}.", "{}_", "'{}'")
CODES = ("99", "-", "?", "skip", "unknown", "None", "nan", "NULL", "n/a", "no answer", "garbage")


@pytest.mark.parametrize(("form", "column"), one_in(7, UNSEEN, ["item", "ben", "gpt"]))
def test_what_nobody_sees_changes_nothing(table, usual, form, column):
    assert verdict(with_cells(table, column, form.format, 0.5)) == usual


@pytest.mark.parametrize(
    ("column", "share", "form"), one_in(7, ["ben", "gpt"], [0.02, 0.5], [*LOOK_ALIKE, "capitals"])
)
def test_another_spelling_is_asked_about(table, usual, column, form, share):
    spelled = with_cells(table, column, str.upper if form == "capitals" else form.format, share)
    refused("normalise=True", verdict, spelled)
    assert verdict(spelled, normalise=True) == usual


@pytest.mark.parametrize(("column", "share", "code"), one_in(8, ["ben", "gpt"], [0.02, 0.3], CODES))
def test_a_code_for_no_label_is_asked_about_or_reported(table, column, code, share):
    coded = with_cells(table, column, lambda _: code, share)
    blank = with_cells(table, column, lambda _: "", share)
    try:
        words = " ".join(eh.check(coded, **WHO, resamples=10).notes)
    except InputError as refusal:
        words = str(refusal)
    assert code in words
    assert verdict(coded, missing=[code])[0] == verdict(blank)[0]


def test_a_rubric_has_one_spelling(table):
    long = table.melt("item", ["ann", "ben", "gpt"], "rater", "label")
    long["rubric"] = ["tone ", "tone"] * (len(long) // 2)
    read = eh.check(long, columns={"unit": "item", "rater": "rater"}, **WHO, resamples=10)
    assert {verdict["rubric"] for verdict in read.verdicts} == {"tone"}


def test_helper_columns_are_no_items(table, usual):
    people = table[["ann", "ben"]]
    helpers = table.assign(
        soft_label=[
            str({each: list(row).count(each) / 2 for each in set(row)}) for row in people.to_numpy()
        ],
        votes=people.agg(lambda row: ",".join(sorted(row)), axis=1),
        majority_text=people.agg(lambda row: f"most said {sorted(row)[0]}, it seems", axis=1),
        annotators="ann,ben",
        response=["I do not know that." if n % 3 else f"It is {n}." for n in range(ITEMS)],
        label="good",
        order="ab",
    )
    assert verdict(helpers) == usual


def test_helper_columns_are_no_annotators(table):
    table = table.rename(columns={"ann": "human1", "ben": "human2"})
    helpers = ("human_mode", "human_maj", "human1_conf", "disagreement")
    read = eh.check(table.assign(**dict.fromkeys(helpers, table["human1"])), resamples=10)
    assert "annotators `human1`, `human2`; grader" in " ".join(read.notes)
    for name in ("tie", "zoe"):  # who may be an annotator
        refused("the columns of the raters' la", eh.check, table.assign(**{name: table["human1"]}))
    refused(r"model=\['gpt'\]", eh.check, table.assign(gpt=np.linspace(0, 1, len(table))))


@pytest.mark.parametrize(
    "name", one_in(3, ["rater_kind", "order", "draw", "label", "seconds", "copied_row"])
)
def test_names_with_a_meaning_of_their_own_may_be_raters(table, usual, name):
    assert verdict(table.rename(columns={"ben": name}), human=["ann", name]) == usual


# Rows that repeat an item are no more evidence than one of them, whatever the column is called

SIXTY, TIMES = 60, 6
PEOPLE = ["ann", "ben", "cy"]
SCALE = {"human": PEOPLE, "model": "g", "categories": ["yes", "no"], "affirmative": "yes"}


@pytest.fixture(scope="module")
def six_times():
    """Three people and a grader as good as they on too few items, pasted again and again."""
    rng = np.random.default_rng(7)
    truth = rng.random(SIXTY) < 0.5
    one = pd.DataFrame({"item": [f"i{k}" for k in range(SIXTY)]})
    for rater, right in (("ann", 0.93), ("ben", 0.93), ("cy", 0.93), ("g", 0.92)):
        one[rater] = np.where(np.where(rng.random(SIXTY) < right, truth, ~truth), "yes", "no")
    return pd.concat([one] * TIMES, ignore_index=True)


def evidence(found):
    """The verdict, and how many clusters it rests on."""
    rows = found.results.query("statistic == 'non_inferiority' and subset == 'all'")
    return found.verdicts[0]["verdict"], int(rows["n_clusters"].iloc[0])


@pytest.mark.parametrize(
    "name", one_in(8, ["Prompt ID", "id", "item", "prompt", "question", "exampleId", "passage"])
)
def test_pasting_rows_again_changes_no_verdict(six_times, name):
    found = eh.check(six_times.rename(columns={"item": name}), **SCALE, resamples=10)
    assert evidence(found) == ("inconclusive", SIXTY)
    told = f"360 items in 60 clusters (column `{name}`): clusters are resampled."
    assert any(told in note and "cluster=, or `unit` if" in note for note in found.notes)


@pytest.mark.slow
def test_whoever_says_so_has_independent_rows(six_times):
    for says in ({"independent": True}, {"cluster": "unit"}):
        found = eh.check(six_times, **SCALE, **says, resamples=10)
        assert evidence(found) == ("can_replace", SIXTY * TIMES)
        assert "are resampled" not in " ".join(found.notes)
    refused("exclude each other", eh.check, six_times, **SCALE, independent=True, cluster="item")


def test_rows_are_exported_whatever_column_clusters_them(six_times, tmp_path):
    six_times.head(SIXTY).to_csv(tmp_path / "r.csv", index=False)
    (tmp_path / "r.scales.toml").write_text('[analysis]\ncluster = "item"\n', "utf-8")
    options = ScaleOptions(kinds=dict.fromkeys(PEOPLE, "human") | {"g": "model"})
    assert material_of(tmp_path / "r.csv", (), options).ratings["unit_id"].nunique() == SIXTY


def test_a_table_that_is_copies_of_itself_counts_once(six_times):
    table = six_times.drop(columns="item")
    assert len(table.drop_duplicates()) < 20, "of so few patterns, copies may be chance"
    table["words"] = np.tile(np.arange(SIXTY) * 7 % 41, TIMES)
    table["topic"] = np.tile(np.array(list("abc"))[np.arange(SIXTY) % 3], TIMES)
    found = eh.check(table, **SCALE, resamples=10)
    assert evidence(found) == ("inconclusive", SIXTY)
    assert any("the same 60 rows 6 times" in note for note in found.notes)
    # The order of rows says nothing.
    mixed = table.sample(frac=1, random_state=3, ignore_index=True)
    assert eh.check(mixed, **SCALE, resamples=10).verdicts == found.verdicts


def test_empty_cells_are_items_of_their_own(six_times):
    table = six_times.assign(item=six_times["item"].replace("i0", ""))
    assert evidence(eh.check(table, **SCALE, resamples=10))[1] == SIXTY - 1 + TIMES


def test_a_file_whose_units_are_rows_is_read_alike_and_no_sidecar_hides_items(six_times, tmp_path):
    file, beside = tmp_path / "labels.csv", tmp_path / "labels.scales.toml"
    wide = six_times.assign(unit_id=[f"u{n}" for n in range(len(six_times))])
    rows = wide.melt(["item", "unit_id"], var_name="rater_id", value_name="label")
    rows["rater_kind"] = np.where(rows["rater_id"] == "g", "model", "human")
    rows.to_csv(file, index=False)
    options = ScaleOptions(settings={"resamples": 10})
    analysis, context = analyse_file(file, options)
    assert analysis.settings.cluster == "item"
    assert analysis.verdicts[0]["verdict"] == "inconclusive"
    assert any("or `unit` if" in note for note in context.notes)
    found = load(file, options)
    assert (found.settings.cluster, found.notes) == ("item", tuple(context.notes))
    for first, cluster in (("", "item"), ('[analysis]\ncluster = "unit"\n', "unit")):
        beside.write_text(first + '[scales.""]\ncategories = ["yes", "no"]\n')
        assert load(file).settings.cluster == cluster


NUMBERS = np.arange(300)


@pytest.mark.parametrize(("expected", "columns"), [
    (None, {"model": [f"model-{n % 6}" for n in NUMBERS]}),
    (None, {"topic": [f"a rather long name of topic {n % 9}" for n in NUMBERS]}),
    (None, {"split": ["train" if n % 3 else "test" for n in NUMBERS]}),
    (None, {"words": [str(n % 97) for n in NUMBERS]}),
    (None, {"date": [f"2024-{n % 12 + 1:02}-{n % 25 + 1:02}" for n in NUMBERS]}),
    (None, {"answer": ["I cannot help with that." if n < 90 else f"{n}" for n in NUMBERS]}),
    (None, {"id": [f"i{n}" for n in NUMBERS]}),
    ("caption", {"caption": [f"c{n % 150}" for n in NUMBERS]}),
    (None, {"prompt": ["Rate this answer."] * 300}),
    ("text", {"item_no": NUMBERS, "text": [f"t{n % 150}" for n in NUMBERS]}),
    ("prompt", {"text": [f"t{n % 150}" for n in NUMBERS],
                "prompt": [f"p{n % 50}" for n in NUMBERS]}),
])  # fmt: skip
def test_which_columns_name_items_of_which_the_coarsest_counts(expected, columns):
    units = pd.DataFrame({"unit_id": [f"u{n}" for n in NUMBERS], **columns})
    assert item_column(units, pd.DataFrame({"unit_id": [], "label": []})) == expected


# Studies

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
    rows = [f"What is {n}?,It is {n} as one can see.,{['yes', 'no'][n % 2]}" for n in range(40)]
    items.write_text("\n".join(["question,output,verdict", *rows]), "utf-8")
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


def test_a_study_that_is_there_is_compared_with_the_file(tmp_path):
    def graded() -> int:
        with open_study(folder) as study:
            return len(study.ratings())

    def told(items, *notes, **asked):
        found = eh.label(items, folder, **asked).notes[1:]
        assert len(found) == len(notes)
        assert all(note in said for note, said in zip(notes, found, strict=True))

    folder = tmp_path / "s"
    frame = pd.DataFrame({"id": [f"q{n}" for n in range(6)], "question": "What is it?"})
    frame["output"] = [f"It is {n}, as one can see." for n in range(6)]
    frame["verdict"] = ["yes", "no"] * 3
    asked = {"question": "Good?", "options": ["yes", "no"]}
    eh.label(frame, folder, **asked)
    assert graded() == 0
    told(frame, "Labels of verdict that the study did not have: 6.", **asked, judge="verdict")
    told(frame, judge="verdict")
    more = pd.concat([frame, frame.tail(2).assign(id=["new-1", "new-2"])])
    another = "Items of the file that have another text in the study: 1, q{} first."
    for other, note in (
        (more, "Items of the file that the study does not have: 2, new-1 first."),
        (frame.assign(output=[*frame["output"][:5], "It is nothing."]), another.format(5)),
        (frame.assign(question=["What was it?", *frame["question"][1:]]), another.format(0)),
    ):
        told(other, note)
        refused(note, eh.label, other, folder, **asked)
    assert graded() == 6
    folder, swapped = tmp_path / "two", {"answer_a": "answer_b", "answer_b": "answer_a"}
    two = pd.DataFrame({"id": ["q0"], "question": ["When?"], "answer_a": "May", "answer_b": "July"})
    eh.label(two, folder)
    told(two.rename(columns=swapped)[[*two.columns]], another.format(0))
    folder, chats = tmp_path / "turns", tmp_path / "chats.jsonl"
    chat = [{"role": role, "content": f"Say {role}."} for role in ("user", "assistant") * 2]
    chats.write_text(json.dumps({"id": "c1", "messages": chat}) + "\n")
    eh.label(chats, folder, **asked, each_turn=True)
    told(chats)
