"""llms.txt and SKILL.md say what pages and code say, and SKILL.md's commands do what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site_map import LIST, for_checkout
from docs.skill import PAGE, renewed
from tests.conftest import ROOT

SKILL = PAGE.read_text("utf-8")
BLOCK = re.compile(r"^```(sh|output)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_llms_txt_lists_the_pages_as_they_are() -> None:
    assert LIST.read_text("utf-8") == for_checkout(), "run: python -m docs.site_map"
    listed = re.findall(r"^- \[.+?\]\((.+?)\): \S", LIST.read_text("utf-8"), re.MULTILINE)
    assert len(listed) == len(set(listed)) > 20
    for file in listed:
        assert (ROOT / file).exists(), file


def test_the_tables_of_the_skill_are_those_of_the_code() -> None:
    assert renewed(SKILL) == SKILL, "run: python -m docs.skill"


def test_the_skill_begins_with_its_name_and_when_to_take_it() -> None:
    name, description = re.match(r"---\nname: (.+)\ndescription: (.+)\n---\n", SKILL).groups()
    assert name == "evenhand"
    assert 80 < len(description) < 1024
    assert len(SKILL.split()) < 1500


@pytest.mark.slow
def test_who_does_what_the_skill_says_sees_what_it_says(tmp_path: Path) -> None:
    here = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    said, compared = "", 0
    for kind, text in BLOCK.findall(SKILL):
        if kind == "sh":
            bash = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
            done = subprocess.run(["bash", "-c", text], check=False, **bash)
            assert not done.stderr, done.stderr
            assert done.returncode == 0
            said = " ".join(done.stdout.split())
        else:
            at = 0
            for line in text.splitlines():
                at = said.find(" ".join(line.split()), at)
                assert at >= 0, f"{line!r} does not stand (in this order) in:\n{said}"
                compared += 1
    assert compared > 10
    assert (tmp_path / "my-report" / "report.html").is_file()
