"""Making a study, enlarging its sample, opening it, and the files that it is made of."""

import json
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.rubrics import load_rubric
from evenhand.study import Study, create_study, extend_sample, open_study
from evenhand.study.creation import StudyPlan, uncertainty
from evenhand.study.prompts.pairs import read_pairs, read_responses
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.decisions import WAVES, inclusion_so_far
from evenhand.study.store.schema import sample_waves
from evenhand.study.tables.formats import read_table
from harness.studies import upgraded_without, with_labels
from tests.ratings_files import read_ratings


def test_on_a_server_a_study_that_could_not_be_made_leaves_nothing(tmp_path, new_postgresql):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("prompt_a,prompt_b\nOne?,Other?\n")
    plan = StudyPlan(pairs=pairs, rubrics=[load_rubric("refusal")], store=new_postgresql())

    def dies(_: Study) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create_study(tmp_path / "s", plan, dies)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.csv"]
    create_study(tmp_path / "s", plan)
    with open_study(tmp_path / "s") as study:
        assert len(study.store.pairs()) == 1


# A larger sample


RUBRIC = "refusal"


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    """40 pairs, 8 of them sampled, one rubric on responses."""
    return make_study(pairs=40, subjects=("s1",), sample=8, rubrics=[RUBRIC], stratify=())


def rate(
    study: Study, rater: str, label: Callable[[int], str], *, scope: str = "all", **more: object
) -> None:
    """Take in a rater's labels, by the number of the pair, of all units in scope."""
    graders = [rater] if more.pop("kind", "model") == "model" else []
    rubric = study.rubrics[RUBRIC]
    units = study.rubric_units(rubric, scope)
    given = {rater: [label(number(unit)) for unit in units]}
    with_labels(study, given, RUBRIC, units=units, graders=graders, rubric_hash=rubric.hash, **more)


def number(unit: str) -> int:
    return int(parse_unit_id(unit)[0].removeprefix("p"))


def odd(n: int) -> str:
    return "5" if n % 2 else "1"


def differ(study: Study) -> None:
    """Two graders, who agree on every second pair."""
    rate(study, "one", lambda n: "1")
    rate(study, "two", odd)


def again(study: Study) -> Study:
    """The study as it is now."""
    return open_study(study.folder)


@pytest.mark.slow
def test_graders_who_differ_or_are_unsure_score_a_pair(study):
    differ(study)
    scores = uncertainty(study)
    # Two labels at the ends of the scale, one each: as far apart as can be.
    assert scores["p0001"] == pytest.approx(1.0)
    assert scores["p0002"] == 0.0
    unsure = json.dumps({"1": 0.9, "2": 0.1})
    rate(study, "three", lambda n: "1", probabilities=unsure, prob_method="logprobs")
    # Shares of 1, 2 and 5 are (2.9, .1, 0) / 3: twice .0322 x (1/4)^2 over the largest, 1/2.
    scores = uncertainty(study)
    assert scores["p0002"] == pytest.approx(4 * (2.9 / 3) * (0.1 / 3) / 16)
    rate(study, "ann", lambda n: "3", scope="sample", kind="human")
    assert uncertainty(study) == scores  # people's labels do not move what is picked


@pytest.mark.slow
def test_only_graders_of_every_pair_count(study):
    with pytest.raises(InputError, match=r"no grader has graded all pairs .* --scope all"):
        extend_sample(study, 4, "uncertainty")
    rate(study, "part", odd, scope="sample")
    with pytest.raises(InputError, match=r"no grader has graded all pairs"):
        extend_sample(study, 4, "uncertainty")
    rate(study, "one", lambda n: "1")
    with pytest.raises(InputError, match="all grades are alike and sure"):
        extend_sample(study, 4, "uncertainty")
    assert len(study.store.sample()) == 8
    assert WAVES.all(study.store) == []


