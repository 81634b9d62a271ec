"""The steps of docs/serving.md, as they stand there, in a root of our own: the real commands as far
as a machine without systemd allows, and a study that is served, backed up and found sound."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evenhand.study.keeping import restore_study
from harness.ports import free_port
from harness.proxy import DEPLOY, NAME
from harness.served import holds
from tests.deploy.test_files import service_of

ROOT = DEPLOY.parent
SERVING = (ROOT / "docs" / "serving.md").read_text("utf-8")
ELSEWHERE = ("/opt/evenhand", "/var/lib/evenhand", "/var/backups/evenhand", "/var/www", "/etc/")
"""The places that the recipes write to: below the root of the test."""
PLAYED = """
set -eu
apt() { :; }
useradd() { :; }
nginx() { :; }
systemctl() { echo "$*" >> "$ROOT_OF_TEST/systemctl"; }
runuser() { shift 3; "$@"; }
python3() { :; }
"""
"""What would change this machine. `runuser -u evenhand -- COMMAND` runs the command."""


def steps(heading: str) -> str:
    """The commands of one part of the page."""
    part = SERVING.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert part, heading
    return "\n".join(re.findall(r"^    (.+)$", part, re.MULTILINE))


class Machine:
    """A root in which the recipes run."""

    def __init__(self, home: Path) -> None:
        self.home = home
        for place in ("etc/systemd/system", "etc/nginx/conf.d", "etc/cron.d", "opt/evenhand/bin",
                      "var/lib", "var/backups"):  # fmt: skip
            (home / place).mkdir(parents=True)
        program = home / "opt/evenhand/bin/evenhand"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m evenhand "$@"\n')
        program.chmod(0o755)
        pip = home / "opt/evenhand/bin/pip"
        pip.write_text("#!/bin/sh\n")
        pip.chmod(0o755)
        self.study = home / "var/lib/evenhand/my-study"
        self.backups = home / "var/backups/evenhand"

    def here(self, text: str) -> str:
        for place in ELSEWHERE:
            text = re.sub(rf"(?<![\w/]){re.escape(place)}", str(self.home) + place, text)
        return re.sub(r" -[og] evenhand\b", "", text).replace("/tmp/pairs", "own-pairs")  # noqa: S108

    def run(self, commands: str) -> subprocess.CompletedProcess[str]:
        words = ["/bin/bash", "-c", PLAYED + self.here(commands)]
        there, env = self.home / "checkout", os.environ | {"ROOT_OF_TEST": str(self.home)}
        return subprocess.run(words, cwd=there, env=env, capture_output=True, text=True)

    def service(self, unit: str) -> configparser.SectionProxy:
        """What the unit says that was copied to /etc/systemd/system."""
        return service_of(self.home / "etc/systemd/system" / unit)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("deploy", "annotate_app"):
        (checkout / name).symlink_to(ROOT / name)
    (checkout / "requirements.lock").symlink_to(ROOT / "requirements.lock")
    shutil.copy(ROOT / "data" / "demo_pairs.csv", checkout / "pairs.csv")
    return Machine(tmp_path)


@pytest.fixture
def prepared(machine: Machine) -> Machine:
    """The machine after all steps but the doctor's."""
    for part in ("On your machine", "A backup every night"):
        done = machine.run(re.sub(r"(?m)^.* doctor .*$", "", steps(part)))
        assert done.returncode == 0, done.stderr
    return machine


def doctor(machine: Machine, address: str = "") -> subprocess.CompletedProcess[str]:
    (line,) = (x for x in steps("On your machine").splitlines() if " doctor " in x)
    return machine.run(line.replace(f"https://{NAME}", address) if address else line)


def url(machine: Machine) -> str:
    return re.findall(r"EVENHAND_URL=(\S+)", (machine.home / "etc/evenhand.env").read_text())[0]


def status(port: int, host: str, path: str = "/health") -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.mark.slow
def test_the_steps_lead_to_a_study_that_is_served_kept_and_sound(prepared):
    machine, port = prepared, free_port()
    assert url(machine) == f"https://{NAME}"
    assert (machine.home / "etc/evenhand.env").stat().st_mode & 0o777 == 0o600
    with running(machine, {"evenhand@.service": port}):
        comes_up(machine, port)
        assert status(port, "rebound.example.org") == 421
        told = doctor(machine)
        assert told.returncode == 2
        (ill,) = (line for line in told.stdout.splitlines() if line.startswith("to fix:"))
        assert "No backup has been made" in ill
        assert "No backup has been made" in (machine.home / "log").read_text()  # at the start too
        backup = machine.here(machine.service("evenhand-backup.service")["ExecStart"])
        subprocess.run(shlex.split(backup), check=True, capture_output=True)
        (file,) = machine.backups.iterdir()
        assert restore_study(file, machine.home / "again").pairs == 306
        told = doctor(machine)
        assert told.returncode == 0, told.stdout
        assert "Everything follows docs/serving.md." in told.stdout
        assert "evenhand-backup.timer" in (machine.home / "systemctl").read_text()


