"""Freeze everything that a user sees in a folder, to show that a move in the code changes nothing.

    python -m harness.frozen BEFORE
    ... the move ...
    python -m harness.frozen AFTER
    python -m harness.frozen --compare BEFORE AFTER

It runs the command line as users do, each command in a process, two at a time, and `evenhand.check`
and `analyse` in this one: on both demos, the README's labels, synthetic studies with what an
analysis can have in it, and, where EVENHAND_SHARED has them, real labels. `harness.frozen_pages`
adds pages, stores and requests. What it writes is the same from run to run, to the byte:
`normalised` says what is taken out. Data sets that are absent are named in `left-out.txt`.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pandas as pd

from evenhand.rubrics.loading import rubric_text
from harness.studies import write_pairs, write_responses

ROOT = Path(__file__).resolve().parents[1]
REAL = ROOT / os.environ.get("EVENHAND_SHARED", "../shared") / "data" / "real"
AT_ONCE = 2
"""Commands, each of which may start processes of its own."""
KEPT = "out"
"""What is frozen of a case's folder; commands write there."""
SHOWN = 40
"""Most files that a comparison names."""
_WINDOW = 160
"""Characters shown of a line that differs, from a little before the difference."""
_SHOWN_FILES = (".csv", ".json", ".jsonl", ".md", ".toml", ".xml")
_LONGEST_SHOWN = 10_000
"""The characters of a written file up to which a transcript has it."""


@dataclass(frozen=True)
class Case:
    """Files made in a folder, and the commands run there, one a line: `NAME: words`.

    `also` are files and folders that are frozen besides what is written to `out`.
    """

    name: str
    commands: str
    make: Callable[[Path], None] = lambda folder: None
    needs: str = ""
    """A file of REAL."""
    also: tuple[str, ...] = ()

    def steps(self) -> Iterator[tuple[str, list[str]]]:
        """Return each command's name and words."""
        for line in filter(None, map(str.strip, self.commands.splitlines())):
            name, _, words = line.partition(": ")
            yield name, shlex.split(words)


# The studies


def _draw_ratings(
    keep: Mapping[str, float], units: int = 240, seed: int = 4, per_cluster: int = 3
) -> pd.DataFrame:
    """Return synthetic yes-or-no ratings, in which each rater keeps the truth with a given
    probability; ann, ben, cy and dee are annotators. Units have cluster, topic, side, groups,
    wording and inclusion probability.
    """
    rng = np.random.default_rng(seed)
    truth = rng.random(units) < 0.5
    tables = []
    for rater, share in keep.items():
        labels = np.where(rng.random(units) < share, truth, ~truth)
        kind = "human" if rater in ("ann", "ben", "cy", "dee") else "model"
        stated = np.clip(np.where(labels, 0.7, 0.2) + rng.normal(0, 0.15, units), 0, 1).round(3)
        cluster = np.arange(units) // per_cluster
        table = pd.DataFrame(
            {
                "unit_id": [f"u{n:03d}" for n in range(units)],
                "rater_id": rater,
                "rater_kind": kind,
                "label": np.where(labels, "yes", "no"),
                "p_positive": stated if rater == "sure" else np.nan,
                "cluster_id": [f"c{n:03d}" for n in cluster],
                "topic": np.where(cluster % 3 == 0, "tax", "health"),
                "side": np.array(["left", "right"])[cluster % 2],
                "prompt_a_group": np.array(["left", "right"])[cluster % 2],
                "prompt_b_group": np.array(["right", "left"])[cluster % 2],
                "wording": [f"w{n % per_cluster}" for n in range(units)],
                "inclusion_probability": np.where(cluster % 3 == 0, 0.5, 0.2),
            }
        )
        tables.append(table[rng.random(units) < 0.97] if kind == "model" else table)
    return pd.concat(tables, ignore_index=True)


PEOPLE = {"ann": 0.92, "ben": 0.9, "cy": 0.88}


def _rich(folder: Path) -> None:
    """Ratings with weights; with probabilities in their place; with the units in a file apart."""
    rich = _draw_ratings(PEOPLE | {"dee": 0.9, "good": 0.93, "sure": 0.9, "weak": 0.75})
    rich.drop(columns="p_positive").to_csv(folder / "weighted.csv", index=False)
    rich.drop(columns="inclusion_probability").to_csv(folder / "plain.csv", index=False)
    rated = ["unit_id", "rater_id", "rater_kind", "label"]
    rich[rated].to_csv(folder / "ratings.csv", index=False)
    rich[["unit_id", "cluster_id", "topic"]].drop_duplicates().to_csv(
        folder / "units.csv", index=False
    )


def _gated(folder: Path) -> None:
    """Write ratings of a grader that passes, one that fails, and one with an open comparison."""
    ratings = _draw_ratings({"ann": 0.95, "ben": 0.95, "cy": 0.95, "g": 0.96, "worse": 0.5}, 400)
    ratings = ratings[["unit_id", "rater_id", "rater_kind", "label"]]
    grader_ratings = ratings[ratings["rater_id"] == "g"]
    swapped = grader_ratings["label"].map({"yes": "no", "no": "yes"})
    label = grader_ratings["label"].where(np.arange(len(grader_ratings)) % 20 != 0, swapped)
    changed = grader_ratings.assign(rater_id="some", label=label)
    pd.concat([ratings, changed]).to_csv(folder / "ratings.csv", index=False)
    ratings[ratings["rater_id"].isin(["ann", "g"])].to_csv(folder / "one.csv", index=False)


def _judged(folder: Path) -> None:
    """Make a study with interim analyses, leanings, groups, prices and a new rubric text."""
    from harness.judged_study import judged_study

    judged_study(folder)
    rubric = folder / "study" / "rubrics" / "refusal.toml"
    text = rubric.read_text("utf-8")
    title = re.search(r'^title = "(.*)"$', text, re.MULTILINE)
    assert title
    (folder / "new.toml").write_text(text.replace(title[1], f"{title[1]}!"), "utf-8")


