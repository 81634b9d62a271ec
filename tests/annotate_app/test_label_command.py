"""`evenhand label FILE`: from the command to a stored label, and on to a report."""

import base64
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from PIL import Image as Pictures
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import expect

from evenhand.cli.main import main
from evenhand.rubrics.loading import dump_rubric
from evenhand.study import open_study
from evenhand.study.store.logs.decisions import acts
from evenhand.study.store.store import answers_table
from harness.annotator import READY, SAVED, go_on, press_keys
from harness.ports import free_port
from harness.served import answers, holds
from harness.studies import response_rubric
from tests.annotate_app.leading import frames_of

pytestmark = pytest.mark.browser

YES_NO = ["--question", "Is it right?", "--options", "yes,no"]
ROWS = "question,context,output,model,judge\n" + "".join(
    f"What is {n} and one?,One more than {n} is {n + 1}.,It is {n + 1}.,m{n % 2},yes\n"
    for n in range(12)
)
VERSUS = "question,answer_1,answer_2,model_1,model_2,winner\n" + "".join(
    f"What is {n} and one?,right {n},wrong {n},hidden-one,hidden-two,model_1\n" for n in range(12)
)
LONG_CHAT = [
    {"role": "user" if n % 2 else "assistant", "content": f"Say {n}. " + "Word on word. " * 20}
    for n in range(1, 31)
]
LONG_CHAT[19]["content"] = "Twenty. " + "Word. " * 400 + "The needle."
LONG_CHAT[0] = {"role": "system", "content": "<b>Be</b> brief."}
LONG_CHAT[24] = {"role": "tool", "name": "search", "content": "a NEEDLE again"}


def yes_or_no(*blocks: str) -> str:
    """A rubric file whose raters read these columns, each "column", "column kind" or, for code,
    "column kind language"."""
    parts = [
        dict(zip(("column", "kind", "language"), each.split(), strict=False)) for each in blocks
    ]
    shown = [part | {"label": part["column"].title()} for part in parts]
    return dump_rubric(response_rubric({"yes": "Yes", "no": "No"}, name="read", blocks=shown))


@pytest.fixture
def labelling(tmp_path) -> Iterator[Callable[..., str]]:
    """labelling(file, option, ...) -> the first rater's link of `evenhand label`."""
    started: list[subprocess.Popen[str]] = []
    (tmp_path / "answers.csv").write_text(ROWS)

    def begin(file: str, *options: str) -> str:
        words = [sys.executable, "-m", "evenhand", "label", file, *options, "--no-browser"]
        words += ["--port", str(free_port())]
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        started.append(subprocess.Popen(words, cwd=tmp_path, **piped))
        said = []
        for line in started[-1].stdout or ():
            said.append(line)
            if found := re.search(r"http://\S+invite=\S+", line):
                return found[0]
        raise AssertionError("".join(said))

    yield begin
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def opened(browser, link):
    page = browser.new_page()
    enter(page, link)
    return page


def enter(page, link):
    assert holds(lambda: answers(link), 60)
    page.goto(link)
    page.wait_for_selector(READY, timeout=60_000)


def ends(page, count, key):
    """Give the last answer by its key; close the page once it is counted and stored."""
    press_keys(page, key, "Enter")
    page.get_by_text(f"{count} answered").wait_for()
    page.wait_for_selector(SAVED, state="attached")
    page.close()


def test_keys_lead_from_turn_to_turn_and_words_are_found(labelling, browser, axe, tmp_path):
    (tmp_path / "long.jsonl").write_text(json.dumps({"id": "c1", "messages": LONG_CHAT}) + "\n")
    page = opened(browser, labelling("long.jsonl", *YES_NO))
    turn = page.locator(".turn")
    assert turn.count() == 30
    system = turn.nth(0).locator(".said")
    assert not system.is_visible()
    turn.nth(0).locator("summary").press("Enter")  # opens it, and submits nothing
    assert system.inner_text() == "<b>Be</b> brief."
    page.keyboard.press("Escape")
    page.keyboard.press("End")
    expect(page.locator(".judged")).to_be_in_viewport()  # the answer at its end
    page.keyboard.press("Home")
    expect(page.locator(".judged")).not_to_be_in_viewport()
    assert page.locator(".rubric, .guidelines").count() == 0  # which nobody wrote

    def here() -> str:
        return page.locator(".turn:focus").get_attribute("aria-label") or ""

    for press, at in ((";", 1), (";", 2), (";", 3), (":", 2)):
        page.keyboard.press(press)
        assert here().startswith(f"Turn {at} of 30: ")
    page.keyboard.press("$")
    expect(page.locator(".judged")).to_be_in_viewport()
    # A long turn is cut off; the button shows all of it, and submits nothing.
    whole = turn.nth(19).locator(".whole")
    assert whole.inner_text() == "Show all 2,419 characters"
    axe(page, "a long conversation")
    page.keyboard.press("/")
    page.keyboard.type("needle")  # an "n" is no answer while it is typed into the field
    places = page.locator(".places")
    assert places.inner_text() == "1 of 2, Messages"
    assert whole.count() == 0  # what is found is shown whole
    assert not turn.nth(24).locator(".said").is_visible()
    page.keyboard.press("Enter")
    assert places.inner_text() == "2 of 2, Messages"
    assert turn.nth(24).locator(".said").is_visible()  # unfolded
    axe(page, "words found")
    page.locator("#wanted").fill("(.*")
    assert places.inner_text() == "Not found"
    page.keyboard.press("Escape")
    assert not page.locator(".finder").is_visible()
    assert page.get_by_text("0 of 1 answered").is_visible()
    ends(page, "1 of 1", "2")


