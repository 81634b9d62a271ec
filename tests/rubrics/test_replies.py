"""No reply is read as another label than a careful person would read, and none is guessed:
`replies.toml`, of our own writing, filled in for six scales.
"""

import json
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.rubrics import RubricParser, asked_rubric, load_rubric, shipped_rubrics
from tests.rubrics.test_other_answers import BLOCKS, topics

DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_name("replies.toml").read_text("utf-8"))
UNREAD = Path(__file__).with_name("unread.json")
SCALES: dict[str, dict[str, str]] = {
    "letters": {"A": "First is better", "B": "Second is better", "C": "Equal"},
    "numbers": {"1": "Full compliance", "2": "Mild caveats", "3": "Partial refusal",
        "4": "Deflection", "5": "Full refusal"},
    "words": {"agree": "Agrees", "disagree": "Disagrees", "neutral": "Takes no side"},
    "ten": {str(n): f"Level {n}" for n in range(1, 11)},
    "pass-fail": {"pass": "Meets the criteria", "fail": "Misses a criterion"},
    "relevance": {"relevant": "On topic", "irrelevant": "Off topic"},
    "yes-no": {"yes": "Refuses", "no": "Does not refuse"},
    "grades": {"A+": "Excellent", "A": "Good", "B": "Fair", "C": "Poor"},
    "signed": {"-2": "Very bad", "-1": "Bad", "0": "Middling", "1": "Good", "2": "Very good"},
}  # fmt: skip
FOR = {
    "all": ("letters", "numbers", "words", "ten"),
    "numbers": ("numbers", "ten"),
    "sound": ("pass-fail", "relevance"),
}
OTHER_ENDS = ("/10", "of 10", "of 100", "von 10", "sur 10", "de 10", "to 10", ": 10}", "{k}0")
"""What a scale that does reach 10 gives another meaning."""


@cache
def parser(name: str) -> RubricParser:
    if name in shipped_rubrics():
        return load_rubric(name).parser
    if name == "topics":
        return topics().parser
    if name in ("0-1", "0-100"):
        return asked_rubric("How good is it?", BLOCKS, scale=name).parser
    return RubricParser(SCALES[name])


@cache
def label(scale: str, reply: str) -> str | None:
    return parser(scale).label(reply)


def filled(kind: str) -> Iterator[tuple[str, str, set[str]]]:
    """(scale, reply, what may be read), each template with every key of each scale once over."""
    for group in DATA[kind]:
        for scale in FOR.get(group["to"], (group["to"],)):
            names = SCALES[scale]
            keys = list(names)
            for nth, template in enumerate(group["texts"]):
                if scale == "ten" and any(end in template for end in OTHER_ENDS):
                    continue
                for at in {nth % len(keys), (nth + 1) % len(keys)}:
                    key, other = keys[at], keys[(at + 1 + nth % min(2, len(keys) - 1)) % len(keys)]
                    if "{k}/{o}" in template and other == keys[-1]:
                        continue  # a fraction of the scale
                    reply = template.format(
                        k=key, o=other, kname=names[key], oname=names[other], max=keys[-1]
                    )
                    may = {key} if group.get("or_k") else set()
                    may |= {other} if group.get("or_o") else set()
                    yield scale, reply, {key} if kind == "plain" else may


def single(kind: str) -> Iterator[tuple[str, str, set[str]]]:
    for scale, group in DATA[kind].items():
        for reply, key in group["replies"]:
            yield scale, reply, {key} - {""}


CLEAR, TRICKY = (list(single(kind)) for kind in ("clear", "tricky"))
ALL = [*filled("plain"), *filled("hard"), *single("must"), *single("may")]
PLAIN = [*filled("plain"), *single("must")]


@pytest.mark.parametrize("scale", DATA["exact"])
def test_an_answer_is_read_exactly_so(scale: str) -> None:
    expected = dict(DATA["exact"][scale]["replies"])
    assert {reply: parser(scale).label(reply) or "" for reply in expected} == expected


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len({(scale, reply) for scale, reply, _ in ALL}) >= 3_000
    assert sum(len(group["texts"]) for kind in ("plain", "hard") for group in DATA[kind]) >= 500
    assert len([*single("must"), *single("may")]) >= 270
    assert len(CLEAR) + len(TRICKY) >= 200
    assert len(TRICKY) >= 100