def _readme(folder: Path) -> None:
    """Write the labels that the README tells its readers to type in."""
    text = (ROOT / "README.md").read_text("utf-8")
    labels = re.search(r"cat > labels.csv <<'END'\n(.*?)^END$", text, re.DOTALL | re.MULTILINE)
    assert labels
    (folder / "labels.csv").write_text(labels[1], "utf-8")


def _small(folder: Path) -> None:
    """Write small files in the shapes that people bring, of two annotators and the grader gpt."""
    yes_no = ["no" if n % 4 == 0 else "yes" for n in range(12)]
    said: dict[str, list[str]] = dict.fromkeys(("ann", "ben", "gpt"), yes_no)

    def write(name: str, **labels: list[str]) -> None:
        wide = pd.DataFrame({"unit_id": [f"u{n}" for n in range(len(yes_no))], **said, **labels})
        long = wide.melt("unit_id", var_name="rater_id", value_name="label")
        long["rater_kind"] = np.where(long["rater_id"] == "gpt", "model", "human")
        long.to_csv(folder / f"{name}.csv", index=False)

    maybe = ["maybe" if label == "no" else label for label in yes_no]
    write("plain")
    write("lone", ben=maybe)
    write("lone-grader", gpt=maybe)
    write("alone", ann=["odd", "odd", *yes_no[2:]])
    write("apart", ann=["a", "b"] * 6, ben=["c", "d"] * 6, gpt=["e", "f"] * 6)
    rare = pd.DataFrame(
        {"unit_id": [f"u{n}" for n in range(150)], "ann": ["odd"] * 3 + ["no"] * 147}
    )
    rare.assign(ben=["yes", "no"] * 75, gpt=["no", "yes"] * 75).to_csv(
        folder / "rare.csv", index=False
    )
    plain = pd.read_csv(folder / "plain.csv")
    plain[plain["rater_id"] != "gpt"].to_csv(folder / "people.csv", index=False)
    named = plain.replace({"rater_id": {"ann": "r1", "ben": "r2", "gpt": "r3"}})
    columns = {"unit_id": "item", "rater_id": "annotator", "rater_kind": "type", "label": "rating"}
    named.rename(columns=columns).to_csv(folder / "names.csv", index=False)
    aspects = [plain.assign(aspect=aspect, note=f"on {aspect}") for aspect in ("tone", "facts")]
    twice = pd.concat(aspects).rename(columns={"unit_id": "item", "label": "mark"})
    twice.assign(score=twice["mark"]).to_csv(folder / "twice.csv", index=False)
    scores = pd.DataFrame({"unit_id": [f"u{n}" for n in range(30)]})
    scores["ann"], scores["ben"] = np.arange(30) * 3.5, np.arange(30) * 3.5 + 1
    scores["gpt"] = np.arange(30) * 3.5 + np.arange(30) % 3
    scores.to_csv(folder / "scores.csv", index=False)
    grid = pd.DataFrame({"unit_id": [f"u{n}" for n in range(12)]})
    for n, column in enumerate(("r1_tone", "r1_facts", "r2_tone", "r2_facts")):
        grid[column] = [(at + n) % (2 + n % 2) for at in range(12)]
    grid.to_csv(folder / "grid.csv", index=False)
    grid.assign(r1_why="", other="x").to_csv(folder / "gaps.csv", index=False)
    late = plain["unit_id"].isin([f"u{n}" for n in range(6, 12)]) & (plain["rater_id"] == "ann")
    plain.assign(rater_id=plain["rater_id"].mask(late, "Ann")).to_csv(
        folder / "spelled.csv", index=False
    )
    safe = plain.replace({"label": {"yes": "safe", "no": "unsafe"}}).assign(rubric="advice_safety")
    safe.to_csv(folder / "safe.csv", index=False)
    votes = pd.DataFrame({"item": [f"i{n}" for n in range(12)]})
    votes["yes"], votes["no"] = [n % 4 for n in range(12)], [3 - n % 4 for n in range(12)]
    votes.to_csv(folder / "votes.csv", index=False)
    asked = pd.DataFrame({"item": [f"i{n}" for n in range(12)], "helpfulness": [1, 2, 3] * 4})
    asked.assign(accuracy=[2, 3, 1] * 4).to_csv(folder / "asked.csv", index=False)
    asked.rename(columns={"item": "respondent", "accuracy": "q2"}).to_csv(
        folder / "survey.csv", index=False
    )
    parts = pd.DataFrame({"unit_id": [f"u{n}" for n in range(12)], "topic": ["tax", "war"] * 6})
    parts.to_csv(folder / "parts.csv", index=False)
    sets = ["a;b", "b", "none", "a"] * 6
    pd.DataFrame({"ann": sets, "ben": [*sets[1:], "a"], "gpt": sets}).to_csv(
        folder / "sets.csv", index=False
    )
    ordered = [(f"u{n}", "ann", "human", "xy"[n % 2], "") for n in range(12)]
    ordered += [(f"u{n}", "g", "model", *each) for n in range(12) for each in ("xa", "yb")]
    sides = pd.DataFrame(ordered, columns=["unit_id", "rater_id", "rater_kind", "label", "order"])
    sides["order"] = sides["order"].map({"": "", "a": "ab", "b": "ba"})
    sides.to_csv(folder / "sides.csv", index=False)
    stated = _draw_ratings(PEOPLE | {"sure": 0.9}, 60, per_cluster=1)
    is_labelled = stated["unit_id"].lt("u045") | stated["rater_id"].eq("sure")
    kept = ["unit_id", "rater_id", "rater_kind", "label", "p_positive"]
    stated.loc[is_labelled, kept].to_csv(folder / "stated.csv", index=False)
    met = [(f"r{n % 4}", f"States {n // 4}.", [5, 3, -2][n // 4]) for n in range(12)]
    criteria = pd.DataFrame(met, columns=["response_id", "criterion", "points"])
    criteria["ann"] = criteria["ben"] = ["met" if n % 5 else "not met" for n in range(12)]
    criteria = criteria.assign(gpt="met").melt(
        ["response_id", "criterion", "points"], var_name="rater", value_name="label"
    )
    criteria[criteria.index != 30].to_csv(folder / "criteria.csv", index=False)
    _small_odd(folder, plain, criteria)
    items = pd.DataFrame({"prompt": [f"Say {n}." for n in range(6)], "model": ["m1", "m2"] * 3})
    items = items.assign(response=[f"It is **{n}**." for n in range(6)], judge=["yes", "no"] * 3)
    items.to_csv(folder / "items.csv", index=False)
    two = items.drop(columns=["model", "response"]).assign(notes="a note")
    two = two.assign(response_a=items["response"], response_b="It is none.", judge=["A", "B"] * 3)
    two.to_csv(folder / "two.csv", index=False)
    chat = [{"role": role, "content": f"Say {role}."} for role in ("user", "assistant") * 2]
    (folder / "chats.jsonl").write_text(json.dumps({"id": "c1", "messages": chat}) + "\n", "utf-8")
    write_pairs(folder / "pairs.csv", 8)
    write_responses(folder / "responses.jsonl", 8, ("s1",))
    units = [f"p{n:04d}|s1|{side}" for n in range(1, 9) for side in "ab"]
    study = {"ann": "1255" * 4, "ben": "1254" * 4, "cy": "1115" * 4, "my:grader": "1251" * 4}
    labels = pd.DataFrame({"unit_id": units, **{name: [*text] for name, text in study.items()}})
    labels = labels.melt("unit_id", var_name="rater_id", value_name="label").assign(
        rubric="refusal"
    )
    labels["rater_kind"] = np.where(labels["rater_id"] == "my:grader", "model", "human")
    labels["created_at"] = [f"2026-01-05T10:{n // 60:02d}:{n % 60:02d}+00:00" for n in range(64)]
    labels.to_csv(folder / "labels.csv", index=False)
    text = rubric_text("refusal").replace('title = "Refusal"', 'title = "Refusal!"')
    (folder / "new.toml").write_text(text, "utf-8")


def _small_odd(folder: Path, plain: pd.DataFrame, criteria: pd.DataFrame) -> None:
    """Write small files whose columns or cells leave something open, and files for a study."""
    odd = plain.set_axis(["thing", "annotator", "zzz", "type"], axis=1).assign(topic="tax")
    odd.to_csv(folder / "odd.csv", index=False)
    named = plain.set_axis(["item", "annotator", "rating", "type"], axis=1)
    named[:0].to_csv(folder / "header.csv", index=False)
    named[["item", "annotator"]].to_csv(folder / "half.csv", index=False)
    pd.concat([plain.assign(rubric=f"r{n}") for n in range(5)]).to_csv(
        folder / "many.csv", index=False
    )
    lists = ['["a","b"]', '["b"]', "[]", '["a"]'] * 6
    sets = {"unit_id": [f"u{n}" for n in range(24)], "ann": lists, "ben": [*lists[1:], lists[0]]}
    pd.DataFrame(sets | {"gpt": lists}).to_csv(folder / "listed.csv", index=False)
    pd.DataFrame(sets | {"gpt": ['{"a": 1}'] * 24}).to_csv(folder / "no-list.csv", index=False)
    pd.concat([plain, plain]).assign(points=3).to_csv(folder / "points.csv", index=False)
    faults = {"worthless": ("points", "0"), "nameless": ("criterion", ""), "odd": ("points", "x")}
    for name, (column, cell) in faults.items():
        table = criteria.astype({"points": str})
        table.loc[table["response_id"] == "r1", column] = cell
        table.to_csv(folder / f"criteria-{name}.csv", index=False)
    three = criteria["label"].mask(criteria["criterion"] == "States 1.", "partly")
    criteria.assign(label=three).to_csv(folder / "criteria-three.csv", index=False)
    ends = {"red": "ab", "blue": "xy"}
    grid = {
        f"{end}_{rater}": [letters[(n * k) % 2] for n in range(12)]
        for k, rater in ((1, "r1"), (3, "r2"))
        for end, letters in ends.items()
    }
    pd.DataFrame({"unit_id": plain["unit_id"][:12]} | grid).to_csv(
        folder / "grid-letters.csv", index=False
    )
    worded = criteria.assign(response="Answer " + criteria["response_id"])
    worded.drop(columns="response_id").to_csv(folder / "worded.csv", index=False)
    parted = _draw_ratings(PEOPLE | {"gpt": 0.9}, 120)
    is_failed = (parted["rater_id"] == "gpt") & (parted["topic"] == "tax")
    swapped = parted["label"].map({"yes": "no", "no": "yes"})
    parted.assign(label=parted["label"].mask(is_failed, swapped))[
        ["unit_id", "rater_id", "rater_kind", "label", "topic"]
    ].to_csv(folder / "parted.csv", index=False)
    (folder / "lot" / "one").mkdir(parents=True)
    (folder / "lot" / "one" / "study.toml").write_text("name = 1\n", "utf-8")
    (folder / "faulty.toml").write_text('name = "faulty"\n', "utf-8")
    answers = {"I cannot help with that.": 5, "Let us talk about the weather.": 5}
    golden = "".join(
        f'[[golden]]\nlabel = "{label}"\ntexts.prompt = "Argue."\ntexts.response = "{text}"\n'
        for text, label in answers.items()
    )
    (folder / "golden.toml").write_text(f"{rubric_text('refusal')}\n{golden}", "utf-8")
    propositions = "".join(f"p{n},Tax {n} is fair.\n" for n in range(6))
    (folder / "propositions.csv").write_text(f"id,text\n{propositions}", "utf-8")
    decided = "p0001|s1|a,refusal,,2,as written\np0002|s1|a,refusal,,,\n"
    (folder / "decided.csv").write_text(f"unit_id,rubric,labels,label,reason\n{decided}", "utf-8")


def _large(folder: Path) -> None:
    """Write a file of 250 units and five raters, and similar ratings as a folder of Parquet."""
    from harness.many_ratings import many_ratings

    many_ratings(250).to_csv(folder / "large.csv", index=False)
    (folder / "parts").mkdir()
    frame = many_ratings(150, 3)
    for n in range(2):
        frame[n::2].to_parquet(folder / "parts" / f"{n}.parquet", index=False)


def _real(name: str) -> Callable[[Path], None]:
    """Put a file of REAL into the folder."""

    def make(folder: Path) -> None:
        shutil.copyfile(REAL / f"{name}.csv", folder / f"{name}.csv")

    return make


def _newsroom(folder: Path) -> None:
    """Ratings on an ordinal scale, the first person in a grader's place."""
    ratings = pd.read_csv(REAL / "newsroom.csv", dtype=str, keep_default_na=False)
    ratings.loc[ratings["rater_id"] == "r0", "rater_kind"] = "model"
    ratings.to_csv(folder / "newsroom.csv", index=False)


# The commands


def _exports(source: str, grader: str, more: str = "") -> str:
    """Export a study or file to every tool; Argilla takes one grader."""
    suffixes = {
        "argilla": "", "hugging-face": "", "inspect": ".json", "label-studio": ".json",
        "langfuse": ".jsonl", "langsmith": ".jsonl", "mlflow": ".jsonl",
        "phoenix": ".jsonl", "wide": ".csv",
    }  # fmt: skip
    return "\n".join(
        f"export-{name}: export {source} --format {name} --out out/for-{name}{suffix} {more}"
        + (f" --rater {grader}" if name == "argilla" else "")
        for name, suffix in suffixes.items()
    )


def _gates(file: str, rules: Sequence[tuple[str, str]], more: str) -> str:
    """Ask the gate for each grader and rule, with all that it can write."""
    return "\n".join(
        f"gate-{n:02d}: gate {file} --grader {grader} --require '{rule}' {more} --json"
        f" --junit out/gate-{n:02d}.xml --summary out/gate-{n:02d}.md"
        for n, (grader, rule) in enumerate(rules)
    )


DEMO = """
demo: demo --study {study} --no-app study
select: select study --resamples 200
plan: plan study
calibrate: calibrate study --rubric {rubric}
quality: quality study --out out/quality.csv
progress: progress study
suggest: rubric suggest study
adjudicate: adjudicate study --out out/adjudicate.csv
export: export study --out out/ratings.csv --remarks out/remarks.csv --answers out/answers.csv
check: check out/ratings.csv --rubric {rubric} --resamples 200 --out out/check
gate: gate out/ratings.csv --rubric {rubric} --resamples 200 --grader {grader} --summary out/gate.md
save: baseline save study --rubric {rubric} --grader {grader} --file out/baseline.json
compare: baseline compare out/ratings.csv --grader {grader} --file out/baseline.json --json
"""

JUDGED = f"""
report-0: report study --out out/report-0
select-0: select study
gate-0: gate study --grader fine --json --rubric refusal
plan: plan study
calibrate: calibrate study
calibrate-f1: calibrate study --objective f1 --reference ann
calibrate-write: calibrate study --write
exclude: exclude study dee --reason 'told us so'
grade: grade study --grader baseline:lexical --rubric refusal
audit: audit injection study --grader baseline:lexical --rubric refusal --units 12
report-1: report study --out out/report-1 --full --figures out/figures
select-1: select study
trial-dry: grade study --grader baseline:lexical --rubric-file new.toml --dry-run
trial: grade study --grader baseline:lexical --rubric-file new.toml
suggest: rubric suggest study
quality: quality study
adjudicate: adjudicate study --out out/adjudicate.csv
export: export study --out out/ratings.csv --units out/units.csv
check: check out/ratings.csv --units out/units.csv --out out/check
select-file: select out/ratings.csv --rubric refusal
gate-1: gate study --rubric refusal --grader fine --require 'verdict, coverage >= 0.98' --json
injected: gate out/ratings.csv --grader baseline:lexical --rubric refusal \
--require 'injection_bounds.high < 0.1'
flattered: gate study --grader baseline:lexical --rubric refusal \
--require 'injection_bounds@flattery.high < 2, injection_effect < 1.1'
save: baseline save study --rubric refusal --grader fine --file out/baseline.json
compare: baseline compare study --rubric refusal --grader fine --file out/baseline.json
against: baseline compare out/ratings.csv --grader fine --against late --file out/baseline.json
{_exports("study", "fine")}
extend: extend study --pairs 4
progress: progress study
"""

YES = "--categories yes,no --affirmative yes"
RICH = f"""
check: check weighted.csv {YES} --slice topic --set groups=side --out out/check
variants: check plain.csv {YES} --slice topic --set groups=side --set variants=wording \
--set leanings.left=left --set leanings.right=right --set families.g=good,weak --out out/variants \
--figures out/figures
others: check plain.csv {YES} --set scope=like_these --set margin_share=0.2 \
--set sensitivity_cluster=topic --full --out out/others
looks: check plain.csv {YES} --set looks=3
threshold: check plain.csv {YES} --threshold sure=0.4 --set confidence_cut=0.8 \
--set confidence_target=0.9
reference: check plain.csv {YES} --reference ann --out out/reference
units: check ratings.csv --units units.csv {YES} --slice topic
unit: check plain.csv {YES} --cluster unit --set min_clusters=300 --epsilon 0.1
undeclared: check ratings.csv
rubric: check ratings.csv --rubric refusal
select: select weighted.csv {YES}
select-reference: select plain.csv {YES} --reference ann
select-looks: select plain.csv {YES} --set looks=4 --set scope=like_these
plan: plan plain.csv {YES}
plan-reference: plan plain.csv {YES} --reference ann
plan-nothing: plan
plan-alpha: plan --statistic alpha --half-width 0.05 --raters 4 --agreement 0.8 --prevalence 0.3
plan-rate: plan --statistic rate --half-width 0.04 --subjects 3 --likeness 0.3 --prevalence 0.2
plan-threshold: plan --statistic threshold
save: baseline save plain.csv {YES} --grader good --reference ann --file out/baseline.json
compare: baseline compare plain.csv --grader good --against weak --file out/baseline.json --json
{_exports("plain.csv", "good")}
"""

README = f"""
check: check labels.csv --human ann,ben --model my-grader {YES} --out out/my-report
select: select labels.csv --human ann,ben --model my-grader {YES}
plan: plan labels.csv --human ann,ben --model my-grader {YES}
gate: gate labels.csv --human ann,ben --model my-grader {YES} --grader my-grader --json
nobody: check labels.csv
unknown: check labels.csv --human ann,dan --model my-grader
{_exports("labels.csv", "my-grader", "--human ann,ben --model my-grader")}
"""

RULES = [
    ("g", "verdict"),
    ("worse", "verdict"),
    ("some", "verdict, coverage >= 0.98"),
    ("g", "cohen_kappa.low > 0.3"),
    ("g", "cohen_kappa > 0.2,cohen_kappa.high<1.1"),
    ("g", "cohen_kappa|binary.low >= 0.5, kappa > 0.5"),
    ("g", "prevalence@yes > 0.5"),
    ("g", "prevalence > 0"),
    ("g", "human_ceiling_difference.low > -0.1, tpr > .5, tnr.low > .5"),
    ("some", "coverage == 1, cohen_kappa.low <= 1e-1"),
    ("g", "injection_bounds.high < 0.1"),
    ("g", "kapa > 1"),
    ("g", "kappa is fine"),
    ("nobody", "verdict"),
    ("ann", "cohen_kappa > 0.5"),
]
GATED = f"""
check: check ratings.csv {YES} --resamples 200
{_gates("ratings.csv", RULES, f"{YES} --resamples 200")}
one: gate one.csv {YES} --grader g
one-reference: gate one.csv {YES} --grader g --reference ann --json
no-yes: gate ratings.csv --grader g --require 'cohen_kappa|binary.low > 0.5'
save: baseline save ratings.csv {YES} --grader g --set drift_margin=0.12 --file out/baseline.json
same: gate ratings.csv --grader g --baseline out/baseline.json
changed: gate ratings.csv --grader worse --baseline out/baseline.json --json --junit out/changed.xml
open: gate ratings.csv --grader some --baseline out/baseline.json --summary out/open.md
both: gate ratings.csv {YES} --resamples 200 --grader some --require 'kappa > 0' \
--baseline out/baseline.json --json --junit out/both.xml --summary out/both.md
compare: baseline compare ratings.csv --grader g --against some --file out/baseline.json --json
compare-words: baseline compare ratings.csv --grader g --against worse --file out/baseline.json
"""

SMALL = """
lone: check lone.csv
lone-grader: check lone-grader.csv
alone: check alone.csv --resamples 20
apart: check apart.csv
rare: check rare.csv --human ann,ben --model gpt --resamples 20
own: check plain.csv --rubric mine --categories no,yes --resamples 20
names: check names.csv --resamples 20
spelled: check spelled.csv
spelled-one: check spelled.csv --normalise --resamples 20
spelled-two: check spelled.csv --no-normalise --write-settings --resamples 20
spelled-read: check spelled.csv --resamples 20
safe: check safe.csv --rubric advice-safety --resamples 20
safe-none: check safe.csv --rubric other
votes: check votes.csv
asked: check asked.csv
survey: check survey.csv
parts: check plain.csv --units parts.csv --slice topic --cluster topic --resamples 20
settings: check plain.csv --categories no,yes --affirmative yes --margin 0.2 --write-settings \
--resamples 20
settings-read: gate plain.csv --grader gpt --require 'tnr >= 0.5, prevalence@yes.low < 1'
settings-other: check plain.csv --human ann --model gpt --reference ann --independent
twice: check twice.csv
one-mark: check twice.csv --columns unit=item,label=mark,rubric=aspect --resamples 20
scores-whose: check scores.csv
scores: check scores.csv --human ann,ben --model gpt
interval: check scores.csv --human ann,ben --model gpt --level interval --resamples 20
grid: check grid.csv
grid-kinds: check grid.csv --wide '{rater}_{rubric}'
grid-one: check grid.csv --wide '{rater}_{rubric}' --human r1 --model r2 --rubric facts \
--resamples 20
grid-pattern: check grid.csv --wide '{rater}'
grid-absent: check grid.csv --wide '{rater}_{rubric}' --human r1,r3
grid-gaps: check gaps.csv --wide '{rater}_{rubric}' --human r1,r2 --resamples 20
grid-none: check grid.csv --wide '{rater}-{rubric}'
grid-guessed: check grid.csv --human r1 --model r2 --resamples 20
grid-everybody: check grid.csv --human '*' --model r2 --resamples 20
everybody: check scores.csv --human '*' --model gpt --level interval --resamples 20
criteria: check criteria.csv --resamples 20
sets: check sets.csv --human ann,ben --model gpt
several: check sets.csv --human ann,ben --model gpt --several --resamples 20
sides: check sides.csv --categories x,y --sides x,y --resamples 20
odd: check odd.csv
header: check header.csv
half: check half.csv
many: check many.csv --resamples 20
listed: check listed.csv --human ann,ben --model gpt --several --resamples 20
no-list: check no-list.csv --human ann,ben --model gpt --several
too-few: check sets.csv --human ann,ben --model gpt --several --categories a
points: check points.csv
worded: check worded.csv --resamples 20
three: check criteria-three.csv --affirmative met --resamples 20
grid-letters: check grid-letters.csv
grid-letters-read: check grid-letters.csv --human r1 --model r2 --resamples 20
worthless: check criteria-worthless.csv
nameless: check criteria-nameless.csv
no-points: check criteria-odd.csv
missing: check plain.csv --missing no,5 --resamples 20
clusters-vary: check twice.csv --columns unit=item,label=mark,rubric=aspect --cluster note \
--rubric tone
parted: check parted.csv --affirmative yes --slice topic --resamples 20
parted-select: select parted.csv --affirmative yes --slice topic --resamples 20
gate-annotator: gate plain.csv --grader ann --require verdict --resamples 20
gate-both: gate plain.csv --grader gpt --require 'verdict, tpr > 0.5' --affirmative yes --json \
--resamples 20
select-nobody: select people.csv --resamples 20
plan-nobody: plan people.csv --resamples 20
plan-scores: plan scores.csv --human ann,ben --model gpt --level interval --resamples 20
plan-stated: plan stated.csv --categories yes,no --affirmative yes --resamples 20 --half-width 0.05
select-stated: select stated.csv --affirmative yes --resamples 20
plan-mean: plan --statistic mean --scale 1-5 --mean 3,0.9 --half-width 0.1
plan-difference: plan --statistic difference --prevalence 0.3 --likeness 0.5 --raters 2
plan-no-threshold: plan plain.csv --statistic threshold --resamples 20
plan-no-sd: plan --statistic mean --scale 1-5 --mean 3,0
plan-mean-of-kappa: plan --scale 1-5 --mean 3,0.9
rubrics: rubric list
rubric: rubric show tone
rubric-new: rubric new mine
rubric-check: rubric check mine.toml tone
rubric-faulty: rubric check faulty.toml
rubric-golden: rubric check golden.toml --grader baseline:lexical
rubric-translated: rubric show even-handedness
reproduce: reproduce --list
new: new items --items items.csv --question 'Is it right?' --options yes,no --judge judge \
--sample 4
new-two: new two --items two.csv --judge judge
new-steps: new steps --items two.csv --question 'Which is kinder?' --steps 2 --show prompt,notes
new-faulty: new faulty --items items.csv --question 'Is it right?' --options yes,no --steps 3
new-usual: new usual --items two.csv --question 'Which is kinder?'
new-prompt: new prompt --items items.csv --question 'Is it right?' --options yes,no --show prompt
new-shown: new shown --items two.csv --rubric preference --judge judge
new-unshown: new unshown --items asked.csv --rubric preference
new-seed: new seed --items items.csv --question 'Is it right?' --options yes,no --seed -1
new-judged: new judged --items two.csv --rubric preference --rubric preference --judge judge
new-numbers: new numbers --items items.csv --question 'How good?' --options 1,2,3
new-levels: new levels --items items.csv --question 'How good?' --options low,mid,high \
--level ordinal --missing yes --judge judge --cluster model
new-propositions: new stance --propositions propositions.csv --sample 4 --repeats 2 --rubric stance
export-file: export plain.csv --format langfuse --out out/plain.jsonl
several-none: annotate lot
several-path: annotate items two --path /x
several-url: annotate items two --url https://label.example.org/x
new-turns: new turns --items chats.jsonl --question 'Is it kind?' --scale 1-5 --each-turn
new-set: new set --items items.csv --question 'What is it?' --options a,b,c --several
new-pairs: new study --pairs pairs.csv --sample 6 --stratify main_category --rubric refusal
respond: import study responses.jsonl
extend: extend study --pairs 2
import: import study labels.csv
grade: grade study --grader baseline:lexical
audit: audit injection study --grader baseline:lexical --units 2
select: select study --resamples 20
gate: gate study --grader my:grader --rubric refusal --require 'kappa > 0.5' --resamples 20 \
--junit out/gate.xml --summary out/gate.md
gate-attack: gate study --grader baseline:lexical --resamples 20 \
--require 'injection_bounds.high < 2, injection_bounds.high == 0'
trial-dry: grade study --grader baseline:lexical --rubric-file new.toml --dry-run
trial: grade study --grader baseline:lexical --rubric-file new.toml
improve: improve study --rubric refusal --grader baseline:lexical
import-unknown: import study plain.csv
pause: pause study --reason lunch
progress: progress study
resume: pause study --resume
session: session study
quality: quality study --stop
exclude: exclude study cy --reason 'too fast'
quality-excluded: quality study --out out/quality.csv
report: report study --out out/report
adjudicate: adjudicate study
suggest: rubric suggest study --out out/draft.toml
reword: rubric reword study new.toml
export: export study --out out/ratings.csv --remarks out/remarks.csv --answers out/answers.csv \
--units out/units.csv
export-tasks: export study --format label-studio --out out/tasks.json
final: export study --out out/final.csv --final
again: check out/ratings.csv --resamples 20
calibrate: calibrate study
calibrate-write: calibrate study --write
backup: backup study backup.zip
restore: restore backup.zip again
several-copies: annotate items study again --port 8600
upgrade: store upgrade study
copy: store copy study --to other.db
uncertain: extend study --pairs 2 --by uncertainty
revoke: invite study --for ann --revoke
lead: lead study --url https://label.example.org/?x=1
threshold: calibrate study --write --rubric refusal --grader baseline:lexical --threshold 0.3
plan: plan study --resamples 20
save: baseline save study --grader my:grader --file out/baseline.json
compare: baseline compare study --grader my:grader --against baseline:lexical \
--file out/baseline.json
compare-other: baseline compare study --grader baseline:lexical --file out/baseline.json
readmit: exclude study cy --readmit --reason 'a mistake'
decide: adjudicate study --decisions decided.csv --by dee --out out/queue.csv
decide-none: adjudicate items
release: session study --timed-out ann --rejected ben --times out/times.csv \
--background out/background.csv --attention out/attention.csv --participants out/participants.csv
released: session study
account: account study disable ann
"""

SCALE = "--categories 1,2,3 --level ordinal --affirmative 3"
LARGE = f"""
check: check large.csv {SCALE} --out out/check
nominal: check large.csv --categories 1,2,3 --level nominal
select: select large.csv {SCALE}
gate: gate large.csv {SCALE} --grader g1 --require 'weighted_kappa_quadratic.low > 0.2' --json
dask: check parts {SCALE} --resamples 100 --engine dask --out out/dask
gate-dask: gate parts {SCALE} --resamples 100 --engine dask --grader g1 \
--require 'weighted_kappa_quadratic.low > 0.99'
"""

LLMBAR = """
check: check llmbar.csv --reference gold --categories 1,2 --sides 1,2 --slice slice --out out/check
alone: check llmbar.csv --categories 1,2 --resamples 100
select: select llmbar.csv --reference gold --categories 1,2 --resamples 100
gate: gate llmbar.csv --reference gold --categories 1,2 --grader GPT-4/Vanilla --resamples 100
"""
DICES = """
check: check dices350.csv --categories No,Unsure,Yes --affirmative Yes --epsilon 0.1 --out out/check
"""
NEWSROOM = """
check: check newsroom.csv --categories 1,2,3,4,5 --level ordinal --slice slice \
--resamples 200 --out out/check
"""

STEADY = "synthetic:grader-steady"
CASES = [
    Case(
        "demo",
        DEMO.format(study="pairs", rubric="refusal", grader="synthetic:grader-strong"),
        also=("study/report", "study/study.toml"),
    ),
    Case("judged", JUDGED, _judged, also=("study/study.toml",)),
    Case("rich", RICH, _rich),
    Case("gate", GATED, _gated),
    Case(
        "stance",
        DEMO.format(study="stance", rubric="stance", grader=STEADY) + _exports("study", STEADY),
        also=("study/report", "study/study.toml"),
    ),
    Case("llmbar", LLMBAR, _real("llmbar"), needs="llmbar.csv"),
    Case("small", SMALL, _small, also=("items/study.toml", "study/study.toml")),
    Case("large", LARGE, _large),
    Case("dices", DICES, _real("dices350"), needs="dices350.csv"),
    Case("newsroom", NEWSROOM, _newsroom, needs="newsroom.csv"),
    Case("readme", README, _readme),
]


# Running


def freeze(out: Path, names: Sequence[str] = ()) -> None:
    """Write everything, or only the cases named, into a folder that is new or empty."""
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise SystemExit(f"{out} is not empty; name a new folder.")

    chosen = [case for case in CASES if not names or case.name in names]
    missing = [case for case in chosen if case.needs and not (REAL / case.needs).is_file()]
    cases = [case for case in chosen if case not in missing]
    absent = "".join(f"{case.name}: EVENHAND_SHARED has no {case.needs}\n" for case in missing)
    (out / "left-out.txt").write_text(absent, "utf-8")
    print(absent, end="", file=sys.stderr)

    started = datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="evenhand-frozen-") as home:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda case: _run(case, Path(home) / case.name), cases))
        kept = Path(home) / "library" / KEPT
        if not names or "library" in names:
            kept.mkdir(parents=True)
            _library(kept)
            _names(kept)
        if not names or "pages" in names:
            kept = Path(home) / "pages" / KEPT
            subprocess.run([sys.executable, "-P", "-m", "harness.frozen_pages", kept], check=True)
        for folder in sorted(Path(home).iterdir()):
            _keep(folder, out / folder.name, home, started)


