"""The page on how evenhand is built shows the rooms and arrows that the code has."""

import re
import runpy

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROOM = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
DESCRIBED = re.compile(r"\*\*`(\w+)`\*\*")


def test_the_pictures_and_tables_are_those_of_the_imports() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_architecture.py"))["renewed"](PAGE)
    # Line counts are of the day of drawing: they would change with every line written.
    shown, now = (re.sub(r"[\d,]+ \|", "n |", page) for page in (PAGE, drawn))
    assert shown == now, "run: python docs/draw_architecture.py"


def test_every_room_is_described_and_no_other() -> None:
    _, *parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    assert len(parts) == 4
    for part in parts:
        rooms = ROOM.findall(part)
        assert len(rooms) > 5
        assert sorted(DESCRIBED.findall(part)) == sorted(rooms)
