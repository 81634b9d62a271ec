"""The notebooks show what their cells still compute, on the labels as published."""

import pandas as pd
import pytest

pytest.importorskip("nbclient", reason="`make docs` installs what runs a notebook")
pytest.importorskip("ipykernel")

import nbformat

from docs.run_notebooks import NOTEBOOKS, executed

pytestmark = pytest.mark.slow


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    """What the cells printed or gave back, as text."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [each.get("text") or each.data.get("text/plain") for each in outputs]


@pytest.mark.thorough
@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda file: file.name)
def test_it_shows_what_it_computes(notebook, shared_data, tmp_path):
    labels = pd.read_csv(shared_data / "real" / "dices350.csv", dtype=str, keep_default_na=False)
    labels.loc[labels["rater_id"] == "expert", "rater_kind"] = "model"
    labels.to_csv(tmp_path / "dices350.csv", index=False)
    kept = nbformat.read(notebook, as_version=4)
    assert len(shown(kept)) > 5
    assert shown(executed(notebook, tmp_path)) == shown(kept)