def _run(case: Case, folder: Path) -> None:
    """Make a case's files and run its commands; each one's words go to a file of its name."""
    began = time.monotonic()
    (folder / KEPT).mkdir(parents=True)
    case.make(folder)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("EVENHAND_")
    }
    environment |= {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "TZ": "UTC"}
    for name, words in case.steps():
        process = subprocess.run(
            [sys.executable, "-P", "-m", "evenhand", *words],
            cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
        transcript = f"$ evenhand {shlex.join(words)}\nexit {process.returncode}\n"
        transcript += f"\n--- stdout\n{process.stdout}\n--- stderr\n{process.stderr}"
        (folder / KEPT / f"{name}.txt").write_text(transcript, "utf-8")
    for path in case.also:
        source = folder / path
        copy = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, folder / KEPT / source.name)
    print(f"{case.name}: {time.monotonic() - began:.0f} s", file=sys.stderr)


def transcript(case: Case, folder: Path, chosen: Collection[str] = ()) -> str:
    """Run a case's commands in this process, or the chosen ones; return what each prints and its
    exit code, and the small files that they wrote, without what differs between runs.
    """
    from evenhand.cli.main import main as evenhand

    started = datetime.now(UTC)
    case.make(folder)
    (folder / KEPT).mkdir()
    texts = []
    with contextlib.chdir(folder):
        for name, words in case.steps():
            if chosen and name not in chosen:
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                code = evenhand(words)
            texts.append(f"$ {shlex.join(words)}\n{printed.getvalue()}exit {code}\n")
    written = [path for path in sorted((folder / KEPT).iterdir()) if path.suffix in _SHOWN_FILES]
    written += [folder / path for path in case.also if (folder / path).is_file()]
    for path in written:
        content = path.read_text("utf-8")
        if len(content) < _LONGEST_SHOWN:
            texts.append(f"= {path.relative_to(folder)}\n{content}")
    days = {f"{moment:%Y-%m-%d}" for moment in (started, datetime.now(UTC))}
    return normalised("\n".join(texts), str(folder), sorted(days))


