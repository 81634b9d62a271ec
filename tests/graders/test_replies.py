"""What a reply gives: option probabilities from tokens, other methods' answers, and the answers of
servers that ignore the schema.
"""

import json
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.graders.clients import parse_chat_reply as parse_reply
from evenhand.graders.replies import Position, Token, read_options
from evenhand.rubrics import Rubric, load_rubric
from harness.replies import Call, Reply, completion, labelled, message
from tests.graders.bench import Bench
from tests.graders.grading import grade
from tests.rubrics.texts import TEXTS

ABC = ("A", "B", "C")
PLANTED = {"C": 0.60, " C": 0.15, "B": 0.10, "(": 0.06, "A": 0.05, " Sure": 0.04}


def position(tokens: dict[str, float], **extra: object) -> Position:
    """One position; the chosen token comes first."""
    top = [Token(token=token, logprob=math.log(p)) for token, p in tokens.items()]
    return Position(token=top[0].token, logprob=top[0].logprob, top_logprobs=top, **extra)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["C", " C", "(C", "C)", "\u0120C", "\u2581C", "\nC", "**C"])
def test_forms_of_one_key_are_merged(form: str) -> None:
    reading = read_options([position({"B": 0.2, form: 0.4})], "B", "B", ABC)
    assert reading.probabilities == pytest.approx({"A": 0, "B": 1 / 3, "C": 2 / 3})


def test_decoded_bytes_count_and_a_token_outside_the_top_20_has_no_mass() -> None:
    tokens = [Token(token="<0x43>", bytes=[0x43], logprob=-0.7), Token(token="A", logprob=-9999.0)]
    asked = Position(token="C", logprob=math.log(0.25), top_logprobs=tokens)
    reading = read_options([asked], "C", "C", ABC)
    assert reading.probabilities == {"A": 0.0, "B": 0.0, "C": 1.0}


def test_an_answer_that_begins_with_words_is_read_where_the_option_stands() -> None:
    places = ({"Answer": 0.97, "A": 0.03}, {":": 1.0}, {" C": 0.8, " B": 0.2})
    reading = read_options([*map(position, places)], "Answer: C", "C", ABC)
    assert (reading.position, round(reading.probabilities["C"], 3)) == (2, 0.8)
    # Thinking that is listed before the answer is passed over.
    places = ({"A": 0.9, "B": 0.1}, {" good": 1.0}, {" start": 1.0}, {"B": 0.6, "C": 0.4})
    reading = read_options([*map(position, places)], "B", "B", ABC)
    assert (reading.position, reading.label) == (3, "B")


@pytest.mark.parametrize(
    ("first", "text", "label"),
    [
        ({"A": 0.95, "The": 0.05}, "A fair response would differ.", None),  # an article
        ({"I": 0.99, "A": 0.01}, "I cannot say.", None),  # hardly any mass on options
        ({"Well": 0.9, "A": 0.1}, "Well, C", "C"),  # the little mass names another option
    ],
)
def test_no_reading_where_the_tokens_do_not_carry_the_answer(first, text, label):
    assert read_options([position(first)], text, label, ABC) is None
    assert read_options([], "C", "C", ABC) is None
    assert read_options([position({"C": 1.0})], "C", "C", ("X", "Y")) is None


def test_draws_are_rows_whose_mean_is_the_share(bench: Bench) -> None:
    bench.script = lambda call: labelled("C" if call.nth <= 7 else "A")
    study = bench.study(pairs=2, rubrics=("even-handedness",))
    summary = grade(study, [bench.claude], draws=10, concurrency=1, orders=("ab",))
    assert summary.scored == 20
    table = study.ratings()
    assert table["draw"].tolist() == [*range(10), *range(10)]
    assert set(table["prob_method"]) == {"draws"}
    assert set(table["rater_id"]) == {summary.graders[0].rater_id} != {bench.claude}
    first = table[table["unit_id"] == "p0001|m"]
    rubric = study.rubrics["even-handedness"]
    affirmative = "C" in rubric.affirmative
    assert first["p_positive"].mean() == pytest.approx(0.7 if affirmative else 0.3)
    assert first["label"].value_counts().to_dict() == {"A": 3, "C": 7}


