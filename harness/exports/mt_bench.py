"""Write by hand the columns of lmsys/mt_bench_human_judgments and of FastChat's judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.exports.contents import ANSWERS, QUESTIONS, TRUE, labels, write_lines

_ROLES = ("user", "assistant", "assistant")
MODELS = ("llama-13b", "vicuna-13b")


def make(out: Path) -> None:
    people, votes = [], []
    for number, (_, a, b, g) in enumerate(labels()):
        shown = MODELS[::-1] if number % 2 else MODELS
        for who, said in (("expert_1", a), ("author_2", b)):
            people.append(_seen_by(who, number, shown, _winner(shown, said)))
        unsure = number == 3
        won = "tie (inconsistent)" if unsure else _winner(shown, g)
        people.append(_seen_by("gpt4_pair", number, shown, won))
        votes.append(_vote(number, "model_1" if g == "yes" else "model_2", unsure))
    write_lines(out / "mt_bench.jsonl", people)
    write_lines(out / "gpt-4_pair.jsonl", votes)
    compared = []
    for number, texts in enumerate(zip(QUESTIONS, ANSWERS, TRUE, strict=True)):
        turns = zip(_ROLES, texts, strict=True)
        asked, *answers = ({"role": role, "content": text} for role, text in turns)
        vote = _seen_by("expert_1", number, MODELS, "model_b")
        sides = zip(("a", "b"), answers, strict=True)
        compared.append(vote | {f"conversation_{side}": [asked, each] for side, each in sides})
    write_lines(out / "items" / "mt_bench.jsonl", compared)


def _winner(shown: tuple[str, ...], said: str) -> str:
    return f"model_{'ab'[shown.index(MODELS[said == 'no'])]}"


def _seen_by(who: str, number: int, shown: tuple[str, ...], winner: str) -> dict[str, Any]:
    return {
        "question_id": 81 + number,
        "model_a": shown[0],
        "model_b": shown[1],
        "winner": winner,
        "judge": who,
        "turn": 1,
        "conversation_a": [],
        "conversation_b": [],
    }


def _vote(number: int, winner: str, unsure: bool) -> dict[str, Any]:
    return {
        "question_id": 81 + number,
        "model_1": MODELS[0],
        "model_2": MODELS[1],
        "g1_winner": "error" if unsure else winner,
        "g2_winner": winner,
        "judge": ["gpt-4", "pair-v2"],
        "turn": 1,
        "tstamp": 1687.5,
    }
