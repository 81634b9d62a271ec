"""The page on how evenhand is built shows the rooms and arrows that the code has."""

import re
import runpy

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
DRAWING = re.compile(r"flowchart TD\n(.*?)```", re.DOTALL)
DESCRIBED = re.compile(r"\*\*`(\w+)`\*\*")


def test_the_pictures_are_those_of_the_imports() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_architecture.py"))["renewed"](PAGE)
    assert drawn == PAGE, "run: python docs/draw_architecture.py"


def test_every_room_is_described_and_no_other() -> None:
    _, *parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    assert len(parts) == 4
    for part in parts:
        rooms = {*re.findall(r"\w+", DRAWING.findall(part)[0])}
        assert len(rooms) > 5
        assert sorted(DESCRIBED.findall(part)) == sorted(rooms)