def test_unsure_pairs_are_likelier_and_all_probabilities_are_kept(study):
    differ(study)
    first = study.store.sample()
    size = extend_sample(study, 10, "uncertainty")
    with again(study) as now:
        sample = now.store.sample()
        assert sample[:8] == first
        assert len(sample) == size == now.config.sample.pairs
        assert abs(size - 18) <= 2
        likely = inclusion_so_far(now.store)
        assert list(likely) == study.store.pairs()["pair_id"].tolist()
        assert likely["p0001"] == pytest.approx(2 * likely["p0002"])
        # 8 of 40 at first, 10 more: 20 x 2 p + 20 x p = 18.
        assert sum(likely.values()) == pytest.approx(18.0)
        units = now.units("all").set_index("cluster_id")["inclusion_probability"]
        assert units["p0001"].unique() == pytest.approx([likely["p0001"]])


@pytest.mark.slow
def test_until_they_are_labelled_new_pairs_change_nothing(study):
    differ(study)
    rate(study, "ann", lambda n: "3", scope="sample", kind="human")
    extend_sample(study, 10, "uncertainty")
    with again(study) as now:
        assert inclusion_so_far(now.store) == pytest.approx({f"p{n:04}": 0.2 for n in range(1, 41)})
        rate(now, "ann", lambda n: "3", scope="sample", kind="human")
        likely = inclusion_so_far(now.store)
        assert likely["p0001"] == pytest.approx(2 * likely["p0002"])


def test_a_draw_by_chance_afterwards_is_one_more_wave(study):
    extend_sample(study, 2)
    assert WAVES.all(study.store) == []  # drawn by chance alone
    assert "inclusion_probability" not in study.units("all")
    differ(study)
    extend_sample(again(study), 6, "uncertainty")
    with again(study) as now:
        before, size = inclusion_so_far(now.store), len(now.store.sample())
        assert extend_sample(now, 5) == size + 5
    with again(study) as now:
        assert len(set(now.store.sample())) == size + 5
        chance = 5 / (40 - size)
        for pair, likely in inclusion_so_far(now.store).items():
            assert likely == pytest.approx(1 - (1 - before[pair]) * (1 - chance))


def test_clusters_of_several_pairs_are_refused(study):
    differ(study)
    change_config(study.folder, {"analysis": {"cluster": "topic_name"}})
    told = r"needs pairs as clusters.*analysis.cluster = 'topic_name'"
    with again(study) as now, pytest.raises(InputError, match=told):
        extend_sample(now, 4, "uncertainty")


@pytest.mark.slow
def test_a_store_of_before_learns_of_waves(make_study, any_database):
    plan = {"pairs": 12, "subjects": ("s1",), "sample": 3, "rubrics": [RUBRIC], "stratify": ()}
    study = make_study(**plan, **any_database)
    with upgraded_without(study, sample_waves) as now:
        assert "inclusion_probability" not in now.units("all")
        differ(now)
        extend_sample(now, 3, "uncertainty")
        first, second = WAVES.all(now.store)
    assert (first.by, set(first.chances.values())) == ("chance", {0.25})
    assert (second.by, list(second.chances)) == ("uncertainty", list(first.chances))
    assert np.isfinite(list(second.chances.values())).all()


# An open study


def test_names_are_learned_without_reading_a_response(make_study, statements):
    study = make_study()
    with statements(study) as sent:
        study.subjects()
        study.units("all")
        study.rubric_units(study.rubrics["refusal"])
        study.units_by_kind("all")
    assert len(sent) > 3
    assert not [sql for sql in sent if "responses.response" in sql]


def test_subjects_and_units_are_those_of_the_responses(make_study):
    study = make_study(pairs=3, subjects=("s2", "s1"), sample=2)
    assert study.subjects() == ["s1", "s2"]
    by_kind = study.units_by_kind("all")
    assert len(by_kind["pair"]) == 3 * 2
    assert len(by_kind["response"]) == 3 * 2 * 2
    assert by_kind["response"][:2] == ["p0001|s1|a", "p0001|s1|b"]
    for rubric in study.rubrics.values():
        assert study.rubric_units(rubric, "all") == by_kind[rubric.unit]
        assert len(study.rubric_units(rubric)) == len(by_kind[rubric.unit]) * 2 // 3


