"""Whoever keeps every byte that the server sends cannot tell who wrote what, or what is a check.

In these studies a secret draw says which subject a text is of and which side a prompt is on, and
attention checks are made of the same texts: so what the texts themselves tell is nothing, and
whatever tells more than chance would be the server's doing. Texts of the demo, *synthetic*.
"""

import asyncio
import json
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.rubrics import load_rubric
from evenhand.study import create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.prompts.pairs import read_pairs
from evenhand.study.prompts.units import has_known_answer, parse_unit_id
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.schema import claims
from harness.attacker import Screen, Watcher, guessed_ids, identified, told
from harness.demo.responses import demo_responses
from harness.served import Served
from tests.peers import ensemble, linear_model, pipeline, preprocessing

# It starts the app, as those with a browser do.
pytestmark = [pytest.mark.browser, pytest.mark.thorough]

NAMES = ("gpt-4o", "claude-sonnet-4", "llama-3")
RATERS = ("ann", "ben")
EVERY = 9
CHANCE = 3.9
"""Standard errors above chance that no luck explains: 19 of 20 coins alike, 2 times in 100,000."""


def swapped(row: dict[str, str]) -> dict[str, str]:
    other = {"a": "b", "b": "a"}
    turned = {name: "_".join(other.get(part, part) for part in name.split("_")) for name in row}
    return {name: row[turned[name]] for name in row}


def paired(home: Path, rng: np.random.Generator) -> tuple[Path, list[str]]:
    with as_file(files("evenhand.data") / "demo_pairs.csv") as file:
        known = read_pairs(file)
    some = known.iloc[sorted(rng.choice(len(known), 12, replace=False))]
    made = demo_responses(some, int(rng.integers(1000))).responses
    rows, said, checks = [], [], []
    for number, row in enumerate(some.to_dict("records")):
        turn = bool(rng.integers(2))
        rows.append(swapped(row) if turn else row)
        own = made[made["pair_id"] == row["pair_id"]]
        for name, subject in zip(NAMES, rng.permutation(own["subject"].unique()), strict=False):
            texts = own[own["subject"] == subject].set_index("side")["response"]
            texts = {("b" if side == "a" else "a") if turn else side: texts[side] for side in "ab"}
            if number < 4 and name == NAMES[0]:
                checks.append((rows[-1], texts))
                continue
            said += [(name, rows[-1][f"prompt_{side}"], texts[side]) for side in "ab"]
    rng.shuffle(checks)
    units = [
        (["even-handedness"], {f"prompt_{s}": row[f"prompt_{s}"] for s in "ab"}
         | {f"response_{s}": texts[s] for s in "ab"})
        for row, texts in checks
    ] + [
        (["refusal"], {"prompt": row[f"prompt_{s}"], "response": texts[s]})
        for row, texts in checks for s in "ab"
    ]  # fmt: skip
    pairs = home / "pairs.csv"
    frame = pd.DataFrame(rows).drop(columns=["pair_id", "sample_position"], errors="ignore")
    frame.sample(frac=1, random_state=int(rng.integers(1000))).to_csv(pairs, index=False)
    return study_of(home, said, units, pairs, ["even-handedness", "refusal"])


def study_of(
    home: Path, said: list, units: list, pairs: Path, rubrics: list[str]
) -> tuple[Path, list[str]]:
    """The study: everything in one block, one attention check in every stretch of nine answers."""
    responses = home / "responses.jsonl"
    lines = [json.dumps({"subject": s, "prompt": p, "response": r}) for s, p, r in said]
    responses.write_text("\n".join(lines) + "\n", "utf-8")
    plan = StudyPlan(
        rubrics=[load_rubric(each) for each in rubrics],
        responses=responses, stratify=(), raters_per_unit=50, pairs=pairs,
    )  # fmt: skip
    folder = home / "study"
    create_study(folder, plan)
    with open_study(folder) as study:
        categories = {name: list(each.categories) for name, each in study.rubrics.items()}
        known = study.units("all")["unit_id"].tolist()
    entries = []
    for number, (asked, values) in enumerate(units):
        expected = ", ".join(f"{name} = {json.dumps(categories[name])}" for name in asked)
        shown = ", ".join(f"{key} = {json.dumps(text)}" for key, text in values.items())
        entries.append(f'[[unit]]\nname = "c{number}"\nexpected = {{ {expected} }}\n'
                       f"values = {{ {shown} }}\n")  # fmt: skip
    (folder / "attention.toml").write_text("\n".join(entries), "utf-8")
    change_config(folder, {
        "annotation": {"pairs_per_block": 100},
        "attention": {"file": "attention.toml", "every": EVERY},
    })  # fmt: skip
    return folder, [*known, *(f"check:c{number}" for number in range(len(units)))]


