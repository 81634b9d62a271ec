"""What `deploy/` ships fits together, and does what it says."""

import configparser
import json
import os
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from evenhand.annotate_app.languages import ENGLISH
from harness.proxy import DEPLOY
from harness.served import Served, ServedTogether
from harness.studies import panel_study
from tests.annotate_app.together import two_studies

ROOT = DEPLOY.parent
UNIT = DEPLOY / "systemd" / "evenhand@.service"
DOCKERFILE = (DEPLOY / "docker" / "Dockerfile").read_text("utf-8")
COMPOSE = (DEPLOY / "docker" / "compose.yaml").read_text("utf-8")
AWAY_PAGE = DEPLOY / "nginx" / "away.html"
PORTS = ["8501", "8502"]


def service_of(unit: Path) -> configparser.SectionProxy:
    """What a unit of systemd says of its service."""
    parsed = configparser.RawConfigParser(strict=False)
    assert parsed.read(unit, "utf-8")
    return parsed["Service"]


def analyzed(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What systemd-analyze says."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    words = [program, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_away_page_is_the_apps():
    script = runpy.run_path(str(DEPLOY / "nginx" / "write_away_page.py"))
    shipped = AWAY_PAGE.read_text("utf-8")
    assert shipped == script["away_page"](), "run: python deploy/nginx/write_away_page.py"


def test_the_away_page_needs_nothing_else():
    page = AWAY_PAGE.read_text("utf-8")
    assert ENGLISH.say("page.away_text") in page
    assert page.count(ENGLISH.say("page.away_title")) == 2
    assert "{t" not in page
    assert not [word for word in ("src=", "href=", "import", "@import") if word in page]


# ---- systemd ------------------------------------------------------------------------------------


def test_the_service_is_its_own_user_and_may_write_to_its_own_folder_alone():
    service = service_of(UNIT)
    assert service["User"] == "evenhand"
    assert (service["UMask"], service["StateDirectoryMode"]) == ("0077", "0700")
    assert service["ProtectSystem"] == "strict"
    assert "ReadWritePaths" not in service
    for closed in ("NoNewPrivileges", "PrivateTmp", "ProtectHome", "PrivateDevices"):
        assert service[closed] == "yes"
    assert service["CapabilityBoundingSet"] == ""
    assert service["Restart"] == "always"
    words = service["ExecStart"].split()
    assert words[words.index("--port") + 1] == "%i"
    study = Path(words[words.index("annotate") + 1])
    assert study.parent == Path("/var/lib") / service["StateDirectory"]


def test_another_studys_service_differs_by_its_folder_and_path_alone():
    """In place of the command, which systemd would add to otherwise."""
    lines = (DEPLOY / "systemd" / "second-study.conf").read_text("utf-8").splitlines()
    said = [line for line in lines if line and not line.startswith("#")]
    (usual,) = re.findall(r"^ExecStart=.*", UNIT.read_text("utf-8"), re.MULTILINE)
    other = usual.replace("my-study", "second")
    assert said == ["[Service]", "ExecStart=", f"{other} --path /second"]


def test_systemd_understands_the_units_and_rates_the_service_as_closed(tmp_path):
    for file in (UNIT, *(DEPLOY / "systemd").glob("evenhand-backup.*")):
        text = file.read_text("utf-8").replace("/opt/evenhand/bin/evenhand", sys.executable)
        (tmp_path / file.name.replace("@", "@8501")).write_text(text, "utf-8")
    verified = analyzed("verify", *tmp_path.iterdir())
    assert (verified.returncode, verified.stderr) == (0, "")
    unit = tmp_path / "evenhand@8501.service"
    rated = analyzed("security", "--offline=true", "--threshold=20", unit)
    assert rated.returncode == 0, rated.stdout


# ---- containers ---------------------------------------------------------------------------------


def test_the_image_is_built_from_what_is_there_and_from_all_of_it():
    ignored = (DEPLOY / "docker" / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    copied = [line.split()[1:-1] for line in re.findall(r"^COPY (?!--from).*", DOCKERFILE, re.M)]
    sources = {source for line in copied for source in line}
    assert sources == let_in
    assert all((ROOT / source).exists() for source in sources)
    links = {path.name for path in (ROOT / "evenhand").iterdir() if path.is_symlink()}
    assert links | {"evenhand", "pyproject.toml", "setup.py", "README.md", "LICENSE"} <= sources
    assert "--require-hashes -r /source/requirements.lock" in DOCKERFILE
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert {"psycopg", "setuptools"} <= set(re.findall(r"^([\w-]+)==", lock, re.MULTILINE))


def test_the_image_runs_without_rights_and_keeps_the_study_in_a_volume():
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (\S+)", final, re.MULTILINE) == ["evenhand"]
    (volumes,) = re.findall(r"^VOLUME (.+)", final, re.MULTILINE)
    assert json.loads(volumes) == ["/study", "/backups", "/state"]
    assert final.index("USER") < final.index("ENTRYPOINT")
    after = final[final.index("\nUSER") :]
    assert not re.search(r"^(RUN|COPY|ADD) ", after, re.MULTILINE), (
        "nothing is written as that user"
    )
    (number,) = re.findall(r"useradd --uid (\d+) .*evenhand", final)
    assert int(number) > 1000
    assert json.loads(re.findall(r"^ENTRYPOINT (.*)", final, re.MULTILINE)[0]) == ["evenhand"]
    (command,) = (json.loads(each) for each in re.findall(r"^CMD (.*)", final, re.MULTILINE))
    assert command == ["annotate", "/study/my-study", "--port", "8501"]


def health(port: int) -> int:
    """The exit status of the image's health check for an app on this port."""
    (check,) = re.findall(r"^HEALTHCHECK .*?CMD (.*)", DOCKERFILE, re.MULTILINE)
    here = {"PORT": str(port), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    asked = subprocess.run(json.loads(check), env=os.environ | here, check=False)
    return asked.returncode


@pytest.mark.slow
@pytest.mark.parametrize("path", ["", "/first"])
def test_the_health_check_knows_a_served_study_from_none_at_its_path(tmp_path, path):
    with Served(panel_study(tmp_path, 1), tmp_path, path=path) as served:
        assert health(served.port) == 0
    assert health(served.port) != 0


@pytest.mark.slow
def test_the_health_check_ends_a_process_that_hangs_and_no_other(tmp_path):
    folder = panel_study(tmp_path, 1)
    (tmp_path / "other").mkdir()
    with Served(folder, tmp_path) as served, Served(folder, tmp_path / "other") as other:
        served.freeze()
        assert health(served.port) != 0
        assert served.process.wait(10) == -signal.SIGKILL
        assert health(other.port) == 0
        assert served.port != other.port
    assert "init: true" in COMPOSE  # a container's first process cannot be killed from inside it


@pytest.mark.slow
def test_the_health_check_ends_the_process_of_several_studies_that_hangs(tmp_path):
    with ServedTogether(two_studies(tmp_path), tmp_path) as served:
        assert health(served.port) == 0
        served.process.suspend()
        assert health(served.port) != 0
        assert served.process.wait(10) == -signal.SIGKILL


@pytest.mark.slow
def test_systemd_hears_that_the_app_has_begun_and_goes_on_until_it_hangs(tmp_path):
    """The words of sd_notify as systemd reads them, and none from a process that is frozen."""
    service = service_of(UNIT)
    assert (service["Type"], service["WatchdogSignal"]) == ("notify", "SIGKILL")
    seconds = 1.5
    assert float(service["WatchdogSec"]) > seconds
    place = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(place))
        line.settimeout(seconds)
        says = {"NOTIFY_SOCKET": str(place), "WATCHDOG_USEC": str(round(seconds * 1e6))}
        with Served(panel_study(tmp_path, 1), tmp_path, environment=says) as served:
            assert line.recv(100) == b"READY=1"
            for _ in range(4):
                assert line.recv(100) == b"WATCHDOG=1"
            served.freeze()
            line.setblocking(False)
            with suppress(BlockingIOError):  # what was said before
                while line.recv(100):
                    pass
            time.sleep(seconds)
            with pytest.raises(BlockingIOError):
                line.recv(100)


def test_compose_names_files_that_are_there_and_the_ports_that_nginx_has():
    for here in re.findall(r"^ +- (\.\./\S+?):", COMPOSE, re.MULTILINE):
        assert (DEPLOY / "docker" / here).is_file(), here
    (context,) = re.findall(r"context: (\S+)", COMPOSE)
    (dockerfile,) = re.findall(r"dockerfile: (\S+)", COMPOSE)
    assert (DEPLOY / "docker" / context).resolve() == ROOT
    assert (ROOT / dockerfile).is_file()
    nginx = (DEPLOY / "nginx" / "evenhand.conf").read_text("utf-8")
    assert re.findall(r"^ +server 127\.0\.0\.1:(\d+)", nginx, re.MULTILINE) == PORTS
    assert re.findall(r'--port, "(\d+)"', COMPOSE) == PORTS
    assert re.findall(r'PORT: "(\d+)"', COMPOSE) == PORTS


def test_only_nginx_can_be_reached_from_outside_and_no_password_stands_in_the_file():
    published = re.findall(r"^  (\S+):$(?:\n(?:    .*)?)*?\n    ports:", COMPOSE, re.MULTILINE)
    assert published == ["nginx"]
    assert "network_mode: service:nginx" in COMPOSE
    assert "STREAMLIT_SERVER_ADDRESS: 127.0.0.1" in COMPOSE
    passwords = re.findall(r"PASSWORD: (.*)", COMPOSE)
    assert passwords == ["${EVENHAND_STUDY_PASSWORD:?}"] * 2


# ---- dependencies -------------------------------------------------------------------------------


LOCKS = sorted(path.name for path in ROOT.glob("requirements*.lock"))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_is_pinned_by_its_hash(lock):
    text = (ROOT / lock).read_text("utf-8")
    assert "://" not in text, "where a registry is, is everybody's own matter"
    pinned = re.findall(r"^\S.*(?:\n +.*)*", text, re.MULTILINE)
    assert len(pinned) > 5
    for each in pinned:
        assert re.match(r"[\w.-]+(\[\S+\])?==\S+ (; .* )?\\\n +--hash=sha256:[0-9a-f]{64}", each), (
            each
        )


def test_what_check_needs_is_what_the_whole_installation_has():
    """The same versions, so that both give the same figures."""
    whole, alone = (
        set(re.findall(r"^(\S+==.*) \\$", (ROOT / lock).read_text("utf-8"), re.MULTILINE))
        for lock in ("requirements.lock", "requirements-check.lock")
    )
    assert alone
    assert alone < whole
