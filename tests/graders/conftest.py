"""A protocol server on loopback and small studies, all of it synthetic."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import certifi
import pytest

import harness.studies
from evenhand.study import Study
from harness.studies import MarkedStudy
from tests.graders.bench import PROVIDERS, Bench

KEY_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
)


@pytest.fixture(scope="session")
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of one certificate: every client loads the bundle, and none here uses TLS."""
    end = "-----END CERTIFICATE-----\n"
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(Path(certifi.where()).read_text("utf-8").partition(end)[0] + end)
    return path


@pytest.fixture(autouse=True)
def _environment(monkeypatch, one_certificate: Path) -> None:
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(one_certificate))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch) -> Iterator[Bench]:
    bench = Bench(tmp_path, monkeypatch)
    yield bench
    bench.close()


@pytest.fixture(params=PROVIDERS)
def grader(request: pytest.FixtureRequest, bench: Bench) -> str:
    """A grader of either provider."""
    return bench.claude if request.param == "anthropic" else bench.openai


@pytest.fixture
def marked_study(tmp_path: Path) -> Iterator[MarkedStudy]:
    """marked_study(pairs=3, rubrics=("hedging",), name="study", response=...) -> see harness."""
    opened = []

    def make(*arguments: Any, name: str = "study", **more: Any) -> Study:
        opened.append(harness.studies.marked_study(tmp_path / name, *arguments, **more))
        return opened[-1]

    yield make
    for study in opened:
        study.close()
