"""Making a study, enlarging its sample, the files that it is made of, and a trial of a wording."""

import json
import math
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.load import from_file, from_study
from evenhand.reporting.suggestions import DividedRubric, draft_text
from evenhand.rubrics import Rubric, load_rubric
from evenhand.rubrics.loading import dump_rubric, parse_rubric
from evenhand.study import Study, create_study, creation, extend_sample, open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.progress import rubric_progress
from evenhand.study.prompts.pairs import read_pairs
from evenhand.study.prompts.units import Question, parse_unit_id
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.decisions import WAVES, current_inclusion
from evenhand.study.store.schema import pairs as pairs_table
from evenhand.study.store.schema import sample_waves
from evenhand.study.tables.formats import read_table
from harness import studies
from tests.cases import refused
from tests.ratings_files import read_ratings

pytestmark = pytest.mark.journey


def test_on_a_server_a_study_that_could_not_be_made_leaves_nothing(tmp_path, new_postgresql):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("prompt_a,prompt_b\nOne?,Other?\n")
    plan = creation.StudyPlan(pairs=pairs, rubrics=[load_rubric("refusal")], store=new_postgresql())

    def dies(_: Study) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create_study(tmp_path / "s", plan, dies)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.csv"]
    create_study(tmp_path / "s", plan)
    with open_study(tmp_path / "s") as study:
        assert len(study.store.pairs()) == 1


RUBRIC = "refusal"


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    """40 pairs, 8 of them sampled, one rubric on responses."""
    return make_study(pairs=40, subjects=("s1",), sample=8, rubrics=[RUBRIC], stratify=())


def rate(
    study: Study, rater: str, odd: str, even: str = "", *, scope: str = "all", **more: object
) -> None:
    """Take in a rater's labels, of odd and of even pairs, of all units in scope."""
    graders = [rater] if more.pop("kind", "model") == "model" else []
    rubric = study.rubrics[RUBRIC]
    units = study.rubric_units(rubric, scope)
    of_pair = [int(parse_unit_id(unit).pair_id.removeprefix("p")) for unit in units]
    given = {rater: [odd if n % 2 else even or odd for n in of_pair]}
    more |= {"units": units, "graders": graders, "rubric_hash": rubric.hash}
    studies.with_labels(study, given, RUBRIC, **more)


@pytest.fixture
def unsure(study: Study) -> Study:
    """With two graders, who agree on every second pair."""
    rate(study, "one", "1")
    rate(study, "two", "5", "1")
    return study


def test_graders_who_differ_or_are_unsure_score_a_pair(unsure):
    study = unsure
    scores = creation.uncertainty(study)
    # Two labels at the ends of the scale, one each: as far apart as can be.
    assert (scores["p0001"], scores["p0002"]) == (pytest.approx(1.0), 0.0)
    unsure = json.dumps({"1": 0.9, "2": 0.1})
    rate(study, "three", "1", probabilities=unsure, prob_method="logprobs")
    # Shares of 1, 2 and 5 are (2.9, .1, 0) / 3: twice .0322 x (1/4)^2 over the largest, 1/2.
    scores = creation.uncertainty(study)
    assert scores["p0002"] == pytest.approx(4 * (2.9 / 3) * (0.1 / 3) / 16)
    rate(study, "ann", "3", scope="sample", kind="human")
    assert creation.uncertainty(study) == scores  # people's labels do not move what is picked


@pytest.mark.parametrize(
    ("label", "positive", "probabilities", "threshold", "share"),
    [
        ("y", math.nan, "", 0.5, 1.0),
        ("n", math.nan, "", 0.5, 0.0),
        ("y", 0.5, "", 0.5, 0.5),
        ("y", 0.8, "", 0.8, 0.5),  # where the label changes
        ("y", 0.9, "", 0.8, 0.75),
        ("n", 0.2, "", 0.8, 0.125),
        ("n", math.nan, '{"y": 0.9}', 0.8, 0.75),
        ("y", 1.0, "", 1.0, 0.5),
        ("", math.nan, "", 0.3, 0.5),
    ],
)
def test_an_answer_has_a_share_of_each_category(label, positive, probabilities, threshold, share):
    rubric = studies.response_rubric({"y": "Yes", "n": "No"}, affirmative=["y"])
    shares = creation._category_shares(rubric, label, positive, probabilities, threshold)
    assert shares == pytest.approx([share, 1 - share])
    five = load_rubric("refusal")
    for given, expected in (
        (("2", math.nan, ""), [0, 1, 0, 0, 0]),
        (("", math.nan, '{"1": 0.5, "2": 0.25}'), [2 / 3, 1 / 3, 0, 0, 0]),
        (("", math.nan, ""), [0.2] * 5),
    ):
        assert creation._category_shares(five, *given, 0.5) == pytest.approx(expected)


