"""Synthetic responses: five subjects of known character answer the demo's prompts.

Everything here is made up by a program from a seed. For each pair and subject the latent truth is
drawn first, then texts are written that show it, so a reader can tell the level, and the results of
a demo study can be compared with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from evenhand.demo import SEED
from evenhand.errors import InputError
from evenhand.study.prompts.units import unit_id
from evenhand.study.tables.formats import FIRST_ROW
from harness.demo.latent import CHARACTERS, PairTruth, draw_truth
from harness.demo.pairs import PromptPair, prompt_pairs
from harness.demo.response_text import write_response
from harness.demo.seeds import generator

if TYPE_CHECKING:
    import pandas as pd


_SHIPPED_SUBJECT = "synthetic-left-leaning"
"""One whose pairs have something to tell apart; all five would be 3 MB."""


@dataclass(frozen=True)
class DemoResponses:
    """The synthetic subjects' responses and their latent truth.

    `responses` has the columns `pair_id, side, subject, response`; `truth` has `unit_id, rubric,
    label`: one row for each pair on "even-handedness" and one for each response on "refusal" and
    on "hedging".
    """

    responses: pd.DataFrame
    truth: pd.DataFrame


def demo_responses(pairs: pd.DataFrame, seed: int) -> DemoResponses:
    """Responses of all synthetic subjects to both prompts of every pair, and the latent truth.

    `pairs` is the demo's pairs file as `study.prompts.pairs.read_pairs` gives it, or some rows of
    it. A subject's responses to a pair depend on the seed, the pair and the subject, not on the
    other rows. Raises InputError for a prompt that is not one of the demo's.
    """
    import pandas as pd

    responses: list[tuple[str, str, str, str]] = []
    truth: list[tuple[str, str, str]] = []
    for pair_id, pair in zip(pairs["pair_id"], _prompt_pairs(pairs), strict=True):
        for character in CHARACTERS:
            subject = character.subject
            drawn = draw_truth(generator(seed, pair_id, subject), character, pair)
            truth += _truth_rows(pair_id, subject, drawn)
            for side, level in (("a", drawn.a), ("b", drawn.b)):
                rng = generator(seed, pair_id, subject, side)
                responses.append((pair_id, side, subject, write_response(rng, pair, side, level)))
    return DemoResponses(
        responses=pd.DataFrame(responses, columns=["pair_id", "side", "subject", "response"]),
        truth=pd.DataFrame(truth, columns=["unit_id", "rubric", "label"]),
    )


def shipped_responses() -> pd.DataFrame:
    """Return one subject's responses to all pairs: `subject, pair_id, side, response`."""
    from evenhand.study.prompts.pairs import read_pairs

    with as_file(files("evenhand.data") / "demo_pairs.csv") as path:
        said = demo_responses(read_pairs(path), SEED).responses
    own = said[said["subject"] == _SHIPPED_SUBJECT]
    return own[["subject", "pair_id", "side", "response"]].reset_index(drop=True)


def _truth_rows(pair_id: str, subject: str, drawn: PairTruth) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    rows.append((unit_id(pair_id, subject), "even-handedness", drawn.category))
    for side, level in (("a", drawn.a), ("b", drawn.b)):
        unit = unit_id(pair_id, subject, side)
        rows += [(unit, "refusal", str(level.refusal)), (unit, "hedging", str(level.hedging))]
    return rows


def _prompt_pairs(pairs: pd.DataFrame) -> list[PromptPair]:
    known = _by_prompts()
    found = []
    for row, prompts in enumerate(
        zip(pairs["prompt_a"], pairs["prompt_b"], strict=True), start=FIRST_ROW
    ):
        if prompts not in known:
            raise InputError(
                f"pairs, row {row}: the demo has no synthetic responses to {prompts[0]!r}; use the "
                "rows of data/demo_pairs.csv unchanged"
            )
        found.append(known[prompts])
    return found


@cache
def _by_prompts() -> dict[tuple[str, str], PromptPair]:
    return {pair.prompts: pair for pair in prompt_pairs()}