def test_no_image_reaches_the_browser_that_was_not_written_here(labelling, browser, axe, tmp_path):
    secret, picture, told = "gpt-image-1", Pictures.new("RGB", (2000, 900), "green"), PngInfo()
    told.add_text("Software", secret)
    picture.save(tmp_path / "1.png", pnginfo=told)
    picture.save(tmp_path / "2.jpeg", comment=secret.encode())
    content = (tmp_path / "2.jpeg").read_bytes()
    assert secret.encode() in content
    uri = f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"
    row = f'1.png,a <i>green</i> field,"{uri}",It is green.'
    (tmp_path / "images.csv").write_text(f"shot,shot_alt,later,output\n{row}\n")
    (tmp_path / "true.toml").write_text(yes_or_no("shot image", "later", "response"))
    link = labelling("images.csv", "--rubric", "true.toml", "--show", "output")
    page = browser.new_page()
    received = frames_of(page, "framereceived")
    page.on("response", lambda answer: received.append(answer.body() if answer.ok else b""))
    enter(page, link)
    picture = page.locator(".picture")
    assert picture.count() == 2
    assert picture.first.get_attribute("alt") == "a <i>green</i> field"
    assert picture.first.evaluate("image => image.complete && image.naturalWidth") == 1568
    width = page.locator(".text").first.bounding_box()["width"]
    assert picture.first.bounding_box()["width"] <= width
    axe(page, "an image")
    page.get_by_role("button", name="Full size").first.click()
    assert picture.first.bounding_box()["width"] == 1568
    ends(page, "1 of 1", "1")
    with open_study(tmp_path / "images-study") as study:
        kept = study.store.pairs()[["shot", "later"]].to_numpy().ravel()
    own = {re.sub(";alt=[^;]*", "", each).encode() for each in kept}
    everything = b"".join(received)
    assert {*re.findall(rb"data:image/[a-z]+;base64,[A-Za-z0-9+/=]+", everything)} == own
    sent = [base64.b64decode(each.split(b",")[1]) for each in own]
    assert secret.encode() not in b"".join([everything, *sent])


def test_two_answers_stand_next_to_each_other(labelling, browser, axe, tmp_path, capsys):
    (tmp_path / "versus.csv").write_text(VERSUS)
    link, page = labelling("versus.csv", "--judge", "winner"), browser.new_page()
    received = frames_of(page, "framereceived")
    enter(page, link)
    lefts = []
    for n in range(12):
        assert page.locator(".material h2").all_inner_texts() == ["Prompt", "Answer A", "Answer B"]
        assert page.locator(".shared .text").count() == 1
        left, right = (page.locator(".side").nth(side) for side in range(2))
        assert left.bounding_box()["x"] + 10 < right.bounding_box()["x"]
        assert left.bounding_box()["y"] == right.bounding_box()["y"]
        top, said = (page.locator(f".shared {each}").bounding_box() for each in (".block", ".text"))
        assert top["height"] < left.bounding_box()["height"] / 2
        assert said["y"] + said["height"] <= top["y"] + top["height"]
        lefts.append(left.locator(".text").inner_text().startswith("right"))
        if n == 0:
            axe(page, "a comparison")
        key, drawn = "1" if lefts[-1] else "3", page.content()
        go_on(page, key, "Enter") if n < 11 else ends(page, "12 of 12", key)
    assert sum(lefts) == 6
    assert received
    everything = b"".join(received) + drawn.encode()
    assert [word for word in (b"hidden-", b"winner", b"model_1") if word in everything] == []
    with open_study(tmp_path / "versus-study") as study:
        own = study.ratings().query("rater_kind == 'human'")
    assert own["label"].tolist() == ["A"] * 12
    assert main(["report", str(tmp_path / "versus-study")]) == 0
    assert "winner" in capsys.readouterr().out