@contextmanager
def running(machine: Machine, ports: dict[str, int]) -> Iterator[None]:
    """The apps as these services start them, each at its port."""
    apps = []
    with (machine.home / "log").open("ab") as log:
        for unit, port in ports.items():
            command = machine.service(unit)["ExecStart"].replace("%i", str(port))
            words = shlex.split(machine.here(command.replace("${EVENHAND_URL}", url(machine))))
            apps.append(subprocess.Popen(words, stdout=log, stderr=log))
    try:
        yield
    finally:
        for app in apps:
            app.terminate()
            app.wait(30)


def comes_up(machine: Machine, port: int, path: str = "/health") -> None:
    assert holds(lambda: status(port, NAME, path) == 200, 60), (machine.home / "log").read_text()


@pytest.mark.slow
def test_the_steps_for_several_studies_lead_to_two_by_one_command_or_by_two(prepared):
    machine, ports = prepared, (free_port(), free_port())
    done = machine.run(steps("Several studies"))
    assert done.returncode == 0, done.stderr
    assert f"https://{NAME}/second/?lead=" in done.stdout.replace("\n", "")
    units = ("evenhand@.service", "evenhand@8503.service.d/study.conf")
    with running(machine, dict(zip(units, ports, strict=True))):
        comes_up(machine, ports[0])
        comes_up(machine, ports[1], "/second/health")
        for path in ("/my-study/health", "/second/health"):
            assert status(ports[0], NAME, path) == 200
            assert status(ports[0], "rebound.example.org", path) == 421
        assert status(ports[1], NAME, "/overview") == 404
    told = doctor(machine, f"https://{NAME}/second")
    assert f"Names that are answered: {NAME}." in told.stdout
    every = machine.service("evenhand-backup.service.d/every-study.conf")["ExecStart"]
    command = shlex.split(machine.here(every.replace("$$", "$")))
    subprocess.run(command, check=True, capture_output=True)
    kept = sorted(each.name for each in machine.backups.iterdir())
    assert [name.rsplit("-", 3)[0] for name in kept] == ["my-study", "second"]
    (machine.study / "study.toml").write_text("nonsense = [")
    assert subprocess.run(command, check=False, capture_output=True).returncode == 1
    assert len(list(machine.backups.glob("second-*"))) == 2


@pytest.mark.slow
def test_the_line_for_cron_makes_a_backup(prepared):
    """Run as cron runs it: five fields, a user, and the rest up to the first % to sh."""
    machine = prepared
    table = (machine.home / "etc/cron.d/evenhand-backup").read_text("utf-8")
    assert table.endswith("\n")  # or cron takes no notice of the line
    (line,) = (each for each in table.splitlines() if not each.startswith("#"))
    *when, user, command = line.split(maxsplit=6)
    assert re.fullmatch(r"[\d*]+( [\d*]+){4}", " ".join(when))
    assert user == "root"
    command = command.partition("%")[0]
    runuser = 'runuser() { shift 3; "$@"; }\n'
    ran = subprocess.run(
        ["/bin/sh", "-c", runuser + machine.here(command)], capture_output=True, text=True,
        check=False, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert len(list(machine.backups.iterdir())) == 1


def test_no_line_for_cron_has_a_sign_that_ends_it():
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text("utf-8")
        assert "$(date +%" not in text, page
    assert "%" not in (DEPLOY / "cron" / "evenhand-backup").read_text("utf-8")


def test_the_backups_service_writes_where_its_command_does():
    service = service_of(DEPLOY / "systemd" / "evenhand-backup.service")
    words = service["ExecStart"].split()
    assert service["ReadWritePaths"] == words[words.index("--to") + 1]
    assert {"--verify", "--keep"} <= set(words)
    assert service["ProtectSystem"] == "strict"
    cron = (DEPLOY / "cron" / "evenhand-backup").read_text("utf-8")
    assert service["ExecStart"] in cron
