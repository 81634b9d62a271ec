"""What is shipped: a wheel of one folder that works beside anybody's files, and a whole sdist."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest
from uv import find_uv_bin

from evenhand.study.tables.formats import read_table
from harness.ports import free_port
from harness.served import answers, holds
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

# What pip does, without the environment of its own for which it would need a network.
BUILD = """
import sys
import setuptools.build_meta
out, *hooks = sys.argv[1:]
for hook in hooks:
    getattr(setuptools.build_meta, hook)(out)
"""
SOMEBODY_ELSES = "analysis annotate_app exchange graders rubrics study signal statistics"
"""Modules in the folder where a researcher works; each fails when it is imported."""

# Without a guard: were a process to run it again, it would not end.
AT_WORK = """
import sys
import time
from pathlib import Path

import evenhand

assert Path(evenhand.__file__).is_relative_to(sys.prefix), evenhand.__file__

from evenhand.annotate_app.lead.parts import FiguresMaker

maker, until = FiguresMaker(Path("small")), time.monotonic() + 240
maker.request("now")
while maker.last_attempt is None and time.monotonic() < until:
    time.sleep(0.1)
print(maker.last_attempt.complaint or len(maker.last_attempt.results) > 0)
"""


@dataclass(frozen=True)
class Shipped:
    """The distributions built from a copy of the checkout, that copy, and its repository's ZIP."""

    source: Path
    sdist: Path
    wheel: Path
    archive: Path


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    home = tmp_path_factory.mktemp("shipped")
    source = home / "source"
    unwanted = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "build", "*.egg-info", "demo-*"
    )
    shutil.copytree(ROOT, source, symlinks=True, ignore=unwanted)
    run(["git", "init", "--quiet"], source)
    run(["git", "add", "--all"], source)
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    run(["git", *who, "commit", "--quiet", "--message", "All"], source)
    run(["git", "archive", "--format=zip", "--output", home / "archive.zip", "HEAD"], source)
    sdist, wheel = _built(source, home / "built", "build_sdist", "build_wheel")
    return Shipped(source, sdist, wheel, home / "archive.zip")


def _built(source: Path, out: Path, *hooks: str) -> list[Path]:
    out.mkdir()
    run([sys.executable, "-P", "-c", BUILD, out, *hooks], source)
    return sorted(out.iterdir(), key=lambda path: path.suffix)


def test_the_wheel_holds_what_the_checkout_holds(shipped: Shipped) -> None:
    wheel = ZipFile(shipped.wheel)
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"evenhand"}
    held = {Path(name) for name in wheel.namelist() if name.startswith("evenhand/")}
    assert held == {"evenhand" / file for file in _files(shipped.source / "evenhand")}
    assert Path("evenhand/py.typed") in held


@pytest.mark.parametrize("kind", ["sdist", "archive", "no links", "image"])
def test_each_copy_builds_the_same_wheel(shipped: Shipped, kind: str, tmp_path: Path) -> None:
    """The ZIP is built as Python unpacks it: a link becomes a file that holds its target."""
    copy = tmp_path / "copy"
    if kind == "sdist":
        with tarfile.open(shipped.sdist) as archive:
            archive.extractall(tmp_path, filter="data")
        next(tmp_path.iterdir()).rename(copy)
    elif kind == "archive":
        shutil.unpack_archive(shipped.archive, copy)
    elif kind == "no links":
        clone = ["git", "-c", "core.symlinks=false", "clone", "--quiet", shipped.source, copy]
        run(clone, tmp_path)
    else:
        copy.mkdir()
        dockerfile = (ROOT / "deploy" / "docker" / "Dockerfile").read_text("utf-8")
        for line in re.findall(r"^COPY (?!--from)(.*)", dockerfile, re.MULTILINE):
            *names, to = line.split()
            run(["cp", "-RP", *names, copy / Path(to).relative_to("/source")], shipped.source)
    links = [path for path in (copy / "evenhand").iterdir() if path.is_symlink()]
    assert bool(links) is (kind == "image")
    (wheel,) = _built(copy, tmp_path / "built", "build_wheel")
    assert _held(wheel) == _held(shipped.wheel)


