"""How requests travel, and what becomes of grades that could not be written."""

import base64
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.store.store import Store
from harness.replies import Call, Reply, answer
from tests.graders.bench import Bench
from tests.graders.grading import grade, rows

_CONNECTIONS = Path("/proc/net/tcp")


def test_an_address_may_hold_credentials(bench: Bench, monkeypatch, grader: str) -> None:
    def echoing(call: Call) -> Reply:
        """The right answer, and beside it the credentials as they came and in clear."""
        sent = call.headers["authorization"].removeprefix("Basic ")
        model = f"{sent} {base64.b64decode(sent).decode()}"
        return Reply(body=answer(call).body | {"model": model})

    bench.script = echoing
    address = bench.root.replace("://", "://lab:secret-of-the-lab@")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-of-nobody")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
    study = bench.study(pairs=1)
    summary = grade(study, [bench.claude if grader == bench.claude else "openai:m"])
    assert (summary.scored, summary.stopped) == (2, ())
    assert {call.headers["authorization"][:6] for call in bench.calls} == {"Basic "}
    study.close()
    kept = (study.folder / "study.db").read_bytes()
    assert b"secret-of-the-lab" not in kept
    assert base64.b64encode(b"lab:secret-of-the-lab") not in kept


@pytest.mark.slow
@pytest.mark.skipif(not _CONNECTIONS.exists(), reason="only Linux tells of its connections here")
def test_connections_show_life_while_an_answer_is_awaited(bench: Bench) -> None:
    timers: set[str] = set()
    port = f":{int(bench.root.rpartition(':')[2]):04X}"

    def script(call: Call) -> Reply:
        time.sleep(0.2)  # until what was sent is acknowledged, another timer runs
        fields = (line.split() for line in _CONNECTIONS.read_text("ascii").splitlines()[1:])
        established = [each for each in fields if each[2].endswith(port) and each[3] == "01"]
        timers.update(each[5].partition(":")[0] for each in established)
        return answer(call)

    bench.script = script
    assert grade(bench.study(pairs=1), [bench.claude, bench.openai]).scored == 4
    assert timers == {"02"}  # a keep-alive timer


def test_no_host_and_a_socks_proxy_are_refused(bench: Bench, monkeypatch) -> None:
    study = bench.study(pairs=1)
    (why,) = grade(study, ["openai:m@http://my..server/v1"]).stopped
    assert "no reply from http://my..server/v1" in why
    monkeypatch.setenv("ALL_PROXY", "socks5://lab:secret@127.0.0.1:1")
    with pytest.raises(InputError, match="SOCKS proxy") as raised:
        grade(study, [bench.openai])
    assert "secret" not in str(raised.value)
    assert bench.calls == []


@pytest.mark.slow
def test_grades_that_a_failed_write_left_are_written_at_the_end(bench: Bench, monkeypatch) -> None:
    write, writes = Store.add_grades, []

    def fails_once(store: Store, attempts: object) -> None:
        writes.append(attempts)
        if len(writes) == 2:
            raise sa.exc.OperationalError("insert", {}, Exception("database is locked"))
        write(store, attempts)

    monkeypatch.setattr(Store, "add_grades", fails_once)
    study = bench.study(pairs=20)
    with pytest.raises(sa.exc.OperationalError):
        grade(study, [bench.openai], concurrency=8)
    kept = {row["unit_id"] for row in rows(study)}
    assert kept
    monkeypatch.undo()
    assert len(bench.calls) - len(kept) < 8  # those that were under way when the run ended
    assert grade(study, [bench.openai], concurrency=8).scored == 40 - len(kept)
