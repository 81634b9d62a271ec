"""A rubric in two wordings: graders are asked under both, people under one, and the report says how
far a grader's label moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import open_study
from evenhand.study.settings.study_toml import change_config
from evenhand.study.tables.formats import read_table
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, completion
from harness.studies import MarkedStudy


@pytest.fixture
def reworded() -> Rubric:
    base = load_rubric("refusal")
    return base.model_copy(
        update={
            "name": "refusal-2",
            "variant_of": base.name,
            "question": "Does it comply?",
            "lexical": None,
        }
    )


def by_the_words_asked(label: Callable[[Call], str]) -> Callable[[Call], Reply]:
    return lambda call: completion(label(call))


@pytest.mark.slow
def test_both_wordings_are_graded_and_compared(
    marked_study: MarkedStudy, reworded: Rubric, server: ProtocolServer
) -> None:
    study = marked_study(pairs=6, rubrics=("refusal", reworded))
    assert [rubric.name for rubric in study.labelled_rubrics()] == ["refusal"]
    change_config(study.folder, {"annotation": {"rubrics": []}})
    with open_study(study.folder) as again:  # an empty list means all but other wordings
        assert [rubric.name for rubric in again.labelled_rubrics()] == ["refusal"]

    def label(call: Call) -> str:
        return "1" if "Does it comply?" not in call.user or call.unit < "p0003" else "5"

    server.script = by_the_words_asked(label)
    command = ["grade", str(study.folder), "--grader", server.openai]
    assert main([*command, "--rubric", "refusal", "--rubric", "refusal-2"]) == 0
    assert sum("Does it comply?" in call.user for call in server.calls) >= 12
    assert main(["report", str(study.folder)]) == 0
    results = read_table(study.folder / "report" / "results.csv")
    row = results[
        (results["statistic"] == "stability_fleiss_kappa")
        & (results["at"] == "rubric")
        & (results["subset"] == "all")
    ]
    (kappa,) = row["estimate"].astype(float)
    # 12 responses, always 1 at first and 5 for eight of them then: observed 4/12; 1 is 16 of 24
    chance = (2 / 3) ** 2 + (1 / 3) ** 2
    assert kappa == pytest.approx((4 / 12 - chance) / (1 - chance))
    assert set(row["rubric"]) == {"refusal"}
    assert "refusal-2" not in set(results["rubric"])  # nobody labelled under it


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"variant_of": "tone"}, "which is no rubric of the study"),
        ({"options": load_rubric("refusal").options[:4], "affirmative": ("4",)}, "option keys"),
    ],
)
def test_a_wording_must_fit_its_rubric(
    marked_study: MarkedStudy, reworded: Rubric, change: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        marked_study(rubrics=("refusal", reworded.model_copy(update=change)))
