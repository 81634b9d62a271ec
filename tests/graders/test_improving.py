"""A grader is improved: on parted labels, within its money, the same after any interruption."""

import hashlib
import re
import shlex
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.graders import GradingOptions, RequestLimits, grade
from evenhand.reporting import improving
from evenhand.reporting.analysing import analyse_study, choice_lines
from evenhand.reporting.load import from_study
from evenhand.rubrics import load_rubric
from evenhand.study import Study, open_study
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.decisions import contents_read, ends_of, parts_of
from evenhand.study.store.schema import attacked_grades
from evenhand.study.store.schema import grades as grades_table
from harness.replies import Call, Reply, completion
from harness.studies import with_labels, with_settings
from tests.cases import refused
from tests.graders.bench import Bench
from tests.rubrics.texts import TEXTS

pytestmark = pytest.mark.slow

PAIRS = 60
KIND = load_rubric(TEXTS / "kind.toml")
PROMPT = '''
template = """
{words}
Is the response kind?
{{response}}
Answer yes or no.
"""
answer_line = "last"
'''
SKILL = {"GOOD": 0.97, "POOR": 0.6}
"""How often the server's answer is right, by a word of the prompt; 0.75 under the rubric's text."""
PRICE = 0.01
"""US dollars for a request, by the prices below and the tokens that the server counts."""


def luck(*of: str) -> float:
    return int.from_bytes(hashlib.sha256("|".join(of).encode()).digest()[:6]) / 2**48


def truth(unit: str) -> str:
    return "yes" if luck("truth", unit) < 0.5 else "no"


def said(who: str, unit: str, skill: float) -> str:
    return truth(unit) if luck(who, unit) < skill else {"yes": "no", "no": "yes"}[truth(unit)]


def grades(call: Call) -> Reply:
    """An answer that is right as often as its prompt is good."""
    words = next((word for word in SKILL if word in call.user + call.system), "")
    prompt = re.sub(r"\[\[.+?\]\]|p\d{4}", "", call.user)[:200]
    return completion(said(words + prompt[:40], call.unit, SKILL.get(words, 0.75)))


def candidates(folder: Path, words: Sequence[str] = ("GOOD care", "POOR care", "POOR too")) -> Path:
    folder.mkdir(exist_ok=True)
    for n, each in enumerate(words):
        (folder / f"c{n}.toml").write_text(PROMPT.format(words=each), "utf-8")
    return folder


def labelled(bench: Bench, name: str, **given: object) -> Study:
    """Pairs with labels of three people, and prices by which a request costs a cent."""
    study = bench.study(pairs=PAIRS, rubrics=[KIND], name=name, **given)
    units = sorted(study.rubric_units(KIND))
    people = {who: [said(who, unit, 0.95) for unit in units] for who in ("ann", "ben", "cem")}
    with_labels(study, people, "kind")
    prices = f'\n[prices]\n"{bench.openai}" = {{ input = 11.0, output = 100.0 }}\n'
    return with_settings(study, prices)


def options(bench: Bench, folder: Path | None = None, **more: object) -> improving.ImproveOptions:
    way = GradingOptions(method="label")
    usual = {"rubric": "kind", "grader": bench.openai, "grading": way, "candidates": folder}
    return improving.ImproveOptions(**usual | more)


def changed(study: Study, settings: dict[str, dict[str, object]]) -> Study:
    study.close()
    change_config(study.folder, settings)
    return open_study(study.folder)


def parts_asked(study: Study, bench: Bench) -> set[str]:
    parts = parts_of(study.store, "kind")
    return {parts[call.unit.partition("|")[0]] for call in bench.calls}


FAST = RequestLimits(concurrency=8, wait_scale=0.001)


@pytest.fixture
def study(bench: Bench) -> Study:
    bench.script = grades
    return labelled(bench, "study")


def test_the_best_candidate_is_found_proved_and_told(study, bench, tmp_path):
    found = improving.improve(study, options(bench, candidates(tmp_path / "c")), FAST)
    assert (found.outcome, found.best.origin) == ("better", "c0.toml")
    assert found.gain.low > 0
    assert found.sentence.startswith(f"{found.best.rater_id}, compared with {found.old.rater_id}:")
    assert found.verdict["sentence"] in found.sentence
    assert "+GOOD care" in found.difference
    assert float(found.run.spent) == pytest.approx(PRICE * len(bench.calls), rel=0.01)
    ((rubric, end),) = ends_of(study.store)
    assert (rubric, end["outcome"], end["new"]) == ("kind", "better", found.best.rater_id)
    assert len(end["rounds"][0]["kappas"]) == 4, "candidates that failed are kept too"
    kept = study.folder / "prompts" / f"{found.best.grading.prompt.hash}.toml"
    assert kept.read_text("utf-8") == (tmp_path / "c" / "c0.toml").read_text("utf-8")
    counts = {e.rater_id: (e.already, e.planned, e.scored) for e in found.run.graders}
    assert counts[found.best.rater_id] == (0, 96, 96), "each unit is planned once"
    asked = len(bench.calls)
    assert sum(planned for _, planned, _ in counts.values()) == asked
    study = changed(study, {"names": {found.old.rater_id: "Old"}})
    again = improving.improve(study, options(bench, tmp_path / "c"), FAST)
    assert again.sentence.startswith(f"{found.best.rater_id}, compared with Old:")
    assert len(bench.calls) == asked
    assert (again.gain, again.run.spent) == (found.gain, 0), "the same labels are the same reading"
    assert again.verdict == found.verdict, "what the audit found is part of it at once"
    assert not found.was_known
    assert len(ends_of(study.store)) == 1


