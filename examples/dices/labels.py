"""The safety labels of DICES-350 as one ratings table, with its expert in a grader's place.

`python examples/dices/labels.py dices-dataset dices350.csv` reads a clone of Google's repository.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

COLUMNS = ("item_id", "rater_id", "rater_kind", "label")
FILE = Path("350", "diverse_safety_adversarial_dialog_350.csv")

Row = tuple[str, str, str, str]


def rows(clone: Path) -> Iterator[Row]:
    """By conversation: `Q_overall` of every rater, unsafe (Yes), safe (No) or Unsure; then the
    expert's label of each conversation, `safety_gold`.
    """
    gold: dict[str, str] = {}
    with (clone / FILE).open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            yield line["item_id"], f"r{line['rater_id']}", "human", line["Q_overall"]
            gold[line["item_id"]] = line["safety_gold"]
    for item, label in gold.items():
        yield item, "expert", "model", label


def main(clone: str, out: str) -> None:
    with Path(out).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows(Path(clone)))


if __name__ == "__main__":
    main(*sys.argv[1:])
