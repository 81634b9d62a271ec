"""Graders on llama.cpp's own server, which answers with a model of random weights."""

import json
import math
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from evenhand.rubrics import Rubric
from evenhand.study import Study
from evenhand.study.prompts.units import Question
from harness.installing import installed, pip_command
from harness.ports import free_port
from harness.studies import MarkedStudy, response_rubric
from tests.conftest import ROOT
from tests.graders.clients.test_other_servers import running
from tests.graders.grading import grade, rows

pytestmark = pytest.mark.load

CLOSE = 0.005
"""Of the tokens at a place only the 20 likeliest are listed."""
SERVER, GGUF = "xllamacpp==2026.10.11549", "gguf==0.19.0"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's address."""
    folder = installed("xllamacpp-2026.10.11549", pip_command("--no-deps", SERVER, GGUF))
    place, port = tmp_path_factory.mktemp("llama"), free_port()
    script = ROOT / "harness" / "llama_server.py"
    command = [sys.executable, "-P", str(script), str(place / "random.gguf"), str(port)]
    with running(command, port, place, {"PYTHONPATH": str(folder)}):
        yield f"http://127.0.0.1:{port}"


def posted(address: str, **body: Any) -> Any:
    request = urllib.request.Request(  # noqa: S310
        address, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
        return json.load(reply)


class Truth:
    """What the model does with a study's prompts, by the server's native API, token by token."""

    def __init__(self, llama: str, study: Study, rubric: Rubric) -> None:
        self._llama, self._study, self._rubric = llama, study, rubric

    def after(self, unit: str, begun: str = "") -> dict[str, float]:
        """The probability of every token of the vocabulary after a unit's prompt and what the
        answer has begun with.
        """
        (values,) = self._study.values_of([Question(unit, self._rubric, "")])
        prompt = self._rubric.for_prompt(values)
        said = (("system", prompt.system), ("user", prompt.user))
        turns = [{"role": role, "content": text} for role, text in said]
        shown = posted(f"{self._llama}/apply-template", messages=turns)["prompt"]
        asked = {"prompt": shown + begun, "n_predict": 1, "n_probs": 1_000, "temperature": 1}
        (place,) = posted(f"{self._llama}/completion", **asked)["completion_probabilities"]
        found: dict[str, float] = defaultdict(float)
        for each in place["top_logprobs"]:  # a character is a token, and so is its byte
            found[each["token"]] += math.exp(each["logprob"])
        assert math.fsum(found.values()) == pytest.approx(1, abs=1e-3)
        return found


def words(after_key: Mapping[str, float]) -> float:
    """The probability that a key goes on: 10 and 1st are no 1."""
    return math.fsum(p for token, p in after_key.items() if token.isascii() and token.isalnum())


def test_probabilities_are_those_of_the_model(llama: str, marked_study: MarkedStudy) -> None:
    study = marked_study(pairs=6)
    summary = grade(study, [f"openai:random@{llama}/v1"])
    assert (summary.scored, summary.stopped) == (12, ())
    truth = Truth(llama, study, study.rubrics["hedging"])
    for row in rows(study):
        assert row["prob_method"] == "logprobs"
        known = truth.after(row["unit_id"])
        said = row["provenance"]["text_label"]
        known[said] *= 1 - words(truth.after(row["unit_id"], said))
        total = math.fsum(known[key] for key in "12345")
        assert row["provenance"]["in_option_mass"] == pytest.approx(total, abs=CLOSE)
        for key, p in row["probabilities"].items():
            assert p == pytest.approx(known[key] / total, abs=CLOSE)


def test_one_and_ten_are_told_apart_or_not_claimed(llama: str, marked_study: MarkedStudy) -> None:
    """One key begins another, and this tokenizer splits digits."""
    ten = response_rubric({str(n): f"{n} points" for n in range(1, 11)}, level="ordinal")
    study = marked_study(pairs=40, rubrics=(ten,))
    summary = grade(study, [f"openai:random@{llama}/v1"])
    assert (summary.scored, summary.stopped) == (80, ())
    truth, seen = Truth(llama, study, ten), set()
    for row in rows(study):
        said = row["provenance"]["text_label"]
        if said not in ("1", "10"):  # what its 1 would have become is not known
            assert row["provenance"]["no_probabilities"] == "key_begins_another"
            continue
        first, second = truth.after(row["unit_id"]), truth.after(row["unit_id"], "1")
        known = {key: first[key] for key in "23456789"}
        known |= {"1": first["1"] * (1 - words(second)), "10": first["1"] * second["0"]}
        total = math.fsum(known.values())
        for key, p in row["probabilities"].items():
            assert p == pytest.approx(known[key] / total, abs=CLOSE)
        seen.add(said)
    assert seen == {"1", "10"}


@pytest.mark.parametrize("draws", [1, 4])
def test_labels_and_draws_are_held_to_a_schema(llama, marked_study, draws):
    study = marked_study(pairs=5)
    asking = {"draws": draws} if draws > 1 else {"method": "label"}
    summary = grade(study, [f"openai:random@{llama}/v1"], **asking)
    assert (summary.scored, summary.unscored, summary.stopped) == (10 * draws, 0, ())
    assert {row["provenance"]["asked_by"] for row in rows(study)} == {"json_schema"}