@dataclass
class Truth:
    """What a screen's rater must not know."""

    unit: str
    subject: str
    is_check: bool
    order: str
    cluster: str


def seen_by_all(
    folder: Path, home: Path
) -> tuple[list[list[Screen]], list[bytes], dict[str, Truth]]:
    """Every screen of every rater, all that they received, and what was true of each task."""
    served = Served(folder, home)
    served.start()
    try:
        served.enter(*RATERS)
        watchers = [Watcher(served.port, rater) for rater in RATERS]

        async def work() -> list[list[Screen]]:
            return [await watcher.screens() for watcher in watchers]

        screens = asyncio.run(work())
    finally:
        served.kill()
    truths = {}
    with open_study(folder) as study, study.store.read() as connection:
        for row in connection.execute(sa.select(claims)):
            is_check = has_known_answer(row.unit_id)
            pair, subject, _ = ("", "", "") if is_check else parse_unit_id(row.unit_id)
            cluster = row.unit_id if is_check else pair
            truths[row.task_id] = Truth(row.unit_id, subject, is_check, row.order, cluster)
    return screens, [raw for each in watchers for raw in each.everything], truths


Rows = list[tuple[list[float], Truth, str]]


def guessed(learnt: Rows, asked: Rows, what: str) -> list[list[tuple[float, str]]]:
    """Hit less chance, with its cluster, of a guess at each of `asked` by two ways of learning. A
    check is guessed against each of the items that ask the same, which of the two it is."""
    linear = linear_model.LogisticRegression(max_iter=2000, class_weight="balanced")
    forest = ensemble.RandomForestClassifier(200, class_weight="balanced", random_state=1)
    found = []
    for guesser in (pipeline.make_pipeline(preprocessing.StandardScaler(), linear), forest):
        guesser.fit([row for row, _, _ in learnt], [getattr(t, what) for _, t, _ in learnt])
        chances = guesser.predict_proba([row for row, _, _ in asked])
        own = []
        for chance, (_, truth, rubric) in zip(chances, asked, strict=True):
            if what != "is_check":
                hit = guesser.classes_[chance.argmax()] == getattr(truth, what)
                own.append((float(hit) - 1 / len(chance), truth.cluster))
            elif truth.is_check:
                others = [
                    other[1] for other, (_, real, same) in zip(chances, asked, strict=True)
                    if same == rubric and not real.is_check
                ]  # fmt: skip
                above = np.mean([(chance[1] > each) + (chance[1] == each) / 2 for each in others])
                own.append((float(above) - 0.5, truth.cluster))
        found.append(own)
    return found


def test_no_guess_from_all_that_was_received_is_better_than_chance(tmp_path):
    rng = np.random.default_rng()
    found = []
    for number in range(2):
        home = tmp_path / str(number)
        home.mkdir()
        folder, units = paired(home, rng)
        screens, received, truths = seen_by_all(folder, home)
        assert {truth.unit for truth in truths.values()} <= {*units}
        with open_study(folder) as study:
            rubrics = {name: rubric.hash for name, rubric in study.rubrics.items()}
        told_by_ids = identified(received, guessed_ids(RATERS, units, rubrics))
        assert len(told_by_ids) == 0, f"{len(told_by_ids)} of {len(truths)}"
        assert not any(name.encode() in raw for raw in received for name in (*NAMES, "check:"))
        found.append([
            (screen.features(before, after), truths[screen.task], screen.rubric)
            for of_rater in screens
            for before, screen, after in
            zip([None, *of_rater], of_rater, [*of_rater[1:], None], strict=False)
        ])  # fmt: skip
    assert sum(truth.is_check for rows in found for _, truth, _ in rows) >= 2 * len(RATERS) * 8
    # Learnt on one study with everything known, asked of the other: and the other way round.
    results = {}
    for what in ("subject", "order", "is_check"):
        rows = [[row for row in one if getattr(row[1], what) != ""] for one in found]
        for learnt, asked in (rows, rows[::-1]):
            for by, part in enumerate(guessed(learnt, asked, what)):
                results.setdefault((what, by), []).append(part)
    for kind, parts in results.items():
        flat = [(right, (n, cluster)) for n, part in enumerate(parts) for right, cluster in part]
        above = told(*zip(*flat, strict=True))
        print(kind, f"{above:.1f} standard errors", len(flat))
        assert above < CHANCE, (kind, above)
