"""A dataset folder for the Hugging Face Hub: Parquet files and the card that describes them.

https://huggingface.co/docs/hub/datasets-cards
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

from evenhand.exchange.writers.material import Made, Material
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

_TABLES = ("ratings", "units")


def hugging_face(material: Material) -> Made:
    """`README.md`, `ratings.parquet` and `units.parquet`: every column of both tables, read by
    `datasets.load_dataset(FOLDER, "ratings")`.
    """
    files = {
        "README.md": _card(material).encode(),
        "ratings.parquet": _parquet(material.ratings),
        "units.parquet": _parquet(material.units),
    }
    return Made(files, len(material.ratings), [written("writers.agreed")])


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _card(material: Material) -> str:
    """The card; JSON texts and lists are YAML."""
    ratings = material.ratings
    people = ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique()
    models = sorted(ratings.loc[ratings["rater_kind"] == "model", "rater_id"].unique())
    tags = ["evenhand", *(["synthetic"] if material.synthetic else [])]
    head = [
        "---",
        f"pretty_name: {json.dumps(material.name, ensure_ascii=False)}",
        f"tags: {json.dumps(tags)}",
        "configs:",
        *(f"- {{config_name: {name}, data_files: {name}.parquet}}" for name in _TABLES),
        "---",
    ]
    body = [
        f"# {_line(material.name)}",
        written(
            "writers.card",
            ratings=len(ratings),
            units=ratings["unit_id"].nunique(),
            people=people,
            models=len(models),
        ),
        *([written("writers.card_synthetic")] if material.synthetic else []),
        "## Rubrics",
        "\n".join(_rubric_line(material, rubric) for rubric in sorted(material.scales)),
        *(["## Models", "\n".join(f"- `{_line(each)}`" for each in models)] if models else []),
        "## Tables",
        written("writers.card_ratings"),
        written("writers.card_units"),
        written("writers.card_made"),
    ]
    return "\n".join(head) + "\n\n" + "\n\n".join(body) + "\n"


def _rubric_line(material: Material, rubric: str) -> str:
    scale = material.scales[rubric]
    labels = ", ".join(f"`{_line(key)}` {_line(name)}" for key, name in scale.labels.items())
    return f"- **{_line(scale.title)}** (`{_line(rubric)}`): {labels}"


def _line(text: str) -> str:
    """A text on one line, without characters that would end its field."""
    return " ".join(text.replace("`", "'").split())
