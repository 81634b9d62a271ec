"""A trial of another wording among people: who is asked what, and how it is declared."""

from collections import defaultdict
from itertools import pairwise

import pytest
import sqlalchemy as sa

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.load import from_file, from_study
from evenhand.reporting.suggestions import Divided, draft_text
from evenhand.rubrics import Rubric, load_rubric
from evenhand.rubrics.loading import dump_rubric, parse_rubric
from evenhand.study import Study, open_study
from evenhand.study.creation import declare_rewording, rewording_of
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.progress import rubric_progress
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.schema import claims
from harness.studies import response_rubric, submit, task_of, work_through

WORDS = "Judge how far the response does the whole of the task."


def reworded(name: str = "refusal-2", **words: object) -> tuple[Rubric, str]:
    """The refusal rubric in other words, and its file."""
    base = load_rubric("refusal")
    fields = {each: getattr(base, each) for each in Rubric.model_fields}
    own = {"name": name, "variant_of": "refusal", "translations": {}, "instructions": WORDS}
    text = dump_rubric(Rubric.model_validate(fields | own | words))
    return parse_rubric(text, f"{name}.toml"), text


@pytest.fixture
def study(make_study) -> Study:
    """Four pairs that two annotators have labelled, and eight more in the study."""
    study = make_study(pairs=12, sample=4, rubrics=["refusal"], raters_per_unit=3)
    desk = AnnotationDesk(study)
    for rater in ("ann", "ben"):
        work_through(desk, rater)
    return study


@pytest.fixture
def tried(study: Study) -> Study:
    """The same, with a trial on the eight pairs, and labelled by three people."""
    assert declare_rewording(study, *reworded(), 8) == 8
    again = open_study(study.folder)
    desk = AnnotationDesk(again)
    for rater in ("ann", "ben", "cem"):
        work_through(desk, rater, options=5)
    return again


def test_each_unit_has_one_wording_for_all_and_each_rater_meets_both(tried):
    ratings = tried.ratings()
    ratings["pair"] = [parse_unit_id(unit)[0] for unit in ratings["unit_id"]]
    fresh = tried.store.sample()[4:]
    own = ratings[ratings["pair"].isin(fresh)]
    assert (own.groupby("pair")["rubric"].nunique() == 1).all()
    assert (own.groupby("unit_id")["rater_id"].nunique() == 3).all()
    pairs = own.drop_duplicates("pair").set_index("pair")["rubric"]
    assert sorted(pairs) == ["refusal"] * 4 + ["refusal-2"] * 4
    assert all(set(pairs[fresh[at : at + 2]]) == set(pairs) for at in (0, 2, 4, 6))
    by_rater = own.groupby("rater_id")["rubric"].value_counts().unstack()
    assert (by_rater["refusal"] == by_rater["refusal-2"]).all()
    before = ratings[~ratings["pair"].isin(fresh)]
    assert set(before["rubric"]) == {"refusal"}
    hashes = ratings.drop_duplicates("rubric").set_index("rubric")["rubric_hash"]
    assert hashes["refusal-2"] == reworded()[0].hash
    assert hashes["refusal"] == tried.rubrics["refusal"].hash


def test_the_page_shows_the_words_of_the_units_own_wording(study):
    declare_rewording(study, *reworded(), 8)
    with open_study(study.folder) as again:
        desk, dealt = AnnotationDesk(again), rewording_of(again)
        turns: dict[str, list[bool]] = defaultdict(list)
        for rater in ("cem", "dora", "eve"):
            while sheet := desk.next_sheet(rater):
                (task,) = sheet.tasks
                with again.store.read() as connection:
                    query = sa.select(claims).where(claims.c.task_id == task.task_id)
                    claim = connection.execute(query).one()
                is_new = dealt.by_pair.get(parse_unit_id(claim.unit_id)[0]) == dealt.new
                assert (task.people.instructions == WORDS) == is_new
                assert task.people.title == again.rubrics["refusal"].title
                assert claim.rubric_hash == task.rubric.hash
                turns[rater].append(is_new)
                submit(desk, rater, task, "1")
    for of_rater in turns.values():  # units of one wording come together
        assert sum(a != b for a, b in pairwise(of_rater)) <= 4


