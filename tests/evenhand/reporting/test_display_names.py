"""Display names stand wherever a person reads; ids wherever a machine does."""

import json
import random
import re
import shutil
from pathlib import Path

import pytest

from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.gate import compare, gate
from evenhand.reporting.load import load
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study import open_study
from evenhand.study.settings.study_toml import change_config
from harness.judged_study import judged_study, tune_and_exclude
from tests.cases import one_in
from tests.commands import Run

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
def ratings(tmp_path: Path) -> Path:
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


def found(ids: list[str], text: str) -> list[str]:
    """The ids that stand in a text as words of their own."""
    return [each for each in ids if re.search(rf"(?<![\w./:-]){re.escape(each)}(?![\w/:-])", text)]


def test_a_reader_sees_names_and_a_machine_ids(ratings: Path, run: Run) -> None:
    said = run.ok("check", ratings, "--out", ratings.parent / "named")
    report = ratings.parent / "named"
    page, text = ((report / f"report.{kind}").read_text("utf-8") for kind in ("html", "md"))
    for shown in (said, page, text):
        assert found(list(NAMES), shown) == []
    assert NAMES[LONG] in said
    assert "Old title" in page
    assert "<i>x" not in page
    assert "&lt;i&gt;x&lt;/i&gt;" in page
    assert r"&lt;i&gt;x&lt;/i&gt; \| \*y\*" in text
    ratings.with_name("ratings.scales.toml").write_text(SCALES, "utf-8")
    run.ok("check", ratings, "--out", ratings.parent / "plain")
    csv, plain = (ratings.parent / f / "results.csv" for f in ("named", "plain"))
    assert csv.read_bytes() == plain.read_bytes()
    told, before = (json.loads(file.with_name("report.json").read_bytes()) for file in (csv, plain))
    assert told["names"] == NAMES
    assert told["results"] == before["results"]
    assert told["study"]["rubric_titles"]["refusal"] == NAMES["refusal"]
    worded = {"sentence"}
    for verdict, same in zip(told["verdicts"], before["verdicts"], strict=True):
        plain, own = ({k: v for k, v in e.items() if k not in worded} for e in (verdict, same))
        assert plain == own
        expected = same["sentence"]
        for each, name in ((LONG, NAMES[LONG]), ("on refusal", f"on {NAMES['refusal']}")):
            expected = expected.replace(each, name)
        assert verdict["sentence"] == expected


@pytest.mark.parametrize(
    ("grader", "rubric"), one_in(3, [LONG, NAMES[LONG]], ["refusal", NAMES["refusal"]])
)
def test_a_grader_is_named_by_either(ratings: Path, grader: str, rubric: str) -> None:
    options = ScaleOptions(rubric=rubric)
    result = gate(ratings, grader, options=options)
    assert result.as_dict()["grader"] == LONG
    assert found(list(NAMES), " ".join(each.sentence for each in result.checks)) == []
    assert NAMES[LONG] in result.sentence
    with_other = compare(ratings, OTHER, against=grader, options=options)
    assert NAMES[LONG] in with_other.sentence


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ({LONG: "Same", OTHER: "Same"}, f"{LONG} and {OTHER} are both called 'Same'"),
        ({"anthropic:claude-y": "C"}, f"did you mean {OTHER}?"),
        ({LONG: ""}, "it must be 1 to 60 characters"),
        ({LONG: "x" * 61}, "it must be 1 to 60 characters"),
        ({LONG: "a\u0007b"}, "it must be 1 to 60 characters"),
        ({LONG: "a\u202eb"}, "it must be 1 to 60 characters"),
        ({LONG: "ann2"}, "which is the id of another"),
        ({LONG: "humans"}, "which is the id of another"),
    ],
)
def test_bad_names(ratings: Path, run: Run, names: dict[str, str], complaint: str) -> None:
    ratings.with_name("ratings.scales.toml").write_text(section(names) + SCALES, "utf-8")
    said = run.refused("check", ratings, "--out", ratings.parent / "named")
    assert complaint in said
    assert "ratings.scales.toml" in said
    assert not (ratings.parent / "named").exists()


def test_self_preference_knows_families_by_ids(ratings: Path) -> None:
    """A grader that is called by a person's name has the family of its model."""
    units = ["unit_id,subject", *(f"u{at},{('gpt-5', 'claude-x')[at % 2]}" for at in range(60))]
    file = ratings.with_name("units.csv")
    file.write_text("\n".join(units) + "\n", "utf-8")
    dataset = load(ratings, ScaleOptions(units=file))
    plain, named = dataset.analyse(), dataset.named().analyse()
    about = []
    for of in (plain, named):
        rows = [row for row in of.rows if row["statistic"] == "bias_self_preference"]
        who = [named.ids.get(row["rater_a"], row["rater_a"]) for row in rows]
        about.append([(row["at"], w, row["estimate"]) for row, w in zip(rows, who, strict=True)])
    assert about[0]
    assert about[0] == about[1]


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
    assert exported.called == names
    with open_study(folder) as study:
        analysis, _ = analyse_study(study, verify=False, rater_slices=())
    assert exported.named().analyse().results.equals(analysis.results)
