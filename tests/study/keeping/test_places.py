"""Backups in a bucket of a real object store on loopback: whole, tried, and the oldest removed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.study.keeping import places
from evenhand.study.keeping.backup import keep_backups, restore_study
from evenhand.study.keeping.places import Bucket
from evenhand.study.store.meta import hours_since_backup
from harness.object_store import BUCKET, KEY, SECRET, ObjectStore, boto3_folder, object_store
from harness.slow_line import SlowLine
from tests.study.keeping.test_kept import nights

__all__ = ["nights"]

TO = f"s3://{BUCKET}/evenhand"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """boto3, an environment in which AWS's tools find nothing, and an object store there."""
    home = tmp_path_factory.mktemp("object-store")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(boto3_folder())
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, str(home / "none"))
        with object_store(home) as store:
            yield store


@pytest.fixture
def settings(own_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """To change the environment in which the store is reached."""
    return monkeypatch


@pytest.fixture
def credentials(settings: pytest.MonkeyPatch) -> None:
    settings.setenv("AWS_ACCESS_KEY_ID", KEY)
    settings.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture
def store(own_store: ObjectStore, settings: pytest.MonkeyPatch) -> ObjectStore:
    """The object store, empty; the environment names it."""
    own_store.clear()
    settings.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{own_store.port}")
    return own_store


@pytest.mark.usefixtures("credentials", "nights")
def test_the_latest_are_kept_and_others_are_left(
    store: ObjectStore, labelled, tmp_path: Path
) -> None:
    study = labelled()
    others = {"evenhand/notes-20200101-000000.zip", "evenhand/deep/notes.txt", "evenhandmore"}
    for key in others:
        store.client.put_object(Bucket=BUCKET, Key=key, Body=b"mine")
    assert hours_since_backup(study.store) is None
    kept = [keep_backups(study.folder, TO, 3, verify=True) for _ in range(5)]
    assert [each.number for each in kept] == [1, 2, 3, 3, 3]
    assert set(store.keys()) == others | {f"evenhand/{each.name}" for each in kept[-3:]}
    assert kept[-1].contents.labels == 14
    assert kept[-1].file == f"{TO}/{kept[-1].name}"
    assert restore_study(kept[-1].file, tmp_path / "again") == kept[-1].contents
    assert (hours_since_backup(study.store) or 0) < 1
    with pytest.raises(InputError, match="there is no such file in s3://backups"):
        restore_study(kept[0].file, tmp_path / "never")
    assert not (tmp_path / "never").exists()


@pytest.mark.usefixtures("credentials")
def test_credentials_are_in_no_output_and_no_file(
    store: ObjectStore, labelled, tmp_path: Path
) -> None:
    """As from cron, in a process of its own; and with an address that echoes them."""
    study = labelled()
    study.close()
    done = command("backup", study.folder, "--to", f"{TO}/", "--keep", "2", "--verify")
    assert done.returncode == 0, done.stderr
    (key,) = store.keys()
    assert f"Wrote s3://backups/{key}, restored it on trial" in done.stdout.replace("\n", " ")
    store.refuse_all()
    refused = command("backup", study.folder, "--to", TO)
    wrong = command("backup", study.folder, "--to", f"s3://{KEY}:{SECRET}@{BUCKET}/evenhand")
    for each in (refused, wrong):
        assert (each.returncode, each.stderr.count("\n")) == (2, 1), each.stderr
    assert "refuses the credentials (InvalidAccessKeyId)" in refused.stderr
    assert "write s3://BUCKET/FOLDER" in wrong.stderr
    said = "".join(each.stdout + each.stderr for each in (done, refused, wrong))
    files = [path for path in study.folder.rglob("*") if path.is_file()]
    kept = b"".join(path.read_bytes() for path in files) + said.encode()
    assert KEY.encode() not in kept
    assert SECRET.encode() not in kept


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "evenhand", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        timeout=120,
    )


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(boto3_folder())}