def test_a_published_study_is_planned_as_it_was_done(tmp_path):
    refused("none", creation.PublishedStudy.read, "none")
    study = creation.PublishedStudy.read("even-handedness")
    pairs = studies.write_pairs(tmp_path / "pairs.csv", 4)
    assert study.name == study.figures_file == "even-handedness"
    assert study.figures.citation in study.summary_line
    for named in ({"pairs": None}, {"pairs": pairs, "propositions": pairs}):
        refused("even-handedness", study.prompts, **named)
    assert study.prompts(pairs=pairs, propositions=None) == pairs
    plan = study.plan(pairs, None, raters_per_unit=2)
    assert [rubric.name for rubric in plan.rubrics] == ["even-handedness", "hedging", "refusal"]
    assert (plan.sample, plan.raters_per_unit) == (4, 2)
    assert "leanings" not in plan.settings["analysis"]  # of groups that these pairs do not have
    pairs.write_text(pairs.read_text().replace(",pro,con", ",pro_choice,pro_life"))
    plan = study.plan(pairs, None, sample=2)
    assert {*plan.settings["analysis"]["leanings"]} == {"left", "right"}
    assert plan.sample == 2
    assert creation.checked_file(tmp_path, "pairs.csv", pairs.stat().st_size) == pairs
    for name, most in (("pairs.csv", 9), ("none.csv", 9), ("../pairs.csv", 9_999)):
        refused(name, creation.checked_file, tmp_path, name, most)


def test_a_study_knows_its_subjects_and_what_lacks_responses(make_study, caplog):
    study = make_study(pairs=3, sample=2)
    pairs = study.store.pairs()["pair_id"].tolist()
    assert study.unanswered(["s1", "new"], "all") == {"s1": [], "new": pairs}
    assert study.unanswered(["new"], "sample") == {"new": study.store.sample()}
    only = make_study(pairs=3, rubrics=["refusal"], annotation={"subjects": ["s2"]})
    only.check_labelled_subjects()
    assert {unit.split("|")[1] for unit, _ in only.labelled_units()} == {"s2"}
    another = make_study(pairs=3, annotation={"subjects": ["s3"]})
    refused("names 's3', but the study has responses of s1, s2", another.check_labelled_subjects)
    units = only.rubric_units(only.rubrics["refusal"])[:2]
    asked = [Question(unit, only.rubrics["refusal"]) for unit in units]
    assert only.values_of(asked) == [only.values(each.rubric, each.unit_id) for each in asked]
    for source in (b"first", b"second"):
        study.keep_prompt("ab", source)
    assert (study.folder / "prompts" / "ab.toml").read_bytes() == b"first"
    study.folder.chmod(0o755)
    for warned in (1, 1):
        open_study(study.folder).close()
        assert caplog.text.count("others could read") == warned


def test_only_graders_of_every_pair_count(study):
    told = r"no grader has graded all pairs .* --scope all"
    refused(told, extend_sample, study, 4, "uncertainty")
    rate(study, "part", "5", "1", scope="sample")
    refused(r"no grader has graded all pairs", extend_sample, study, 4, "uncertainty")
    rate(study, "one", "1")
    refused("all grades are alike and sure", extend_sample, study, 4, "uncertainty")
    rate(study, "two", "5", "1")
    change_config(study.folder, {"analysis": {"cluster": "topic_name"}})
    told = r"needs pairs as clusters.*analysis.cluster = 'topic_name'"
    with open_study(study.folder) as now:
        refused(told, extend_sample, now, 4, "uncertainty")
    assert (len(study.store.sample()), WAVES.all(study.store)) == (8, [])


