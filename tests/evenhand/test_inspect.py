"""Inspect's own `eval` with the scorer; skipped where inspect_ai is not installed."""

import os
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from evenhand.rubrics import load_rubric
from harness.installing import installed, pip_command
from tests.cases import refused
from tests.commands import python

HERE = Path(__file__)
PACKAGE = "inspect_ai==0.3.285"
FOR_INSPECT = "evenhand[inspect] is not installed; `-m load` runs it where it is"


@pytest.fixture
def evaluate(tmp_path: Path) -> Callable[..., tuple[Any, list[list[Any]]]]:
    """evaluate(scorer's arguments, answers=..., samples=...) -> the log, and the messages that the
    grader was sent."""
    inspect_ai = pytest.importorskip("inspect_ai", reason=FOR_INSPECT)
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer._scorer import scorer_create

    def evaluate(
        rubric: str, *, answer: Any = "2", metadata: Any = None, by_role: bool = False, **more: Any
    ) -> tuple[Any, list[list[Any]]]:
        sent = []

        def output(said: str | ModelOutput) -> ModelOutput:
            if isinstance(said, str):
                said = ModelOutput.from_content("mockllm/model", said)
            said.usage = ModelUsage()
            return said

        def grade(messages: list[Any], *_: object) -> ModelOutput:
            sent.append(messages)
            return output(answer)

        subject = get_model("mockllm/subject", custom_outputs=lambda *_: output("I will not."))
        model = get_model("mockllm/grader", custom_outputs=grade)
        if by_role:
            scorer = scorer_create("evenhand/grader", rubric=rubric)
        else:
            from evenhand.inspect import grader

            scorer = grader(rubric, model, **more)
        sample = Sample(id="s1", input="Write an essay.", metadata=metadata)
        roles = {"model_roles": {"grader": model}} if by_role else {}
        task = inspect_ai.Task(dataset=[sample], scorer=scorer)
        how = {"model": subject, "display": "none", "log_dir": str(tmp_path), **roles}
        (log,) = inspect_ai.eval(task, **how)
        return log, sent

    return evaluate


def scored(log: Any) -> Any:
    assert log.status == "success", log.error
    return log.samples[0].scores["grader"]


def test_the_prompt_is_that_of_evenhands_own_grading(evaluate) -> None:
    log, ((system, user),) = evaluate("refusal", answer="5")
    values = {"prompt": "Write an essay.", "response": "I will not."}
    wanted = load_rubric("refusal").for_prompt(values)
    assert (system.role, system.content) == ("system", wanted.system)
    assert (user.role, user.content) == ("user", wanted.user)
    score = scored(log)
    assert (score.value, score.answer, score.explanation) == ("5", "5", "5")
    facts = {"rater_id": "mockllm/grader", "rater_kind": "model", "rubric": "refusal"}
    assert score.metadata == facts | {"rubric_hash": load_rubric("refusal").hash}
    assert log.results.scores[0].metrics["5"].value == 1.0


@pytest.mark.parametrize(
    ("answer", "label"), [("<think>Not 1.</think>\n(4)", "4"), ("Rating: **3**", "3")]
)
def test_an_answer_is_read_as_evenhand_reads_it(evaluate, answer, label):
    score = scored(evaluate("refusal", answer=answer)[0])
    assert (score.value, score.explanation) == (label, answer)


def test_an_answer_without_a_label_is_unscored_not_wrong(evaluate) -> None:
    log, _ = evaluate("refusal", answer="1 or 2")
    score = scored(log)
    assert score.value != score.value  # NaN, which Inspect leaves out of metrics
    assert score.metadata["unscored_reason"] == score.reason == "unparseable"
    assert (score.explanation, log.results.scores[0].unscored_samples) == ("1 or 2", 1)
    from inspect_ai.model import ModelOutput

    for stop, reason in (("max_tokens", "truncated"), ("content_filter", "content_filter")):
        cut = ModelOutput.from_content("mockllm/model", "2", stop_reason=stop)
        assert scored(evaluate("refusal", answer=cut)[0]).metadata["unscored_reason"] == reason


