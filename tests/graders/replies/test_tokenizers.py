"""Probabilities against enumeration (synthetic): what a simulated model answers, written by
simulated tokenizers, is found to 1e-9, or within what the grade says it may be off, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from evenhand.graders.clients.chat_api import parse_reply
from evenhand.rubrics import Rubric, load_rubric

END = "<|im_end|>"
Tokenizer = Callable[[str], list[str]]
Spelling = tuple[str, ...]


def whole(text: str) -> list[str]:
    return [text, END]


def digit_by_digit(text: str) -> list[str]:
    return [*text, END]


def spaced(text: str) -> list[str]:
    return [f" {text}", END]


def marked(text: str) -> list[str]:
    """As SentencePiece marks a space."""
    return ["\u2581", *text, END]


def byte_pair(text: str) -> list[str]:
    """Pairs, as far as they go."""
    return [*(text[at : at + 2] for at in range(0, len(text), 2)), END]


def bracketed(text: str) -> list[str]:
    return ["(", *text, ")", END]


TOKENIZERS: dict[str, Sequence[Tokenizer]] = {
    "whole": (whole,),
    "digits": (digit_by_digit,),
    "spaced": (spaced,),
    "marked": (marked,),
    "pairs": (byte_pair,),
    "both": (whole, digit_by_digit),
    "bracketed": (bracketed,),
    "bracketed or bare": (bracketed, whole),
    "all": (whole, digit_by_digit, spaced, bracketed, byte_pair),
}
SCALES = {
    "letters": ("A", "B", "C"),
    "five": tuple("12345"),
    "ten": tuple(str(n) for n in range(1, 11)),
    "hundred": tuple(str(n) for n in range(0, 101, 5)),
    "grades": ("A+", "A", "B", "C"),
    "words": ("agree", "disagree", "neutral"),
}


def scale_of(keys: Sequence[str]) -> Rubric:
    rubric = load_rubric("refusal").model_dump(
        exclude={"translations", "lexical", "published", "collapse", "unclear", "affirmative"}
    )
    options = [{"key": key, "name": f"Level {key}"} for key in keys]
    return Rubric.model_validate(rubric | {"options": options, "level": "ordinal"})


def reply_of(
    model: dict[Spelling, float], chosen: Spelling, *, says_end: bool
) -> dict[str, object]:
    """What a server returns that lists every token at every place of a chosen answer."""
    content = []
    for at, token in enumerate(chosen):
        if token == END and not says_end:
            break
        here: dict[str, float] = {}
        for spelling, p in model.items():
            if spelling[:at] == chosen[:at] and len(spelling) > at:
                here[spelling[at]] = here.get(spelling[at], 0.0) + p
        total = math.fsum(here.values())
        top = [{"token": each, "logprob": math.log(p / total)} for each, p in here.items()]
        mine = next(each for each in top if each["token"] == token)
        content.append({**mine, "top_logprobs": top})
    text = "".join(token for token in chosen if token != END).replace("\u2581", " ")
    choice = {"message": {"content": text}, "logprobs": {"content": content}}
    return {"id": "c", "choices": [choice]}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_probabilities_are_those_of_whole_answers(scale: str, tokenizer: str) -> None:
    keys = SCALES[scale]
    rubric = scale_of(keys)
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(60):
        model: dict[Spelling, float] = {}
        truth = dict.fromkeys(keys, 0.0)
        ways = TOKENIZERS[tokenizer]
        weights = rng.dirichlet(np.full(len(keys) * len(ways), rng.choice([0.2, 1.0])))
        for nth, p in enumerate(weights):
            key, way = keys[nth % len(keys)], ways[nth // len(keys)]
            spelling = tuple(way(key))
            model[spelling] = model.get(spelling, 0.0) + max(float(p), 1e-300)
            truth[key] += float(p)
        spellings = list(model)
        p = np.array(list(model.values()))
        chosen = spellings[rng.choice(len(spellings), p=p / p.sum())]
        for says_end in (True, False):
            outcome = parse_reply(reply_of(model, chosen, says_end=says_end), rubric)
            assert outcome.label
            if outcome.probabilities is None:
                assert outcome.evidence["no_probabilities"] in (
                    "key_begins_another",
                    "not_followed",
                    "not_listed",
                )
                continue
            found += 1
            off = outcome.evidence.get("may_be_off", 0.0)
            assert off <= 0.1
            for key in keys:
                assert outcome.probabilities[key] == pytest.approx(truth[key], abs=1e-9 + off)
    if len(TOKENIZERS[tokenizer]) == 1 and scale in ("letters", "five"):
        assert found == 120


def test_a_key_that_begins_another_is_no_option_by_itself() -> None:
    """The server of point 1: it answered 9, and all mass of the token 1 went to option 1."""
    rubric = scale_of(SCALES["ten"])
    model = {("9", END): 0.2, ("1", "0", END): 0.5, ("1", END): 0.3}
    nine = parse_reply(reply_of(model, ("9", END), says_end=True), rubric)
    assert (nine.label, nine.probabilities) == ("9", None)
    assert nine.evidence["no_probabilities"] == "key_begins_another"
    ten = parse_reply(reply_of(model, ("1", "0", END), says_end=True), rubric)
    assert ten.probabilities is not None
    assert ten.probabilities["10"] == pytest.approx(0.5, abs=1e-9)
    assert ten.probabilities["1"] == pytest.approx(0.3, abs=1e-9)
    one = parse_reply(reply_of(model, ("1", END), says_end=False), rubric)
    assert (one.label, one.probabilities) == ("1", None)


def test_openais_own_numbers_are_whole_tokens() -> None:
    rubric = scale_of(SCALES["ten"])
    model = {("9", END): 0.2, ("10", END): 0.5, ("1", END): 0.3}
    reply = reply_of(model, ("1", END), says_end=False)
    outcome = parse_reply(reply, rubric, whole_numbers=True)
    assert outcome.probabilities is not None
    assert outcome.probabilities["1"] == pytest.approx(0.3, abs=1e-9)


def test_an_answer_that_begins_with_a_bracket_is_a_mixture() -> None:
    """Point 3: it said A .70 where the truth is B .58."""
    rubric = scale_of(SCALES["letters"])
    model = {("(", "A", ")"): 0.42, ("B",): 0.58}
    outcome = parse_reply(reply_of(model, ("(", "A", ")"), says_end=True), rubric)
    assert outcome.probabilities is not None
    assert (outcome.label, outcome.probabilities["B"]) == ("B", pytest.approx(0.58, abs=1e-9))
