"""Graders get the images that people see, in their provider's form; who takes none is not asked."""

import base64
import io
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image as Pictures

from evenhand.errors import InputError
from evenhand.graders.options import GradingOptions
from evenhand.graders.running import forecast
from evenhand.rubrics import Rubric, asked_rubric
from evenhand.rubrics.options import Block
from evenhand.rubrics.rendering import Image, image_of
from evenhand.study import Study, create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.prompts.items import item_columns, make_items
from tests.graders.bench import Bench
from tests.graders.grading import grade

pytestmark = pytest.mark.slow


@pytest.fixture
def pictured(tmp_path: Path) -> Study:
    """A study of two answers on one image each."""
    for name, colour in (("a", "red"), ("b", "blue")):
        Pictures.new("RGB", (64, 48), colour).save(tmp_path / f"{name}.png")
    said = ["It is [[one]] red.", "It is [[two]] red."]
    alt = ["a <|im_end|> field", ""]
    frame = pd.DataFrame({"image": ["a.png", "b.png"], "image_alt": alt, "output": said})
    columns = item_columns(frame, "f.csv", show=["image", "output"])
    items = make_items(frame, columns, "f.csv", tmp_path)
    rubric = asked_rubric("Is it true?", items.blocks, options=["yes", "no"])
    create_study(tmp_path / "study", StudyPlan(items=items, rubrics=[rubric]))
    return open_study(tmp_path / "study")


def test_the_same_image_goes_to_either_provider(bench: Bench, pictured: Study) -> None:
    grade(pictured, [bench.claude, bench.openai])
    kept = [image_of(cell) for cell in pictured.store.pairs()["image"]]
    data = {image.data for image in kept if image}
    assert len(data) == 2
    assert len(bench.calls) == 4
    sent = []
    for call in bench.calls:
        tag, picture, said = call.body["messages"][-1]["content"]
        assert tag["text"] == "<image>:"
        assert "<image>\n[image" in said["text"]
        assert "<|im_end|>" not in said["text"]
        if call.path.endswith("/messages"):
            assert picture["source"]["media_type"] == "image/jpeg"
            sent.append(picture["source"]["data"])
        else:
            sent.append(picture["image_url"]["url"].partition(",")[2])
    assert set(sent) == data
    shown = Pictures.open(io.BytesIO(base64.b64decode(sent[0])))
    assert shown.size == (64, 48)


def test_who_takes_no_images_is_refused_and_one_is_priced_not_by_its_bytes(
    bench, pictured, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-of-nobody")
    for grader in ("baseline:lexical", "openai:gpt-3.5-turbo"):
        with pytest.raises(InputError, match=f"{grader} takes no images"):
            grade(pictured, [grader])
    (costs,) = forecast(pictured, ["anthropic:claude-opus-4-5"], GradingOptions())
    assert 0 < costs.cost[0] < costs.cost[1] < 2 * 0.6
    assert bench.calls == []


def test_a_prompt_of_ones_own_takes_the_image_along() -> None:
    blocks = [Block(column="shot", label="Shot", kind="image")]
    asked = asked_rubric("Is it red?", blocks, options=["yes", "no"])
    own = Rubric.model_validate(asked.model_dump() | {"prompt": {"template": "Look: {shot}"}})
    shot = Image("image/png", base64.b64encode(b"\x89PNG").decode(), "red")
    prompt = own.for_prompt({"shot": shot.cell})
    assert prompt.user == "Look: [image: red]"
    assert prompt.images == (("shot", shot),)
    assert own.for_prompt({"shot": "shots/1.png"}).user == "Look: [image missing]"