# Files that a study is made of


HEADER = "prompt_a,prompt_b\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "its first row is blank"),
        (b"prompt_a\nx\n", "the column 'prompt_b' is missing"),
        (b"prompt_a,prompt_b\n", "no pairs"),
        (b"prompt_a,prompt_b\nx,y\n ,z\n", "row 3: prompt_a is empty"),
        (b"prompt_a,prompt_b\nx,y\nu,v\nx,y\n", "row 4: the same pair stands in row 2"),
        (b"prompt_a,prompt_b\nx,x\n", "row 2: prompt_a and prompt_b are the same"),
        (b"prompt_a,prompt_b\nx,y,z\n", "row 2: 3 cells where the header has 2"),
        (b"prompt_a,prompt_b\nx,\xff\n", "line 2: not UTF-8"),
        (b"prompt_a,prompt_a\nx,y\n", "two columns are called 'prompt_a'"),
        (b'prompt_a,prompt_b\n"x,y\n', "row 2: a quoted cell does not end before a comma"),
        (b"pair_id,prompt_a,prompt_b\np1,x,y\np1,u,v\n", "row 3: pair_id 'p1' stands in row 2"),
        *(
            (f"prompt_a,prompt_b,{column}\nx,y,1\n".encode(), f"'{column}' means something else")
            for column in ("sample_position", "subject", "side", "unit_id")
        ),
    ],
)
def test_a_bad_pairs_file_is_named_by_row(tmp_path, content, says):
    path = tmp_path / "pairs.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"pairs\.csv") as raised:
        read_pairs(path)
    assert says in str(raised.value)


def test_two_rubrics_of_one_name_are_refused(tmp_path):
    (tmp_path / "pairs.csv").write_text(HEADER + "x,y\n")
    rubric = load_rubric("refusal")
    with pytest.raises(InputError, match="two rubrics are called 'refusal'"):
        create_study(tmp_path / "s", StudyPlan(pairs=tmp_path / "pairs.csv", rubrics=[rubric] * 2))


def test_parquet_as_other_tools_write_it(tmp_path):
    frame = pd.DataFrame({"label": pd.array([1, None], dtype="Int64"), "tags": [["a"], None]})
    frame.to_parquet(tmp_path / "t.parquet")
    columns = read_table(tmp_path / "t.parquet").to_dict("list")
    assert columns == {"label": ["1", ""], "tags": ['["a"]', ""]}


def test_half_a_surrogate_pair_is_named(tmp_path):
    (tmp_path / "r.jsonl").write_text('{"subject": "s"}\n{"subject": "\\ud800"}\n')
    with pytest.raises(InputError, match=r"r\.jsonl, line 2: half a surrogate pair"):
        read_table(tmp_path / "r.jsonl")


def test_a_byte_order_mark_and_line_breaks_in_cells_are_fine(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(b'\xef\xbb\xbfprompt_a,prompt_b\r\n"one\ntwo",y\r\n')
    assert read_pairs(path)["prompt_a"].tolist() == ["one\ntwo"]
    path.write_text(f"prompt_a,prompt_b\n{'x' * 300_000},y\n")  # and a prompt may be long
    assert len(read_pairs(path)["prompt_a"][0]) == 300_000


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"subject": "s", "prompt": "nobody asked", "response": "r"}', "row 1: no pair has"),
        ('{"subject": "s", "prompt": "x", "response": "r"}', "answers side a of p0001 but not"),
        ('{"subject": "", "prompt": "x", "response": "r"}', "row 1: subject ''"),
        ('{"subject": "s", "prompt": "x"}', "the column 'response' is missing"),
        ('{"subject": "s", "response": "r"}', "say what was answered"),
        ('{"subject": "s", "pair_id": "p9", "side": "a", "response": "r"}', "no pair 'p9'"),
        ('{"subject": "s", "pair_id": "p0001", "side": "c", "response": "r"}', "side is 'c'"),
        ("[1]", "line 1: each line must be a JSON object"),
        ("{", "line 1: not valid JSON"),
    ],
)
def test_a_bad_responses_file_is_named_by_row(tmp_path, line, says):
    pairs = pd.DataFrame({"pair_id": ["p0001"], "prompt_a": ["x"], "prompt_b": ["y"]})
    path = tmp_path / "responses.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=r"responses\.jsonl") as raised:
        read_responses(path, pairs)
    assert says in str(raised.value)


