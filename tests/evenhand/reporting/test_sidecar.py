"""An export carries what its labels mean, and `check` reads it by itself."""

import json
import random
import re
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis.dataset import Dataset
from evenhand.cli.main import main
from evenhand.reporting.analysing import analyse_file, analyse_source, analyse_study
from evenhand.reporting.exporting import material_of
from evenhand.reporting.gate import compare, gate
from evenhand.reporting.load import from_study, label_hashes, load
from evenhand.reporting.ratings_file import declared
from evenhand.reporting.ratings_file.declared import ScaleOptions, read_sidecar, sidecar_path
from evenhand.study import open_study
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.decisions import look_numbers
from evenhand.study.tables.formats import read_table
from harness.judged_study import LATE, LEADS_WORDS, judged_study, tune_and_exclude
from tests.cases import one_in, refused
from tests.commands import Run


@pytest.fixture(scope="module")
def study_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = judged_study(tmp_path_factory.mktemp("judged"))
    change_config(folder, {"analysis": {"rater_slices": ["age_group"]}})
    with open_study(folder) as study:
        tune_and_exclude(study)
    return folder


@pytest.fixture(scope="module")
def ratings(study_folder: Path) -> Path:
    """What `evenhand export` writes, before anybody has looked at a verdict."""
    out = study_folder.parent / "ratings.csv"
    assert main(["export", str(study_folder), "--out", str(out)]) == 0
    return out


@pytest.mark.slow
def test_the_files_say_what_the_study_says(study_folder: Path, ratings: Path) -> None:
    """Every row and verdict: wordings, thresholds tuned and declared, an exclusion, the cluster,
    groups, leanings, rules, prices, looks. What people said of themselves is not there.
    """
    of_files, context = analyse_file(ratings)
    with open_study(study_folder) as study:
        of_study, _ = analyse_study(study, verify=False, rater_slices=())
    assert [each["verdict"] for each in of_files.verdicts] != []
    assert of_files.verdicts == of_study.verdicts
    assert of_files.results.equals(of_study.results)
    assert "template_category=t0" in set(of_files.results["subset"])
    rows = of_files.results.set_index(["statistic", "rater_b"])
    assert rows.loc[("price_per_1000_units", "paid"), "estimate"] == pytest.approx(2)
    late = [[e.provenance for e in a.thresholds if e.grader == LATE] for a in (of_files, of_study)]
    assert (late[0], context.rubric_titles["refusal"]) == (late[1], "Refusal")


@pytest.mark.slow
def test_an_export_is_no_look_and_a_later_one_counts(tmp_path: Path) -> None:
    folder = judged_study(tmp_path)
    out = tmp_path / "r.csv"
    looks = []
    for _ in range(2):
        assert main(["export", str(folder), "--out", str(out)]) == 0
        found = read_sidecar(out)
        assert found is not None
        looks.append(found.scales["refusal"].look)
        with open_study(folder) as study:
            present = label_hashes(from_study(study))
            assert look_numbers(study.store, present, record=False) == {"refusal": 0}
            look_numbers(study.store, {"refusal": f"other labels {len(looks)}"}, record=True)
    assert looks == [1, 2]


CASES = "pair  15", "unit  30", "topic  10", "pair ann 20", "unit cem 35"


