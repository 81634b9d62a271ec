"""Ratings in the formats of other tools: one file and one function for each."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from evenhand.errors import InputError
from evenhand.exchange.writers.material import Made, Material, Scale
from evenhand.exchange.writers.tools import (
    argilla,
    hugging_face,
    inspect_scores,
    label_studio,
    langfuse,
    langsmith,
    mlflow,
    phoenix,
    wide,
)
from evenhand.study.tables.files import FOLDER, atomic_write, new_folder

__all__ = ["FORMATS", "Format", "Made", "Material", "Scale", "check_out", "format_of", "save"]


class Format(NamedTuple):
    """A format to write: `tool` and `rows` are the words for the tool and its records in sentences;
    a format without a `suffix` is a folder.
    """

    tool: str
    rows: str
    suffix: str
    make: Callable[[Material], Made]


FORMATS = {
    "argilla": Format("Argilla", "suggestions", "", argilla),
    "hugging-face": Format("Hugging Face datasets", "ratings", "", hugging_face),
    "inspect": Format("Inspect", "precomputed scores", ".json", inspect_scores),
    "label-studio": Format("Label Studio", "predictions", ".json", label_studio),
    "langfuse": Format("Langfuse", "scores", ".jsonl", langfuse),
    "langsmith": Format("LangSmith", "feedback", ".jsonl", langsmith),
    "mlflow": Format("MLflow", "assessments", ".jsonl", mlflow),
    "phoenix": Format("Phoenix", "span annotations", ".jsonl", phoenix),
    "wide": Format("R and spreadsheets", "rows", ".csv", wide),
}
"""Formats by the name for `evenhand export --format`."""


def format_of(name: str) -> Format:
    """The format of a name. Raises InputError that suggests the nearest where there is none."""
    from difflib import get_close_matches

    plain = name.casefold().replace("_", "-")
    for known, how in FORMATS.items():
        if plain.replace("-", "") == known.replace("-", ""):
            return how
    near = get_close_matches(plain, FORMATS, n=1, cutoff=0.5)
    meant = f" (did you mean {near[0]}?)" if near else ""
    raise InputError(f"--format is {name!r}{meant}; write one of {', '.join(FORMATS)}")


def check_out(out: Path, how: Format) -> None:
    """Raises InputError where a format cannot go to this path."""
    if how.suffix:
        if out.suffix.casefold() != how.suffix:
            raise InputError(f"{out.name}: the extension must be {how.suffix} for {how.tool}")
    elif out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise InputError(f"{out} is there already; name a new folder for {how.tool}")


def save(made: Made, out: Path, how: Format) -> list[Path]:
    """Write the files of a writer, readable by the owner only; a folder whole or not at all."""
    if how.suffix:
        paths = {out.with_name(out.stem + end) if end else out: c for end, c in made.files.items()}
        for path, content in paths.items():
            atomic_write(path, content)
        return list(paths)
    _write_folder(out, made.files)
    return [out]


def _write_folder(out: Path, files: Mapping[str, bytes]) -> None:
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent}; make it first")
    temporary = out.with_name(f".{out.name}.{secrets.token_hex(4)}")
    temporary.mkdir(mode=FOLDER)
    try:
        for name, content in files.items():
            new_folder((temporary / name).parent)
            atomic_write(temporary / name, content)
        os.replace(temporary, out)  # an empty folder gives way
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
