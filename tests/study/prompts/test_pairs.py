"""Propositions as they come in files, and the lengths of responses."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.rubrics import asked_rubric, load_rubric
from evenhand.study import create_study, open_study
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.prompts.items import item_columns, make_items
from evenhand.study.prompts.pairs import LENGTH_COLUMNS, read_propositions, read_responses

# Propositions


STATEMENTS = """id,text,group
trade,Free trade helps the poor.,left
trade,The poor gain from open trade.,left
parks,Cities need more parks.,right
"""
WORDINGS = "wording,template\nplain,{statement} Do you agree?\nasked,What do you say: {statement}\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "propositions.csv").write_text(STATEMENTS)
    (tmp_path / "wordings.csv").write_text(WORDINGS)
    return tmp_path / "propositions.csv", tmp_path / "wordings.csv"


def test_every_variant_is_a_prompt_in_its_propositions_cluster(files):
    prompts = read_propositions(*files, repeats=2)
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
def test_bad_rows_are_named(files, name, text, says):
    path = files[0].with_name(f"{name}.csv")
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_propositions(*files)


def test_repeated_prompts_take_a_subjects_responses_in_turn(files, tmp_path):
    prompts = read_propositions(files[0], repeats=2)
    said = [(f"take {n}", prompt) for prompt in set(prompts["prompt_a"]) for n in (1, 2)]
    frame = pd.DataFrame(said, columns=["response", "prompt"]).assign(subject="m")
    frame.to_csv(tmp_path / "responses.csv", index=False)
    found = read_responses(tmp_path / "responses.csv", prompts).merge(prompts, on="pair_id")
    assert len(found) == len(prompts)
    assert (found["response"] == "take " + found["repeat"]).all()
    frame.iloc[[0, 0, 0]].to_csv(tmp_path / "responses.csv", index=False)
    with pytest.raises(InputError, match=r"answered side a .* already"):
        read_responses(tmp_path / "responses.csv", prompts)


def test_a_proposition_study_has_one_unit_per_response(files, tmp_path):
    plan = StudyPlan(
        propositions=files[0], wordings=files[1], rubrics=usual_rubrics(propositions=True)
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
        assert [block.text for block in shown.blocks] == [
            "Free trade helps the poor. Do you agree?",
            "I agree.",
        ]
        assert study.config.analysis.cluster == "proposition"
        assert study.config.analysis.variants == ("wording", "paraphrase")


def test_rubrics_must_fit_the_prompts(files, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("prompt_a,prompt_b\nFor?,Against?\n")
    cases = [
        ({"pairs": pairs, "rubrics": [load_rubric("stance")]}, "needs 'statement'"),
        ({"propositions": files[0], "rubrics": [load_rubric("even-handedness")]}, "is on pairs"),
        ({"propositions": files[0], "pairs": pairs, "rubrics": []}, "name one of them"),
        ({"pairs": pairs, "repeats": 2, "rubrics": []}, "go with propositions"),
    ]
    for fields, says in cases:
        with pytest.raises(InputError, match=says):
            create_study(tmp_path / "s", StudyPlan(**fields))  # type: ignore[arg-type]
    assert not (tmp_path / "s").exists()


# Lengths of responses


def test_every_unit_carries_the_lengths_of_its_own_responses(make_study):
    """ "s1: for 0." has three words, as has every response of the fixture."""
    study = make_study()
    units = study.units_with_lengths("all").set_index("unit_id")
    assert units.loc["p0001|s1", list(LENGTH_COLUMNS)].tolist() == ["", "3", "3"]
    assert units.loc["p0001|s1|b", list(LENGTH_COLUMNS)].tolist() == ["3", "", ""]
    assert study.units("all").columns.tolist() == units.reset_index().columns.tolist()[:-3]


def test_what_is_shown_beside_a_response_has_a_length_too(tmp_path):
    rows = {
        "prompt": ["Where is it?", "Where?"],
        "context": ["In Basel, since May.", ""],
        "output": ["Basel", "Bern"],
    }
    frame = pd.DataFrame(rows)
    items = make_items(frame, item_columns(frame, "f.csv"), "f.csv")
    rubric = asked_rubric("Good?", items.blocks, options=["yes", "no"])
    create_study(tmp_path / "s", StudyPlan(items=items, rubrics=[rubric]))
    with open_study(tmp_path / "s") as study:
        units = study.units_with_lengths().sort_values("unit_id")
    assert units["prompt_words"].tolist() == ["3", "1"]
    assert units["context_words"].tolist() == ["4", ""]
    assert units["response_words"].tolist() == ["1", "1"]


def test_pairs_without_responses_have_no_length(make_study):
    units = make_study(responses=None).units_with_lengths()
    assert (units[list(LENGTH_COLUMNS)] == "").all(axis=None)
