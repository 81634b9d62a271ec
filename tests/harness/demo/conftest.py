"""The demo's pairs and responses, made once for all tests of the demo."""

from importlib.resources import as_file, files

import pandas as pd
import pytest

from evenhand.rubrics import Rubric, load_rubric
from evenhand.study.prompts.pairs import read_pairs
from harness.demo.responses import DemoResponses, demo_responses


@pytest.fixture(scope="session")
def pairs() -> pd.DataFrame:
    with as_file(files("evenhand.data") / "demo_pairs.csv") as path:
        return read_pairs(path)


@pytest.fixture(scope="session")
def demo(pairs: pd.DataFrame) -> DemoResponses:
    return demo_responses(pairs, seed=7)


@pytest.fixture(scope="session")
def rubrics() -> dict[str, Rubric]:
    return {name: load_rubric(name) for name in ("even-handedness", "refusal", "hedging")}