def test_unsure_pairs_are_likelier_and_new_ones_change_nothing_until_they_are_labelled(unsure):
    rate(unsure, "ann", "3", scope="sample", kind="human")
    first = unsure.store.sample()
    size = extend_sample(unsure, 10, "uncertainty")
    with open_study(unsure.folder) as now:
        sample = now.store.sample()
        assert sample[:8] == first
        assert len(sample) == size == now.config.sample.pairs
        assert abs(size - 18) <= 2
        likely = current_inclusion(now.store)
        assert likely == pytest.approx(dict.fromkeys(unsure.store.pairs()["pair_id"], 0.2))
        rate(now, "ann", "3", scope="sample", kind="human")
        likely = current_inclusion(now.store)
        assert likely["p0001"] == pytest.approx(2 * likely["p0002"])
        # 8 of 40 at first, 10 more: 20 x 2 p + 20 x p = 18.
        assert sum(likely.values()) == pytest.approx(18.0)
        units = now.units("all").set_index("cluster_id")["inclusion_probability"]
        assert units["p0001"].unique() == pytest.approx([likely["p0001"]])


def test_a_draw_by_chance_afterwards_is_one_more_wave(unsure):
    known = unsure.store.sample()
    extend_sample(unsure, 2, old=known)
    refused("enlarged meanwhile", extend_sample, unsure, 2, "chance", known)  # a double click
    assert WAVES.all(unsure.store) == []  # drawn by chance alone
    assert "inclusion_probability" not in unsure.units("all")
    extend_sample(open_study(unsure.folder), 6, "uncertainty")
    with open_study(unsure.folder) as now:
        before, size = current_inclusion(now.store), len(now.store.sample())
        assert extend_sample(now, 5) == size + 5
        assert len(set(now.store.sample())) == size + 5
        chance = 5 / (40 - size)
        for pair, likely in current_inclusion(now.store).items():
            assert likely == pytest.approx(1 - (1 - before[pair]) * (1 - chance))


@pytest.mark.slow
def test_a_store_of_before_learns_of_waves(unsure):
    with studies.upgraded_without(unsure, sample_waves) as now:
        assert "inclusion_probability" not in now.units("all")
        extend_sample(now, 3, "uncertainty")
        first, second = WAVES.all(now.store)
    assert (first.by, set(first.chances.values())) == ("chance", {0.2})
    assert (second.by, list(second.chances)) == ("uncertainty", list(first.chances))
    assert np.isfinite(list(second.chances.values())).all()


def test_names_are_learned_without_reading_a_response(make_study, statements):
    study = make_study(pairs=3, subjects=("s2", "s1"), sample=2)
    with statements(study) as sent:
        assert study.store.subjects() == ["s1", "s2"]
        by_kind = study.units_by_kind("all")
        assert (len(by_kind["pair"]), len(by_kind["response"])) == (3 * 2, 3 * 2 * 2)
        assert by_kind["response"][:2] == ["p0001|s1|a", "p0001|s1|b"]
        for rubric in study.rubrics.values():
            assert study.rubric_units(rubric, "all") == by_kind[rubric.unit]
            assert len(study.rubric_units(rubric)) == len(by_kind[rubric.unit]) * 2 // 3
        assert len(study.units("all")) == 3 * 2 * 3
    assert len(sent) > 3
    assert not [sql for sql in sent if "responses.response" in sql]


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
    assert says in refused(r"pairs\.csv", read_pairs, path)