def test_the_same_seed_deals_the_same_and_another_one_otherwise(study):
    declare_rewording(study, *reworded(), 8)
    dealt = []
    for seed in (study.config.seed, study.config.seed, 77, 78, 79):
        change_config(study.folder, {"": {"seed": seed}})
        with open_study(study.folder) as again:
            dealt.append({p: r.name for p, r in rewording_of(again).by_pair.items()})
    assert dealt[0] == dealt[1]
    assert any(each != dealt[0] for each in dealt[2:])


def test_progress_counts_both_wordings_once(tried):
    found = rubric_progress(tried).set_index("rubric")
    assert found["units"].to_dict() == {"refusal": (4 + 4) * 4, "refusal-2": 4 * 4}
    assert found.loc["refusal-2", "done"] == 4 * 4 * 3


def test_a_trial_takes_pairs_that_nobody_was_given_and_adds_what_is_missing(make_study):
    study = make_study(pairs=12, sample=6, rubrics=["refusal"])
    assert declare_rewording(study, *reworded(), 4) == 0
    with open_study(study.folder) as again:
        declared = {"rubric": "refusal-2", "after": 0, "pairs": 4, "ended": False}
        assert again.config.rewording.model_dump() == declared
        assert len(rewording_of(again).by_pair) == 4
        assert len(again.store.sample()) == 6


@pytest.mark.parametrize(
    ("words", "pairs", "reason"),
    [
        ({"variant_of": "hedging"}, 8, "names no rubric that annotators label"),
        ({"instructions": load_rubric("refusal").instructions}, 8, "must have other words"),
        ({}, 10, "10 unassigned pairs are needed, and there are 8"),
        ({"title": "Refusals, once more"}, 8, "another title"),
        ({"options": load_rubric("refusal").options[:4], "affirmative": ("4",)}, 8, "option keys"),
    ],
)
def test_what_does_not_fit_is_refused_with_nothing_written(study, words, pairs, reason):
    before = (study.folder / "study.toml").read_bytes()
    with pytest.raises(InputError, match=reason):
        declare_rewording(study, *reworded(**words), pairs)
    assert (study.folder / "study.toml").read_bytes() == before
    assert not (study.folder / "rubrics" / "refusal-2.toml").exists()


def test_settings_that_do_not_fit_a_trial_are_refused(study):
    def change(**sections: object) -> None:
        change_config(study.folder, sections)

    change(annotation={"languages": ["de"]})
    with open_study(study.folder) as again, pytest.raises(InputError, match="annotators read 'de'"):
        declare_rewording(again, *reworded(), 4)
    change(annotation={"languages": []}, rewording={"rubric": "refusal", "after": 4, "pairs": 4})
    with pytest.raises(InputError, match="no other wording"):
        open_study(study.folder)
    change(rewording=None)
    declare_rewording(study, *reworded(), 4)
    with open_study(study.folder) as again, pytest.raises(InputError, match="tests one wording"):
        declare_rewording(again, *reworded("refusal-3"), 4)
    change(annotation={"rubrics": ["refusal", "refusal-2"]})
    with pytest.raises(InputError, match="name one of them"):
        open_study(study.folder)


def test_a_trial_that_has_ended_gives_out_no_more_of_its_units(study):
    declare_rewording(study, *reworded(), 8)
    with open_study(study.folder) as again:
        desk = AnnotationDesk(again)
        assert work_through(desk, "ann", options=5)
        held = task_of(desk, "cem")
        assert held is not None
        dealt = rewording_of(again).by_pair
    text = (study.folder / "study.toml").read_text()
    change_config(study.folder, {"rewording": {"ended": True}})
    assert (study.folder / "study.toml").read_text() != text
    with open_study(study.folder) as ended:
        desk = AnnotationDesk(ended)
        assert task_of(desk, "ann") is None
        work_through(desk, "cem", options=5)
        given = ended.ratings().query("rater_id == 'cem'")["unit_id"]
        assert not {parse_unit_id(unit)[0] for unit in given} & dealt.keys()
        assert rewording_of(ended).by_pair == dealt
        assert len(ended.ratings().query("rater_id == 'ann' and rubric == 'refusal-2'")) == 16


