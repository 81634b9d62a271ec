"""What a reply gives: option probabilities from tokens, other methods' answers, and the answers of
servers that ignore the schema.
"""

import json
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from evenhand.graders.clients import parse_chat_reply as parse_reply
from evenhand.graders.replies import Position, Token, read_options
from evenhand.rubrics import Rubric, load_rubric
from harness.replies import Call, Reply, completion, error, labelled, message
from harness.studies import response_rubric
from tests.cases import refused
from tests.graders.bench import Bench
from tests.graders.grading import grade
from tests.rubrics.texts import TEXTS

ABC = ("A", "B", "C")


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
    assert read_options([asked], "C", "C", ABC).probabilities == {"A": 0.0, "B": 0.0, "C": 1.0}


def test_an_answer_that_begins_with_words_is_read_where_the_option_stands() -> None:
    places = ({"Answer": 0.97, "A": 0.03}, {":": 0.9, " B": 0.1}, {" C": 0.8, " B": 0.2})
    reading = read_options([*map(position, places)], "Answer: C", "C", ABC)
    assert (reading.position, round(reading.probabilities["C"], 3)) == (2, 0.8)
    # What the answer could have been in the place of these words is not followed.
    assert reading.unseen == reading.unfinished == pytest.approx(0.03 + 0.97 * 0.1)
    # Thinking that is listed before the answer is passed over.
    places = ({"A": 0.9, "B": 0.1}, {" start\n": 1.0}, {"\n": 0.5, "B": 0.5}, {"C": 0.6, "B": 0.4})
    reading = read_options([*map(position, places)], "C", "C", ABC)
    assert (reading.position, reading.probabilities["B"]) == (3, pytest.approx(0.5 + 0.5 * 0.4))


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
    bench.script = lambda call: labelled("C" if call.nth <= 3 else "A")
    study = bench.study(pairs=1, rubrics=("even-handedness",))
    assert grade(study, [bench.claude], draws=2, concurrency=1, orders=("ab",)).scored == 2
    more = grade(study, [bench.claude], draws=5, concurrency=1, orders=("ab",))
    assert (more.graders[0].already, more.scored) == (2, 3), "more draws add to those there"
    table = study.ratings()
    assert (table["draw"].tolist(), set(table["prob_method"])) == ([*range(5)], {"draws"})
    assert set(table["rater_id"]) == {more.graders[0].rater_id} != {bench.claude}
    affirmative = "C" in study.rubrics["even-handedness"].affirmative
    assert table["p_positive"].mean() == pytest.approx(0.6 if affirmative else 0.4)
    assert table["label"].tolist() == [*"CCCAA"]


@pytest.mark.journey
def test_methods_are_never_in_one_column(bench: Bench) -> None:
    stated = json.dumps({"1": 60, "2": 20, "3": 10, "4": 10, "5": 0})

    def script(call: Call) -> Reply:
        if "in percent" not in call.system:
            return labelled("1") if "output_config" in call.body else completion("1")
        return message(stated) if "output_config" in call.body else completion(stated)

    bench.script, study = script, bench.study(pairs=1)
    for options in ({}, {"draws": 2}, {"method": "verbalised"}):
        grade(study, [bench.claude, bench.openai], **options)
    table = study.ratings()
    assert table.groupby("rater_id")["prob_method"].nunique().eq(1).all()
    assert table["rater_id"].nunique() == 6
    own = table[table["prob_method"] == "verbalised"]
    assert (len(own), json.loads(own["probabilities"].iloc[0])["1"]) == (4, pytest.approx(0.6))
    body = next(c.body for c in bench.calls if "response_format" in c.body)
    assert body["response_format"]["json_schema"]["strict"] is True
    assert "logprobs" not in body
    refused("no token probabilities", grade, study, [bench.claude], method="logprobs")
    # A server without schemas is asked without.
    bench.script = lambda call: (
        error(400, "response_format is not supported")
        if "response_format" in call.body
        else completion(stated)
    )
    bench.calls.clear()
    other = bench.study(pairs=1, name="other")
    assert (grade(other, [bench.openai], method="verbalised").scored, len(bench.calls)) == (2, 3)


