"""Settings by name: what is unknown or out of range is one clear sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from evenhand.errors import InputError
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, with_changes
from evenhand.study.settings.sections import Section, fault_of
from evenhand.study.settings.study_toml import StudyConfig

CASES = [
    ({"margin": 0}, "margin is 0; it must be greater than 0"),
    ({"margin": 5}, "margin is 5; it must be less than 2"),
    ({"resamples": "many"}, "resamples is 'many'; it must be a valid integer"),
    ({"interval": "exact"}, "interval is 'exact'; it must be 'percentile' or 'bca'"),
    ({"min_coverage": 2}, "min_coverage is 2; it must be less than or equal to 1"),
    ({"slices": "topic"}, "slices is 'topic'; it must be a valid tuple"),
    ({"leanings": {"left": ["x"]}}, "leanings names left; name the two that are to be compared"),
    ({"marginn": 1}, "'marginn' is no setting of the analysis; did you mean 'margin'?"),
    ({"usage": None}, "'usage' is no setting of the analysis; there are leanings, families"),
    (
        {"ensembles": [["g", "h"]]},
        "'ensembles' was removed: reports no longer show several graders",
    ),
]


@pytest.mark.parametrize(("changes", "sentence"), CASES)
def test_a_wrong_setting_is_one_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        with_changes(AnalysisSettings(), DecisionSettings(), changes)
    assert str(raised.value).startswith(sentence)


def test_changes_reach_the_section_that_has_them() -> None:
    before = AnalysisSettings(slices=("topic",)), DecisionSettings(min_clusters=50)
    settings, decision = with_changes(*before, {"margin": 0.2, "bias_bound": 0.3})
    assert (settings.margin, settings.slices) == (0.2, ("topic",))
    assert (decision.bias_bound, decision.min_clusters) == (0.3, 50)


def test_a_column_named_twice_is_one() -> None:
    assert AnalysisSettings(slices=("topic", "side", "topic")).slices == ("topic", "side")


@pytest.mark.parametrize("kind", [AnalysisSettings, StudyConfig])
def test_a_setting_that_went_is_accepted_empty_and_named_otherwise(kind: type[Section]) -> None:
    """`new` of earlier versions wrote `ensembles = []` into each study.toml."""

    def read(ensembles: list[list[str]]) -> Section:
        analysis = {"margin": 0.2, "ensembles": ensembles}
        whole = {"name": "s", "seed": 1, "sample": {"pairs": 3}, "analysis": analysis}
        return kind.model_validate(whole if kind is StudyConfig else analysis)

    settings = read([])
    assert getattr(settings, "analysis", settings).margin == 0.2
    with pytest.raises(ValidationError) as raised:
        read([["g", "h"]])
    assert fault_of(raised.value).endswith(
        "ensembles was removed: reports no longer show several graders combined into one; delete it"
    )


def test_the_settings_load_neither_a_store_nor_a_table() -> None:
    script = (
        "import sys, evenhand.study.settings.analysis, evenhand.study.settings.analysis\n"
        "print(sorted({'pandas', 'numpy', 'sqlalchemy', 'tomlkit'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
