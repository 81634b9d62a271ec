"""Propositions as they come in files, the lengths of responses, and the sample."""

import itertools
from hashlib import sha256
from importlib.resources import as_file, files
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.rubrics import load_rubric
from evenhand.study import create_study, open_study
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.prompts import sampling
from evenhand.study.prompts.pairs import (
    LENGTH_COLUMNS,
    cluster_noun,
    read_pairs,
    read_propositions,
    read_responses,
)

# Propositions


STATEMENTS = """id,text,group
trade,Free trade helps the poor.,left
trade,The poor gain from open trade.,left
parks,Cities need more parks.,right
"""
WORDINGS = "wording,template\nplain,{statement} Do you agree?\nasked,What do you say: {statement}\n"


@pytest.fixture
def bank(tmp_path: Path) -> tuple[Path, Path]:
    for name, text in (("propositions", STATEMENTS), ("wordings", WORDINGS)):
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path / "propositions.csv", tmp_path / "wordings.csv"


def test_every_variant_is_a_prompt_in_its_propositions_cluster(bank):
    prompts = read_propositions(*bank, repeats=2)
    assert len(prompts) == 3 * 2 * 2
    first = prompts.iloc[0]
    assert first["prompt_a"] == "Free trade helps the poor. Do you agree?"
    assert (first["proposition"], first["paraphrase"], first["group"]) == ("trade", "1", "left")
    assert prompts.groupby("proposition").size().to_dict() == {"parks": 4, "trade": 8}
    assert not prompts.duplicated(["proposition", "wording", "paraphrase", "repeat"]).any()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("propositions", "id,statement\na,b\n", "'text' is missing"),
        ("propositions", "id,text\na,\n", "row 2: text is empty"),
        ("propositions", "id,text\na b,c\n", "row 2: id 'a b' must be"),
        ("propositions", "id,text\na,c\na,c\n", "row 3: the same text"),
        ("propositions", "id,text,wording\na,c,d\n", "'wording' means something else"),
        ("propositions", "id,text\n", "no propositions"),
        ("wordings", "wording,template\nx,Do you agree?\n", r"row 2: the template has no \{st"),
        ("wordings", "wording,template\nx,{statement}\nx,{statement}!\n", "row 3: give every"),
    ],
)
def test_bad_rows_are_named(bank, name, text, says):
    path = bank[0].with_name(f"{name}.csv")
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_propositions(*bank)


def test_repeated_prompts_take_a_subjects_responses_in_turn(bank, tmp_path):
    prompts = read_propositions(bank[0], repeats=2)
    said = [(f"take {n}", prompt) for prompt in set(prompts["prompt_a"]) for n in (1, 2)]
    frame = pd.DataFrame(said, columns=["response", "prompt"]).assign(subject="m")
    frame.to_csv(tmp_path / "responses.csv", index=False)
    found = read_responses(tmp_path / "responses.csv", prompts).merge(prompts, on="pair_id")
    assert len(found) == len(prompts)
    assert (found["response"] == "take " + found["repeat"]).all()
    frame.iloc[[0, 0, 0]].to_csv(tmp_path / "responses.csv", index=False)
    with pytest.raises(InputError, match=r"answered side a .* already"):
        read_responses(tmp_path / "responses.csv", prompts)


def test_a_proposition_study_has_one_unit_per_response(bank, tmp_path):
    plan = StudyPlan(
        propositions=bank[0], wordings=bank[1], rubrics=usual_rubrics(propositions=True)
    )
    create_study(tmp_path / "s", plan)
    with open_study(tmp_path / "s") as study:
        prompts = study.store.pairs()
        rows = prompts[["pair_id"]].assign(subject="m", side="a", response="I agree.")
        study.store.add_responses(rows)
        units = study.units("all")
        assert sorted(units["unit_id"]) == [f"p{n:04d}|m|a" for n in range(1, 7)]
        (rubric,) = study.rubrics.values()
        assert study.rubric_units(rubric, "all") == units["unit_id"].tolist()
        shown = rubric.for_people(study.values(rubric, "p0001|m|a"))
        assert shown.question.endswith("Free trade helps the poor.")
        texts = ["Free trade helps the poor. Do you agree?", "I agree."]
        assert [block.text for block in shown.blocks] == texts
        assert study.config.analysis.cluster == "proposition"
        assert study.config.analysis.variants == ("wording", "paraphrase")


