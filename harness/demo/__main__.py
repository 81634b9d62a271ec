"""`python -m harness.demo FOLDER`: writes what evenhand ships for its demos into a folder."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pandas as pd

from evenhand.demo import DEMOS, ITEMS_SEED, SEED, STANCE_SEED, demo_plan
from evenhand.rubrics import load_rubric
from evenhand.study import create_study, open_study
from evenhand.study.tables.formats import write_table
from harness.demo.bank import leanings
from harness.demo.items import demo_items, item_ratings, with_judge
from harness.demo.pairs import demo_pairs
from harness.demo.raters import ANNOTATORS, GRADERS, simulate_ratings
from harness.demo.responses import demo_responses, shipped_responses
from harness.demo.stance_raters import stance_ratings
from harness.demo.stance_responses import demo_answers

if TYPE_CHECKING:
    from evenhand.study import Study


def written_tables(name: str) -> dict[str, pd.DataFrame]:
    """Return the synthetic responses and ratings of a demo study; of items the ratings alone."""
    with TemporaryDirectory() as home:
        folder = Path(home) / "study"
        create_study(folder, demo_plan(name, folder)[0])
        with open_study(folder) as study:
            made = {"pairs": _pairs, "stance": _stance, "items": _items}[name](study)
    # The hash is that of the text at the time of the import.
    return made | {"ratings": made["ratings"].assign(rubric_hash="")}


def _pairs(study: Study) -> dict[str, pd.DataFrame]:
    made = demo_responses(study.store.pairs(), SEED)
    study.store.add_responses(made.responses)
    sampled = made.truth[made.truth["unit_id"].isin(set(study.units("sample")["unit_id"]))]
    people = simulate_ratings(ANNOTATORS, sampled, study.rubrics, SEED)
    graders = simulate_ratings(GRADERS, made.truth, study.rubrics, SEED)
    ratings = pd.concat([people, graders], ignore_index=True)
    return {"responses": made.responses, "ratings": ratings}


def _stance(study: Study) -> dict[str, pd.DataFrame]:
    responses, truth = demo_answers(study.store.pairs(), STANCE_SEED)
    study.store.add_responses(responses)
    sampled = set(study.units("sample")["unit_id"])
    side = truth.merge(study.units("all"), on="unit_id", how="left")["leaning"]
    ratings = stance_ratings(truth, sampled, side, study.rubrics, STANCE_SEED)
    return {"responses": responses, "ratings": ratings}


def _items(study: Study) -> dict[str, pd.DataFrame]:
    (rubric,) = study.rubrics.values()
    units = study.units("all").set_index("item_id")["unit_id"]
    truth = demo_items(ITEMS_SEED)[1]
    known = pd.DataFrame(
        {"unit_id": units[truth.index].to_numpy(), "rubric": rubric.name, "label": truth.to_numpy()}
    )
    sampled = set(study.units("sample")["unit_id"])
    return {"ratings": item_ratings(known, sampled, rubric, ITEMS_SEED)}


def shipped_items() -> pd.DataFrame:
    """Return the items file of the demo, with a judge's labels."""
    items, truth = demo_items(ITEMS_SEED)
    return with_judge(items, truth, load_rubric("faithfulness"), ITEMS_SEED)


def main(out: Path) -> None:
    demo_pairs().to_csv(out / "demo_pairs.csv", index=False, lineterminator="\n")
    lines = [f"{side} = {groups!r}\n".replace("'", '"') for side, groups in leanings().items()]
    (out / "demo_leanings.toml").write_text("".join(lines), "utf-8")
    write_table(shipped_responses(), out / "demo_responses.jsonl")
    shipped_items().to_csv(out / "demo_items.csv", index=False, lineterminator="\n")
    for name in DEMOS:
        for what, table in written_tables(name).items():
            table.to_parquet(
                out / f"demo_{name}_{what}.parquet",
                index=False,
                compression="zstd",
                compression_level=22,
                use_dictionary=False,
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
