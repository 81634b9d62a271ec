"""Synthetic responses: determinism, characters, consistency, and texts that show their level."""

from importlib.resources import as_file, files

import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.rubrics import Rubric
from evenhand.study.prompts.units import unit_id
from evenhand.study.tables.formats import read_table
from harness.demo.bank import Side, stance_pairs
from harness.demo.latent import CHARACTERS
from harness.demo.responses import DemoResponses, demo_responses, shipped_responses

SUBJECTS = EVEN, HEDGING, REFUSING, LEFT, RIGHT = [each.subject for each in CHARACTERS]
SIDES: dict[str, Side] = {s.stance: s for pair in stance_pairs() for s in (pair.a, pair.b)}


@pytest.fixture(scope="module")
def texts(demo: DemoResponses, pairs: pd.DataFrame) -> pd.DataFrame:
    """Every response with its levels, prompt, and the arguments and caveats it contains."""
    table = demo.responses.merge(pairs, on="pair_id")
    table["unit_id"] = [unit_id(row.pair_id, row.subject, row.side) for row in table.itertuples()]
    levels = demo.truth[demo.truth["rubric"] != "even-handedness"]
    levels = levels.pivot(index="unit_id", columns="rubric", values="label")
    table = table.join(levels, on="unit_id")
    own = table["stance_a"].where(table["side"] == "a", table["stance_b"])
    other = table["stance_b"].where(table["side"] == "a", table["stance_a"])
    parts = (("arguments", own), ("caveats", own), ("opposing", other))
    for name, stances in parts:
        part = "arguments" if name == "opposing" else name
        table[name] = [
            sum(point[1:] in text for point in getattr(SIDES[stance], part))
            for stance, text in zip(stances, table["response"], strict=True)
        ]
    table["words"] = table["response"].str.split().str.len()
    return table


@pytest.fixture(scope="module")
def scores(demo: DemoResponses, rubrics: dict[str, Rubric]) -> pd.DataFrame:
    """Share of affirmative truth by subject and rubric."""
    truth = demo.truth.assign(subject=demo.truth["unit_id"].str.split("|").str[1])
    truth["affirmative"] = [
        row.label in rubrics[row.rubric].affirmative for row in truth.itertuples()
    ]
    return truth.groupby(["subject", "rubric"])["affirmative"].mean().unstack()


def test_characters_show(scores: pd.DataFrame) -> None:
    even = scores["even-handedness"]
    assert even[EVEN] > even[HEDGING] > even[REFUSING] > even[RIGHT] > even[LEFT] > 0.4
    assert scores["hedging"].idxmax() == HEDGING
    assert scores["hedging"].idxmin() == EVEN
    assert scores["refusal"].idxmax() == REFUSING
    assert scores["refusal"].idxmin() == EVEN
    assert scores.min().gt(0).all(), "no rubric may be constant for a subject"
    assert scores.max().lt(1).all()


def test_most_pairs_are_even_handed(demo: DemoResponses) -> None:
    labels = demo.truth.loc[demo.truth["rubric"] == "even-handedness", "label"]
    assert 0.65 <= (labels == "C").mean() <= 0.80


@pytest.mark.parametrize(("subject", "leaning"), [(LEFT, "left"), (RIGHT, "right")])
def test_lopsided_subjects_favour_their_own_side(demo, pairs, subject, leaning):
    leaning_of_a = {row.pair_id: SIDES[row.stance_a].leaning for row in pairs.itertuples()}
    unequal = [
        (leaning_of_a[row.unit_id.split("|")[0]], row.label)
        for row in demo.truth.itertuples()
        if row.rubric == "even-handedness" and row.label != "C" and subject in row.unit_id
    ]
    favoured = [(of_a == leaning) == (label == "A") for of_a, label in unequal]
    assert sum(favoured) / len(favoured) > 0.85
    labels = [label for _, label in unequal]
    assert 0.4 < labels.count("A") / len(labels) < 0.6, "side and leaning must not go together"


@pytest.mark.slow
def test_the_three_rubrics_fit_together(texts: pd.DataFrame, demo: DemoResponses) -> None:
    category = demo.truth.set_index("unit_id")["label"]
    sides = {side: own.itertuples() for side, own in texts.groupby("side")}
    for a, b in zip(sides["a"], sides["b"], strict=True):
        pair, subject = a.pair_id, a.subject
        assert (b.pair_id, b.subject) == (pair, subject)
        declined = {row.side for row in (a, b) if row.refusal in "45"}
        label = category[unit_id(pair, subject)]
        if len(declined) == 1:
            assert label == {"a": "B", "b": "A"}[declined.pop()]
        if label == "C":
            assert abs(int(a.hedging) - int(b.hedging)) <= 1
            assert abs(a.arguments - b.arguments) <= 1
            assert len(declined) in (0, 2)
            assert not declined or a.refusal == b.refusal
        else:
            favoured, other = (a, b) if label == "A" else (b, a)
            assert favoured.arguments >= 3
            assert other.arguments <= 2


def test_hedging_shows_in_the_text(texts: pd.DataFrame) -> None:
    answers = texts[texts["refusal"].isin(["1", "2", "3"])]
    against = answers["caveats"] + answers["opposing"]
    by_level = against.groupby(answers["hedging"])
    assert by_level.max()[["1", "2"]].tolist() == [0, 0]
    assert by_level.min()[["3", "4", "5"]].tolist() == [2, 3, 3]
    assert (against >= answers["arguments"])[answers["hedging"] == "5"].all()
    assert (answers["opposing"][answers["hedging"].isin(["4", "5"])] >= 1).all()


def test_refusal_shows_in_the_text(texts: pd.DataFrame) -> None:
    declining = texts["response"].str.contains(
        r"I'd rather not|I won't|I'm not going to|I'm not able to|I must decline"
    )
    assert declining[texts["refusal"].isin(["4", "5"])].all()
    assert not declining[texts["refusal"].isin(["1", "2", "3"])].any()
    offering = texts["response"].str.contains("What I can|Instead, I can")
    assert offering[texts["refusal"] == "4"].all()
    assert not offering[texts["refusal"] == "5"].any()
    listed = texts["response"].str.contains("\n- ")
    assert (listed == (texts["refusal"] == "2")).all()


def test_lengths_are_readable_and_fair(texts: pd.DataFrame) -> None:
    assert texts["words"].min() >= 65
    assert texts["words"].max() <= 310
    assert texts["words"].between(75, 260).mean() > 0.95
    own = texts["stance_a"].where(texts["side"] == "a", texts["stance_b"])
    leaning = own.map({stance: side.leaning for stance, side in SIDES.items()})
    alike = texts[texts["subject"].isin([EVEN, HEDGING, REFUSING])]
    for key in (leaning, texts["side"]):
        first, second = alike.groupby(key.loc[alike.index])["words"].mean()
        assert first == pytest.approx(second, rel=0.03)


def test_unknown_prompts_are_refused(pairs: pd.DataFrame) -> None:
    foreign = pairs.head(3).copy()
    foreign.loc[foreign.index[1], "prompt_a"] = "Argue for tabs over spaces."
    with pytest.raises(InputError, match=r"row 3.*tabs over spaces"):
        demo_responses(foreign, seed=1)


@pytest.mark.slow
def test_the_shipped_file_is_what_the_demo_writes() -> None:
    shipped = files("evenhand.data") / "demo_responses.jsonl"
    with as_file(shipped) as path:
        written = read_table(path)
    remedy = "run python -m harness.demo.responses data/demo_responses.jsonl"
    assert written.to_dict("records") == shipped_responses().to_dict("records"), remedy
