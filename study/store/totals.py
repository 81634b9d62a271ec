"""Totals of labels, and of graders' work and cost, added up from their attempts."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.study.store.schema import grades, is_latest, is_scored, labels, response_attempts
from evenhand.study.tables.ratings import RATING_KEY

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.store.store import Store

TOTALS_COLUMNS = (
    "rater_id", "rubric", "attempts", "units", "labelled", "unscored", "unscored_reasons",
    "low_mass", "without_probabilities", "tokens_input", "tokens_output", "tokens_cached",
    "cached_share", "cost_usd", "models", "asked_by", "first_at", "last_at",
)  # fmt: skip

_GRADER = (grades.c.rater_id, grades.c.rubric)


def all_labels_were_assigned(store: Store) -> bool:
    """Return True if the study's own pages asked for every label by a person, so that no label
    decided who was asked for which unit. Labels that were imported have no text as shown.
    """
    elsewhere = sa.select(sa.func.count()).select_from(labels).where(labels.c.shown_hash == "")
    return store.values(elsewhere) == [0]


def grade_totals(store: Store) -> pd.DataFrame:
    """Return a row for every grader and rubric, in that order: `TOTALS_COLUMNS`.

    `labelled` and `unscored` (with `unscored_reasons`, a JSON object reason -> count) are those of
    the latest attempt at every question. So are, of the labelled, those of `low_mass`, whose tokens
    were mostly no options, and those `without_probabilities` that were asked for. All else is of
    all attempts, and `units` counts the units asked about. `tokens_input` holds those read from the
    provider's cache, `tokens_cached`. `models` is a JSON object: the models that answered, by the
    names they gave, with their replies. `asked_by` is a JSON object: how many of the labels that
    count were asked for in which way.
    Tokens and `cost_usd` are NaN where nothing is known of them: a server without usage, a model
    without a price. Offline graders have no tokens and cost 0.
    """
    import pandas as pd

    current = is_latest(grades, *RATING_KEY)
    facts = grades.c.provenance
    answered = facts["returned_model"].as_string()
    low_mass = facts["low_mass"].as_boolean() & (grades.c.prob_method != "")
    without = (facts["method"].as_string() == "logprobs") & (grades.c.prob_method == "")
    sums = (
        sa.select(
            *_GRADER,
            sa.func.count().label("attempts"),
            sa.func.count(grades.c.unit_id.distinct()).label("units"),
            sa.func.count().filter(current, is_scored).label("labelled"),
            sa.func.count().filter(current, ~is_scored).label("unscored"),
            sa.func.count().filter(current, is_scored, low_mass).label("low_mass"),
            sa.func.count().filter(current, is_scored, without).label("without_probabilities"),
            *(
                sa.func.sum(facts["tokens", kind].as_integer()).label(f"tokens_{kind}")
                for kind in ("input", "output", "cached")
            ),
            sa.func.sum(facts["cost_usd"].as_float()).label("cost_usd"),
            sa.func.min(grades.c.created_at).label("first_at"),
            sa.func.max(grades.c.created_at).label("last_at"),
        )
        .group_by(*_GRADER)
        .order_by(*_GRADER)
    )
    reasons = (
        sa.select(*_GRADER, grades.c.unscored_reason, sa.func.count())
        .where(current, ~is_scored)
        .group_by(*_GRADER, grades.c.unscored_reason)
    )
    way = facts["asked_by"].as_string()
    ways = (
        sa.select(*_GRADER, way, sa.func.count())
        .where(current, is_scored, way != "")
        .group_by(*_GRADER, way)
    )
    models = (
        sa.select(*_GRADER, answered, sa.func.count())
        .where(answered != "")
        .group_by(*_GRADER, answered)
    )
    with store.read() as connection:
        rows = [dict(row._mapping) for row in connection.execute(sums)]
        why = _gathered(connection.execute(reasons))
        who = _gathered(connection.execute(models))
        how = _gathered(connection.execute(ways))
    for row in rows:
        grader = row["rater_id"], row["rubric"]
        row["unscored_reasons"] = json.dumps(dict(why.get(grader, ())))
        row["asked_by"] = json.dumps(dict(how.get(grader, ())))
        row["models"] = json.dumps(one_name_each(dict(who.get(grader, ()))))
    numbers = ["tokens_input", "tokens_output", "tokens_cached", "cost_usd", "cached_share"]
    frame = pd.DataFrame(rows, columns=list(TOTALS_COLUMNS)).astype(dict.fromkeys(numbers, float))
    return frame.assign(cached_share=frame["tokens_cached"] / frame["tokens_input"])


_VERSION = re.compile(r"[-@:](?:20\d\d-?\d\d-?\d\d|\d{3,4}|latest)$")


def models_that_answered(totals: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Return the models that answered for each grader, over all rubrics, with their replies."""
    found: dict[str, Counter[str]] = {}
    for rater, models in zip(totals["rater_id"], totals["models"], strict=True):
        found.setdefault(str(rater), Counter()).update(json.loads(models))
    return {rater: one_name_each(models) for rater, models in found.items() if models}


def one_name_each(replies: Mapping[str, int]) -> dict[str, int]:
    """Return replies by model, the most first; a name and the same name with a version are one.

    >>> one_name_each({"gpt-5": 2, "openai/gpt-5-2025-08-07": 3, "gpt-4o-mini": 9})
    {'gpt-4o-mini': 9, 'openai/gpt-5-2025-08-07': 5}
    """
    merged: dict[str, tuple[str, int]] = {}
    plain = {name: name.rpartition("/")[2].casefold() for name in replies}
    for name in sorted(replies, key=lambda each: -len(plain[each])):  # versions before their alias
        versions = [each for each in merged if _VERSION.sub("", each) == plain[name]]
        key = max(versions, key=lambda each: merged[each][1], default=plain[name])
        shown, count = merged.get(key, (name, 0))
        merged[key] = shown, count + replies[name]
    return dict(sorted(merged.values(), key=lambda each: (-each[1], each[0])))


def spent_so_far(store: Store) -> float:
    """Return the cost of all grades and responses in US dollars, as far as it is known, with what
    was held for replies that never came and may have been billed.
    """
    with store.read() as connection:
        return math.fsum(
            connection.execute(sa.select(sa.func.sum(table.c.provenance[name].as_float()))).scalar()
            or 0.0
            for table in (grades, response_attempts)
            for name in ("cost_usd", "held_usd")
        )


def _gathered(rows: Iterable[Any]) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """Group the rows by (rater, rubric), and return the rest of each row, sorted."""
    found: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for rater, rubric, *rest in rows:
        found.setdefault((rater, rubric), []).append(tuple(rest))
    return {grader: sorted(rest) for grader, rest in found.items()}
