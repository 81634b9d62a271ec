"""From `grade --scope all` to the report: what nobody labelled is graded and told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.study import Study
from evenhand.study.lead.imports import import_ratings
from evenhand.study.settings.study_toml import change_config
from evenhand.study.tables.formats import read_table
from evenhand.study.tables.ratings import validate_ratings


def rated(study: Study, rater: str, kind: str, scope: str, seed: int) -> pd.DataFrame:
    """Labels (synthetic) of every unit in scope, at random."""
    rng = np.random.default_rng(seed)
    rows = [
        {"unit_id": unit, "rubric": name, "rater_id": rater, "rater_kind": kind}
        | {"label": str(rng.choice(rubric.categories)), "rubric_hash": rubric.hash}
        for name, rubric in study.rubrics.items()
        for unit in study.rubric_units(rubric, scope)
    ]
    return validate_ratings(pd.DataFrame(rows))


@pytest.mark.slow
def test_everything_graded_reaches_the_report(
    make_study: Callable[..., Study], tmp_path: Path
) -> None:
    study = make_study(pairs=24, sample=10)
    for seed, person in enumerate(("ann", "ben")):
        import_ratings(study, rated(study, person, "human", "sample", seed), person)
    import_ratings(study, rated(study, "dice", "model", "all", 7), "dice")
    folder = str(study.folder)
    assert main(["grade", folder, "--grader", "baseline:lexical", "--scope", "all"]) == 0
    change_config(study.folder, {"analysis": {"resamples": 100}})
    assert main(["report", folder, "--out", str(tmp_path / "out")]) == 0

    results = read_table(tmp_path / "out" / "results.csv")
    whole = results[results["subset"] == "all|binary"]
    raw = whole[whole["statistic"] == "rate_raw"]
    assert set(raw["rater_b"]) == {"dice", "baseline:lexical"}
    assert set(raw["at"]) == {"s1", "s2"}
    assert set(raw["n_units"]) == {"24"}
    ppi = whole[(whole["statistic"] == "rate_ppi") & (whole["rater_b"] == "dice")]
    assert set(ppi["note"]) == {"10 of them labelled by people"}
    # What is compared with people stays on the sample: 10 pairs of 2 subjects, and their responses.
    beside = results[(results["rater_a"] == "humans") & (results["rater_b"] == "dice")]
    agreement = beside[(beside["statistic"] == "observed_agreement") & (beside["subset"] == "all")]
    assert set(agreement["n_units"]) == {"20", "40"}