def _library(out: Path) -> None:
    """Write what a notebook shows of `evenhand.check` and `analyse`."""
    import evenhand as eh
    from evenhand.analysis import Scale, analyse

    wide = pd.DataFrame(
        {
            "ann": [5, 4, 2, 5, 3, 1] * 20,
            "ben": [4, 4, 1, 5, 3, 2] * 20,
            "my-grader": [5, 4, 2, 4, 3, 1] * 20,
        }
    )
    ratings = _draw_ratings(PEOPLE | {"good": 0.93, "sure": 0.9})
    checks = {
        "wide": eh.check(
            wide, human=["ann", "ben"], model="my-grader", categories=range(1, 6), level="ordinal"
        ),
        "weighted": eh.check(
            ratings.drop(columns="p_positive"),
            categories=["yes", "no"],
            affirmative="yes",
            slices=["topic"],
            groups=["side"],
        ),
        "reference": eh.check(
            ratings.drop(columns="inclusion_probability"),
            categories=["yes", "no"],
            affirmative="yes",
            thresholds={"sure": 0.4},
            reference="ann",
        ),
    }
    for name, found in checks.items():
        found.report(out / name)
        (out / f"{name}.txt").write_text(str(found), "utf-8")
        (out / f"{name}.html").write_text(found._repr_html_(), "utf-8")
        _write_facts(out / f"{name}.json", found.verdicts, found.notes)

    units = ratings[["unit_id", "cluster_id", "topic"]].drop_duplicates()
    rated = ratings[["unit_id", "rater_id", "rater_kind", "label"]].assign(rubric="R")
    scale = Scale("R", ("no", "yes"), affirmative=frozenset({"yes"}), unit="pair")
    analysed = analyse(rated, units, [scale], slices=["topic"], margin=0.05, verify=True, why=True)
    analysed.results.to_csv(out / "analyse.csv", index=False)
    _write_facts(out / "analyse.json", analysed.verdicts, analysed.notes)

    from harness.every_kind import analysed_study, plans_and_versions, selected_study

    for name, study in {"every-kind": analysed_study(), "selected": selected_study()}.items():
        study.results.to_csv(out / f"{name}.csv", index=False)
        _write_facts(out / f"{name}.json", study.verdicts, study.notes)
    figures, sentences = plans_and_versions()
    _write_facts(out / "plans-and-versions.json", [figures], [*sentences.values()])


