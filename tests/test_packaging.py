"""What is shipped: a wheel of one folder that works beside anybody's files, and a whole sdist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

BUILD = """
import sys
import setuptools.build_meta
out, *hooks = sys.argv[1:]
for hook in hooks:
    getattr(setuptools.build_meta, hook)(out)
"""
"""What pip does, without the environment of its own for which it would need a network."""

SOMEBODY_ELSES = (
    "analysis",
    "annotate_app",
    "exchange",
    "graders",
    "rubrics",
    "signal",
    "statistics",
    "study",
)
"""Modules in the folder where a researcher works; each fails when it is imported."""

# Without a guard: were a process to run it again, it would not end.
AT_WORK = """
import sys
import time
from pathlib import Path

import evenhand

assert Path(evenhand.__file__).is_relative_to(sys.prefix), evenhand.__file__

from evenhand.annotate_app.lead.live_figures import FiguresMaker
from evenhand.annotate_app.watch import start_watch
from evenhand.study import open_study
from evenhand.study.lead.imports import import_ratings
from evenhand.study.desk.oversight import oversight
from evenhand.study.tables.ratings import read_ratings

study = open_study("small")
import_ratings(study, read_ratings(Path("ratings.csv"))[0], "test")

over = start_watch(study, every=0.1)
maker = FiguresMaker(Path("small"))
maker.wanted("now")
until = time.monotonic() + 60
while (maker.latest is None or not oversight(study.store).exclusions) and time.monotonic() < until:
    time.sleep(0.1)
over.set()
assert maker.latest is not None
assert not maker.latest.complaint, maker.latest.complaint
assert len(maker.latest.results), "no figures"
print(*oversight(study.store).exclusions, "is stopped")
"""


@dataclass(frozen=True)
class Shipped:
    """The distributions built from a copy of the checkout, and that copy."""

    source: Path
    sdist: Path
    wheel: Path
    wheel_of_sdist: Path


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    home = tmp_path_factory.mktemp("shipped")
    source = home / "source"
    unwanted = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "build", "*.egg-info", "demo-*"
    )
    shutil.copytree(ROOT, source, symlinks=True, ignore=unwanted)
    _build(source, home / "built", "build_sdist", "build_wheel")
    (sdist,), (wheel,) = (home / "built").glob("*.tar.gz"), (home / "built").glob("*.whl")
    with tarfile.open(sdist) as archive:
        archive.extractall(home / "unpacked", filter="data")
    (unpacked,) = (home / "unpacked").iterdir()
    _build(unpacked, home / "again", "build_wheel")
    (again,) = (home / "again").glob("*.whl")
    return Shipped(source, sdist, wheel, again)


def _build(source: Path, out: Path, *hooks: str) -> None:
    out.mkdir()
    command = [sys.executable, "-P", "-c", BUILD, str(out), *hooks]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_wheel_holds_what_the_checkout_holds_and_so_does_that_of_the_sdist(
    shipped: Shipped,
) -> None:
    wheel, again = ZipFile(shipped.wheel), ZipFile(shipped.wheel_of_sdist)
    assert {name: wheel.read(name) for name in wheel.namelist() if "RECORD" not in name} == {
        name: again.read(name) for name in again.namelist() if "RECORD" not in name
    }
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"evenhand"}
    held = {Path(name) for name in wheel.namelist() if name.startswith("evenhand/")}
    assert held == {"evenhand" / file for file in _files(shipped.source / "evenhand")}
    assert Path("evenhand/py.typed") in held


def test_the_sdist_holds_the_whole_project(shipped: Shipped) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("only a clone knows what belongs to the project")
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {ROOT / name for name in listed.split("\0") if name}
    links = {path.name for path in tracked if path.is_symlink()}
    assert len(links) == 7
    files = {path.relative_to(ROOT) for path in tracked if path.is_file()}
    wanted = {"evenhand" / file if file.parts[0] in links else file for file in files}
    with tarfile.open(shipped.sdist) as archive:
        held = {Path(member.name.partition("/")[2]) for member in archive if member.isfile()}
    assert wanted - held == {Path(".gitignore")}


def _files(folder: Path) -> set[Path]:
    """Every file under a folder, by its path from there; what links lead to included."""
    return {
        Path(found, name).relative_to(folder)
        for found, _, names in os.walk(folder, followlinks=True)
        for name in names
    }


# ---- at work ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evenhand(shipped: Shipped, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `evenhand` of an environment of its own, with the dependencies of this one."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    # Only folders, as paths: what is in them as .pth, such as this checkout, is passed over.
    known = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(known) + "\n", "utf-8")
    before = set(site.iterdir())
    pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--python", str(home)]
    install = [
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-compile",
        "--ignore-installed",
    ]
    subprocess.run([*pip, *install, str(shipped.wheel)], check=True)
    gained = {path.name for path in set(site.iterdir()) - before}
    assert {name for name in gained if not name.endswith(".dist-info")} == {"evenhand"}
    return home / "bin" / "evenhand"


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A researcher's folder: modules and data of their own, a pairs file, and ratings."""
    for name in SOMEBODY_ELSES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('somebody else\\'s')\n", "utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "__init__.py").write_text("raise SystemExit('not ours')\n", "utf-8")
    pairs = [f"For {n},Against {n}" for n in range(30)]
    (tmp_path / "pairs.csv").write_text("\n".join(["prompt_a,prompt_b", *pairs]) + "\n", "utf-8")
    responses = [f"s1,p{n:04d},{side},Text {n}{side}" for n in range(1, 31) for side in "ab"]
    (tmp_path / "responses.csv").write_text(
        "\n".join(["subject,pair_id,side,response", *responses]) + "\n", "utf-8"
    )
    ratings = [
        f"p{n:04d}|s1|a,refusal,{rater},human,{label},{seconds}"
        for rater, seconds in (("ann", 30), ("ben", 25), ("hasty", 2))
        for n in range(1, 31)
        for label in [1 + n % 5 if rater != "ben" or n % 4 else 1]
    ]
    (tmp_path / "ratings.csv").write_text(
        "\n".join(["unit_id,rubric,rater_id,rater_kind,label,seconds", *ratings]) + "\n", "utf-8"
    )
    return tmp_path


def run(command: list[str | Path], workplace: Path) -> str:
    done = subprocess.run(command, cwd=workplace, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_an_installed_evenhand_works_beside_anybodys_files(evenhand: Path, workplace: Path) -> None:
    run([evenhand, "demo", "opinions", "--study", "stance", "--no-app"], workplace)
    assert (workplace / "opinions" / "report" / "report.html").is_file()
    assert "cohen" in run([evenhand, "check", "ratings.csv"], workplace).lower()

    new = ["new", "small", "--pairs", "pairs.csv", "--responses", "responses.csv"]
    run([evenhand, *new, "--sample", "30"], workplace)
    with (workplace / "small" / "study.toml").open("a", encoding="utf-8") as settings:
        settings.write('\n[quality]\nstop = ["fast"]\n')
    (workplace / "at_work.py").write_text(AT_WORK, "utf-8")
    python = evenhand.with_name("python")
    assert run([python, "-P", "at_work.py"], workplace) == "hasty is stopped\n"
