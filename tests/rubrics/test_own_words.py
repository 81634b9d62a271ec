"""Words of a user's own for graders: where a reply has its answer, and what a file may say."""

import pytest

from evenhand.errors import InputError
from evenhand.rubrics import Instructions, JudgePrompt, load_rubric, read_own_words
from evenhand.rubrics.loading import Example


def at(line: str) -> JudgePrompt:
    field, _, value = line.partition("=")
    return JudgePrompt(template="{prompt} {response}", **{field: value})


@pytest.mark.parametrize(
    ("place", "reply", "label"),
    [
        ("answer_pattern=Score: (.+)", "I would say 1.\nScore: 4/5", "4"),
        ("answer_pattern=Score: (.+)", "Score: 4, no: Score: 2\nScore: 4", None),
        ("answer_pattern=.{0,900}Score: {0,90}(.+)", "Score: 4", "4"),
        ("answer_pattern=Score: (.+)", "Score: 9", None),
        ("answer_pattern=Score: (.+)", "It is a 4.", None),
        ("answer_pattern=Score: (.+)", "<think>Score: 1</think>Score: 3", "3"),
        ("answer_pattern=Score: (.+)", "<think>Score: 1", None),
        ("answer_pattern=(?i)score(?:: (.+))?", "The score. Score: 3", "3"),
        ("answer_json=score", '{"why": "1 or 2", "score": 3}', "3"),
        ("answer_json=score", '```json\n{"score": 3.0}\n```', "3"),
        ("answer_json=score", '{"score": 3, "score": 4}', None),
        ("answer_json=score", '{"score": 3} or {"score": 4}', None),
        ("answer_json=score", '{"result": {"score": 3}}', None),
        ("answer_json=score", "Score: 3", None),
        ("answer_json=$.result.score", '{"score": 1, "result": {"score": 3}}', "3"),
        ("answer_json=a.b.c.d", '{"a": {"b": {"c": {"d": 3}}}}', "3"),
        ("answer_json=by[1][0].score", '{"by": [[], [{"score": 2}]]}', "2"),
        ("answer_json=by[1].score", '{"by": [{"score": 1}, {"score": 2}]}', "2"),
        ("answer_json=by[7].score", '{"by": [{"score": 1}, {"score": 2}]}', None),
        ("answer_json=score", '{"score": null}', None),
        ("answer_json=score", '{"score": {"low": 1, "high": 2}}', None),
        ("answer_line=last", "5 is the clearest answer.\n\n**3**\n", "3"),
        ("answer_line=last", "Answer: 5\nAnswer: 3", "3"),
        ("answer_line=last", "3\n\nThat is all.", None),
        ("answer_line=last", "3 or 4", None),
        ("answer_line=last", "", None),
    ],
)
def test_an_answer_elsewhere_is_none(place: str, reply: str, label: str | None) -> None:
    assert at(place).for_rubric(load_rubric("refusal")).parser.label(reply) == label


WRONG = {
    "answer_line = 'last'": "the field 'template' is missing or empty",
    "template = ''\nanswer_line = 'last'": "the field 'template' is missing or empty",
    "template = 'x'": "say where a reply has its answer",
    "template = 'x'\nanswer_line = 'last'\nanswer_json = 'a'": "say where a reply has its answer",
    "template = 'x'\nanswer_line = 'first'": "answer_line: ",
    "template = 'x'\nanswer_pattern = '(a'": "answer_pattern: it is not a regular expression",
    "template = 'x'\nanswer_pattern = 'a{99999999999}(b)'": "it is not a regular expression",
    "template = 'x'\nanswer_pattern = '(a{2000000000})'": "repeat 2,000,000,000 times",
    "template = 'x'\nanswer_pattern = '(((a{99}){99,}){2,3})'": "at most 10,000",
    "template = 'x'\nanswer_pattern = '(a{e<=x})'": "it is not a regular expression",
    "template = 'x'\nanswer_pattern = 'a'": "it has 0 groups",
    "template = 'x'\nanswer_pattern = '(a)(b)'": "it has 2 groups",
    "template = 'x'\nanswer_json = 'a..b'": "'a..b' is no path",
    "template = 'x'\nanswer = 'last'": "unknown field 'answer'",
    "template = 'x": "is not valid TOML",
    "template = '{prompt} {reply}'\nanswer_line = 'last'": "the prompt names {reply}",
    "template = '{response_a}'\nanswer_line = 'last'": "the prompt names {response_a}",
    "template = '{prompt}'\nanswer_line = 'last'": "the template has no {response}",
    "template = '{response}'\nsystem = '{prompt}'\nanswer_line = 'last'": "the system part names",
    "instructions = ' '": "it says nothing; write instructions or examples",
    "instructions = 'Of {topic}.'": "the instructions name {topic}",
    "[[examples]]\nlabel = '6'\ntexts = {prompt = 'p', response = 'r'}": "an example does not fit",
    "[[examples]]\nlabel = '5'\ntexts = {prompt = 'p'}": "an example does not fit",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_a_file_is_said(tmp_path, text):
    file = tmp_path / "judge.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(InputError) as refused:
        read_own_words(file).for_rubric(load_rubric("hedging"))
    assert WRONG[text] in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("instructions", "labels"), [("", ["1"]), ("Judge how sure.", []), ("Judge.", ["1", "5"])]
)
def test_instructions_and_examples_take_the_place_of_the_rubrics(tmp_path, instructions, labels):
    rubric, file = load_rubric("hedging"), tmp_path / "own.toml"
    examples = [Example(texts={"prompt": "P", "response": f"Ex {n}"}, label=n) for n in labels]
    made = Instructions.written(instructions, examples, ["Why\nthese"])
    file.write_bytes(made.source)
    assert file.read_text("utf-8").startswith("# Why these\n")
    assert read_own_words(file) == made
    own = made.for_rubric(rubric)
    prompt = own.for_prompt({"prompt": "P", "response": "R"})
    assert own.hash == rubric.hash
    for words in (instructions or rubric.instructions, *(f"Ex {n}" for n in labels)):
        assert words in prompt.system + prompt.user
