"""The action, the hook, `deploy/` and the steps of docs/serving.md fit and do what they say."""

import configparser
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from evenhand.annotate_app.languages import ENGLISH
from evenhand.study.keeping import restore_study
from harness.action import ActionRun, Runner
from harness.ports import free_port
from harness.proxy import DEPLOY, NAME
from harness.served import Served, ServedTogether, holds
from harness.studies import panel_study
from tests.annotate_app.together import two_studies
from tests.commands import python, write_program

ROOT = DEPLOY.parent
UNIT = DEPLOY / "systemd" / "evenhand@.service"
DOCKERFILE = (DEPLOY / "docker" / "Dockerfile").read_text("utf-8")
COMPOSE = (DEPLOY / "docker" / "compose.yaml").read_text("utf-8")
PORTS = ["8501", "8502"]


def service_of(unit: Path) -> configparser.SectionProxy:
    """What a unit of systemd says of its service."""
    parsed = configparser.RawConfigParser(strict=False)
    assert parsed.read(unit, "utf-8")
    return parsed["Service"]


def test_the_away_page_is_the_apps_and_needs_nothing_else():
    script = runpy.run_path(str(DEPLOY / "nginx" / "write_away_page.py"))
    page = (DEPLOY / "nginx" / "away.html").read_text("utf-8")
    assert page == script["away_page"](), "run: python deploy/nginx/write_away_page.py"
    assert ENGLISH.say("page.away_text") in page
    assert page.count(ENGLISH.say("page.away_title")) == 2
    assert "{t" not in page
    assert not [word for word in ("src=", "href=", "import", "@import") if word in page]


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
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    for file in (UNIT, *(DEPLOY / "systemd").glob("evenhand-backup.*")):
        text = file.read_text("utf-8").replace("/opt/evenhand/bin/evenhand", sys.executable)
        (tmp_path / file.name.replace("@", "@8501")).write_text(text, "utf-8")

    def analyzed(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *map(str, words)], capture_output=True, text=True)

    verified = analyzed("verify", *tmp_path.iterdir())
    assert (verified.returncode, verified.stderr) == (0, "")
    unit = tmp_path / "evenhand@8501.service"
    rated = analyzed("security", "--offline=true", "--threshold=20", unit)
    assert rated.returncode == 0, rated.stdout


def test_the_image_is_built_from_all_that_is_there_and_runs_without_rights():
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
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    said = {word: re.findall(rf"^{word} (.+)", final, re.M) for word in ("USER", "VOLUME", "CMD")}
    assert said["USER"] == ["evenhand"]
    assert [json.loads(each) for each in said["VOLUME"]] == [["/study", "/backups", "/state"]]
    command = ["annotate", "/study/my-study", "--port", "8501"]
    assert [json.loads(each) for each in said["CMD"]] == [command]
    assert json.loads(re.findall(r"^ENTRYPOINT (.*)", final, re.MULTILINE)[0]) == ["evenhand"]
    after = final[final.index("\nUSER") :]
    assert "ENTRYPOINT" in after
    assert not re.search(r"^(RUN|COPY|ADD) ", after, re.MULTILINE), "nothing is written as that"
    (number,) = re.findall(r"useradd --uid (\d+) .*evenhand", final)
    assert int(number) > 1000