@pytest.mark.parametrize(("cluster", "reference", "clusters"), [case.split(" ") for case in CASES])
def test_a_look_counts_from_as_many_clusters_as_a_verdict_needs(cluster, reference, clusters):
    """Of 20 pairs of items, ann labelled all, ben 30 items, and cem, an adjudicator, 35."""
    ids, people = [f"u{number:02}" for number in range(40)], ["human", "human", "adjudicator"]
    units = pd.DataFrame({"unit_id": ids, "cluster_id": np.arange(40) // 2})
    units["topic"] = units["unit_id"].str[2]
    raters = zip(("ann", "ben", "cem"), people, (40, 30, 35), strict=True)
    rows = [(id_, rater, kind) for rater, kind, count in raters for id_ in ids[:count]]
    ratings = pd.DataFrame(rows, columns=["unit_id", "rater_id", "rater_kind"])
    constant = {"rubric": "tone", "label": "yes", "order": "", "draw": 0, "probabilities": ""}
    ratings = ratings.assign(**constant, p_positive=np.nan)
    settings = {"cluster": cluster, "reference": reference, "min_clusters": int(clusters)}
    dataset = Dataset("labels", ratings, units, {}).changed(**settings)
    present, is_cem = label_hashes(dataset), ratings["rater_id"] == "cem"
    assert present and not label_hashes(dataset.changed(min_clusters=int(clusters) + 1))
    assert label_hashes(replace(dataset, ratings=ratings[::-1])) == present
    others = replace(dataset, ratings=ratings.assign(label=ratings["label"].mask(is_cem, "no")))
    assert (label_hashes(others) == present) == (reference != "cem")
    # A grader with probabilities has a cut to route by if only ann labelled.
    grades = ratings[:40].assign(rater_id="g", rater_kind="model", p_positive=0.9)
    for rows, counts in ((ratings[:40], False), (pd.concat([ratings[:40], grades]), True)):
        alone = replace(dataset, ratings=rows).changed(reference="")
        assert ("tone" in label_hashes(alone)) == counts


@pytest.mark.slow
def test_a_stored_cluster_of_one_row_each_is_a_column(tmp_path: Path) -> None:
    lines = ["item,human1,gpt4", *(f"i{n},{n % 2},{n % 2}" for n in range(4))]
    (tmp_path / "r.csv").write_text("\n".join(lines), "utf-8")
    (tmp_path / "r.scales.toml").write_text('[analysis]\ncluster = "item"\n', "utf-8")
    dataset = load(tmp_path / "r.csv")
    assert (dataset.settings.cluster, dataset.units["item"].nunique()) == ("item", 4)
    (tmp_path / "r.csv").write_text("\n".join([*lines, "i4,99,1"]), "utf-8")
    options = ScaleOptions(kinds={"human1": "human", "gpt4": "model"})
    told = "options from `evenhand check r.csv ... --write-se"
    refused(told, material_of, tmp_path / "r.csv", options=options)


def test_options_win(ratings: Path) -> None:
    given = ScaleOptions(rubric="refusal", thresholds={LATE: 0.7})
    analysis, _ = analyse_source(ratings, replace(given, settings={"margin": 0.3, "resamples": 50}))
    assert (analysis.settings.margin, analysis.settings.resamples) == (0.3, 50)
    assert analysis.settings.cluster == "prompt_a"
    (late,) = [each for each in analysis.thresholds if each.grader == LATE]
    assert (late.threshold, late.origin) == (0.7, "declared")
    assert set(analysis.results["rubric"]) == {"refusal"}
    stable = analysis.results.query("statistic == 'stability_fleiss_kappa' and at == 'rubric'")
    assert not stable.empty, "the rubric's other wording came with it"


@pytest.mark.slow
def test_every_setting_of_the_analysis_travels_and_what_is_said_of_people_does_not(
    study_folder, ratings
):
    found = read_sidecar(ratings)
    assert found is not None
    with open_study(study_folder) as study:
        config, hashes = study.config, study.accepted_hashes()
    assert found.analysis == config.analysis.model_copy(update={"rater_slices": ()})
    assert (found.decision, found.seed) == (config.decision, config.seed)
    assert found.scales["refusal"].look == 1
    assert {name: each.hashes for name, each in found.scales.items()} == hashes
    text = sidecar_path(ratings).read_text("utf-8")
    decision = tomllib.loads(text)["decision"]
    assert set(decision) == {"min_rarer", "looks", "bias_bound"}, "none of the usual"
    assert "dee" in text
    for kept_back in (LEADS_WORDS, "age_group", str(study_folder)):
        assert kept_back not in text


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    """Ratings without a rubric, which are of the only one, and their sidecar."""
    file = tmp_path / "ratings.csv"
    rows = [f"u{n},{who},human,{n % 2}" for n in range(40) for who in ("ann", "ben")]
    file.write_text("\n".join(["unit_id,rater_id,rater_kind,label", *rows]), "utf-8")
    text = '[scales.tone]\ncategories = ["0", "1", "2"]\nlevel = "ordinal"\naffirmative = ["2"]\n'
    sidecar_path(file).write_text(text + "[analysis]\nresamples = 50\n", "utf-8")
    return file


def test_an_option_replaces_what_is_stored_of_its_kind_and_what_excludes_it(by_hand):
    section = declared.FileSection(human=("ann", "ben"), model=("g1",), independent=True)
    grp, alone = {"cluster": "grp"}, ScaleOptions(independent=True)
    found = section.completing(ScaleOptions(kinds={"g2": "model"}, settings=grp))
    assert found.kinds == {"ann": "human", "ben": "human", "g2": "model"}
    assert (found.independent, found.settings) == (False, grp)
    assert section.completing(alone).settings == {"cluster": "unit"}
    for options, absent in ((alone, "cluster"), (ScaleOptions(settings=grp), "independent")):
        assert absent not in declared.write_settings(by_hand, options).read_text("utf-8")


@pytest.mark.journey
def test_a_file_written_by_hand(by_hand, run):
    """A scale is enough; `check` says in one line that it read it."""
    told = run.ok("check", by_hand, "--out", by_hand.parent / "out").splitlines()
    (said,) = [line for line in told if "scales.toml" in line]
    assert said.endswith("come from ratings.scales.toml. Options given here take precedence.")
    rows = read_table(by_hand.parent / "out" / "results.csv")
    assert set(rows["rubric"]) == {"tone"}
    assert "weighted_kappa_quadratic" in set(rows["statistic"])
    sidecar_path(by_hand).unlink()
    assert read_sidecar(by_hand) is None
    sidecar_path(by_hand).mkdir()
    assert "ratings.scales.toml: this is a folder" in run.refused("check", by_hand)


ONE = b'[scales.r]\ncategories = ["1"]\n'
DAMAGED = {
    "no TOML": (b"[scales", "not valid TOML"),
    "bytes": (b"\xff\xfe\x00", "not UTF-8"),
    "nested": (b"a = " + b"[" * 100_000, "not valid TOML"),
    "a number": (b"seed = " + b"9" * 10_000, "not valid TOML"),
    "newer": (b"format = 2", "format"),
    "unknown": (b"colour = 1", "colour is no known key"),
    "steering": (b'"\\u001b[31m" = 1', "?[31m is no known key"),
    "a name that steers": (b'study = "\\u001b]0;me\\u0007"', "study"),
    "elsewhere": (b'units = "../units.csv"', "not the name of a file beside"),
    "absent": (b'units = "gone.csv"', "gone.csv, which is not next to it"),
    "for ever": (b"[analysis]\nresamples = 999999999", "at most 100000"),
    "affirmative": (ONE + b'affirmative = ["9"]', "affirmative names '9'"),
    "collapse": (b'[scales.r]\ncategories = ["1", "2"]\ncollapse = {x = ["1"]}', "place for '2'"),
    "wording": (b'[scales.b]\ncategories = ["1"]\nvariant_of = "a"', "a variant of 'a'"),
    "price": (ONE + b"[scales.r.usage.g]\nattempts = 1\nunits = 1\nlabelled = 1\nunscored = 0\n"
        b"cost_usd = inf", "cost_usd"),
    "tuned": (ONE + b'[[scales.r.tuned]]\ngrader = "g"\nobjective = "kappa"\n'
        b'reference = "humans"\ninstead_of = 0.5\nclusters = []', "none of the thresholds"),
}  # fmt: skip


@pytest.mark.parametrize("fault", DAMAGED)
def test_a_damaged_one_is_one_sentence(by_hand, fault):
    content, says = DAMAGED[fault]
    sidecar_path(by_hand).write_bytes(content)
    sentence = refused("", load, by_hand)
    assert "ratings.scales.toml" in sentence
    assert says in sentence
    assert "\x1b" not in sentence
    assert len(sentence.splitlines()) == 1


# Display names stand wherever a person reads; ids wherever a machine does

LONG = "openai:gpt-5.4@http://10.0.0.1:8000/a/long/path/v1"
OTHER = "anthropic:claude-x"
NAMES = {LONG: "GPT-5.4 <i>x</i> | *y*", "ann17": "Annotator 17", "refusal": "Refusal <b>"}
SCALES = "".join(
    f'[scales.{rubric}]\ntitle = "Old title"\ncategories = ["yes", "no"]\naffirmative = ["yes"]\n'
    for rubric in ("refusal", "tone")
)


def section(names: dict[str, str]) -> str:
    return "[names]\n" + "".join(f"{json.dumps(i)} = {json.dumps(n)}\n" for i, n in names.items())


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """Labels of three annotators and two graders on two rubrics, with their sidecar."""
    rng, rows = random.Random(4), ["unit_id,rubric,rater_id,rater_kind,label"]
    errors = {"ann17": 0.1, "ann2": 0.1, "ann3": 0.12, LONG: 0.08, OTHER: 0.3}
    for rubric in ("refusal", "tone"):
        for unit in range(60):
            truth = rng.random() < 0.5
            for rater, error in errors.items():
                label = "yes" if truth == (rng.random() > error) else "no"
                kind = "model" if ":" in rater else "human"
                rows.append(f"u{unit},{rubric},{rater},{kind},{label}")
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join(rows) + "\n", "utf-8")
    file.with_name("ratings.scales.toml").write_text(section(NAMES) + SCALES, "utf-8")
    return file


def found(ids: list[str], text: str) -> list[str]:  # as words of their own
    return [each for each in ids if re.search(rf"(?<![\w./:-]){re.escape(each)}(?![\w/:-])", text)]


@pytest.mark.slow
def test_a_reader_sees_names_and_a_machine_ids(named: Path, run: Run) -> None:
    said = run.ok("check", named, "--out", named.parent / "named", "--resamples", "50")
    report = named.parent / "named"
    page, text = ((report / f"report.{kind}").read_text("utf-8") for kind in ("html", "md"))
    for shown in (said, page, text):
        assert found(list(NAMES), shown) == []
    assert NAMES[LONG] in said
    assert "Old title" in page
    assert "<i>x" not in page
    assert "&lt;i&gt;x&lt;/i&gt;" in page
    assert r"&lt;i&gt;x&lt;/i&gt; \| \*y\*" in text
    named.with_name("ratings.scales.toml").write_text(SCALES, "utf-8")
    run.ok("check", named, "--out", named.parent / "plain", "--resamples", "50")
    csv, plain = (named.parent / f / "results.csv" for f in ("named", "plain"))
    assert csv.read_bytes() == plain.read_bytes()
    told, before = (json.loads(file.with_name("report.json").read_bytes()) for file in (csv, plain))
    assert (told["names"], told["results"]) == (NAMES, before["results"])
    assert told["study"]["rubric_titles"]["refusal"] == NAMES["refusal"]
    for verdict, same in zip(told["verdicts"], before["verdicts"], strict=True):
        for each, name in ((LONG, NAMES[LONG]), ("on refusal", f"on {NAMES['refusal']}")):
            same["sentence"] = same["sentence"].replace(each, name)
        assert verdict == same


@pytest.mark.journey
@pytest.mark.parametrize(
    ("grader", "rubric"), one_in(3, [LONG, NAMES[LONG]], ["refusal", NAMES["refusal"]])
)
def test_a_grader_is_named_by_either(named: Path, grader: str, rubric: str) -> None:
    options = ScaleOptions(rubric=rubric, settings={"resamples": 20})
    result = gate(named, grader, options=options)
    assert result.as_dict()["grader"] == LONG
    assert found(list(NAMES), " ".join(each.sentence for each in result.checks)) == []
    assert NAMES[LONG] in result.sentence
    assert NAMES[LONG] in compare(named, OTHER, against=grader, options=options).sentence


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ({LONG: "Same", OTHER: "Same"}, f"{LONG} and {OTHER} are both called 'Same'"),
        ({"anthropic:claude-y": "C"}, f"did you mean {OTHER}?"),
        ({LONG: ""}, "it must be 1 to 60 characters"),
        ({LONG: "a\u202eb"}, "it must be 1 to 60 characters"),
        ({LONG: "ann2"}, "which is the id of another"),
    ],
)
def test_bad_names(named: Path, run: Run, names: dict[str, str], complaint: str) -> None:
    named.with_name("ratings.scales.toml").write_text(section(names) + SCALES, "utf-8")
    said = run.refused("check", named, "--out", named.parent / "named")
    assert complaint in said
    assert "ratings.scales.toml" in said
    assert not (named.parent / "named").exists()