def test_the_sdist_holds_the_whole_project(shipped: Shipped) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("only a clone knows what belongs to the project")
    tracked = {ROOT / name for name in run(["git", "ls-files", "-z"], ROOT).split("\0") if name}
    wanted = {path.relative_to(ROOT) for path in tracked if path.is_file()}
    with tarfile.open(shipped.sdist) as archive:
        held = {Path(member.name.partition("/")[2]) for member in archive if member.isfile()}
    assert wanted - held == {Path(".gitignore")}


def _held(wheel: Path) -> dict[str, bytes]:
    """What a wheel holds; its list of hashes goes by the order in which it was packed."""
    archive = ZipFile(wheel)
    return {name: archive.read(name) for name in archive.namelist() if "RECORD" not in name}


def _files(folder: Path) -> set[Path]:
    """Every file under a folder, by its path from there; what links lead to included."""
    return {
        Path(found, name).relative_to(folder)
        for found, _, names in os.walk(folder, followlinks=True)
        for name in names
    }


@pytest.fixture(scope="module")
def evenhand(shipped: Shipped, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `evenhand`, installed from the repository's ZIP into an environment of its own
    with the dependencies of this one.
    """
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    # Only folders, as paths: what is in them as .pth, such as this checkout, is passed over.
    known = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(known) + "\n", "utf-8")
    before = set(site.iterdir())
    how = ["--no-index", "--no-compile", "--ignore-installed", "--no-build-isolation"]
    _install(home, *how, str(shipped.archive))
    gained = {path.name for path in set(site.iterdir()) - before}
    assert {name for name in gained if not name.endswith(".dist-info")} == {"evenhand"}
    return home / "bin" / "evenhand"


def _install(home: Path, *what: str) -> None:
    pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--python", str(home)]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", *what], check=True)


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A researcher's folder: modules and data of their own, a pairs file, and ratings."""
    for name in SOMEBODY_ELSES.split():
        (tmp_path / f"{name}.py").write_text("raise SystemExit('somebody else\\'s')\n", "utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "__init__.py").write_text("raise SystemExit('not ours')\n", "utf-8")
    pairs = [f"For {n},Against {n}" for n in range(30)]
    (tmp_path / "pairs.csv").write_text("\n".join(["prompt_a,prompt_b", *pairs]) + "\n", "utf-8")
    responses = [f"s1,p{n:04d},{side},Text {n}{side}" for n in range(1, 31) for side in "ab"]
    responses = ["subject,pair_id,side,response", *responses, ""]
    (tmp_path / "responses.csv").write_text("\n".join(responses), "utf-8")
    ratings = [
        f"p{n:04d}|s1|a,refusal,{rater},human,{label},{seconds}"
        for rater, seconds in (("ann", 30), ("ben", 25), ("hasty", 2))
        for n in range(1, 31)
        for label in [1 + n % 5 if rater != "ben" or n % 4 else 1]
    ]
    text = "\n".join(["unit_id,rubric,rater_id,rater_kind,label,seconds", *ratings, ""])
    (tmp_path / "ratings.csv").write_text(text, "utf-8")
    (tmp_path / "graded.csv").write_text(text.replace("hasty,human", "hasty,model"), "utf-8")
    return tmp_path


def run(command: Sequence[str | Path], workplace: Path) -> str:
    done = subprocess.run(command, cwd=workplace, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_zip_of_the_repository_installs_all_and_checks(evenhand, shipped, workplace):
    (site,) = evenhand.parents[1].glob("lib/python*/site-packages")
    wheel = {Path(name) for name in ZipFile(shipped.wheel).namelist()}
    assert wheel - {file.relative_to(site) for file in site.rglob("*")} == set()
    assert "cohen" in run([evenhand, "check", "ratings.csv"], workplace).lower()


@pytest.mark.thorough
def test_an_installed_evenhand_works_beside_anybodys_files(evenhand: Path, workplace: Path) -> None:
    run([evenhand, "demo", "opinions", "--study", "stance", "--no-app"], workplace)
    assert (workplace / "opinions" / "report" / "report.html").is_file()

    new = ["new", "small", "--pairs", "pairs.csv", "--responses", "responses.csv"]
    run([evenhand, *new, "--sample", "30"], workplace)
    run([evenhand, "import", "small", "ratings.csv"], workplace)
    (workplace / "at_work.py").write_text(AT_WORK, "utf-8")
    assert run([evenhand.with_name("python"), "-P", "at_work.py"], workplace) == "True\n"


LEAN = ROOT / "requirements-check.lock"
MOST_MB = 350


@pytest.fixture(
    scope="module", params=["linked", pytest.param("installed", marks=pytest.mark.load)]
)
def lean(
    request: pytest.FixtureRequest, shipped: Shipped, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The command `evenhand` of an environment that holds what requirements-check.lock names:
    installed from the registry, or this environment's own, linked to.
    """
    home = tmp_path_factory.mktemp("lean")
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    if request.param == "installed":
        _install(home, "--require-hashes", "-r", str(LEAN))
    else:
        for name in sorted(set(re.findall(r"^([\w.-]+)==", LEAN.read_text("utf-8"), re.MULTILINE))):
            of_it = distribution(name)
            for top in {file.parts[0] for file in of_it.files or []} - {"..", "__pycache__"}:
                (site / top).symlink_to(str(of_it.locate_file(top)))
    _install(home, "--no-index", str(shipped.wheel))
    return home / "bin" / "evenhand"


@pytest.mark.thorough
def test_check_alone_is_small_and_says_the_same(lean, evenhand, workplace):
    (site,) = lean.parents[1].glob("lib/python*/site-packages")
    assert sum((site / file).stat().st_blocks for file in _files(site)) * 512 / 2**20 <= MOST_MB

    for command, name in ((evenhand, "whole"), (lean, "alone")):
        run([command, "check", "graded.csv", "--resamples", "200", "--out", name], workplace)
    whole, alone = ((workplace / name / "results.csv").read_bytes() for name in ("whole", "alone"))
    assert alone == whole
    assert "Not drawn" not in (workplace / "whole" / "report.html").read_text("utf-8")
    page = (workplace / "alone" / "report.html").read_text("utf-8")
    assert "<p>Not drawn: " in page
    assert "<button hidden>SVG" not in page
    assert "scikit-learn" not in page, "it was compared with nothing"

    gate = [lean, "gate", "graded.csv", "--grader", "hasty", "--resamples", "200"]
    run([*gate, "--require", "coverage > 0.9"], workplace)
    library = "import evenhand as eh; print(eh.check('graded.csv', resamples=200).verdicts)"
    assert "hasty" in run([lean.with_name("python"), "-P", "-c", library], workplace)


@pytest.fixture(params=("3.11", "3.12", "3.13", "3.14"))
def python(request: pytest.FixtureRequest) -> str:
    """The path of a Python of this version: where pyenv keeps it, or in the path."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{request.param}.*/bin/python"))
    found = str(kept[-1]) if kept else shutil.which(f"python{request.param}")
    if found is None:
        pytest.skip(f"no Python {request.param} here")
    return found


@pytest.mark.load
def test_each_python_builds_the_same_wheel_and_uvx_shows_the_demo(shipped, python, tmp_path):
    """As `uvx --from WHEEL evenhand demo` in an empty folder, until its app answers."""
    uv, built, empty, port = find_uv_bin(), tmp_path / "built", tmp_path / "empty", free_port()
    empty.mkdir()
    build = [uv, "build", "--quiet", "--wheel", "--python", python]
    subprocess.run([*build, "--out-dir", str(built), str(shipped.sdist)], check=True)
    (wheel,) = built.glob("*.whl")
    ours, theirs = (  # the newest setuptools may write more of the metadata
        {name: data for name, data in _held(each).items() if ".dist-info/" not in name}
        for each in (wheel, shipped.wheel)
    )
    assert ours == theirs
    uvx = [uv, "tool", "run", "--python", python]
    uvx += ["--from", f"evenhand[all] @ {shipped.wheel.as_uri()}"]
    demo = subprocess.Popen(
        [*uvx, "evenhand", "demo", "--port", str(port)], cwd=empty, start_new_session=True
    )
    try:
        address = f"http://127.0.0.1:{port}/health"
        assert holds(lambda: demo.poll() is not None or answers(address), 2400)
        assert demo.poll() is None, "it has ended"
        assert (empty / "demo-study" / "report" / "report.html").is_file()
    finally:
        os.killpg(demo.pid, signal.SIGTERM)
        demo.wait(timeout=20)


TOOLS = (
    "deepeval ragas arize-phoenix label-studio-sdk label-studio mlflow inspect-ai langfuse argilla "
    "datasets weave opik braintrust lm-eval langsmith potato-annotation jupyterlab"
)
OLDER_CLIENTS = ("ragas", "arize-phoenix", "label-studio")
"""Tools that want older clients of OpenAI or Anthropic than graders are asked by."""


def resolved(tmp_path: Path, *requirements: str) -> str:
    """What would be installed for these, from the registry; empty where they exclude each other."""
    asked = tmp_path / "asked.in"
    asked.write_text("\n".join(requirements) + "\n", "utf-8")
    compile_ = [find_uv_bin(), "pip", "compile", "--quiet", "--python-version", "3.11", str(asked)]
    done = subprocess.run(compile_, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "No solution found" in done.stderr, done.stderr
    return done.stdout if done.returncode == 0 else ""


@pytest.mark.load
@pytest.mark.parametrize("tool", TOOLS.split())
def test_it_can_be_installed_beside_the_newest(shipped: Shipped, tool: str, tmp_path: Path) -> None:
    alone = resolved(tmp_path, tool)
    newest = next(line for line in alone.splitlines() if line.startswith(f"{tool}=="))
    for extra in ("", "[study]", "[report]", "[grade]"):
        found = resolved(tmp_path, newest, f"evenhand{extra} @ {shipped.wheel.as_uri()}")
        assert bool(found) is not (extra == "[grade]" and tool in OLDER_CLIENTS), extra


@pytest.mark.load
def test_the_oldest_libraries_that_are_allowed_give_the_same_figures(
    shipped, evenhand, workplace, tmp_path_factory
):
    old = tmp_path_factory.mktemp("old") / "venv"
    uv = [find_uv_bin(), "--quiet"]
    subprocess.run([*uv, "venv", "--python", "3.11", str(old)], check=True)
    install = [*uv, "pip", "install", "--python", str(old / "bin" / "python")]
    oldest = ["--resolution", "lowest-direct", f"evenhand @ {shipped.wheel.as_uri()}"]
    subprocess.run([*install, *oldest], check=True)
    for name, command in (("new", evenhand), ("old", old / "bin" / "evenhand")):
        run([command, "check", "graded.csv", "--resamples", "200", "--out", name], workplace)
    ours, theirs = (read_table(workplace / name / "results.csv") for name in ("new", "old"))
    figures = ["estimate", "low", "high"]
    assert ours.drop(columns=figures).equals(theirs.drop(columns=figures))
    for column in figures:
        assert pd.to_numeric(ours[column]).to_numpy() == pytest.approx(
            pd.to_numeric(theirs[column]).to_numpy(), abs=1e-9, nan_ok=True
        )
