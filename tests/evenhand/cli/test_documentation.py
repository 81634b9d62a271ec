"""Every command in README and docs runs, in order, as it stands there but for the app's port."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.documents import RESULTS
from evenhand.cli.main import main
from evenhand.study.settings.study_toml import StudyConfig
from harness.ports import free_port
from harness.protocol_server import ProtocolServer
from harness.served import answers, holds

ROOT = Path(__file__).parents[3]
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "data" / "README.md"]
CASE_STUDIES = sorted((ROOT / "examples").glob("*/README.md"))
"""Their commands and what they give: tests/examples/test_examples.py."""
LOGS = sorted(RESULTS.glob("*.md"))
PAGES = [*GUIDES, *CASE_STUDIES, *LOGS]

HERE_DOCUMENT = re.compile(r"(?ms)^(?:mkdir \S+\n)?cat > (\S+) <<'END'\n(.*?)^END\n")


def shell_blocks(page: Path) -> str:
    text = page.read_text("utf-8")
    return "".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


OUTPUT = re.compile(r"^```sh\n((?:(?!^```).)*)^```(?:(?!^```).)*^```output\n(.*?)^```", re.M | re.S)
"""Commands, and what a page shows of the last one's output: lines, each up to its three dots."""


@pytest.fixture
def providers(monkeypatch) -> Iterator[None]:
    """Both providers stand on loopback, spoken to by the real SDKs."""
    server = ProtocolServer()
    server.batches.looks = 0  # a batch has ended at the first look, which spares the wait
    for provider, address in (("ANTHROPIC", server.root), ("OPENAI", f"{server.root}/v1")):
        monkeypatch.setenv(f"{provider}_API_KEY", "key-for-loopback")
        monkeypatch.setenv(f"{provider}_BASE_URL", address)
    yield
    server.close()


@pytest.fixture(scope="module")
def make_demo(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], int]:
    """Runs `evenhand demo DIR ...`, by which several pages begin: once, and is copied from then."""
    tmp = tmp_path_factory.mktemp("demos")

    def make(words: list[str]) -> int:
        if words[1].startswith("--"):  # published labels, in a folder of their own: seconds
            return main([*words, *{"--no-app"}.difference(words)])
        _, folder, *options = words
        made = tmp / "".join(options) / folder
        made.parent.mkdir(exist_ok=True)
        status = 0 if made.exists() else main(["demo", str(made), *options])
        shutil.copytree(made, folder)
        return status

    return make


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page == GUIDES[0] else pytest.mark.thorough)
        for page in GUIDES
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
@pytest.mark.usefixtures("providers")
def test_every_command_runs(page, make_demo, here, capsys):
    """In an empty folder but for the data that ship: a page brings along whatever else it needs."""
    (here / "data").symlink_to(ROOT / "data")
    for name, text in HERE_DOCUMENT.findall(shell_blocks(page)):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    shown = {
        commands.strip().splitlines()[-1]: [line.partition(" ...")[0] for line in out.splitlines()]
        for commands, out in OUTPUT.findall(page.read_text("utf-8"))
    }
    for command in filter(str.strip, HERE_DOCUMENT.sub("", shell_blocks(page)).splitlines()):
        program, *words = shlex.split(command)
        assert program == "evenhand", f"{page.name}: no test knows how to run {command!r}"
        if words[0] in ("annotate", "label"):
            serve_until_it_answers(words)
            continue
        status = make_demo(words) if words[0] == "demo" else main(words)
        said = capsys.readouterr()
        assert status == 0, f"{command}\n{said}"
        for line in shown.get(command, []):
            assert " ".join(line.split()) in " ".join(said.out.split()), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_python_example_runs_and_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for example in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(example, page.name, "exec"), {})  # noqa: S102 - our own pages
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("name", ["label-a-file", "own-rubric", "people", "serving"])
def test_settings_of_a_recipe_are_settings_of_a_study(name: str, monkeypatch) -> None:
    monkeypatch.setenv("EVENHAND_OIDC_SECRET", "a secret")
    page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    for settings in re.findall(r"^```toml\n((?!\[\[unit]]).*?)^```", page, re.M | re.S):
        whole = {"name": "n", "seed": 1, "sample": {"pairs": 10}} | tomllib.loads(settings)
        StudyConfig.model_validate(whole)


def serve_until_it_answers(words: list[str]) -> None:
    port = str(free_port())
    if "--port" in words:
        words[words.index("--port") + 1] = port
    else:
        words += ["--port", port, "--no-browser"]
    command = [sys.executable, "-P", "-m", "evenhand", *words]
    server = subprocess.Popen(command, start_new_session=True)
    try:
        address = f"http://127.0.0.1:{port}/_stcore/health"
        assert holds(lambda: server.poll() is not None or answers(address), 60)
        assert server.poll() is None, "the app has stopped"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=20)


def test_every_test_that_a_page_names_is_there() -> None:
    named = {
        name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))
    }
    assert len(named) > 100
    files = (ROOT / "tests").rglob("test_*.py")
    there = {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text())}
    assert named <= there, named - there


def test_every_row_on_security_names_a_test() -> None:
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    tables = re.findall(r"^\|.*\| shown by \|\n\|[- |]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    rows = [line for table in tables for line in table.splitlines()]
    assert (len(tables), len(rows) > 70) == (6, True)
    assert [row for row in rows if not re.search(r"\| `test_\w+`(, `test_\w+`)* \|$", row)] == []
    assert {len(row.split(" | ")) for row in rows} == {3, 4}
