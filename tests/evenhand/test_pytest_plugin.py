"""The fixture for other projects' tests, in a pytest run of its own."""

import shutil
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from tests.commands import python

ROOT = Path(__file__).parents[2]
TESTS = """
import sys

def test_without_it():
    assert not [name for name in sys.modules if name.startswith(("evenhand.", "pandas", "numpy"))
                and name != "evenhand.pytest_plugin"]

def test_met(evenhand_gate):
    found = evenhand_gate("ratings.csv", "g", require="coverage >= 1")
    assert found.outcome == "met"

def test_not_met(evenhand_gate):
    evenhand_gate("ratings.csv", "g", require="cohen_kappa > 0.9")

def test_doubt(evenhand_gate):
    evenhand_gate("lone.csv", "g", require="cohen_kappa > 0")

def test_doubt_that_is_let_pass(evenhand_gate):
    evenhand_gate("lone.csv", "g", require="cohen_kappa > 0", undecided="skip")

def test_wrong_use(evenhand_gate):
    evenhand_gate("ratings.csv", "nobody", require="coverage >= 1")

def test_wrong_word(evenhand_gate):
    evenhand_gate("ratings.csv", "g", requires="coverage >= 1")

WIDE = {"human": ["ann", "ben"], "model": "g", "affirmative": "yes", "resamples": 20}
RULE = "coverage >= 1, tpr > 0"

def test_a_table(evenhand_gate):
    import pandas as pd

    table = pd.read_csv("wide.csv")
    for ratings in (table, table.to_dict("list"), table.to_dict("records")):
        evenhand_gate(ratings, "g", require=RULE, **WIDE)

def test_a_file_of_another_tool(evenhand_gate):
    found = evenhand_gate("langfuse.json", "openai/gpt-5-mini", require="coverage >= 0.9")
    assert "Langfuse" in found.notes[0]

def test_units(evenhand_gate):
    evenhand_gate("ratings.csv", "g", require="coverage >= 1", units="units.csv", cluster="topic")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    table = pd.DataFrame(
        [
            (f"u{n}", who, "model" if who == "g" else "human", "yes" if n % each else "no")
            for n in range(40)
            for who, each in (("ann", 3), ("ben", 3), ("g", 2))
        ],
        columns=["unit_id", "rater_id", "rater_kind", "label"],
    )
    table.to_csv(tmp_path / "ratings.csv", index=False)
    table[3:6].to_csv(tmp_path / "lone.csv", index=False)  # one unit
    (tmp_path / "test_grader.py").write_text(TESTS)
    wide = table.pivot(index="unit_id", columns="rater_id", values="label").reset_index()
    wide.to_csv(tmp_path / "wide.csv", index=False)
    units = wide.assign(topic=["tax", "war"] * 20)[["unit_id", "topic"]]
    units.to_csv(tmp_path / "units.csv", index=False)
    shutil.copy(ROOT / "tests" / "exchange" / "files" / "langfuse.json", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_project_gates_its_grader_with_the_fixture(project: Path) -> None:
    words = ["-m", "pytest", "-p", "evenhand.pytest_plugin", "-rA", "-q"]
    words += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:rerunfailures"]
    done = python(*words, cwd=project)
    assert "4 failed, 5 passed, 1 skipped" in done.stdout, done.stdout
    for name in ("without_it", "met"):
        assert f"PASSED test_grader.py::test_{name}" in done.stdout
    assert "not met  cohen_kappa, estimate" in done.stdout
    assert "inconclusive  cohen_kappa, estimate: undefined" in done.stdout
    assert "there is no grader 'nobody' here" in done.stdout
    assert "gate has no argument requires; did you mean require?" in done.stdout


def test_pytest_finds_it_and_pays_nothing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (entry,) = project["entry-points"]["pytest11"].items()
    assert entry == ("evenhand.pytest_plugin", "evenhand.pytest_plugin")
    loaded = (
        "import pytest, sys; before = set(sys.modules); import evenhand.pytest_plugin;"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
        ";print(*[name for name in sys.modules if name.startswith('evenhand.')])"
    )
    rooms, own = python("-c", loaded, cwd=ROOT, check=True).stdout.splitlines()
    assert own == "evenhand.pytest_plugin"
    assert not {"numpy", "pandas", "scipy", "pydantic", "streamlit"} & set(rooms.split())