@pytest.mark.usefixtures("credentials")
def test_what_is_missing_is_said_before_a_backup_is_made(
    store: ObjectStore, labelled, settings: pytest.MonkeyPatch
) -> None:
    study = labelled()

    def refuses(to: str, says: str) -> None:
        with pytest.raises(InputError, match=says) as refused:
            keep_backups(study.folder, to, 14)
        assert KEY not in str(refused.value)
        assert SECRET not in str(refused.value)

    settings.setattr("evenhand.study.keeping.backup.backup_of", None)
    refuses("s3://absent/evenhand", "there is no bucket absent; make it first")
    refuses("s3://", "cannot be read; write s3://BUCKET/FOLDER")
    with settings.context() as here:
        here.setenv("AWS_PROFILE", "absent")
        refuses(TO, "there are no credentials for s3://backups that can be used")
    with settings.context() as here:
        here.delenv("AWS_SECRET_ACCESS_KEY")
        refuses(TO, "there are no credentials for s3://backups that can be used")
    with settings.context() as here:
        here.delenv("AWS_ACCESS_KEY_ID")
        here.delenv("AWS_SECRET_ACCESS_KEY")
        refuses(TO, "there are no credentials for s3://backups that can be used")
    with settings.context() as here:
        here.setenv("AWS_ENDPOINT_URL", f"http://{KEY}:{SECRET}@127.0.0.1:1")
        refuses(TO, "does not answer; look at the network, and at AWS_ENDPOINT_URL")
        here.setenv("AWS_ENDPOINT_URL", f"{KEY}:{SECRET}")
        refuses(TO, "the settings for s3://backups cannot be used")
    with settings.context() as here:
        here.setitem(sys.modules, "boto3", None)  # as where it is not installed
        refuses(TO, r'reached with boto3: pip install "evenhand\[s3\]"')
    assert store.keys() == []
    assert hours_since_backup(study.store) is None


@pytest.mark.usefixtures("credentials", "nights")
def test_what_the_store_lost_a_part_of_is_removed_and_counts_for_nothing(
    store: ObjectStore, labelled, settings: pytest.MonkeyPatch
) -> None:
    study = labelled()

    def put_half(self: Bucket, file: Path) -> None:
        content = file.read_bytes()
        key = f"evenhand/{file.name}"
        store.client.put_object(Bucket=BUCKET, Key=key, Body=content[: len(content) // 2])

    with settings.context() as here:
        here.setattr(Bucket, "put", put_half)
        with pytest.raises(InputError, match="could not be restored and is removed"):
            keep_backups(study.folder, TO, 1, verify=True)
    assert store.keys() == []
    assert hours_since_backup(study.store) is None
    assert keep_backups(study.folder, TO, 1, verify=True).number == 1


@pytest.mark.usefixtures("credentials")
def test_an_upload_that_is_killed_half_way_is_no_backup(
    store: ObjectStore, labelled, settings: pytest.MonkeyPatch
) -> None:
    """Large enough to go in parts, over a line so slow that it is killed between them."""
    study = labelled()
    (study.folder / "scans.bin").write_bytes(os.urandom(20_000_000))
    with SlowLine(store.port, milliseconds=300) as line:
        settings.setenv("AWS_ENDPOINT_URL", line.url)
        words = ["backup", str(study.folder), "--to", TO]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "evenhand", *words], env=environment()
        )
        end = time.monotonic() + 60
        while not store.uploads():
            assert time.monotonic() < end
            time.sleep(0.02)
        process.kill()
        process.wait()
    assert store.keys() == []
    assert hours_since_backup(study.store) is None
    settings.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{store.port}")
    assert keep_backups(study.folder, TO, 1, verify=True).number == 1
    assert len(store.keys()) == 1


@pytest.mark.usefixtures("credentials")
def test_a_store_that_hangs_ends_in_a_sentence(
    store: ObjectStore, labelled, settings: pytest.MonkeyPatch
) -> None:
    study = labelled()
    settings.setattr(places, "_SILENT", 1.0)
    put = Bucket.put

    def hang(self: Bucket, file: Path) -> None:
        store.freeze()
        put(self, file)

    settings.setattr(Bucket, "put", hang)
    begun = time.monotonic()
    with pytest.raises(InputError, match="the object store of s3://backups does not answer"):
        keep_backups(study.folder, TO, 14, verify=True)
    assert time.monotonic() - begun < 15
    store.thaw()
    assert hours_since_backup(study.store) is None