def test_json_folds_code_is_coloured_and_passages_are_numbered(labelling, browser, axe, tmp_path):
    hits = [{"body": f"hit {n}"} for n in range(99)]
    call = {"tool": "search", "arguments": {"query": {"limit": 1.50}}, "hits": hits}
    call["hits"][-1]["deep"] = {"text": "the needle"}
    found = [{"text": "So it is.", "source": "a.pdf"}, {"text": "No.", "score": 0.5}]
    row = {"id": "j1", "call": call, "output": "def f():\n    return 1  # <b>\n", "context": found}
    (tmp_path / "calls.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "code.toml").write_text(yes_or_no("context", "call", "response code python"))
    page = opened(
        browser, labelling("calls.jsonl", "--rubric", "code.toml", "--show", "context,call,output")
    )
    retrieved, first, second = (page.locator(".text").nth(at) for at in range(3))
    assert retrieved.locator("h3").all_inner_texts() == ["Passage 1 of 2 · a.pdf", "Passage 2 of 2"]
    assert retrieved.locator(".passage > div").all_inner_texts() == ["So it is.", "No."]
    press_keys(page, ";", ";")
    assert "No." in page.locator(".passage:focus").inner_text()
    folds = first.locator("details")
    opened_to = folds.evaluate_all("all => all.map((each) => each.open)")
    assert opened_to[:4] == [True, True, False, True]  # level by level, as far as there is room
    assert not any(opened_to[50:])
    assert second.locator(".is-keyword").all_inner_texts() == ["def", "return"]
    assert second.inner_text().strip() == "def f():\n    return 1  # <b>"
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        axe(page, f"JSON, code and passages, {scheme}")
    page.keyboard.press("/")
    page.keyboard.type("needle")
    assert page.locator(".places").inner_text() == "1 of 1, Call"
    assert "the needle" in first.inner_text()
    press_keys(page, "Escape", "*")
    assert folds.evaluate_all("all => all.every((each) => each.open)")
    ends(page, "1 of 1", "1")
    with open_study(tmp_path / "calls-study") as study:
        assert answers_table(study.store)["display"].tolist() == ["opened"]


def test_every_kind_of_block_on_any_screen(labelling, browser, axe, tmp_path):
    Pictures.new("RGB", (900, 400), "green").save(tmp_path / "1.png")
    row = {"shot": "1.png", "shot_alt": "a field", "call": json.dumps({"a": {"b": [1, "c" * 90]}})}
    row |= {"messages": LONG_CHAT, "note": "A note.", "output": "def f(): return 'x' * 100"}
    (tmp_path / "mixed.jsonl").write_text(json.dumps(row) + "\n")
    link = labelling("mixed.jsonl", *YES_NO, "--show", "note,shot,call,messages,output")
    page = opened(browser, link)
    assert page.locator(".block").count() == 5
    for width, height, scheme in ((390, 844, "light"), (320, 256, "dark"), (1280, 800, "dark")):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_selector(READY)
        axe(page, f"all blocks at {width} pixels, {scheme}")
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        heights = [each.bounding_box()["height"] for each in page.locator(".text").all()]
        assert min(heights) > 15  # none is squeezed away by the others
    page.close()


@pytest.mark.journey
def test_one_command_from_a_file_to_a_label(labelling, browser, tmp_path, capsys):
    began = time.monotonic()
    page = opened(browser, labelling("answers.csv", *YES_NO, "--judge", "judge"))
    names = [each.split("\n")[0] for each in page.locator(".material .block").all_inner_texts()]
    assert names == ["Question", "Context", "Output"]
    assert "judge" not in page.content()
    ends(page, "1 of 12", "1")
    assert time.monotonic() - began < 60
    with open_study(tmp_path / "answers-study") as study:
        ratings = study.ratings()
        assert {"study", "invite"} <= set(acts(study.store)["kind"])
    assert ratings.groupby("rater_kind").size().to_dict() == {"human": 1, "model": 12}
    assert main(["report", str(tmp_path / "answers-study")]) == 0
    assert "judge" in capsys.readouterr().out
    # The same command again goes on where it was; asked for something else it says so.
    again = labelling("answers.csv", *YES_NO, "--judge", "judge", "--host", "127.0.0.2")
    assert again.startswith("http://127.0.0.2:")  # under its name on the network
    other = ["--question", "Is it polite?", *YES_NO[2:], "--judge", "judge"]
    for study, ask, told in (
        ("x", [*YES_NO, "--raters", "0"], "1 to 1,000"),
        ("x", [*YES_NO, "--port", "0"], "not a valid port"),
        ("answers-study", other, "is there already"),
    ):
        assert main(["label", str(tmp_path / "answers.csv"), str(tmp_path / study), *ask]) == 2
        assert told in capsys.readouterr().err