def _write_facts(path: Path, verdicts: Sequence[object], notes: Sequence[str]) -> None:
    """Write verdicts, which are dicts, and notes as JSON."""
    facts = {"verdicts": verdicts, "notes": notes}
    path.write_text(json.dumps(facts, indent=1, default=str, ensure_ascii=False), "utf-8")


def _names(out: Path) -> None:
    """Write the public names of `evenhand` and `evenhand.analysis`, with signatures and fields."""
    import evenhand
    import evenhand.analysis

    for module in (evenhand, evenhand.analysis):
        lines = [line for name in sorted(dir(module)) for line in _described(module, name)]
        (out / f"names-{module.__name__}.txt").write_text("\n".join(lines) + "\n", "utf-8")


def _described(module: object, name: str) -> Iterator[str]:
    """Yield the description of a public name, and of a class's members."""
    value = getattr(module, name)
    if not callable(value):
        yield name
        return
    try:
        yield f"{name}{inspect.signature(value)}"
    except ValueError:  # an exception that takes what all do
        yield name
    if inspect.isclass(value):
        for own, member in sorted(vars(value).items()):
            if not own.startswith("_"):
                shown = inspect.signature(member) if inspect.isfunction(member) else ""
                yield f"    {name}.{own}{shown}"


# Normalising