def test_rubrics_must_fit_the_prompts(bank, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("prompt_a,prompt_b\nFor?,Against?\n")
    cases = [
        ({"pairs": pairs, "rubrics": [load_rubric("stance")]}, "needs 'statement'"),
        ({"propositions": bank[0], "rubrics": [load_rubric("even-handedness")]}, "is on pairs"),
        ({"propositions": bank[0], "pairs": pairs, "rubrics": []}, "name one of them"),
        ({"pairs": pairs, "repeats": 2, "rubrics": []}, "go with propositions"),
    ]
    for fields, says in cases:
        with pytest.raises(InputError, match=says):
            create_study(tmp_path / "s", StudyPlan(**fields))  # type: ignore[arg-type]
    assert not (tmp_path / "s").exists()


def test_every_unit_carries_the_lengths_of_its_own_responses(make_study):
    """ "s1: for 0." has three words, as has every response of the fixture."""
    study = make_study()
    units = study.units_with_lengths("all").set_index("unit_id")
    assert units.loc["p0001|s1", list(LENGTH_COLUMNS)].tolist() == ["", "3", "3"]
    assert units.loc["p0001|s1|b", list(LENGTH_COLUMNS)].tolist() == ["3", "", ""]
    assert study.units("all").columns.tolist() == units.reset_index().columns.tolist()[:-3]
    none = make_study(responses=None).units_with_lengths()
    assert (none[list(LENGTH_COLUMNS)] == "").all(axis=None)


def margins_hold(pairs: pd.DataFrame, sample: list[str], strata: tuple[str, ...]) -> bool:
    taken = pairs[pairs["pair_id"].isin(sample)]
    for name in strata:
        wanted = sampling.largest_remainder(pairs[name].value_counts().to_dict(), len(sample))
        if {k: v for k, v in wanted.items() if v} != taken[name].value_counts().to_dict():
            return False
    return True


def test_the_published_set_is_sampled_in_proportion(shared_data):
    pairs = read_pairs(shared_data / "eval_set.csv")
    sample = sampling.draw_sample(pairs, 250, sampling.DEFAULT_STRATA, seed=1)
    assert len(pairs) == 1350
    assert len(set(sample)) == 250
    assert margins_hold(pairs, sample, sampling.DEFAULT_STRATA)
    # 450 of 1,350 pairs are "reasoning": 250 * 450 / 1350 = 83.3
    counts = pairs[pairs["pair_id"].isin(sample)]["template_category"].value_counts()
    assert counts["reasoning"] == 83
    # shares of 10: 4.55, 3.18, 2.27 -> 4, 3, 2 and the one left goes to .55
    assert sampling.largest_remainder({"a": 50, "b": 35, "c": 25}, 10) == {"a": 5, "b": 3, "c": 2}
    nested = pd.DataFrame({"topic": list("aaabbbccc"), "area": list("xxxxxxyyy")})
    nested.insert(0, "pair_id", [f"p{n}" for n in range(9)])  # they serve the first one
    sample = sampling.draw_sample(nested, 4, ("topic", "area"), seed=0)
    assert margins_hold(nested, sample, ("topic",))


def test_a_larger_sample_begins_with_the_first_which_follows_from_the_seed():
    with as_file(files("evenhand.data") / "demo_pairs.csv") as path:
        pairs = read_pairs(path)
    first, again, other = (
        sampling.draw_sample(pairs, 150, sampling.DEFAULT_STRATA, seed=n) for n in (1, 1, 2)
    )
    assert first == again != other
    larger = sampling.draw_sample(pairs, 250, sampling.DEFAULT_STRATA, seed=1, already=first)
    assert larger[:150] == first
    assert len(set(larger)) == 250
    assert margins_hold(pairs, larger, sampling.DEFAULT_STRATA)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=9, max_size=9).filter(any),
    st.floats(0.05, 1.0),
    st.integers(0, 5),
)
@example([7, 5, 5, 1, 1, 7, 0, 1, 2], 0.8125, 0)  # in fractions the solver gives up
@example([6, 9, 9, 3, 5, 6, 4, 6, 5], 0.890625, 0)  # here too
def test_the_size_holds_on_any_table_and_two_margins_where_no_cell_is_sparse(counts, share, seed):
    """Margins can clash only where rounding asks more of a sparse table than it has."""
    cells = [cell for cell, n in zip(product("xyz", "uvw"), counts, strict=True) for _ in range(n)]
    pairs = pd.DataFrame(cells, columns=["one", "two"])
    pairs.insert(0, "pair_id", [f"p{n}" for n in range(len(pairs))])
    size = max(1, round(share * len(pairs)))
    sample = sampling.draw_sample(pairs, size, ("one", "two"), seed)
    assert len(set(sample)) == size
    assert min(counts) < 3 or margins_hold(pairs, sample, ("one", "two"))


def test_impossible_samples_are_refused_and_alike_scores_are_a_draw_by_chance():
    pairs = pd.DataFrame({"pair_id": ["p1", "p2"]})
    with pytest.raises(InputError, match="a sample of 3 cannot be drawn from 2 pairs"):
        sampling.draw_sample(pairs, 3, (), seed=0)
    with pytest.raises(InputError, match="no column 'topic'"):
        sampling.draw_sample(pairs, 1, ("topic",), seed=0)
    alike, before = dict.fromkeys("abcd", 0.4), dict.fromkeys("abcd", 0.25)
    assert sampling.chances_for(alike, before, 1) == pytest.approx(dict.fromkeys("abcd", 1 / 3))
    with pytest.raises(InputError, match="at most 2 more pairs can be picked by uncertainty"):
        sampling.chances_for(alike, before, 3)