def test_a_judge_whose_labels_were_imported_is_beaten_and_never_asked(study, bench, tmp_path):
    judged = [said("their-judge", unit, 0.6) for unit in sorted(study.rubric_units(KIND))]
    with_labels(study, {"their-judge": judged}, "kind", graders=["their-judge"])
    asked = options(bench, candidates(tmp_path / "c", ["GOOD"]), grader="their-judge")
    refused("name a model to try in its place", improving.improve, study, asked, FAST)
    asked = replace(asked, other_graders=[bench.openai])
    forecasts = improving.forecast_improving(study, asked)
    found = improving.improve(study, asked, FAST)
    assert found.old.rater_id == "their-judge"
    assert (found.outcome, found.best.origin) == ("better", "c0.toml")
    assert "their-judge" not in {each.rater_id for each in (*forecasts, *found.run.graders)}
    assert "--- kind" in found.difference, "nobody knows what the judge read"
    assert set(improving.labels_to_learn(study, asked)["agrees"]) == {"yes", "no"}


def test_another_winner_or_other_grades_are_another_reading_and_cost_level(study, bench, tmp_path):
    first = improving.improve(study, options(bench, candidates(tmp_path / "c")), FAST)
    asked = options(bench, candidates(tmp_path / "d", ["GOOD again"]))
    second = improving.improve(study, asked, FAST)
    bench.script = lambda call: completion(
        said(f"{call.nth}", call.unit, 0.97 if "GOOD" in call.user else 0.75)
    )
    third = improving.improve(study, replace(asked, grading=replace(asked.grading, draws=3)), FAST)
    assert [each.gain.look for each in (first, second, third)] == [1, 2, 3]
    assert third.gain.level < second.gain.level


def test_the_budget_is_never_passed_and_more_money_goes_on(study, bench, tmp_path):
    asked, calls = options(bench, candidates(tmp_path / "c")), 0
    for run in range(60):
        found = improving.improve(study, asked, replace(FAST, budget=0.9))
        new, calls = len(bench.calls) - calls, len(bench.calls)
        assert new * PRICE <= 0.9
        assert float(found.run.spent) <= 0.9
        if not found.run.over_budget:
            break
        assert (found.outcome, found.sentence) == ("", "")
        if not run:  # a run that ends early leaves no missing answers
            assert coverage(study, found.old.rater_id) == 1.0
            _, context = analyse_study(study, verify=False)
            missing = {e.rater_id for e in found.candidates} - set(study.ratings()["rater_id"])
            assert not [note for note in context.notes for each in missing if each in note]
    assert run
    assert found.outcome == "better"
    grade_key, trial = ("rater_id", "unit_id", "order", "draw"), ("attack", "target", "side")
    with study.store.read() as connection:
        kept = [
            connection.execute(sa.select(*(table.c[name] for name in key)).distinct()).all()
            for table, key in ((grades_table, grade_key), (attacked_grades, (*grade_key, *trial)))
        ]
    assert sum(map(len, kept)) == calls, "no question is asked twice"


def test_the_report_tells_how_a_grader_was_improved(study, bench, tmp_path):
    def told() -> str:
        facts = analyse_study(study)[1].facts
        (only,) = [value for name, value in facts.items() if name.startswith("improved")]
        return only

    found = improving.improve(study, options(bench, candidates(tmp_path / "c")), FAST)
    first = told()
    assert found.best.rater_id in first
    assert "3 candidates" in first
    spent = f"cost ${PRICE * len(bench.calls):.2f}."
    assert spent in first, "the old grader's grades and the audit too"
    assert (first.count("12 training"), main(shlex.split(found.command)[1:])) == (1, 0)
    improving.improve(study, options(bench, tmp_path / "c"), FAST)
    assert told() == first, "told once, and what grading the rest cost is no part of it"


def coverage(study: Study, grader: str) -> float:
    (row,) = [
        row
        for row in analyse_study(study, verify=False)[0].rows
        if (row["statistic"], row["rater_b"], row["subset"]) == ("coverage", grader, "all")
    ]
    return row["estimate"]