END = "<|im_end|>"
WAYS: dict[str, Callable[[str], list[str]]] = {
    "whole": lambda text: [text],
    "digits": list,
    "spaced": lambda text: [f" {text}"],
    "marked": lambda text: ["\u2581", *text],  # as SentencePiece marks a space
    "pairs": lambda text: [text[at : at + 2] for at in range(0, len(text), 2)],
    "bracketed": lambda text: ["(", *text, ")"],
    "broken": lambda text: ["\n", *text],
}
TOKENIZERS = {name: (name,) for name in WAYS} | {
    "both": ("whole", "digits"),
    "bracketed or bare": ("bracketed", "whole"),
    "broken or bare": ("broken", "whole"),
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
    return response_rubric({key: f"Level {key}" for key in keys}, level="ordinal")


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
    keys, ways = SCALES[scale], TOKENIZERS[tokenizer]
    rubric, rng, found = scale_of(keys), np.random.default_rng(7), 0
    for _ in range(30):
        model: dict[tuple[str, ...], float] = {}
        truth = dict.fromkeys(keys, 0.0)
        weights = rng.dirichlet(np.full(len(keys) * len(ways), rng.choice([0.2, 1.0])))
        for nth, p in enumerate(weights):
            key, way = keys[nth % len(keys)], ways[nth // len(keys)]
            spelling = (*WAYS[way](key), END)
            model[spelling] = model.get(spelling, 0.0) + max(float(p), 1e-300)
            truth[key] += float(p)
        p = np.array(list(model.values()))
        chosen = list(model)[rng.choice(len(model), p=p / p.sum())]
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
            assert outcome.probabilities == pytest.approx(truth, abs=1e-9 + off)
    if len(ways) == 1 and scale in ("letters", "five"):
        assert found == 60


def test_a_key_that_begins_another_is_no_option_by_itself() -> None:
    """The server of point 1: it answered 9, and all mass of the token 1 went to option 1."""
    rubric = scale_of(SCALES["ten"])
    model = {("9", END): 0.2, ("1", "0", END): 0.5, ("1", END): 0.3}
    nine = parse_reply(reply_of(model, ("9", END), says_end=True), rubric)
    assert (nine.label, nine.probabilities) == ("9", None)
    assert nine.evidence["no_probabilities"] == "key_begins_another"
    ten = parse_reply(reply_of(model, ("1", "0", END), says_end=True), rubric).probabilities
    assert (ten["10"], ten["1"]) == (pytest.approx(0.5, abs=1e-9), pytest.approx(0.3, abs=1e-9))
    one = parse_reply(reply_of(model, ("1", END), says_end=False), rubric)
    assert (one.label, one.probabilities) == ("1", None)
    # OpenAI's own numbers are whole tokens.
    model = {("9", END): 0.2, ("10", END): 0.5, ("1", END): 0.3}
    outcome = parse_reply(reply_of(model, ("1", END), says_end=False), rubric, unsplit_numbers=True)
    assert outcome.probabilities["1"] == pytest.approx(0.3, abs=1e-9)


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


@pytest.mark.journey
def test_no_label_is_read_wrong(bench: Bench, grader: str) -> None:
    given: dict[str, str] = {}

    def script(call: Call) -> Reply:
        text = given.setdefault(call.unit, [*REPLIES][len(given) % len(REPLIES)])
        return message(text) if grader == bench.claude else completion(text)

    bench.script, study = script, bench.study(pairs=5, rubrics=(PASSES,))
    grade(study, [grader])
    labels = study.ratings().set_index("unit_id")["label"]
    assert {given[unit.replace(":", "|")]: label for unit, label in labels.items()} == REPLIES