def health(port: int) -> int:
    """The exit status of the image's health check for an app on this port."""
    (check,) = re.findall(r"^HEALTHCHECK .*?CMD (.*)", DOCKERFILE, re.MULTILINE)
    here = {"PORT": str(port), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(json.loads(check), env=os.environ | here, check=False).returncode


@pytest.mark.slow
def test_the_health_check_ends_a_process_that_hangs_and_no_other(tmp_path):
    folder = panel_study(tmp_path, 1)
    (tmp_path / "other").mkdir()
    with (
        Served(folder, tmp_path, path="/first") as served,
        Served(folder, tmp_path / "other") as other,
    ):
        assert health(served.port) == health(other.port) == 0
        served.freeze()
        assert health(served.port) != 0
        assert served.process.wait(10) == -signal.SIGKILL
        assert health(other.port) == 0
        assert health(served.port) != 0  # where there is none
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
    # Only nginx can be reached from outside, and no password stands in the file.
    published = re.findall(r"^  (\S+):$(?:\n(?:    .*)?)*?\n    ports:", COMPOSE, re.MULTILINE)
    assert published == ["nginx"]
    assert "network_mode: service:nginx" in COMPOSE
    assert "STREAMLIT_SERVER_ADDRESS: 127.0.0.1" in COMPOSE
    assert re.findall(r"PASSWORD: (.*)", COMPOSE) == ["${EVENHAND_STUDY_PASSWORD:?}"] * 2


def test_every_dependency_is_pinned_by_its_hash():
    files = {path.name: path.read_text("utf-8") for path in ROOT.glob("requirements*.lock")}
    for text in files.values():
        assert "://" not in text, "where a registry is, is everybody's own matter"
        pinned = re.findall(r"^\S.*(?:\n +.*)*", text, re.MULTILINE)
        assert len(pinned) > 5
        form = r"[\w.-]+(\[\S+\])?==\S+ (; .* )?\\\n +--hash=sha256:[0-9a-f]{64}"
        assert [each for each in pinned if not re.match(form, each)] == []
    # `check` needs the same versions, so that both give the same figures.
    whole, alone = (
        set(re.findall(r"^(\S+==.*) \\$", files[f"requirements{name}.lock"], re.MULTILINE))
        for name in ("", "-check")
    )
    assert alone
    assert alone < whole


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
        program = f'#!/bin/sh\nexec {sys.executable} -m evenhand "$@"\n'
        write_program(home / "opt/evenhand/bin/evenhand", program)
        write_program(home / "opt/evenhand/bin/pip", "#!/bin/sh\n")
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
    assert f"Names that are answered: {NAME}." in doctor(machine, f"https://{NAME}/second").stdout
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
    assert "%" not in table  # a sign that ends the line
    for page in (ROOT / "docs").rglob("*.md"):
        assert "$(date +%" not in page.read_text("utf-8"), page
    (line,) = (each for each in table.splitlines() if not each.startswith("#"))
    *when, user, command = line.split(maxsplit=6)
    assert re.fullmatch(r"[\d*]+( [\d*]+){4}", " ".join(when))
    assert user == "root"
    runuser = 'runuser() { shift 3; "$@"; }\n'
    ran = subprocess.run(
        ["/bin/sh", "-c", runuser + machine.here(command)], capture_output=True, text=True,
        check=False, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert len(list(machine.backups.iterdir())) == 1
    service = service_of(DEPLOY / "systemd" / "evenhand-backup.service")
    words = service["ExecStart"].split()
    assert service["ReadWritePaths"] == words[words.index("--to") + 1]  # where its command writes
    assert {"--verify", "--keep"} <= set(words)
    assert service["ProtectSystem"] == "strict"
    assert service["ExecStart"] in table


RULE = "coverage >= 0.5"
GH = """#!{python}
import json, os, pathlib, sys
log = pathlib.Path(os.environ["GH_LOG"])
words = sys.argv[1:]
body = next((w[6:] for w in words if w.startswith("body=@")), "")
call = {{"words": words, "token": os.environ["GH_TOKEN"]}}
call["body"] = pathlib.Path(body).read_text() if body else ""
log.write_text((log.read_text() if log.exists() else "") + json.dumps(call) + "\\n")
if "--paginate" in words:
    print(os.environ.get("GH_COMMENTS", ""), end="")
sys.exit(int(os.environ.get("GH_CODE", "0")))
"""
"""Stands for the program `gh`: keeps what it was called with, and answers with known comments."""


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels of two annotators and a grader `g` that answers every second unit wrongly."""
    rows = ["unit_id,rater_id,rater_kind,label"]
    for n in range(40):
        people = "yes" if n % 3 else "no"
        rows += [f"u{n},ann,human,{people}", f"u{n},ben,human,{people}"]
        rows += [f"u{n},g,model,{'yes' if n % 2 else 'no'}"]
    file = tmp_path_factory.mktemp("labels") / "my ratings.csv"
    file.write_text("\n".join(rows))
    return file


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """A job at a pull request, with evenhand installed and `gh` in the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    write_program(programs / "gh", GH.format(python=sys.executable))
    evenhand = f'#!/bin/sh\nexec "{sys.executable}" -P -m evenhand "$@"\n'
    write_program(programs / "evenhand", evenhand)
    monkeypatch.setenv("GH_LOG", str(tmp_path / "calls"))
    github = {"event_name": "pull_request", "event.pull_request.number": "7"}
    github |= {"repository": "o/r", "token": "t0ken"}
    return Runner(ROOT / "action.yml", tmp_path / "job", github, str(programs))


def gated(runner: Runner, source: Path, require: str = RULE, **inputs: str) -> ActionRun:
    usual = {"program": "evenhand", "report": "false", "grader": "g"}
    return runner.run(source=str(source), require=require, **(usual | inputs))


def ends_with(runner: Runner, code: int) -> str:
    """A program that decides with this code: what Actions make of it, without the analysis."""
    text = (
        '#!/bin/sh\nfor word; do case "$word" in --summary=*) to="${word#*=}";; esac; done\n'
        f'echo "### evenhand gate: code {code}" > "$to"\nexit {code}\n'
    )
    return str(write_program(runner.folder.parent / "bin" / f"ends-{code}", text))


def calls(runner: Runner) -> list[dict]:
    file = runner.folder.parent / "calls"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.thorough
def test_a_grader_that_passes_with_its_report_and_its_first_comment(runner, ratings):
    done = gated(runner, ratings, report="true", options="--affirmative=yes\n\n--seed=3\n")
    assert (done.code, done.outputs["outcome"]) == (0, "met"), done.log
    assert done.steps == ["Gate", "Report", "Comment", "Outcome"]
    assert done.summary.startswith("### evenhand gate: met\n")
    assert "coverage, estimate: 1, required >= 0.5" in done.summary
    report = Path(done.outputs["report"])
    assert {"report.html", "report.json", "results.csv"} <= {f.name for f in report.iterdir()}
    assert Path(done.outputs["junit"]).read_bytes().startswith(b"<?xml")
    look, write = calls(runner)
    assert look["words"][:3] == ["api", "--paginate", "repos/o/r/issues/7/comments"]
    assert 'startswith("<!-- evenhand gate: gate -->")' in look["words"][-1]
    where = "repos/o/r/issues/7/comments"
    assert write["words"][:5] == ["api", "--silent", "--method", "POST", where]
    assert write["body"] == f"<!-- evenhand gate: gate -->\n{done.summary}"
    assert write["token"] == "t0ken"


@pytest.mark.slow
def test_the_report_reads_the_file_as_the_gate_does(runner, tmp_path):
    """On an ordinal scale: without the gate's options there was no report, or another."""
    rows = [f"u{n},{1 + n % 4},{1 + n % 4},{1 + (n + (n % 9 == 0)) % 4}" for n in range(40)]
    file = tmp_path / "labels.csv"
    file.write_text("\n".join(["unit_id,ann,ben,g", *rows]))
    scale = ["--human=ann,ben", "--model=g", "--level=ordinal", "--categories=1,2,3,4"]
    options = "\n".join([*scale, "", "--affirmative=3,4", "--resamples=100", "--json"])
    done = gated(runner, file, report="true", options=options, comment="false")
    assert done.outputs["outcome"] == "met", done.log
    results = (Path(done.outputs["report"]) / "results.csv").read_text()
    assert "krippendorff_alpha_ordinal" in results
    assert "Declare one with" not in (runner.folder / "evenhand-report.log").read_text()


def test_the_comment_that_is_there_is_written_anew(runner, ratings, monkeypatch):
    monkeypatch.setenv("GH_COMMENTS", "412\n999\n")
    done = gated(runner, ratings, name='x"; rm $(y)', program=ends_with(runner, 1))
    assert (done.code, done.outputs["outcome"]) == (1, "not_met")
    look, write = calls(runner)
    marker = "<!-- evenhand gate: x---rm---y- -->"
    assert f'startswith("{marker}")' in look["words"][-1]
    assert write["words"][2:5] == ["--method", "PATCH", "repos/o/r/issues/comments/412"]
    assert write["body"].startswith(marker + "\n### evenhand gate: code 1")
    done = gated(runner, ratings, program="false")  # which dies with 1: it has not decided
    assert (done.code, done.outputs["outcome"]) == (2, "error")


@pytest.mark.slow
def test_what_we_cannot_tell_fails_unless_the_job_says_so(runner, ratings):
    lone = ratings.with_name("lone.csv")
    header, *rows = ratings.read_text().splitlines()
    lone.write_text("\n".join([header, *rows[3:6]]))  # one unit
    done = gated(runner, lone, "cohen_kappa > 0.5", comment="false")
    assert (done.code, done.outputs["outcome"]) == (3, "inconclusive"), done.log
    assert done.steps == ["Gate", "Outcome"]
    done = gated(runner, lone, inconclusive="pass", program=ends_with(runner, 3))
    assert (done.code, done.outputs["outcome"]) == (0, "inconclusive")


@pytest.mark.slow
def test_wrong_use_is_no_verdict_with_a_pull_request_or_without(runner, ratings, monkeypatch):
    done = gated(runner, ratings, "kappa is fine", report="true")
    assert (done.code, done.outputs["outcome"], done.outputs["report"]) == (2, "error", "")
    assert "is not a valid condition" in done.log
    assert "it could not run" in done.summary
    assert done.steps == ["Gate", "Comment", "Outcome"]
    monkeypatch.setenv("GH_CODE", "1")
    done = gated(runner, ratings, "no rule")
    assert done.steps == ["Gate", "Comment", "Outcome"]
    assert (done.code, done.outputs["outcome"]) == (2, "error")
    assert "::warning::the comment was not written" in done.log
    runner.github = {**runner.github, "event_name": "push"}
    assert gated(runner, ratings, "no rule").steps == ["Gate", "Outcome"]
    # Inputs reach the shell as they are: what a pull request can name must not be run.
    for step in yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]:
        assert "${{" not in step["run"], step["name"]
        assert "uses" not in step, "an action that is not pinned"
    done = gated(runner, ratings, grader="$(touch owned) `touch owned`")
    assert done.code == 2
    assert "there is no grader '$(touch owned) `touch owned`' here" in done.log
    assert not list(runner.folder.parent.rglob("owned"))


@pytest.mark.slow
def test_the_install_step_takes_what_the_lock_pins_and_then_itself(runner, ratings):
    """With a `python3` that only says what it was asked: the real one needs a network."""
    write_program(
        runner.folder.parent / "bin" / "python3",
        '#!/bin/sh\nif [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\n'
        'echo "asked: $*"\n',
    )
    said = re.findall("asked: (.*)", gated(runner, ratings, "no rule", program="").log)
    assert said[0] == f"-m venv {runner.folder}/evenhand"
    assert said[1].endswith(f"--require-hashes -r {ROOT}/requirements.lock")
    assert said[2].endswith(f"--no-deps --no-build-isolation {ROOT}")
    assert (runner.folder / "path").read_text() == f"{runner.folder}/evenhand/bin\n"


@pytest.mark.slow
def test_the_hook_names_faults_of_every_file(tmp_path):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["id"] == "evenhand-rubric"
    assert re.search(hook["files"], "rubrics/hedging.toml")
    assert re.search(hook["files"], "my/rubrics/x.toml")
    assert not re.search(hook["files"], "study.toml")
    (tmp_path / "one.toml").write_text('name = "One"\n')
    (tmp_path / "two.toml").write_text("name = \n")
    program, *words = hook["entry"].split()
    assert program == "evenhand"
    files = [str(ROOT / "rubrics" / "hedging.toml"), "one.toml", "two.toml"]
    done = python("-m", "evenhand", *words, *files, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout.startswith("hedging")
    assert "one.toml: " in done.stderr
    assert "two.toml: " in done.stderr