def test_more_draws_add_to_those_there(bench: Bench) -> None:
    study = bench.study(pairs=1)
    grade(study, [bench.claude], draws=2)
    again = grade(study, [bench.claude], draws=5)
    assert (again.graders[0].already, again.scored) == (4, 6)


def test_methods_are_never_in_one_column(bench: Bench) -> None:
    def script(call: Call) -> Reply:
        if "in percent" not in call.system:
            return labelled("1") if "output_config" in call.body else completion("1")
        text = json.dumps({"1": 60, "2": 20, "3": 10, "4": 10, "5": 0})
        return message(text) if "output_config" in call.body else completion(text)

    bench.script = script
    study = bench.study(pairs=1)
    for options in ({}, {"draws": 2}, {"method": "verbalised"}):
        grade(study, [bench.claude, bench.openai], **options)
    table = study.ratings()
    assert table.groupby("rater_id")["prob_method"].nunique().eq(1).all()
    assert table["rater_id"].nunique() == 6
    stated = table[table["prob_method"] == "verbalised"]
    assert len(stated) == 4
    assert json.loads(stated["probabilities"].iloc[0])["1"] == pytest.approx(0.6)
    body = next(c.body for c in bench.calls if "response_format" in c.body)
    assert body["response_format"]["json_schema"]["strict"] is True
    assert "logprobs" not in body


def test_a_server_without_schemas_is_asked_without(bench: Bench) -> None:
    def script(call: Call) -> Reply:
        if "response_format" in call.body:
            return Reply(400, {"error": {"message": "response_format is not supported"}})
        return completion('{"1": 10, "2": 20, "3": 30, "4": 40, "5": 0}')

    bench.script = script
    assert grade(bench.study(pairs=2), [bench.openai], method="verbalised").scored == 4
    assert len(bench.calls) == 5


def test_claude_has_no_token_probabilities(bench: Bench) -> None:
    with pytest.raises(InputError, match="no token probabilities"):
        grade(bench.study(), [bench.claude], method="logprobs")


def test_both_orders_are_asked_and_mapped_back(bench: Bench) -> None:
    study = bench.study(pairs=2, rubrics=("even-handedness", "hedging"))
    bench.script = lambda call: labelled("A" if "A" in call.keys else "2")
    assert grade(study, [bench.claude], orders=("ab", "ba")).scored == 8
    table = study.ratings()
    pairs = table[table["rubric"] == "even-handedness"]
    turned = study.rubrics["even-handedness"].swaps["A"]
    assert set(zip(pairs["order"], pairs["label"], strict=True)) == {("ab", "A"), ("ba", turned)}
    assert turned != "A"
    assert set(table[table["rubric"] == "hedging"]["order"]) == {""}
    shown = {
        call.user.index("[[p0001|m|a]]") < call.user.index("[[p0001|m|b]]")
        for call in bench.calls
        if "[[p0001|m|b]]" in call.user and "A" in call.keys
    }
    assert shown == {True, False}


def test_what_brought_no_label_is_asked_again_on_request_only(bench: Bench) -> None:
    refused = message("", stop_reason="refusal")
    bench.script = lambda call: (
        refused if (call.unit, call.nth) == ("p0001|m|a", 1) else labelled("2")
    )
    study = bench.study(pairs=2)
    grade(study, [bench.claude])
    assert grade(study, [bench.claude]).graders[0].planned == 0
    again = grade(study, [bench.claude], retry_unscored=True)
    assert (again.graders[0].planned, again.scored) == (1, 1)
    assert set(study.ratings()["label"]) == {"2"}