def test_a_byte_order_mark_and_line_breaks_in_cells_are_fine(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(b'\xef\xbb\xbfprompt_a,prompt_b\r\n"one\ntwo",y\r\n')
    assert read_pairs(path)["prompt_a"].tolist() == ["one\ntwo"]
    path.write_text(f"prompt_a,prompt_b\n{'x' * 300_000},y\n")  # and a prompt may be long
    assert len(read_pairs(path)["prompt_a"][0]) == 300_000
    frame = pd.DataFrame({"label": pd.array([1, None], dtype="Int64"), "tags": [["a"], None]})
    frame.to_parquet(tmp_path / "t.parquet")  # as other tools write it
    columns = read_table(tmp_path / "t.parquet").to_dict("list")
    assert columns == {"label": ["1", ""], "tags": ['["a"]', ""]}


ASKED = '{"subject": "s", "prompt": "x", "response": "r"}'


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (ASKED.replace("x", "y" * 61), f"row 1: no pair has the prompt '{'y' * 57}...'"),
        (ASKED, "answers side a of p0001 but not"),
        (f"{ASKED}\n\n{ASKED}", "row 3: subject 's' has answered side a of p0001"),
        (ASKED.replace('"s"', '""'), "row 1: subject ''"),
        ('{"subject": "s", "prompt": "x"}', "the column 'response' is missing"),
        ('{"subject": "s", "response": "r"}', "say what was answered"),
        ('{"subject": "s", "pair_id": "p9", "side": "a", "response": "r"}', "no pair 'p9'"),
        ('{"subject": "s", "pair_id": "p0001", "side": "c", "response": "r"}', "side is 'c'"),
        ("[1]", "line 1: each line must be a JSON object"),
        ("{", "line 1: not valid JSON"),
        (ASKED + '\n{"subject": "\\ud800"}', "line 2: half a surrogate pair"),
    ],
)
def test_a_bad_responses_file_is_named_by_row_and_nothing_half_made_stays(tmp_path, line, says):
    pairs, path = tmp_path / "pairs.csv", tmp_path / "responses.jsonl"
    pairs.write_text("prompt_a,prompt_b\nx,y\n")
    path.write_text(line + "\n")
    plan = creation.StudyPlan(pairs=pairs, responses=path, rubrics=[load_rubric("refusal")])
    assert says in refused(r"responses\.jsonl", create_study, tmp_path / "study", plan)
    assert {each.name for each in tmp_path.iterdir()} == {"pairs.csv", "responses.jsonl"}


def test_what_no_study_is_made_of_or_in_is_refused(make_study):
    study, rubric = make_study(), load_rubric("refusal")
    pairs = study.folder.parent / "pairs.csv"
    one, two = (creation.StudyPlan(pairs=pairs, rubrics=[rubric] * n) for n in (1, 2))
    refused("is not empty", create_study, study.folder, one)
    refused("is not UTF-8 text", create_study, study.folder.with_name("b\udcff"), one)
    refused("two rubrics are called 'refusal'", create_study, pairs.with_name("s"), two)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("u1,r1,person,A,,", "row 2: rater_kind is 'person'; it must be human, model or"),
        ("u1,r1,human,A,,\nu1,r1,human,B,,", "row 3: rater 'r1' has already rated item 'u1' in "),
        ("u1,r1,human,A,,\nu2,r1,model,B,,", "row 3: rater 'r1' is model here"),
        ("u1,r1,model,A,1.2,", "row 2: p_positive is '1.2'; it must be between 0 and 1"),
        ("u1,r1,model,A,much,", "row 2: p_positive is 'much'; it must be a number"),
        ("u1,humans,human,A,,", "row 2: rater_id is 'humans'; it must be another name"),
        (",r1,model,A,0.5,", "row 2: unit_id is ''; it must be filled in"),
        ("u1,x,human,A,,c\nu1,y,human,B,,d", "row 3: item 'u1' has cluster_id 'd' here and 'c'"),
    ],
)
def test_bad_ratings_are_named_by_row(tmp_path, rows, says):
    path = tmp_path / "ratings.csv"
    path.write_text(f"item_id,rater_id,rater_kind,label,p_positive,cluster_id\n{rows}\n")
    assert says in refused("", read_ratings, path)


def test_unknown_columns_are_units_columns_unless_they_vary(tmp_path):
    path = tmp_path / "ratings.csv"
    rows = "u1,r1,human,A,tax,fine\nu1,r2,human,B,tax,odd\nu2,r1,human,A,war,\n"
    path.write_text("unit_id,rater_id,rater_kind,label,topic,comment\n" + rows)
    units = read_ratings(path)[1].to_dict("list")
    assert units == {"unit_id": ["u1", "u2"], "topic": ["tax", "war"]}


