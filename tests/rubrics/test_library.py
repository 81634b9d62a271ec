"""The rubrics that come along for items, golden answers, `rubric new`; and words of a user's own
for graders: where a reply has its answer, and what a file may say.
"""

import tomllib
from pathlib import Path

import pytest

from evenhand import rubrics
from evenhand.rubrics import JudgePrompt, load_rubric, loading, named_rubrics, shipped_rubrics
from evenhand.rubrics.loading import OWN_PROMPT, Example, draft_rubric, parse_rubric
from evenhand.study.creation import usual_rubrics
from tests.cases import refused
from tests.commands import Run
from tests.conftest import ROOT

NAMES = sorted(rubrics.library_rubrics())


def test_there_are_eleven_and_none_is_asked_unless_it_is_named() -> None:
    assert len(NAMES) == 11
    assert not set(NAMES) & set(shipped_rubrics())
    usual = {rubric.name for each in (False, True) for rubric in usual_rubrics(propositions=each)}
    assert usual == set(shipped_rubrics()) == {"even-handedness", "hedging", "refusal", "stance"}


@pytest.mark.parametrize("name", NAMES)
def test_each_says_all_that_people_need(name: str) -> None:
    rubric = load_rubric(name)
    is_response = name != "preference"
    assert (rubric.name, rubric.unit) == (name, "response" if is_response else "comparison")
    assert rubric.not_for
    # Which of two answers is better is no yes or no.
    assert bool(rubric.affirmative) == is_response
    people = rubric.for_people(dict.fromkeys(rubric.variables, "x"))
    labels = [block.label for block in people.blocks]
    if is_response:
        assert [block.column for block in rubric.blocks] == list(rubric.variables)
        assert labels == [block.label for block in rubric.blocks]
    else:
        assert labels == ["Prompt", "Answer A", "Answer B"]
    assert 2 <= len(rubric.options) <= 5
    assert all(option.description and option.examples for option in rubric.options)
    assert rubrics.library_rubrics()[name].startswith("# For ")
    # Golden answers cover every option and are no example.
    assert 4 <= len(rubric.golden) <= 8
    assert {golden.label for golden in rubric.golden} == set(rubric.categories)
    examples = " ".join(example for option in rubric.options for example in option.examples)
    answers = [name for name in rubric.variables if name.startswith("response")]
    assert answers
    assert not [each for each in rubric.golden for name in answers if each.texts[name] in examples]


@pytest.mark.parametrize("name", NAMES)
def test_answers_in_its_words_are_read_and_misleading_ones_are_not(name: str) -> None:
    rubric = load_rubric(name)
    for key, said in ((option.key, option.name) for option in rubric.options):
        for reply in (key, f"({key})", f"Answer: {key}", said, f"({key}) {said}"):
            assert rubric.parser.label(reply) == key, reply
    misleading = ("This is not right.", "It is not safe.", "No problem with it.")
    assert not [said for said in (*misleading, "None is missing.") if rubric.parser.label(said)]


@pytest.mark.parametrize("name", NAMES)
def test_golden_answers_are_seen_by_nobody_who_rates(name: str) -> None:
    rubric = load_rubric(name)
    fields = tomllib.loads(rubrics.library_rubrics()[name])
    bare = rubrics.Rubric.model_validate(fields | {"golden": (), "not_for": ""})
    assert bare.hash == rubric.hash
    values = dict.fromkeys(rubric.variables, "x")
    assert bare.for_people(values) == rubric.for_people(values)
    assert bare.for_prompt(values) == rubric.for_prompt(values)
    again = parse_rubric(rubrics.dump_rubric(rubric), "again.toml")
    assert (again, again.hash) == (rubric, rubric.hash)


def test_a_golden_answer_that_does_not_fit_is_named() -> None:
    text = draft_rubric("mine")
    for old, new, says in (
        ('label = "partly"', 'label = "half"', "golden answer 2: its label is 'half'"),
        ('texts.response = "Five."\n', "", "golden answer 1 has no text for 'response'"),
        ('texts.response = "Five."', 'texts.response = " "', "golden answer 1 has no text for"),
        ("texts.response", 'texts.note = "x"\ntexts.response', "1 has a text for 'note', which"),
    ):
        assert old in text
        refused(says, parse_rubric, text.replace(old, new, 1), "mine.toml")
    text = shipped_rubrics()["even-handedness"]
    golden = '\n[[golden]]\nlabel = "A"\ntexts.prompt_a = "x"\n'
    refused("`golden` belongs to rubrics on responses", parse_rubric, text + golden, "e.toml")


def test_a_new_rubric_works_as_it_is_and_overwrites_nothing(here: Path, run: Run) -> None:
    run.ok("rubric", "new", "mine")
    path = here / "mine.toml"
    assert path.read_text("utf-8").count("\n# ") > 10
    run.ok("rubric", "check", "mine.toml")
    rubric = load_rubric(path)
    assert rubric.name == "mine"
    assert {golden.label for golden in rubric.golden} == set(rubric.categories)
    path.write_text("settled")
    assert "mine.toml is there already" in run.refused("rubric", "new", "mine")
    assert path.read_text("utf-8") == "settled"
    for name in named_rubrics():  # one may begin as another
        rubric, begun = load_rubric(name), parse_rubric(draft_rubric("mine", name), "mine.toml")
        assert (begun.name, begun.hash) == ("mine", rubric.hash)
        assert (begun.golden, begun.translations) == (rubric.golden, rubric.translations)