def test_what_is_drawn_by_a_key_or_a_seed_is_a_digest():
    """RFC 4231, test case 2; and that of the seed and its parts with a separator between them."""
    known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert sampling.digest(b"Jefe", "what do ya want for nothing?") == known
    assert sampling.digest(7, "a", "b") == sha256(b"7\x1fa\x1fb").hexdigest()


def test_a_cluster_has_the_noun_of_its_column_or_of_the_prompts():
    for columns, cluster, noun in (
        (["prompt_a", "prompt_b", "sample_id"], "sample_id", "sample"),
        (["prompt_a", "prompt_b"], "", "pair"),
        (["prompt_a", "item_id"], "", "item"),
    ):
        assert cluster_noun(pd.DataFrame([dict.fromkeys(columns, "x")]), cluster) == noun


def test_pairs_are_picked_as_often_as_their_chances_say():
    chances, draws = {"a": 0.9, "b": 0.5, "c": 0.35, "d": 0.15, "e": 0.1, "f": 0.0}, 8000
    rng = np.random.default_rng(4)
    drawn = [sampling.pick(chances, rng) for _ in range(draws)]
    assert {len(each) for each in drawn} == {2}  # their sum
    for pair, chance in chances.items():
        share = np.mean([pair in each for each in drawn])
        assert share == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / draws))
    # The order says nothing of the chances: part of what was picked is a smaller draw.
    first = np.mean([each[0] == "a" for each in drawn])
    assert first == pytest.approx(0.45, abs=0.025)
    sizes = [len(sampling.pick({"a": 0.5, "b": 0.5, "c": 0.3}, rng)) for _ in range(4000)]
    assert set(sizes) == {1, 2}  # a sum between two numbers gives either
    assert np.mean(sizes) == pytest.approx(1.3, abs=0.03)


def test_horvitz_and_thompson_are_unbiased_over_all_samples_there_are():
    # Three pairs; the first wave takes one of them by chance. All ways of both waves, weighed.
    values, names = {"a": 1.0, "b": 5.0, "c": 10.0}, ("a", "b", "c")
    second = {"a": 0.1, "b": 0.4, "c": 0.7}
    waves = [
        sampling.Wave(by="chance", chances=dict.fromkeys(names, 1 / 3), taken=()),
        sampling.Wave(by="uncertainty", chances=second, taken=()),
    ]
    likely = sampling.inclusion(waves)
    expected = 0.0
    for first in names:
        left = [name for name in names if name != first]
        for took in itertools.product((True, False), repeat=2):
            taken = dict(zip(left, took, strict=True))
            chance = np.prod([second[n] if t else 1 - second[n] for n, t in taken.items()])
            sample = [first, *(name for name in left if taken[name])]
            expected += chance / 3 * sum(values[name] / likely[name] for name in sample)
    assert expected == pytest.approx(16.0)
    # A wave that is half labelled is half a wave.
    waves = [
        sampling.Wave(by="chance", chances={"a": 0.2, "b": 0.2}, taken=()),
        sampling.Wave(by="uncertainty", chances={"a": 0.5, "b": 0.1}, taken=()),
    ]
    assert sampling.inclusion(waves, [1.0, 0.0]) == pytest.approx({"a": 0.2, "b": 0.2})
    assert sampling.inclusion(waves, [1.0, 0.5]) == pytest.approx({"a": 0.4, "b": 0.24})


@pytest.mark.parametrize("more", [10, 60, 200])
def test_probabilities_follow_the_roots_of_the_scores_within_bounds(more):
    rng = np.random.default_rng(1)
    scores = {f"p{n}": float(score) for n, score in enumerate(rng.random(400))}
    scores |= {"least": 0.0, "most": 1.0}
    before = dict.fromkeys(scores, 0.1)
    chances = sampling.chances_for(scores, before, more)
    in_all = sampling.inclusion(
        [sampling.Wave(by="u", chances=each, taken=()) for each in (before, chances)]
    )
    # As many as were asked for are expected of those that are not in the sample yet.
    assert sum(0.9 * chance for chance in chances.values()) == pytest.approx(more)
    assert min(in_all.values()) >= 0.1 - 1e-12
    assert max(in_all.values()) <= sampling.MOST
    free = {pair: each for pair, each in in_all.items() if 0.1 + 1e-9 < each < sampling.MOST - 1e-9}
    over = [
        each / np.sqrt(1 / (sampling.RATIO**2 - 1) + scores[pair]) for pair, each in free.items()
    ]
    assert max(over) == pytest.approx(min(over))
    assert in_all["most"] <= sampling.RATIO * in_all["least"] + 1e-9
