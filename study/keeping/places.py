"""Places that backups are kept in: a folder, or a bucket of an object store that speaks S3.

A backup is in either place whole or not at all. A bucket is reached with boto3, which finds
credentials, region and endpoint as AWS's own tools do; no message repeats any of them.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.errors import InputError

_SCHEME = "s3://"
_BUCKET = re.compile(r"s3://([A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9])(?:/(.*))?")
_REACH, _SILENT = 10.0, 30.0
"""Seconds in which an object store has to take a connection, and to say the next word."""
_TRIES = 2
_REFUSED = (401, 403)
_EXPIRED = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired"}  # S3 says 400 of them


def is_in_bucket(place: str | Path) -> bool:
    """Return True if a place is an address of an object store and not a path."""
    return str(place).startswith(_SCHEME)


def place_of(address: str | Path) -> Folder | Bucket:
    """Return the place at an address. Raises InputError where there is none, or where it cannot be
    reached.
    """
    return Bucket(str(address)) if is_in_bucket(address) else Folder(Path(address))


class Folder:
    """A folder: a backup is written to it at once."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise InputError(f"there is no folder {path}; make it first")
        self._path = path

    def names(self) -> list[str]:
        """List the files there."""
        return [each.name for each in self._path.iterdir()]

    def address(self, name: str) -> str:
        """Return a file's path."""
        return str(self._path / name)

    @contextmanager
    def work(self) -> Iterator[Path]:
        """Give the folder where a new backup is to be written."""
        yield self._path

    def put(self, file: Path) -> None:
        """Keep a file that was written in `work`."""

    def get(self, name: str, file: Path) -> None:
        """Bring what is kept under a name to the file that it came from."""

    def remove(self, name: str) -> None:
        (self._path / name).unlink()


class Bucket:
    """A folder in a bucket: a backup is made on this machine, and uploaded once it is whole."""

    def __init__(self, address: str) -> None:
        found = _BUCKET.fullmatch(address)
        if not found or not address.isprintable():  # what it is instead may hold a password
            raise InputError(
                "the object store's address cannot be read; write s3://BUCKET/FOLDER, and leave "
                "credentials to the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
            )
        try:
            import boto3
            from botocore.config import Config
        except ImportError:
            raise InputError(
                'object stores are reached with boto3: pip install "evenhand[s3]"'
            ) from None
        self._bucket, folder = found[1], (found[2] or "").strip("/")
        self._prefix = f"{folder}/" if folder else ""
        retries = {"mode": "standard", "total_max_attempts": _TRIES}
        config = Config(connect_timeout=_REACH, read_timeout=_SILENT, retries=retries)
        with self._told():
            # A session of its own: the library's keeps the credentials of its first use.
            self._client: Any = boto3.session.Session().client("s3", config=config)

    def names(self) -> list[str]:
        """List the files there; those in folders below are left out."""
        pages = self._client.get_paginator("list_objects_v2")
        with self._told():
            found = pages.paginate(Bucket=self._bucket, Prefix=self._prefix, Delimiter="/")
            keys = [each["Key"] for page in found for each in page.get("Contents", ())]
        return [key.removeprefix(self._prefix) for key in keys]

    def address(self, name: str) -> str:
        """Return a file's address."""
        return f"{_SCHEME}{self._bucket}/{self._prefix}{name}"

    @contextmanager
    def work(self) -> Iterator[Path]:
        """Give a temporary folder on this machine where a new backup is to be written."""
        self.names()  # else it would be made first, and refused then
        with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
            yield Path(folder)

    def put(self, file: Path) -> None:
        """Upload a file. Until all of it has arrived, there is nothing under its name."""
        with self._told(), file.open("rb") as content:
            self._client.upload_fileobj(content, self._bucket, self._prefix + file.name)

    def get(self, name: str, file: Path) -> None:
        """Download what is kept under a name."""
        with self._told(), file.open("wb") as out:
            found = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            shutil.copyfileobj(found["Body"], out)

    def remove(self, name: str) -> None:
        with self._told():
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise InputError in place of the library's errors, which may name keys and endpoints."""
        from botocore import exceptions

        silent = (exceptions.ConnectionError, exceptions.HTTPClientError)
        broken = (exceptions.IncompleteReadError, exceptions.FlexibleChecksumError)
        missing = (
            exceptions.NoCredentialsError,
            exceptions.PartialCredentialsError,
            exceptions.CredentialRetrievalError,
            exceptions.ProfileNotFound,
            exceptions.SSOError,
            exceptions.TokenRetrievalError,
        )
        place = f"{_SCHEME}{self._bucket}"
        try:
            yield
        except exceptions.ClientError as error:
            raise InputError(self._refusal(place, error.response)) from None
        except missing:
            raise InputError(
                f"there are no credentials for {place} that can be used; set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or a profile as AWS's own tools have it"
            ) from None
        except silent:
            raise InputError(
                f"the object store of {place} does not answer; look at the network, and at "
                "AWS_ENDPOINT_URL if it is not Amazon's"
            ) from None
        except broken:
            raise InputError(f"what came from {place} is not whole; run this again") from None
        except (exceptions.BotoCoreError, ValueError):
            raise InputError(
                f"the settings for {place} cannot be used; look at AWS_ENDPOINT_URL, AWS_REGION "
                "and the other AWS_ settings"
            ) from None

    def _refusal(self, place: str, response: Any) -> str:
        code = str(response.get("Error", {}).get("Code", ""))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        word = code if code.isalnum() and code.isascii() else "no reason"
        if code == "NoSuchBucket":
            return f"there is no bucket {self._bucket}; make it first"
        if code == "NoSuchKey":
            return f"there is no such file in {place}"
        if status in _REFUSED or code in _EXPIRED:
            return (
                f"{place} refuses the credentials ({word}); they must be valid, and allowed to "
                "list, read, write and remove there"
            )
        return f"the object store of {place} cannot do that now ({word})"