def test_they_are_listed_and_say_where_they_do_not_apply(run: Run) -> None:
    listed = [line.split()[0] for line in run.ok("rubric", "list").splitlines()[2:] if line.strip()]
    assert [name for name in listed if name in named_rubrics()] == [*named_rubrics()]
    assert "Not for: Answers that may draw on" in run.ok("rubric", "show", "faithfulness")
    assert "Not for" not in run.ok("rubric", "show", "refusal")


def test_the_manual_names_them_with_their_questions() -> None:
    page = (ROOT / "docs" / "label-a-file.md").read_text("utf-8")
    for name in [*NAMES, "refusal"]:
        assert f"| `{name}` | {load_rubric(name).question} |" in page


def at(line: str) -> JudgePrompt:
    field, _, value = line.partition("=")
    return JudgePrompt(template="{prompt} {response}", **{field: value})


@pytest.mark.parametrize(
    ("place", "reply", "label"),
    [
        ("answer_pattern=Score: (.+)", "I would say 1.\nScore: 4/5", "4"),
        ("answer_pattern=Score: (.+)", "Score: 4, no: Score: 2\nScore: 4", None),
        ("answer_pattern=.{0,900}Score: {0,90}(.+)", "Score: 4", "4"),
        *(("answer_pattern=Score: (.+)", reply, None) for reply in ("Score: 9", "It is a 4.")),
        ("answer_pattern=Score: (.+)", "<think>Score: 1</think>Score: 3", "3"),
        ("answer_pattern=Score: (.+)", "<think>Score: 1", None),
        ("answer_pattern=(?i)score(?:: (.+))?", "The score. Score: 3", "3"),
        ("answer_json=score", '{"why": "1 or 2", "score": 3}', "3"),
        ("answer_json=score", '```json\n{"score": 3.0}\n```', "3"),
        ("answer_json=score", '{"score": 3, "score": 4}', None),
        ("answer_json=score", '{"score": 3} or {"score": 4}', None),
        ("answer_json=score", '{"result": {"score": 3}}', None),
        *(("answer_json=score", reply, None) for reply in ("Score: 3", '{"score": null}')),
        ("answer_json=$.result.score", '{"score": 1, "result": {"score": 3}}', "3"),
        ("answer_json=a.b.c.d", '{"a": {"b": {"c": {"d": 3}}}}', "3"),
        ("answer_json=by[1][0].score", '{"by": [[], [{"score": 2}]]}', "2"),
        ("answer_json=by[1].score", '{"by": [{"score": 1}, {"score": 2}]}', "2"),
        ("answer_json=by[7].score", '{"by": [{"score": 1}, {"score": 2}]}', None),
        ("answer_json=score", '{"score": {"low": 1, "high": 2}}', None),
        ("answer_line=last", "5 is the clearest answer.\n\n**3**\n", "3"),
        ("answer_line=last", "Answer: 5\nAnswer: 3", "3"),
        *(("answer_line=last", reply, None) for reply in ("3\n\nThat is all.", "3 or 4", "")),
    ],
)
def test_an_answer_elsewhere_is_none(place: str, reply: str, label: str | None) -> None:
    assert at(place).for_rubric(load_rubric("refusal")).parser.label(reply) == label


def test_words_of_a_user_s_own_have_a_hash_by_which_their_graders_are_known() -> None:
    words = JudgePrompt(template="{response}", answer_line="last")
    rater = f"m{OWN_PROMPT}{words.hash[:8]}"
    assert words.hash == "e25980efc1dfbbeb"
    assert [loading.own_prompt_hash(name) for name in (rater, "m")] == [words.hash[:8], ""]
    assert loading.own_prompt_raters([rater, "m"]) == [rater]
    assert loading.own_prompt_raters(["Judge", "m"], {"Judge": rater}) == ["Judge"]


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
    said = refused("", lambda: rubrics.read_own_words(file).for_rubric(load_rubric("hedging")))
    assert WRONG[text] in said
    assert "\n" not in said


@pytest.mark.parametrize("given", [("", "1"), ("Judge how sure.", ""), ("Judge.", "15")])
def test_instructions_and_examples_take_the_place_of_the_rubrics(tmp_path, given):
    instructions, labels = given
    rubric, file = load_rubric("hedging"), tmp_path / "own.toml"
    examples = [Example(texts={"prompt": "P", "response": f"Ex {n}"}, label=n) for n in labels]
    made = rubrics.Instructions.make(instructions, examples, ["Why\nthese"])
    file.write_bytes(made.source)
    assert file.read_text("utf-8").startswith("# Why these\n")
    assert rubrics.read_own_words(file) == made
    own = made.for_rubric(rubric)
    prompt = own.for_prompt({"prompt": "P", "response": "R"})
    assert own.hash == rubric.hash
    for words in (instructions or rubric.instructions, *(f"Ex {n}" for n in labels)):
        assert words in prompt.system + prompt.user
