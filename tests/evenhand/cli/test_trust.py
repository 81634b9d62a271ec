"""A folder from somebody else: no secret of this machine is among the bytes that its settings cause
to be sent, whatever verb reads them, until the operator says so.
"""

import shutil
import socket
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.study.access import client_secret
from evenhand.study.settings.study_toml import change_config, read_config
from harness.studies import marked_study
from tests.commands import python

pytestmark = pytest.mark.journey

SECRET = "sk-SECRET0MARK-0123456789"
TAKEN = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_ORG_ID", "MY_KEY"),
    *("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "EVENHAND_PASSWORD"),
)
REFUSES_PASSWORD = b"R\0\0\0\x08\0\0\0\x03"  # PostgreSQL: send me the password in clear text


class Listener:
    """A host of a stranger's: it keeps every byte, and asks PostgreSQL's clients for a password."""

    def __init__(self) -> None:
        self.heard = b""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(line,), daemon=True).start()

    def _talk(self, line: socket.socket) -> None:
        with line:
            line.settimeout(2)
            while piece := line.recv(65536):
                self.heard += piece
                if piece[4:8] in (b"\x04\xd2\x16\x2f", b"\x04\xd2\x16\x30"):  # TLS, GSS: no
                    line.sendall(b"N")
                elif piece[4:6] == b"\0\3":  # the beginning of a session
                    line.sendall(REFUSES_PASSWORD)
                else:
                    answer = b"HTTP/1.1 401 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    line.sendall(answer if b"HTTP/1.1" in piece else b"")
                    return

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def stranger() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A study, on a machine with secrets, whose operator has not trusted anything."""
    for name in TAKEN:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    marked_study(tmp_path / "study", pairs=2).close()
    return tmp_path / "study"


def declare(folder: Path, text: str, stranger: Listener) -> None:
    file, text = folder / "study.toml", text.replace("PORT", str(stranger.port))
    settings = file.read_text("utf-8")
    if text.startswith("store"):
        settings = text + "\n" + settings.replace('store = "study.db"', "")
    else:
        settings += "\n" + text
    file.write_text(settings, "utf-8")


STORE = 'store = "postgresql://u:${ANTHROPIC_API_KEY}@127.0.0.1:PORT/x"'
VERBS = (
    *("report", "progress", "doctor", "quality", "annotate", "store upgrade"),
    "gate --rubric hedging --grader baseline:lexical --require cohen_kappa>0",
    "export --out ratings.csv",
    "backup backup.zip",
    "extend --pairs 1",
    "invite --count 1",
    "grade --grader baseline:lexical",
    "grade --grader baseline:lexical --dry-run",
    "store copy --to other.db",
)


@pytest.mark.usefixtures("here")
def test_no_verb_sends_a_secret_to_a_strangers_database(folder, stranger, run) -> None:
    declare(folder, STORE, stranger)
    for words in VERBS:
        verb, dashes, options = words.partition(" --")
        if words.startswith("backup"):
            verb, options = "backup", "backup.zip"
        done = run(*verb.split(), folder, *f"{dashes}{options}".split())
        said = done.stdout + done.stderr
        assert done.returncode == 2, words
        assert stranger.heard == b"", words
        assert "study.toml: store takes ANTHROPIC_API_KEY" in said, words
        assert f"run `evenhand doctor {folder} --trust`" in said, words
        assert SECRET not in said, words


LAB = '[providers.lab]\nbase_url = "http://127.0.0.1:PORT/v1"\n'
OPENAI = LAB.replace(".lab", ".openai")
CLAUDE = LAB.replace(".lab", ".anthropic")
SENT = {  # declaration, grader ("": the store), key and variable in the refusal
    "store's user": ('store = "postgresql://${MY_KEY}@127.0.0.1:PORT/x"', "", "store", "MY_KEY"),
    "store's database": ('store = "postgresql://u:p@127.0.0.1:PORT/${MY_KEY}"', "", "store",
        "MY_KEY"),
    "password as a parameter": ('store = "postgresql://u@127.0.0.1:PORT/x?password=${MY_KEY}"', "",
        "store", "MY_KEY"),
    "evenhand's own password": ('store = "postgresql://u:${EVENHAND_PASSWORD}@127.0.0.1:PORT/x"',
        "", "store", "EVENHAND_PASSWORD"),
    "libpq's own": ('store = "postgresql://u@127.0.0.1:PORT/x"', "", "store", "PGPASSWORD"),
    "key_env": (LAB + 'key_env = "MY_KEY"', "lab:m", "[providers.lab] key_env", "MY_KEY"),
    "a provider's key elsewhere": (OPENAI + 'key_env = "OPENAI_API_KEY"', "openai:m",
        "[providers.openai] key_env", "OPENAI_API_KEY"),
    "Claude's key elsewhere": (CLAUDE + 'key_env = "ANTHROPIC_API_KEY"', "anthropic:m",
        "[providers.anthropic] key_env", "ANTHROPIC_API_KEY"),
    "a header": (OPENAI + '[providers.openai.headers]\nx = "a ${AWS_SECRET_ACCESS_KEY}"',
        "openai:m", "[providers.openai] headers.x", "AWS_SECRET_ACCESS_KEY"),
    "a path": (LAB.replace("v1", "${MY_KEY}"), "lab:m", "[providers.lab] base_url", "MY_KEY"),
}  # fmt: skip
QUICK = ("libpq's own", "key_env", "a header")


@pytest.mark.parametrize(
    "way", [way if way in QUICK else pytest.param(way, marks=pytest.mark.slow) for way in SENT]
)
def test_whatever_names_a_variable_is_refused_until_it_is_trusted_and_again_once_it_changes(
    way, folder, stranger, monkeypatch, run
):
    text, grader, key, variable = SENT[way]
    monkeypatch.setenv("PGPASSWORD", SECRET)
    declare(folder, text, stranger)
    verb = ["grade", folder, "--grader", grader] if grader else ["progress", folder]

    def refused() -> None:
        heard = stranger.heard
        said = run.refused(*verb)
        assert f"study.toml: {key} takes {variable} from this machine" in said
        assert SECRET not in said
        assert stranger.heard == heard

    refused()
    for trusted in ([*verb, "--trust"], verb):  # it is remembered
        said = " ".join(run(*trusted).stderr.split())
        assert (f"Trusted in {folder}: " in said) == ("--trust" in trusted)
        assert SECRET.encode() in stranger.heard
        stranger.heard = b""
    assert not [*folder.rglob("*trust*")]
    changed = (folder / "study.toml").read_text("utf-8").replace("127.0.0.1", "localhost")
    (folder / "study.toml").write_text(changed, "utf-8")
    refused()


AFAR = '[providers.lab]\nbase_url = "http://evil.example.invalid'


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ('/v1"\nkey_env = "EVENHAND_KEY"', "_KEY"),
        ('/v1"', "KEY_EVIL_EXAMPLE_INVALID"),
        ('"\n[providers.lab.headers]\nx = "${EVENHAND_K}"', "EVENHAND_K"),
        ('/${EVENHAND_K}"', "EVENHAND_K"),
    ],
)
def test_no_secret_goes_over_plain_http_to_another_machine(
    text, variable, folder, stranger, monkeypatch, run
):
    for name in ("EVENHAND_KEY", "EVENHAND_K", "KEY_EVIL_EXAMPLE_INVALID"):
        monkeypatch.setenv(name, SECRET)
    declare(folder, AFAR + text, stranger)
    said = run.refused("grade", folder, "--grader", "lab:m")
    assert "over plain http" in said
    assert variable in said


@pytest.mark.parametrize("provider", ["openai", "anthropic", "bedrock", "foundry"])
def test_what_an_sdk_finds_by_itself_stays_here(provider, folder, stranger, monkeypatch, run):
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_CUSTOM_HEADERS", f"x-mine: {SECRET}")
    for name in ("OPENAI_PROJECT_ID", "AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_FOUNDRY_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    declare(folder, LAB.replace(".lab", f".{provider}"), stranger)
    assert run("grade", folder, "--grader", f"{provider}:m").returncode == 2
    assert b"HTTP/1.1" in stranger.heard
    assert SECRET.encode() not in stranger.heard


def test_a_file_may_name_what_is_meant_for_it(folder, stranger, monkeypatch, run):
    """Variables of evenhand's prefix; and the operator's own word, in the environment."""
    monkeypatch.setenv("EVENHAND_LAB", SECRET)
    declare(folder, LAB + 'key_env = "EVENHAND_LAB"', stranger)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{stranger.port}/v1")
    for grader in ("lab:m", "openai:m", "openai:m2"):
        if grader == "openai:m2":
            declare(folder, '[providers.openai]\nkey_env = "OPENAI_API_KEY"\n', stranger)
        run("grade", folder, "--grader", grader)
        assert SECRET.encode() in stranger.heard, grader
        stranger.heard = b""


def test_a_login_by_an_organisation_is_asked_for_as_well(folder, stranger, capfd):
    at = f"http://127.0.0.1:{stranger.port}"
    settings = {
        "server_metadata_url": f"{at}/.well-known/openid-configuration",
        "client_id": "c",
        "client_secret": "${AWS_SECRET_ACCESS_KEY}",
        "address": "http://127.0.0.1:8501",
    }
    change_config(folder, {"oidc": settings})
    assert main(["annotate", str(folder)]) == 2
    assert "[oidc] client_secret takes AWS_SECRET_ACCESS_KEY" in "".join(capfd.readouterr())
    assert main(["progress", str(folder), "--trust"]) == 0
    oidc = read_config(folder).oidc
    assert oidc is not None
    pytest.importorskip("authlib")
    assert client_secret(oidc) == SECRET
    change_config(folder, {"oidc": {"leads": ["ada@example.org"]}})  # sends nothing
    assert client_secret(read_config(folder).oidc) == SECRET  # type: ignore[arg-type]
    change_config(folder, {"oidc": {"client_id": "other"}})
    with pytest.raises(InputError, match="AWS_SECRET_ACCESS_KEY"):
        client_secret(read_config(folder).oidc)  # type: ignore[arg-type]


@pytest.mark.slow
def test_trust_is_for_one_folder(folder: Path, stranger: Listener, tmp_path: Path, run) -> None:
    declare(folder, STORE, stranger)
    shutil.copytree(folder, tmp_path / "other")
    run("doctor", folder, "--trust")
    for place, heard in ((tmp_path / "other", False), (folder, True)):
        stranger.heard = b""
        python("-m", "evenhand", "progress", place)
        assert (SECRET.encode() in stranger.heard) is heard


@pytest.mark.parametrize(
    "text",
    [
        LAB + 'key_env = "EVENHAND_LAB"\n[prices.x]\ninput = 1\noutput = 1\n' + OPENAI,
        '[providers]\nlab = { base_url = "http://evil.example.invalid" }\n',
        '[oidc]\nserver_metadata_url = "https://h/.well-known/openid-configuration"\n'
        'client_id = "c"\nclient_secret = "${EVENHAND_X}"\naddress = "https://a"\n',
    ],
)
def test_nothing_of_a_backup_is_sent_anywhere(text, folder, stranger, tmp_path, run):
    declare(folder, text, stranger)
    there, again = read_config(folder), tmp_path / "again"
    run.ok("backup", folder, tmp_path / "b.zip")
    restored = run("restore", tmp_path / "b.zip", again)
    assert restored.returncode == 0
    names = [f"[providers.{name}]" for name in there.providers] + ["[oidc]"] * bool(there.oidc)
    assert all(name in restored.stdout + restored.stderr for name in names)
    config = read_config(again)
    assert (config.providers, config.oidc, config.store) == ({}, None, "study.db")
    # Its lead takes the comments' marks away again.
    kept, heading, comments = (again / "study.toml").read_text("utf-8").partition("# The backup's")
    assert heading
    lines = [line.removeprefix("#").removeprefix(" ") for line in comments.splitlines()[1:]]
    assert tomllib.loads(kept + "\n".join(lines)) == tomllib.loads(
        (folder / "study.toml").read_text("utf-8")
    )


OUTSIDE = {
    "published": 'published = "../../outside.toml"',
    "published, absolute": 'published = "OUTSIDE"',
    "a link": 'published = "link.toml"',
    "a rubric": "",
    "store": 'store = "../outside.db"',
    "store as an address": 'store = "sqlite:///OUTSIDE"',
    "training": '[training]\nfile = "../../outside.toml"',
    "attention": '[attention]\nfile = "OUTSIDE"',
}


@pytest.mark.parametrize("way", OUTSIDE)
def test_no_setting_names_a_file_outside_the_folder(way, folder, tmp_path, run, stranger):
    outside = tmp_path / "outside.toml"
    outside.write_text('mark = "OUTSIDE0MARK"\n', "utf-8")
    (folder / ("link.toml" if OUTSIDE[way] else "rubrics/link.toml")).symlink_to(outside)
    text = OUTSIDE[way].replace('"OUTSIDE', f'"{outside}').replace("///OUTSIDE", f"///{outside}")
    file = folder / "study.toml"
    settings = file.read_text("utf-8")
    if "store" in text:
        settings = settings.replace('store = "study.db"\n', "")
    file.write_text(f"{settings}\n{text}" if text[:1] == "[" else f"{text}\n{settings}", "utf-8")
    said = run.refused("report", folder)
    assert "which is not in the study's folder" in said
    assert "OUTSIDE0MARK" not in said