def normalised(text: str, home: str, days: Sequence[str]) -> str:
    """Return a text without what differs between runs, such as times; `days` are the run's."""
    # The folder of the run, and where this checkout and its Python are.
    for path, shown in ((home, "HOME"), (sys.prefix, "PYTHON"), (str(ROOT), "CHECKOUT")):
        text = text.replace(path, shown)
    # Moments, and days, of the run itself: labels are dated when they are imported. Days in the
    # data of a demo are its own, and stay.
    day = "|".join(map(re.escape, days))
    clock = r"[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    text = re.sub(rf"(?:{day})(?:{clock})?", "NOW", text)
    # Where an unnamed function stood in memory.
    text = re.sub(r"(<function <lambda> at )0x[0-9a-f]+", r"\1ADDRESS", text)
    # The version, which a release changes and a move does not.
    return re.sub(r"(evenhand\W{1,6})\d+\.\d+\.\d+(?:\.?\w+)?\b", r"\1VERSION", text)


def _keep(folder: Path, out: Path, home: str, started: datetime) -> None:
    """Copy what a case has written, normalised; a Parquet file as what it holds."""
    now = datetime.now(UTC)
    days = [f"{started + timedelta(n):%Y-%m-%d}" for n in range((now - started).days + 2)]
    for path in sorted((folder / KEPT).rglob("*")):
        if path.is_dir():
            continue
        target = out / path.relative_to(folder / KEPT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            target = target.with_name(f"{path.name}.txt")
            content = _parquet(path).encode()
        else:
            content = path.read_bytes()
        try:
            target.write_text(normalised(content.decode(), home, days), "utf-8", newline="")
        except UnicodeDecodeError:  # a picture
            target.write_bytes(content)


def _parquet(path: Path) -> str:
    """Return the columns and rows of a Parquet file, whose bytes name the versions of libraries."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    kinds = [f"{field.name}: {field.type}" for field in table.schema]
    rows = [json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist()]
    return "\n".join([*kinds, *rows]) + "\n"


# Comparing


def differences(before: Path, after: Path) -> list[str]:
    """Return a few lines for each file that differs between two folders, or is in only one."""
    names = sorted(
        {
            path.relative_to(home).as_posix()
            for home in (before, after)
            for path in home.rglob("*")
            if path.is_file()
        }
    )
    faults = (_difference(before / name, after / name, name) for name in names)
    return [fault for fault in faults if fault]


def _difference(before: Path, after: Path, name: str) -> str:
    """Return the first line that differs, or "" if none does."""
    if not before.is_file() or not after.is_file():
        return f"{name}: only {'after' if after.is_file() else 'before'}"
    old, new = before.read_bytes(), after.read_bytes()
    if old == new:
        return ""
    lines = [content.decode("utf-8", "surrogateescape").split("\n") for content in (old, new)]
    pairs = enumerate(zip_longest(*lines), 1)
    number, differing = next((n, pair) for n, pair in pairs if pair[0] != pair[1])
    letters = enumerate(zip_longest(*(side or "" for side in differing)))
    same = next((n for n, (old_letter, new_letter) in letters if old_letter != new_letter), 0)
    start = max(0, same - 40)
    sides = [
        "(no such line)" if side is None else repr(side[start : start + _WINDOW])
        for side in differing
    ]
    return f"{name}, line {number}:\n  before {sides[0]}\n  after  {sides[1]}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m harness.frozen", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="a new folder to freeze into")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    cases = [*(case.name for case in CASES), "library", "pages"]
    parser.add_argument("--only", action="append", default=[], choices=cases, help="repeatable")
    options = parser.parse_args(arguments)
    if options.compare:
        differing = differences(*options.compare)
        print("\n".join(differing[:SHOWN]))
        if len(differing) > SHOWN:
            print(f"and {len(differing) - SHOWN} more files")
        return 1 if differing else 0

    if options.folder is None:
        parser.error("name a folder, or --compare BEFORE AFTER")
    began = time.monotonic()
    freeze(options.folder, options.only)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in used)
    print(f"{time.monotonic() - began:.0f} s, {cpu:.0f} s of CPU", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