def test_a_grader_that_was_there_before_keeps_its_grades_unless_chosen(study, bench, tmp_path):
    other = f"openai:other-model@{bench.root}/v1"
    price = f'"{other}" = {{ input = 11.0, output = 100.0 }}\n'
    every = GradingOptions(method="label", rubrics=["kind"], scope="all")
    study = with_settings(study, price)
    grade(study, [other], every, FAST)
    (rater,) = study.ratings().query("rater_kind == 'model'")["rater_id"].unique()

    def own() -> int:
        return int((from_study(study).ratings["rater_id"] == rater).sum())

    assert own() == 2 * PAIRS
    asked = replace(options(bench, candidates(tmp_path / "c")), other_graders=[other])
    improving.improve(study, asked, replace(FAST, budget=0.1))
    assert own() == 2 * PAIRS, "a run without money takes nothing away"
    assert improving.improve(study, asked, FAST).best.rater_id != rater
    assert own() == 2 * PAIRS, "it was tried and not chosen"
    bench.script = lambda call: (
        grades(call) if call.body["model"] == "test-model" else completion(truth(call.unit))
    )
    second = with_settings(labelled(bench, "second"), price)
    grade(second, [other], every, FAST)
    won = improving.improve(second, options(bench, None, other_graders=[other]), FAST)
    assert won.best.rater_id == rater
    assert "had grades before it was tried here" in won.sentence
    ((_, end),) = ends_of(second.store)
    assert "had grades before it was tried here" in choice_lines(end)[-1]
    assert judged_on(second, rater) == {"learn", "prove"}, "it was chosen on choose"


def judged_on(study: Study, rater: str) -> set[str]:
    """The parts in which a grader's labels count."""
    ratings, parts = from_study(study).ratings, parts_of(study.store, "kind")
    own = ratings.loc[ratings["rater_id"] == rater, "unit_id"]
    return set(own.str.partition("|")[0].map(parts))


def test_a_text_is_judged_on_nothing_that_led_to_it_whoever_reads_it(study, bench, tmp_path):
    asked = options(bench, candidates(tmp_path / "c"))
    (best, loser, _) = improving.Trial(study, asked).candidates
    one = frozenset(sorted(study.rubric_units(KIND))[:1])
    grade(study, [best.grader], replace(best.grading, units=one, scope="all"), FAST)
    assert improving.improve(study, asked, FAST).best == best
    assert judged_on(study, best.rater_id) == {"prove"}, "a grade before takes nothing back"
    grade(study, [loser.grader], replace(loser.grading, scope="all"), FAST)
    assert judged_on(study, loser.rater_id) == {"choose", "prove"}, "it may hold labels of learn"
    other = replace(best.grading, scope="all", effort="high")
    (rater,) = [e.rater_id for e in grade(study, [best.grader], other, FAST).graders]
    assert rater != best.rater_id
    assert judged_on(study, rater) == {"prove"}


def test_the_command_grades_the_rest_as_the_winner_was_asked(bench: Bench, tmp_path: Path) -> None:
    bench.script = grades
    study = labelled(bench, "a study's folder")
    sent = {"method": "label", "temperature": 0.0, "max_tokens": 77, "seed": 0, "effort": "low"}
    asked = options(bench, candidates(tmp_path / "c"))
    found = improving.improve(study, replace(asked, grading=GradingOptions(draws=1, **sent)), FAST)
    assert found.outcome == "better"

    def settings() -> set[tuple[str, str]]:
        good = [call.body for call in bench.calls if "GOOD" in call.user]
        return {(name, str(at)) for body in good for name, at in body.items() if name != "messages"}

    before = settings()
    bench.calls.clear()
    study.close()
    assert main(shlex.split(found.command)[1:]) == 0
    assert settings() == before > {("temperature", "0.0"), ("seed", "0")}
    assert "77" in dict(before).values()
    with open_study(study.folder) as again:
        assert parts_asked(again, bench) == {"learn"}
        assert (again.ratings()["rater_id"] == found.best.rater_id).sum() == 2 * PAIRS
    frozen = tmp_path / "better.json"
    freeze = ["baseline", "save", str(study.folder), "--file", str(frozen)]
    assert main([*freeze, "--grader", found.best.rater_id]) == 0
    assert frozen.is_file()