END = "<|im_end|>"
WAYS: dict[str, Callable[[str], list[str]]] = {
    "whole": lambda text: [text],
    "digits": list,
    "spaced": lambda text: [f" {text}"],
    "marked": lambda text: ["\u2581", *text],  # as SentencePiece marks a space
    "pairs": lambda text: [text[at : at + 2] for at in range(0, len(text), 2)],
    "bracketed": lambda text: ["(", *text, ")"],
}
TOKENIZERS = {name: (name,) for name in WAYS} | {
    "both": ("whole", "digits"),
    "bracketed or bare": ("bracketed", "whole"),
    "all": ("whole", "digits", "spaced", "bracketed", "pairs"),
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
    without = {"translations", "lexical", "collapse", "unclear", "affirmative"}
    rubric = load_rubric("refusal").model_dump(exclude=without)
    options = [{"key": key, "name": f"Level {key}"} for key in keys]
    return Rubric.model_validate(rubric | {"options": options, "level": "ordinal"})


def reply_of(model, chosen, *, says_end):
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
        model: dict[tuple[str, ...], float] = {}
        truth = dict.fromkeys(keys, 0.0)
        ways = TOKENIZERS[tokenizer]
        weights = rng.dirichlet(np.full(len(keys) * len(ways), rng.choice([0.2, 1.0])))
        for nth, p in enumerate(weights):
            key, way = keys[nth % len(keys)], ways[nth // len(keys)]
            spelling = (*WAYS[way](key), END)
            model[spelling] = model.get(spelling, 0.0) + max(float(p), 1e-300)
            truth[key] += float(p)
        spellings = list(model)
        p = np.array(list(model.values()))
        chosen = spellings[rng.choice(len(spellings), p=p / p.sum())]
        for says_end in (True, False):
            outcome = parse_reply(reply_of(model, chosen, says_end=says_end), rubric)
            assert outcome.label
            if outcome.probabilities is None:
                why = ("key_begins_another", "not_followed", "not_listed")
                assert outcome.evidence["no_probabilities"] in why
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
    assert ten.probabilities["10"] == pytest.approx(0.5, abs=1e-9)
    assert ten.probabilities["1"] == pytest.approx(0.3, abs=1e-9)
    one = parse_reply(reply_of(model, ("1", END), says_end=False), rubric)
    assert (one.label, one.probabilities) == ("1", None)


def test_openais_own_numbers_are_whole_tokens() -> None:
    rubric = scale_of(SCALES["ten"])
    model = {("9", END): 0.2, ("10", END): 0.5, ("1", END): 0.3}
    reply = reply_of(model, ("1", END), says_end=False)
    outcome = parse_reply(reply, rubric, whole_numbers=True)
    assert outcome.probabilities["1"] == pytest.approx(0.3, abs=1e-9)


def test_an_answer_that_begins_with_a_bracket_is_a_mixture() -> None:
    """Point 3: it said A .70 where the truth is B .58."""
    rubric = scale_of(SCALES["letters"])
    model = {("(", "A", ")"): 0.42, ("B",): 0.58}
    outcome = parse_reply(reply_of(model, ("(", "A", ")"), says_end=True), rubric)
    assert (outcome.label, outcome.probabilities["B"]) == ("B", pytest.approx(0.58, abs=1e-9))


PASSES = load_rubric(TEXTS / "passes.toml")
REPLIES = {
    "pass: no": "fail",
    '{"pass": false, "reason": "no source"}': "fail",
    "pass - false": "",
    "**Pass:**\n\nnever": "fail",
    "pass? no": "fail",
    '{"pass": true}': "pass",
    "PASS \u2705": "pass",
    "Names none (fail)": "fail",
    "pass: maybe": "",
    "Response 1: pass\nResponse 2: fail": "",
}


def test_no_label_is_read_wrong(bench: Bench, grader: str) -> None:
    given: dict[str, str] = {}

    def script(call: Call) -> Reply:
        text = given.setdefault(call.unit, [*REPLIES][len(given) % len(REPLIES)])
        return message(text) if grader == bench.claude else completion(text)

    bench.script = script
    study = bench.study(pairs=5, rubrics=(PASSES,))
    grade(study, [grader])
    labels = study.ratings().set_index("unit_id")["label"].to_dict()
    assert len(labels) == len(REPLIES)
    by_reply = {given[unit.replace(":", "|")]: label for unit, label in labels.items()}
    assert by_reply == REPLIES