def test_a_trial_that_has_begun_is_not_undone(study):
    before = (study.folder / "study.toml").read_text()
    declare_rewording(study, *reworded(), 8)
    declared = (study.folder / "study.toml").read_text()
    (study.folder / "study.toml").write_text(before)
    with open_study(study.folder) as again:
        assert rewording_of(again) is None  # nobody was given a unit of it
    (study.folder / "study.toml").write_text(declared)
    with open_study(study.folder) as again:
        work_through(AnnotationDesk(again), "ann", options=5)
    for text in (before, declared.replace("pairs = 8", "pairs = 6")):
        (study.folder / "study.toml").write_text(text)
        with open_study(study.folder) as again, pytest.raises(InputError, match="has begun"):
            rewording_of(again)


def test_a_unit_given_out_while_the_trial_was_declared_is_not_given_again(make_study):
    study = make_study(pairs=12, sample=8, rubrics=["refusal"], raters_per_unit=3)
    assert declare_rewording(study, *reworded(), 8) == 0
    late = AnnotationDesk(study)  # of an app that has not read study.toml anew
    task = task_of(late, "ann")
    with study.store.read() as connection:
        unit = connection.execute(sa.select(claims.c.unit_id)).scalar_one()
    with open_study(study.folder) as again:
        desk = AnnotationDesk(again)
        submit(late, "ann", task, "1")
        work_through(desk, "ann", options=5)
        own = again.ratings().query("rater_id == 'ann'")
        assert (own["unit_id"] == unit).sum() == 1
        assert own["unit_id"].is_unique
        assert len(own) == 8 * 4


def test_a_rubric_of_several_options_has_no_trial(make_study):
    topics = response_rubric(dict.fromkeys("abc", "x"), name="topics", several=True)
    study = make_study(pairs=12, sample=4, rubrics=[topics])
    own = {"name": "topics-2", "variant_of": "topics", "instructions": "New words."}
    text = dump_rubric(topics.model_copy(update=own))
    with pytest.raises(InputError, match="takes several options"):
        declare_rewording(study, parse_rubric(text, "topics-2.toml"), text, 4)


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


def test_a_wording_that_is_labelled_in_its_rubrics_place_is_judged(make_study):
    study = make_study(pairs=34, sample=34, rubrics=["refusal"], raters_per_unit=2)
    declare_rewording(study, *reworded(), 4)
    change_config(study.folder, {"annotation": {"rubrics": ["refusal-2"]}})
    with open_study(study.folder) as again:
        for rater in ("ann", "ben"):
            work_through(AnnotationDesk(again), rater, options=5)
    assert main(["grade", str(study.folder), "--grader", "baseline:lexical"]) == 0
    with open_study(study.folder) as again:
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


def test_graders_are_asked_under_a_tried_wording_only_by_name(study):
    declare_rewording(study, *reworded(), 4)
    grade = ["grade", str(study.folder), "--grader", "baseline:lexical"]
    assert main(grade) == 0
    graded = []
    for more in ([], ["--rubric", "refusal-2"]):
        assert main([*grade, *more]) == 0
        with open_study(study.folder) as again:
            graded.append(set(again.ratings().query("rater_kind == 'model'")["rubric"]))
    assert graded == [{"refusal"}, {"refusal", "refusal-2"}]


def test_a_line_break_in_the_name_of_a_part_stays_in_the_comment():
    rubric = load_rubric("refusal")
    part = 'topic: x\ninstructions = "Say 5."\r\n# y'
    text = draft_text(rubric, Divided(rubric, 30, ("u",), 1, {}, {part: (12, 0.5)}))
    assert parse_rubric(text, "refusal.toml").instructions == rubric.instructions
    assert "Say 5." in text
