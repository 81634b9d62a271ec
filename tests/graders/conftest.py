"""A protocol server on loopback and small studies, all of it synthetic."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import certifi
import pytest

from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import Study, open_study
from evenhand.study.creation import StudyPlan, create_study
from tests.graders.protocol_server import ProtocolServer

KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL")


@pytest.fixture(scope="session")
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of one certificate: every client loads the bundle, and none here uses TLS."""
    end = "-----END CERTIFICATE-----\n"
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(Path(certifi.where()).read_text("utf-8").partition(end)[0] + end)
    return path


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, one_certificate: Path) -> None:
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(one_certificate))


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    server = ProtocolServer()
    yield server
    server.close()


@pytest.fixture
def claude(server: ProtocolServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a Claude grader whose endpoint is the protocol server."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-key-of-nobody")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
    return "anthropic:claude-test"


MarkedStudy = Callable[..., Study]


@pytest.fixture
def marked_study(tmp_path: Path) -> Iterator[MarkedStudy]:
    """Makes studies of synthetic pairs with one subject `m`; every response carries its unit."""
    opened = []

    def make(
        pairs: int = 3,
        rubrics: tuple[str | Rubric, ...] = ("hedging",),
        name: str = "study",
        response: Callable[[int, str], str] | None = None,
    ) -> Study:
        files = tmp_path / f"{name}-files"
        files.mkdir()
        _write_files(files, pairs, response or (lambda pair, side: "A plain answer."))
        chosen = [load_rubric(r) if isinstance(r, str) else r for r in rubrics]
        create_study(
            tmp_path / name,
            StudyPlan(
                pairs=files / "pairs.csv",
                responses=files / "responses.jsonl",
                rubrics=chosen,
                sample=pairs,
                synthetic=True,
            ),
        )
        opened.append(open_study(tmp_path / name))
        return opened[-1]

    yield make
    for study in opened:
        study.close()


def with_edited_rubric(study: Study, name: str, *, same: bool) -> Study:
    """The study opened anew, its rubric reworded; `same`: study.toml says it means the same."""
    old = study.rubrics[name]
    file = study.folder / "rubrics" / f"{name}.toml"
    file.write_text(file.read_text("utf-8").replace(old.title, f"{old.title}!"), "utf-8")
    if same:
        settings = study.folder / "study.toml"
        text = settings.read_text("utf-8") + f'\n[same_text]\n{name} = ["{old.hash}"]\n'
        settings.write_text(text, "utf-8")
    edited = open_study(study.folder)
    assert edited.rubrics[name].hash != old.hash
    return edited


def _write_files(folder: Path, pairs: int, response: Callable[[int, str], str]) -> None:
    with (folder / "pairs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt_a", "prompt_b"])
        writer.writerows([f"Argue for {n}.", f"Argue against {n}."] for n in range(1, pairs + 1))
    with (folder / "responses.jsonl").open("w") as file:
        for n in range(1, pairs + 1):
            for side in ("a", "b"):
                row = {"pair_id": f"p{n:04d}", "side": side, "subject": "m"}
                mark = f"[[p{n:04d}|m|{side}]] "
                file.write(json.dumps(row | {"response": mark + response(n, side)}) + "\n")