def test_labels_that_arrive_meanwhile_wait_for_the_next_run(bench: Bench, tmp_path: Path) -> None:
    study = bench.study(pairs=PAIRS + 3, rubrics=[KIND], name="growing")
    units = sorted(study.rubric_units(KIND))
    first, late = units[: 2 * PAIRS], units[2 * PAIRS :]
    given = {who: [said(who, unit, 0.95) for unit in first] for who in ("ann", "ben", "cem")}
    with_labels(study, given, "kind", units=first)
    arrived: list[str] = []

    def script(call: Call) -> Reply:
        if not arrived:
            arrived.append(call.unit)
            with open_study(study.folder) as other:
                for own in (late, first):
                    with_labels(other, {"dan": [truth(unit) for unit in own]}, "kind", units=own)
        return grades(call)

    bench.script = script
    found = improving.improve(study, options(bench, candidates(tmp_path / "c")), FAST)
    assert arrived
    assert found.outcome == "better"
    assert found.gain.units == 60, "dan's labels are not among them"
    assert len(parts_of(study.store, "kind")) == PAIRS


def test_where_no_gain_can_be_proved_nothing_is_asked(bench: Bench, tmp_path: Path) -> None:
    study = bench.study(pairs=PAIRS, rubrics=[KIND], name="perfect")
    labels = [truth(unit) for unit in sorted(study.rubric_units(KIND))]
    with_labels(study, dict.fromkeys(("ann", "ben"), labels), "kind")
    bench.script = lambda call: completion(truth(call.unit))
    grade(study, [bench.openai], GradingOptions(method="label", rubrics=["kind"]), FAST)
    bench.calls.clear()
    asked = options(bench, candidates(tmp_path / "c"))
    for known in (False, True):  # nor where the parts are known
        refused(r"no gain over .* can be shown", improving.improve, study, asked, FAST)
        assert bench.calls == []
        if not known:
            assert parts_of(study.store, "kind") == {}
            improving.labels_to_learn(study, asked)


def test_a_proof_that_is_hardly_to_be_expected_is_not_begun(study, bench, tmp_path):
    asked = options(bench, candidates(tmp_path / "c", ["POOR"]))
    trial = improving.Trial(study, asked)
    units = [unit for each in trial.clusters_in("choose") for unit in trial.units_by_cluster[each]]
    wrong = [unit for unit in units if said("old", unit, 0.75) != truth(unit)]
    swapped = {*wrong[:9], *[unit for unit in units if unit not in wrong][:8]}

    def script(call: Call) -> Reply:  # the candidate mends nine of the old ones, and spoils eight
        label = said("old", call.unit, 0.75)
        if "POOR" in call.user and call.unit in swapped:
            label = {"yes": "no", "no": "yes"}[label]
        return completion(label)

    bench.script = script
    found = improving.improve(study, asked, FAST)
    assert (found.outcome, found.gain) == ("not_shown", None)
    assert found.best is not None
    assert found.chance < 0.1
    assert "a test on 30 clusters would succeed in" in found.sentence
    assert (parts_asked(study, bench), contents_read(study.store, "kind")) == ({"choose"}, [])
    _, context = analyse_study(study)
    (told,) = [value for name, value in context.facts.items() if name.startswith("improved")]
    assert "gained too little there" in told


def test_where_no_level_is_left_nothing_is_asked(study, bench, tmp_path):
    study = changed(study, {"decision": {"looks": 1}})
    asked = options(bench, candidates(tmp_path / "c"))
    found = improving.improve(study, asked, FAST)
    assert found.outcome == "better"
    bench.calls.clear()
    more = options(bench, candidates(tmp_path / "d", ["GOOD again"]))
    refused("were read 1 times, and no error rate is left", improving.improve, study, more, FAST)
    assert bench.calls == []
    assert improving.improve(study, asked, FAST).gain == found.gain, "it can be told again"
    wider = changed(study, {"decision": {"min_clusters": 60}})
    assert improving.Trial(wider, asked).parts, "parts that are known stand"


def test_other_clusters_than_the_parted_ones_are_refused(study, bench, tmp_path):
    improving.improve(study, options(bench, candidates(tmp_path / "c")), FAST)
    other = changed(study, {"analysis": {"cluster": "unit"}})
    bench.calls.clear()
    with pytest.raises(InputError, match=r"split by 'pair', and analysis\.cluster is now 'unit'"):
        improving.improve(other, options(bench, candidates(tmp_path / "d", ["GOOD again"])), FAST)
    assert bench.calls == []
    withheld = from_study(other).scales["kind"].withheld
    assert len(withheld) == 4, "a report knows the parts by the clusters that were parted"


def test_all_graders_together_have_no_more_requests_under_way_than_one(study, bench, tmp_path):
    lock, under_way, seen = threading.Lock(), [0], []

    def script(call: Call) -> Reply:
        with lock:
            under_way[0] += 1
            seen.append(under_way[0])
        time.sleep(0.01)
        with lock:
            under_way[0] -= 1
        return grades(call)

    bench.script = script
    asked = options(bench, candidates(tmp_path / "c"))
    assert improving.improve(study, asked, replace(FAST, concurrency=3)).outcome == "better"
    assert max(seen) <= 3
