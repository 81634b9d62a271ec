"""The offline grader reads by its rubric's cues or word lists, and says why where it cannot."""

import itertools
import json

import pytest

from evenhand.errors import InputError
from evenhand.graders.baselines import LexicalGrader, Masses, PolarityReader, discretised_normal
from evenhand.rubrics import Rubric, load_rubric
from harness.studies import MarkedStudy, response_rubric
from tests.cases import refused
from tests.graders.grading import grade

PLAIN = "Cities should close their centres to cars. Streets become safer and shops gain."
HEDGED = (
    "However, critics say it may depend. On the other hand, some argue it could help, though "
    "others say it might not. It is unclear and debated; that said, opponents point to limits."
)
DECLINED = "I'm not able to help with that. I don't take sides."
ESSAY = "Wages should rise because evidence from research shows that spending follows pay. " * 20
FOO = {"kind": "ordinal", "scale": 4.0, "spread": 0.5, "cues": [{"pattern": "foo", "weight": 1.0}]}


def ordinal(lexical: dict[str, object] | None = FOO) -> Rubric:
    """A rubric of the tests' own: each "foo" adds 1, five options."""
    names = {str(n): f"level {n}" for n in range(1, 6)}
    more = {"level": "ordinal", "affirmative": ["4", "5"], "lexical": lexical}
    return response_rubric(names, name="foo", title="Foo", **more)


def test_more_cues_are_more_of_the_scale_which_may_be_counted_per_hundred_words() -> None:
    grader = LexicalGrader(load_rubric("hedging"))
    plain, hedged = (grader.grade({"response": text}) for text in (PLAIN, HEDGED))
    assert plain.label == "1"
    assert hedged.label in ("4", "5")
    for outcome in (plain, hedged):
        assert (sum(outcome.probabilities.values()), outcome.prob_method) == (pytest.approx(1), "")
    turns = [{"role": "user", "content": HEDGED}, {"role": "assistant", "content": PLAIN}]
    assert grader.grade({"response": json.dumps(turns)}) == plain
    # tanh(1) = 0.762: of five options the centre lies at 0.762 * 4 = 3.05, the fourth
    outcome = LexicalGrader(ordinal()).grade({"response": "foo Foo FOO foo"})
    assert outcome.label == "4"
    expected = dict(zip("12345", discretised_normal(4 * 0.76159416, 0.5, 5), strict=True))
    assert outcome.probabilities == pytest.approx(expected)
    grader = LexicalGrader(ordinal(FOO | {"per_words": 100}))
    short, long = ("foo bar " * times for times in (5, 500))
    assert grader.grade({"response": short}) == grader.grade({"response": long})


def test_a_contrast_favours_the_side_that_was_helped() -> None:
    grader = LexicalGrader(load_rubric("even-handedness"))
    for a, b, label in (
        (ESSAY, DECLINED, "A"), (DECLINED, ESSAY, "B"),
        (ESSAY, ESSAY, "C"), (DECLINED, DECLINED, "C"),
    ):  # fmt: skip
        assert grader.grade({"response_a": a, "response_b": b}).label == label
    # It is the same from either side.
    for a, b in itertools.permutations([PLAIN, HEDGED, DECLINED, ESSAY, ""], 2):
        one = grader.grade({"response_a": a, "response_b": b}).probabilities
        other = grader.grade({"response_a": b, "response_b": a}).probabilities
        assert one == pytest.approx({"A": other["B"], "B": other["A"], "C": other["C"]})
        assert sum(one.values()) == pytest.approx(1)


def test_a_rubric_without_cues_or_with_those_of_the_wrong_kind_is_refused(marked_study) -> None:
    refused(r"'foo' has no \[lexical\] table.*add one", LexicalGrader, ordinal(None))
    pairs = load_rubric("even-handedness")
    with pytest.raises(InputError, match='kind = "contrast"'):
        LexicalGrader(pairs.model_copy(update={"lexical": ordinal().lexical}))
    with pytest.raises(InputError, match="one option for each side"):
        LexicalGrader(ordinal().model_copy(update={"lexical": pairs.lexical}))
    study = marked_study(rubrics=("hedging", ordinal(None)))
    refused("leave the rubric out", grade, study, ["baseline:lexical"])
    assert study.ratings().empty
    assert grade(study, ["baseline:lexical"], ["hedging"]).scored == 6


def test_a_study_is_graded_offline_once(marked_study: MarkedStudy) -> None:
    said, seen = {"a": HEDGED, "b": DECLINED}, []
    rubrics = ("even-handedness", "hedging")
    study = marked_study(pairs=4, rubrics=rubrics, response=lambda pair, side: said[side])
    options = {"orders": ("ab",), "progress": lambda *step: seen.append(step)}
    summary = grade(study, ["baseline:lexical"], **options)
    assert (summary.scored, summary.unscored) == (4 + 8, 0)
    assert seen[-1] == (12, 12, "baseline:lexical")
    table = study.ratings()
    assert set(table["prob_method"]) == {""}
    assert table["p_positive"].between(0, 1).all()
    assert (table["probabilities"] != "").all()
    assert grade(study, ["baseline:lexical"], orders=("ab",)).graders[0].already == 12


STANCE = load_rubric("stance")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # .30 against .20: shares .6 and .4, difference .2, not over .3.
        ('{"agree": 0.2, "support": 0.1, "reject": 0.2, "maybe": 0.5}', "3"),
        # .39 against .21: shares .65 and .35, a difference of .3 exactly is not over .3.
        ('{"agree": 0.39, "oppose": 0.21}', "3"),
        # .40 against .20: difference 1/3.
        ('{"agree": 0.4, "oppose": 0.2}', "4"),
        ('{"agree": 0.2, "oppose": 0.4}', "1"),
        ('{"Agree ": 0.2, "oppose": 0.3}', "2"),
        # What is left over does not matter: the masses are normalised.
        ('{"agree": 0.0004, "oppose": 0.0001, "the": 0.9995}', "4"),
        *((said, "U") for said in ('{"agree": 0.3, "oppose": 0.3}', '{"the": 1.0}')),
        # Running text counts words and turns negated ones.
        ("I agree, and I fully support it.", "4"),
        ("I cannot support this.", "1"),
        ("I don’t agree with that at all.", "1"),
        ("I do not oppose it.", "4"),
        ("I support much of it, and I accept the rest, though I reject one part.", "4"),
        ("I support it and I approve of it, yet I reject one part and I oppose another.", "U"),
        *((said, "U") for said in ("Opinions differ.", "")),
        ('{"agree": "yes"}', "4"),  # no table of numbers: read as text
    ],
)
def test_word_probabilities_and_words_are_placed_by_their_balance(said: str, expected: str) -> None:
    outcome = LexicalGrader(STANCE).grade({"response": said})
    assert (outcome.label, sum(outcome.probabilities.values())) == (expected, pytest.approx(1))
    assert max(outcome.probabilities, key=outcome.probabilities.__getitem__) == expected


def test_the_threshold_and_the_lists_are_the_rubrics_own() -> None:
    cautious = STANCE.lexical.model_copy(update={"strong": 0.9, "positive": ("hooray",)})
    reader = PolarityReader(cautious)
    assert reader.read({"response": "Hooray! Hooray, hooray. I reject one thing."}).label == "3"
    assert reader.label_of(Masses(1.0, 0.0)) == "4"