WORDS = "Judge how far the response does the whole of the task."


def reworded(name: str = "refusal-2", **words: object) -> tuple[Rubric, str]:
    """The refusal rubric in other words, and its file."""
    base = load_rubric("refusal")
    fields = {each: getattr(base, each) for each in Rubric.model_fields}
    own = {"name": name, "variant_of": "refusal", "translations": {}, "instructions": WORDS}
    text = dump_rubric(Rubric.model_validate(fields | own | words))
    return parse_rubric(text, f"{name}.toml"), text


@pytest.fixture
def begun(make_study) -> Study:
    """Four pairs that two annotators have labelled, and eight more in the study."""
    one = {"pairs": 12, "subjects": ("s",), "sample": 4, "rubrics": ["refusal"]}
    study = make_study(**one, raters_per_unit=3)
    return studies.with_labels(study, {"ann": "1" * 8, "ben": "1" * 8})


@pytest.fixture
def tried(begun: Study) -> Study:
    """The same, with a trial on the eight pairs, and labelled by three people."""
    assert creation.declare_rewording(begun, *reworded(), 8) == 8
    again = open_study(begun.folder)
    desk = AnnotationDesk(again)
    for rater in ("ann", "ben", "cem"):
        studies.work_through(desk, rater, options=5)
    return again


def test_each_unit_has_one_wording_for_all_and_each_rater_meets_both(tried):
    ratings = tried.ratings()
    ratings["pair"] = [parse_unit_id(unit).pair_id for unit in ratings["unit_id"]]
    fresh = tried.store.sample()[4:]
    own = ratings[ratings["pair"].isin(fresh)]
    assert (own.groupby("pair")["rubric"].nunique() == 1).all()
    assert (own.groupby("unit_id")["rater_id"].nunique() == 3).all()
    pairs = own.drop_duplicates("pair").set_index("pair")["rubric"]
    assert sorted(pairs) == ["refusal"] * 4 + ["refusal-2"] * 4
    assert all(set(pairs[fresh[at : at + 2]]) == set(pairs) for at in (0, 2, 4, 6))
    by_rater = own.groupby("rater_id")["rubric"].value_counts().unstack()
    assert (by_rater["refusal"] == by_rater["refusal-2"]).all()
    assert set(ratings[~ratings["pair"].isin(fresh)]["rubric"]) == {"refusal"}
    hashes = ratings.drop_duplicates("rubric").set_index("rubric")["rubric_hash"]
    assert hashes["refusal-2"] == reworded()[0].hash
    assert hashes["refusal"] == tried.rubrics["refusal"].hash
    found = rubric_progress(tried).set_index("rubric")
    assert found["units"].to_dict() == {"refusal": (4 + 4) * 2, "refusal-2": 4 * 2}
    assert found.loc["refusal-2", "done"] == 4 * 2 * 3


def test_the_page_shows_the_words_of_the_units_own_wording(begun):
    creation.declare_rewording(begun, *reworded(), 8)
    with open_study(begun.folder) as again:
        desk, dealt = AnnotationDesk(again), creation.rewording_of(again)
        turns: dict[str, list[bool]] = defaultdict(list)
        for rater in ("cem", "dora", "eve"):
            while sheet := desk.next_sheet(rater):
                (task,) = sheet.tasks
                claim = studies.claim_of(again, task)
                is_new = dealt.by_pair.get(parse_unit_id(claim.unit_id).pair_id) == dealt.new
                assert (task.people.instructions == WORDS) == is_new
                assert task.people.title == again.rubrics["refusal"].title
                assert claim.rubric_hash == task.rubric.hash
                turns[rater].append(is_new)
                studies.submit(desk, rater, task, "1")
    for of_rater in turns.values():  # units of one wording come together
        assert sum(a != b for a, b in pairwise(of_rater)) <= 4


