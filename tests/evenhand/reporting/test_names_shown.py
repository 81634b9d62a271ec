"""Whoever makes a study hears which names annotators would see in texts and headings."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli.main import main

QUIET = {
    "question": "Which colour has the sky?",
    "output": "It is blue, as every modeller knows.",
    "model": "m1",
    "judge": "yes",
}
ASKED = ["--question", "Right?", "--options", "yes,no"]


@pytest.mark.parametrize(
    ("row", "options", "told"),
    [
        ({"output": "As GPT-4o, I say blue."}, [], "in 1 of 2 items, p0002 first (GPT-4o"),
        ({"output": "I am Claude, made by Anthropic."}, [], "2 first (Claude in response)"),
        ({"output": "As m1, I say blue."}, [], "2 first (m1 in response)"),
        ({"context": "Written by gemini-2.5-pro."}, [], "2 first (gemini-2.5-pro in context)"),
        ({"output": "Blue. gpt_judge: yes"}, ["--judge", "gpt_judge"], "(gpt_judge in response)"),
        ({"gpt-4o": "It is blue.", "claude-opus": "It is red."},
         ["--show", "question,gpt-4o,claude-opus"],
         "in headings: Gpt-4o, Claude-opus. Rename these columns"),
        ({"output": "It is blue. The judge ruled so."}, ["--judge", "judge"], ""),
        ({"output": "It is blue, in m12 and at 4o'clock."}, [], ""),
        ({"output": "A llama and an alpaca met. rating: none."}, [], ""),
    ],
)  # fmt: skip
def test_names_in_texts_and_headings_are_counted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    row: dict[str, str],
    options: list[str],
    told: str,
) -> None:
    rows = pd.DataFrame([QUIET, QUIET | row]).fillna("A plain text.")
    rows["gpt_judge"] = "yes"
    rows.to_csv(tmp_path / "items.csv", index=False)
    words = ["new", str(tmp_path / "s"), "--items", str(tmp_path / "items.csv"), *ASKED, *options]
    assert main(words) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert told in printed
    assert ("Annotators may see names" in printed) == bool(told)
    again = eh.label(tmp_path / "items.csv", tmp_path / "s")
    assert [note[:24] for note in again.notes[1:]] == ["Annotators may see names"] * bool(told)
