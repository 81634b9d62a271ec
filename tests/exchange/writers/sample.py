"""A few ratings with everything that a writer may meet; synthetic."""

import json

import pandas as pd

from evenhand.exchange.writers import Material, Scale
from evenhand.study.tables.ratings import validate_ratings

AT = "2026-03-02T09:00:30+00:00"
FORMULA = '=HYPERLINK("http://x.example")'
SCALES = {
    "tone": Scale("Tone & manner", {"calm": "Calm <and> kind", "harsh": 'Harsh, "sharp"'}),
    "length": Scale("Length", {"1": "Short", "2": "Long"}),
}


def rating(unit: str, rubric: str, rater: str, label: str, **more: object) -> dict[str, object]:
    kind = "model" if ":" in rater else "human"
    row = {"unit_id": unit, "rubric": rubric, "rater_id": rater, "rater_kind": kind}
    return row | {"label": label, "created_at": AT, "rubric_hash": "0" * 16} | more


def graded(unit: str, label: str, calm: float, **more: object) -> dict[str, object]:
    shares = json.dumps({"calm": calm, "harsh": 1 - calm})
    about = {"p_positive": 1 - calm, "probabilities": shares, "prob_method": "logprobs"}
    return rating(unit, "tone", "openai:gpt-x", label, **about, **more)


RATINGS = [
    rating("u1", "tone", "ann", "calm", seconds=12.5),
    rating("u1", "tone", "ben", "harsh", seconds=30.0),
    rating("u2", "tone", "ann", "harsh", seconds=8.0),
    graded("u1", "calm", 0.75, order="ab"),
    graded("u1", "calm", 0.625, order="ba"),
    graded("u2", "harsh", 0.125, order="ab"),
    rating("u3", "tone", "openai:gpt-x", "", unscored_reason="refusal"),
    rating("u1", "length", "ann", "2"),
    rating("u1", "length", "openai:gpt-x", "1"),
]
COMBINED = [row for row in RATINGS if row.get("order") != "ba"]
UNITS = [
    {"unit_id": "u1", "cluster_id": "c1", "prompt": "Why?", "response": "So.", "topic": FORMULA},
    {"unit_id": "u2", "cluster_id": "c2", "prompt": "How?", "response": "Söß 🙂", "topic": "b"},
    {"unit_id": "u3", "cluster_id": "c3", "prompt": "When?", "response": "", "topic": "c"},
]


def material(*raters: str) -> Material:
    """The sample, of these raters or of all."""

    def table(rows: list[dict[str, object]]) -> pd.DataFrame:
        frame = validate_ratings(pd.DataFrame(rows).astype(object).fillna(""))
        return frame[frame["rater_id"].isin(raters)] if raters else frame

    return Material("Sample", table(RATINGS), table(COMBINED), pd.DataFrame(UNITS), SCALES, True)