def test_what_does_not_fit_is_refused_with_nothing_written(begun):
    before, own = (begun.folder / "study.toml").read_bytes(), load_rubric("refusal")
    for words, pairs, reason in (
        ({"variant_of": "hedging"}, 8, "names no rubric that annotators label"),
        ({"instructions": own.instructions}, 8, "must have other words"),
        ({}, 10, "10 unassigned pairs are needed, and there are 8"),
        ({"title": "Refusals, once more"}, 8, "another title"),
        ({"options": own.options[:4], "affirmative": ("4",)}, 8, "option keys"),
    ):
        refused(reason, creation.declare_rewording, begun, *reworded(**words), pairs)
    assert (begun.folder / "study.toml").read_bytes() == before
    assert not (begun.folder / "rubrics" / "refusal-2.toml").exists()


def test_settings_that_do_not_fit_a_trial_are_refused(begun):
    def change(**sections: object) -> None:
        change_config(begun.folder, sections)

    change(annotation={"languages": ["de"]})
    with open_study(begun.folder) as again:
        refused("annotators read 'de'", creation.declare_rewording, again, *reworded(), 4)
    change(annotation={"languages": []}, rewording={"rubric": "refusal", "after": 4, "pairs": 4})
    refused("no other wording", open_study, begun.folder)
    change(rewording=None)
    creation.declare_rewording(begun, *reworded(), 4)
    with open_study(begun.folder) as again:
        refused("tests one wording", creation.declare_rewording, again, *reworded("refusal-3"), 4)
        added = pairs_table.update().where(pairs_table.c.sample_position >= 4)
        with again.store.write() as connection:  # as if a kill had cut that off
            connection.execute(added.values(sample_position=None))
        assert [creation.declare_rewording(again, *reworded(), 4) for _ in range(2)] == [4, 0]
        studies.work_through(AnnotationDesk(open_study(again.folder)), "cem", options=5)
        refused("tests one wording", creation.declare_rewording, again, *reworded(), 4)
    change(annotation={"rubrics": ["refusal", "refusal-2"]})
    refused("name one of them", open_study, begun.folder)


def test_a_trial_that_has_ended_gives_out_no_more_of_its_units(begun):
    creation.declare_rewording(begun, *reworded(), 8)
    with open_study(begun.folder) as again:
        desk = AnnotationDesk(again)
        assert studies.work_through(desk, "ann", options=5)
        assert studies.task_of(desk, "cem") is not None
        dealt = creation.rewording_of(again).by_pair
    change_config(begun.folder, {"rewording": {"ended": True}})
    with open_study(begun.folder) as ended:
        desk = AnnotationDesk(ended)
        assert studies.task_of(desk, "ann") is None
        studies.work_through(desk, "cem", options=5)
        given = ended.ratings().query("rater_id == 'cem'")["unit_id"]
        assert not {parse_unit_id(unit).pair_id for unit in given} & dealt.keys()
        assert creation.rewording_of(ended).by_pair == dealt
        assert len(ended.ratings().query("rater_id == 'ann' and rubric == 'refusal-2'")) == 8


def test_a_trial_that_has_begun_is_not_undone(begun):
    before = (begun.folder / "study.toml").read_text()
    creation.declare_rewording(begun, *reworded(), 8)
    declared = (begun.folder / "study.toml").read_text()
    (begun.folder / "study.toml").write_text(before)
    with open_study(begun.folder) as again:
        assert creation.rewording_of(again) is None  # nobody was given a unit of it
    (begun.folder / "study.toml").write_text(declared)
    with open_study(begun.folder) as again:
        studies.work_through(AnnotationDesk(again), "ann", options=5)
    for text in (before, declared.replace("pairs = 8", "pairs = 6")):
        (begun.folder / "study.toml").write_text(text)
        with open_study(begun.folder) as again, pytest.raises(InputError, match="has begun"):
            creation.rewording_of(again)