@pytest.mark.journey
def test_a_clear_answer_is_read_and_a_tricky_one_rightly_or_not_at_all() -> None:
    assert [case for case in CLEAR if label(*case[:2]) not in case[2]] == []
    assert [case for case in TRICKY if label(*case[:2]) not in (None, *case[2])] == []


@pytest.mark.journey
def test_no_reply_is_read_as_another_label() -> None:
    wrong = {
        (scale, reply): label(scale, reply)
        for scale, reply, may in ALL
        if label(scale, reply) not in (None, *may)
    }
    assert wrong == {}


def test_hardly_any_plain_answer_is_lost() -> None:
    lost = [(scale, reply) for scale, reply, may in PLAIN if label(scale, reply) not in may]
    assert len(lost) <= 0.02 * len(PLAIN), lost


def unread() -> list[list[str]]:
    """Replies that are given up although a person might read an option in them."""
    cases = (*ALL, *CLEAR, *TRICKY)
    return [[scale, reply] for scale, reply, may in cases if may and label(scale, reply) is None]


@pytest.mark.journey
def test_the_replies_that_are_given_up_are_as_before() -> None:
    """`python -m tests.rubrics.test_replies` writes the list anew."""
    assert unread() == json.loads(UNREAD.read_text("utf-8"))


@pytest.mark.journey
@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    scale=st.sampled_from(["letters", "numbers", "ten", "yes-no"]),
    ways=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    between=st.sampled_from([" or ", "/", ", or rather ", ". No, ", "\n", ". Actually, ", " -> "]),
)
def test_two_options_side_by_side_are_no_label(scale, ways, between):
    keys = list(SCALES[scale])
    first, second = (keys[each % len(keys)] for each in ways)
    if first == second or (between == "/" and second == keys[-1]):
        return
    for frame in ("{}", "Answer: {}", "The answer is {}.", '{{"label": "{}"}}'):
        newline = "\\n" if "{{" in frame else "\n"
        reply = frame.format(f"{first}{between}{second}".replace("\n", newline))
        assert parser(scale).label(reply) in (None, second if "no" in between.casefold() else None)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    reply=st.sampled_from([text for scale, text, _ in (*CLEAR, *TRICKY) if scale == "numbers"]),
    around=st.sampled_from(['The response says "{}".', "<think>{}", "It tells the grader: “{}”."]),
)
def test_what_is_quoted_or_only_thought_is_no_label(reply: str, around: str) -> None:
    if '"' not in reply and "\n" not in reply:
        assert parser("numbers").label(around.format(reply)) is None


@pytest.mark.journey
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    text=st.text(max_size=300)
    | st.text(st.sampled_from("{}[]()\"'`*#<>/|12345.,:;-\n ABCanswerscore是分"), max_size=400)
)
def test_any_text_is_an_option_or_none_at_once(text: str) -> None:
    for name in (*SCALES, *shipped_rubrics()):
        keys = SCALES[name] if name in SCALES else load_rubric(name).categories
        assert parser(name).label(text) in (None, *keys)


REASONS = {
    "pass fail": {"Pass: no errors found.": "pass",
        "**PASS**: The response is accurate and does not contain errors.": "pass",
        "Pass: The answer is complete.": "pass", "Fail: no citation given": "fail",
        "Fail: 3 errors": "fail", "Fail - does not answer.": "fail", "pass - false": None,
        "pass: not met": None, "pass: 2 out of 5": None, "fail: no errors found": None,
        "Fail: 0 errors": None},
    "safe harmful": {"Safe: The response does not attack anyone.": "safe",
        "harmful: it is safe": None, "harmful: no slurs": None, "harmful: nothing found": None},
    "relevant irrelevant": {"relevant: no mention of the topic": None,
        "relevant:\nnever": "irrelevant"},
}  # fmt: skip


@pytest.mark.parametrize("options", REASONS)
def test_a_reason_leaves_an_option_an_answer_and_a_denial_does_not(options: str) -> None:
    parse = RubricParser({key: key.title() for key in options.split()}).label
    assert {reply: parse(reply) for reply in REASONS[options]} == REASONS[options]


if __name__ == "__main__":
    UNREAD.write_text(json.dumps(unread(), indent=0, ensure_ascii=False) + "\n", "utf-8")
