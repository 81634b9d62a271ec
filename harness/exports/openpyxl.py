"""Export a workbook with a column for each rater."""

from __future__ import annotations

from pathlib import Path

import openpyxl as library

from harness.exports.contents import TOPICS, labels


def make(out: Path) -> None:
    book = library.Workbook()
    sheet = book.active
    sheet.append(["item", "human_1", "human_2", "gpt-4o", "topic"])
    for said, topic in zip(labels(), TOPICS, strict=True):
        sheet.append([*said, topic])
    book.save(out / "wide.xlsx")