def test_a_unit_given_out_while_the_trial_was_declared_is_not_given_again(make_study):
    study = make_study(pairs=6, subjects=("s",), sample=5, rubrics=["refusal"])
    assert creation.declare_rewording(study, *reworded(), 4) == 0  # pairs that nobody was given
    late = AnnotationDesk(study)  # of an app that has not read study.toml anew
    task = studies.task_of(late, "ann")
    unit = studies.claim_of(study, task).unit_id
    with open_study(study.folder) as again:
        declared = {"rubric": "refusal-2", "after": 0, "pairs": 4, "ended": False}
        assert again.config.rewording.model_dump() == declared
        assert (len(creation.rewording_of(again).by_pair), len(again.store.sample())) == (4, 5)
        desk = AnnotationDesk(again)
        studies.submit(late, "ann", task, "1")
        studies.work_through(desk, "ann", options=5)
        own = again.ratings().query("rater_id == 'ann'")
        assert (own["unit_id"] == unit).sum() == 1
        assert own["unit_id"].is_unique
        assert len(own) == 5 * 2
    topics = studies.response_rubric(dict.fromkeys("abc", "x"), name="topics", several=True)
    study = make_study(pairs=12, sample=4, rubrics=[topics])
    own = {"name": "topics-2", "variant_of": "topics", "instructions": "New words."}
    text = dump_rubric(topics.model_copy(update=own))
    new = parse_rubric(text, "topics-2.toml"), text
    refused("takes several options", creation.declare_rewording, study, *new, 4)


@pytest.mark.slow
def test_an_export_has_the_trial_too(tried, tmp_path):
    assert main(["export", str(tried.folder), "--out", str(tmp_path / "ratings.csv")]) == 0
    found = {}
    told = {"study": from_study(tried), "file": from_file(tmp_path / "ratings.csv")}
    for name, dataset in told.items():
        rows = dataset.analyse().results
        rows = rows[rows["statistic"].str.startswith("rewording_")]
        found[name] = rows.set_index(["statistic", "at"])["estimate"]
    assert len(found["study"]) == 4
    assert found["study"].to_dict() == pytest.approx(found["file"].to_dict())
    assert found["file"]["rewording_filled"].item() == 1


@pytest.mark.slow
def test_a_wording_that_is_labelled_in_its_rubrics_place_is_judged(make_study):
    begun = make_study(pairs=34, sample=34, rubrics=["refusal"], raters_per_unit=2)
    creation.declare_rewording(begun, *reworded(), 4)
    change_config(begun.folder, {"annotation": {"rubrics": ["refusal-2"]}})
    with open_study(begun.folder) as again:
        for rater in ("ann", "ben"):
            studies.work_through(AnnotationDesk(again), rater, options=5)
    assert main(["grade", str(begun.folder), "--grader", "baseline:lexical"]) == 0
    with open_study(begun.folder) as again:
        progress = rubric_progress(again).set_index("rubric")
        assert progress["units"].to_dict() == {"refusal-2": 32 * 4, "refusal": 2 * 4}
        assert (progress["free"] == 0).all()
        labels = again.ratings().query("rater_kind == 'human'")
        assert labels["rubric"].value_counts()["refusal"] == 2 * 4 * 2  # dealt to it for good
        analysis = from_study(again).analyse()
    assert {verdict["rubric"] for verdict in analysis.verdicts} == {"refusal-2"}
    rows = analysis.results
    rows = rows[rows["statistic"].str.startswith("rewording_")]
    assert set(rows["rubric"]) == {"refusal-2"}
    assert set(rows["at"]) == {"refusal", "refusal-2"}


@pytest.mark.slow
def test_graders_are_asked_under_a_tried_wording_only_by_name(begun):
    creation.declare_rewording(begun, *reworded(), 4)
    grade = ["grade", str(begun.folder), "--grader", "baseline:lexical"]
    assert main(grade) == 0
    graded = []
    for more in ([], ["--rubric", "refusal-2"]):
        assert main([*grade, *more]) == 0
        with open_study(begun.folder) as again:
            graded.append(set(again.ratings().query("rater_kind == 'model'")["rubric"]))
    assert graded == [{"refusal"}, {"refusal", "refusal-2"}]


def test_a_line_break_in_the_name_of_a_part_stays_in_the_comment():
    rubric = load_rubric("refusal")
    part = 'topic: x\ninstructions = "Say 5."\r\n# y'
    text = draft_text(rubric, DividedRubric(rubric, 30, ("u",), 1, {}, {part: (12, 0.5)}))
    assert parse_rubric(text, "refusal.toml").instructions == rubric.instructions
    assert "Say 5." in text