def test_a_second_response_to_a_prompt_is_refused(tmp_path):
    pairs = pd.DataFrame({"pair_id": ["p0001"], "prompt_a": ["x"], "prompt_b": ["y"]})
    path = tmp_path / "r.csv"
    path.write_text("subject,prompt,response\ns,x,1\n\ns,y,2\ns,x,3\n")  # a blank line counts
    told = "row 5: subject 's' has answered side a of p0001 in row 2"
    with pytest.raises(InputError, match=told):
        read_responses(path, pairs)


def test_nothing_half_made_stays(tmp_path):
    (tmp_path / "pairs.csv").write_text(HEADER + "x,y\n")
    (tmp_path / "r.csv").write_text("subject,prompt,response\ns,x,1\n")
    files = {"pairs": tmp_path / "pairs.csv", "responses": tmp_path / "r.csv"}
    with pytest.raises(InputError):
        create_study(tmp_path / "study", StudyPlan(**files, rubrics=[load_rubric("refusal")]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs.csv", "r.csv"]


def test_a_folder_in_use_is_left_alone(make_study):
    study = make_study()
    plan = StudyPlan(pairs=study.folder.parent / "pairs.csv", rubrics=[load_rubric("refusal")])
    with pytest.raises(InputError, match="is not empty"):
        create_study(study.folder, plan)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("u1,r1,person,A,", "row 2: rater_kind is 'person'; it must be human, model or"),
        ("u1,r1,human,A,\nu1,r1,human,B,", "row 3: rater 'r1' has already rated item 'u1' in row"),
        ("u1,r1,human,A,\nu2,r1,model,B,", "row 3: rater 'r1' is model here"),
        ("u1,r1,model,A,1.2", "row 2: p_positive is '1.2'; it must be between 0 and 1"),
        ("u1,r1,model,A,much", "row 2: p_positive is 'much'; it must be a number"),
        ("u1,humans,human,A,", "row 2: rater_id is 'humans'; it must be another name"),
        (",r1,model,A,0.5", "row 2: unit_id is ''; it must be filled in"),
    ],
)
def test_bad_ratings_are_named_by_row(tmp_path, rows, says):
    path = tmp_path / "ratings.csv"
    path.write_text("item_id,rater_id,rater_kind,label,p_positive\n" + rows + "\n")
    with pytest.raises(InputError) as raised:
        read_ratings(path)
    assert says in str(raised.value)


def test_unknown_columns_are_units_columns_unless_they_vary(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(
        "unit_id,rater_id,rater_kind,label,topic,comment\n"
        "u1,r1,human,A,tax,fine\nu1,r2,human,B,tax,odd\nu2,r1,human,A,war,\n"
    )
    _, units = read_ratings(path)
    assert list(units) == ["unit_id", "topic"]
    assert units.to_numpy().tolist() == [["u1", "tax"], ["u2", "war"]]


def test_a_unit_in_two_clusters_is_refused(tmp_path):
    path = tmp_path / "ratings.csv"
    rows = "u1,r1,human,A,c1\nu1,r2,human,B,c2\n"
    path.write_text(f"unit_id,rater_id,rater_kind,label,cluster_id\n{rows}")
    with pytest.raises(InputError, match="row 3: item 'u1' has cluster_id 'c2' here and 'c1'"):
        read_ratings(path)