@pytest.mark.slow
def test_a_study_with_names(tmp_path: Path, run: Run) -> None:
    folder = judged_study(tmp_path)
    with open_study(folder) as study:
        tune_and_exclude(study)
        ids = [*study.ratings()["rater_id"].unique(), "refusal"]
    plain = tmp_path / "plain"
    shutil.copytree(folder, plain)
    names = {each: f"Name {at}" for at, each in enumerate(ids)}
    change_config(folder, {"names": {**names, "fin": "Nobody"}})
    typo = "is no grader, annotator or rubric here; did you mean fine?"
    said = "".join(run.ok(verb, folder) for verb in ("report", "select"))
    run.ok("report", plain)
    results = [each / "report" / "results.csv" for each in (folder, plain)]
    assert results[0].read_bytes() == results[1].read_bytes()
    page, *others = (
        results[0].with_name(name).read_text("utf-8")
        for name in ("report.html", "report.md", "disagreements.html")
    )
    for shown in (said, re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL), *others):
        assert found(ids, shown.replace(typo, "")) == []
    assert typo in page
    run.ok("export", folder, "--out", tmp_path / "ratings.csv")
    exported = load(tmp_path / "ratings.csv")
    assert exported.names_by_id == names
    with open_study(folder) as study:
        analysis, _ = analyse_study(study, verify=False, rater_slices=())
    assert exported.named().analyse().results.equals(analysis.results)