PAIR = {"prompt_a": "For it", "response_a": "Yes.", "prompt_b": "Against it", "response_b": "No."}


@pytest.mark.parametrize(("order", "label"), [("ab", "A"), ("ba", "B")])
@pytest.mark.parametrize("rubric", ["even-handedness", "preference"])
def test_a_pair_is_the_samples_metadata_in_either_order(evaluate, rubric, order, label):
    """A comparison is of two answers to the sample's own input."""
    of_one = {key: PAIR[key] for key in ("response_a", "response_b")}
    metadata = PAIR if rubric == "even-handedness" else of_one
    log, ((_, user),) = evaluate(rubric, answer="A", metadata=metadata, order=order)
    first, second = ("Yes.", "No.") if order == "ab" else ("No.", "Yes.")
    assert f"<response_a>\n{first}\n</response_a>" in user.content
    assert f"<response_b>\n{second}\n</response_b>" in user.content
    assert user.content.count("Write an essay.") == (rubric == "preference")
    score = scored(log)
    assert (score.value, score.metadata["order"]) == (label, order)


def test_what_makes_no_sense_is_refused_before_anything_is_asked(evaluate) -> None:
    log, sent = evaluate("even-handedness")
    assert log.status == "error"
    assert "sample 's1' has no metadata 'prompt_a'" in log.error.message
    assert sent == []
    refused("there is no rubric 'nonsense'", evaluate, "nonsense")
    refused("rates one response, which has no other order", evaluate, "refusal", order="ba")


def test_probabilities_are_read_off_the_tokens(evaluate) -> None:
    from inspect_ai.model import Logprob, Logprobs, ModelOutput, TopLogprob

    shares = (("A", -0.2231435513), (" B", -1.6094379124))  # .8 and .2
    top = [TopLogprob(token=token, logprob=logprob) for token, logprob in shares]
    said = ModelOutput.from_content("mockllm/model", "A")
    said.choices[0].logprobs = Logprobs(
        content=[Logprob(token="A", logprob=top[0].logprob, top_logprobs=top)]
    )
    options = {"metadata": PAIR, "order": "ba", "probabilities": True}
    facts = scored(evaluate("even-handedness", answer=said, **options)[0]).metadata
    assert facts["prob_method"] == "logprobs"
    assert facts["probabilities"] == pytest.approx({"A": 0.2, "B": 0.8, "C": 0})
    assert facts["p_positive"] == 0


def test_inspect_finds_it_by_name_and_asks_the_role_grader(evaluate) -> None:
    assert "evenhand.inspect" in {each.value for each in entry_points(group="inspect_ai")}
    log, _ = evaluate("refusal", answer="4", by_role=True)
    score = scored(log)
    assert (score.value, score.metadata["rater_id"]) == ("4", "mockllm/grader")
    assert log.eval.scorers[0].options["rubric"] == "refusal"  # so the log can be scored again


def test_without_inspect_it_says_what_to_install() -> None:
    # In a process of its own, where inspect_ai cannot be had even if it is installed.
    done = python("-c", "import sys; sys.modules['inspect_ai'] = None; import evenhand.inspect")
    assert done.stderr.splitlines()[-1].endswith(
        "evenhand.inspect needs Inspect: pip install 'evenhand[inspect]'"
    )


@pytest.mark.load
def test_all_of_it_where_inspect_is_installed(tmp_path: Path) -> None:
    folder = installed(PACKAGE.replace("==", "-"), pip_command(PACKAGE))
    environment = {**os.environ, "PYTHONPATH": str(folder), "HOME": str(tmp_path)}
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", HERE)
    done = python(*words, cwd=HERE.parents[2], env=environment, timeout=None)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "skipped" not in done.stdout, done.stdout[-3000:]
