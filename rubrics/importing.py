"""Rubrics out of a Python file of prompt strings: read by `ast`, never run.

The form is the one in which prompts for model graders are usually published: a module-level string
with placeholders in braces, ending in a list under `Options:`, one line `(KEY) name - description`
each.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evenhand.errors import InputError
from evenhand.rubrics.checking import contradictions
from evenhand.rubrics.loading import dump_rubric, faults_of, load_rubric, shipped_rubrics
from evenhand.rubrics.model import Rubric
from evenhand.rubrics.rendering import TEXT_VARIABLES, placeholders

_OPTIONS = re.compile(r"^[ \t]*Options?:[ \t]*$", re.MULTILINE | re.IGNORECASE)
_OPTION = re.compile(r"^\s*[-*]?\s*(?:\(([\w+-]+)\)|([\w+-]+)[).:])\s+(\S.*)$")
_ALIASES = {"conversation": "prompt", "question": "prompt", "answer": "response"}
_SUFFIX = re.compile(r"_?(PROMPT|TEMPLATE|GRADER|RUBRIC|INSTRUCTIONS)$", re.IGNORECASE)


@dataclass(frozen=True)
class Imported:
    """A rubric, with notes for its reader on how it was derived."""

    rubric: Rubric
    remarks: tuple[str, ...]


def import_prompts(
    path: str | Path, affirmative: Mapping[str, Sequence[str]] | None = None
) -> list[Imported]:
    """Import every prompt with an `Options:` list in a Python file as a rubric.

    `affirmative` names for each rubric the options that count as affirmative; where it names none,
    a shipped rubric of the same name and options provides its own. Raises InputError where the file
    is not Python, holds no such prompt, or a prompt that cannot be a rubric.
    """
    path = Path(path)
    wanted = dict(affirmative or {})
    found = []
    for variable, text in _prompt_strings(path):
        if _OPTIONS.search(text):
            found.append(_rubric(variable, text, wanted, path.name))
    if not found:
        raise InputError(
            f"{path.name} has no module-level string with an `Options:` list, so no rubric"
        )
    names = [item.rubric.name for item in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path.name} has two prompts that make a rubric {name!r}; rename one")
    if wanted:
        raise InputError(
            f"--affirmative names {next(iter(wanted))!r}; the file has {', '.join(names)}"
        )
    return found


def write_rubrics(imported: Sequence[Imported], folder: Path) -> list[Path]:
    """Write each rubric to NAME.toml in the folder; write nothing if one of the files exists
    already.

    Raises InputError then, and where there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; make it first")
    paths = [folder / f"{item.rubric.name}.toml" for item in imported]
    for path in paths:
        if path.exists():
            raise InputError(f"{path} is there already; move it away or choose another --out")
    for item, path in zip(imported, paths, strict=True):
        path.write_text(dump_rubric(item.rubric), "utf-8")
    return paths


def _prompt_strings(path: Path) -> Iterator[tuple[str, str]]:
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        module = ast.parse(path.read_bytes(), filename=path.name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{path.name} is not a Python file that can be read: {error}") from None
    for node in module.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        try:
            text = _literal(value)
        except RecursionError:
            continue  # no prompt is a sum of thousands of strings
        if isinstance(target, ast.Name) and text is not None:
            yield target.id, text


def _literal(node: ast.expr) -> str | None:
    """The text of a string expression made of constants alone, else None."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _literal(node.left), _literal(node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("strip", "lstrip", "rstrip") and not node.args:
            inner = _literal(node.func.value)
            return None if inner is None else inner.strip()
        if node.func.attr == "dedent" and len(node.args) == 1:
            inner = _literal(node.args[0])
            return None if inner is None else textwrap.dedent(inner)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dedent":
        inner = _literal(node.args[0]) if len(node.args) == 1 else None
        return None if inner is None else textwrap.dedent(inner)
    return None


def _rubric(variable: str, text: str, wanted: dict[str, Sequence[str]], file: str) -> Imported:
    name = _SUFFIX.sub("", variable).strip("_").lower().replace("_", "-") or "rubric"
    for old, new in _ALIASES.items():
        text = text.replace("{" + old + "}", "{" + new + "}")
    *_, last = _OPTIONS.finditer(text)
    options, after = _read_options(text[last.end() :])
    body = text[: last.start()] + "\n\n" + after
    shown = [found for found in re.findall(r"\{(\w+)\}", body) if found in TEXT_VARIABLES]
    remarks: list[str] = []
    instructions = _without_material(body, remarks)
    inline = sorted(placeholders(instructions))
    fields: dict[str, Any] = {
        "name": name,
        "title": name.replace("-", " ").capitalize(),
        "unit": "pair" if any(item.endswith(("_a", "_b")) for item in shown) else "response",
        "level": "ordinal" if all(o["key"].isdigit() for o in options) else "nominal",
        "question": _question(instructions),
        "instructions": instructions,
        "variables": [*dict.fromkeys(shown), *inline],
        "options": options,
    }
    _swap_sides(fields, remarks)
    _settle_affirmative(fields, wanted, remarks)
    fields["prompt"] = {"template": _template(text, fields["variables"], f"{file}: {variable}")}
    try:
        rubric = Rubric.model_validate(fields)
        return Imported(rubric, (*remarks, *contradictions(rubric)))
    except ValidationError as error:
        raise InputError(
            f"{file}: {variable} cannot become a rubric: {faults_of(error)[0]}"
        ) from None


def _template(text: str, variables: Sequence[str], what: str) -> str:
    """The prompt as the file's own code fills it: doubled braces become single ones.

    Raises InputError where a doubled brace would then read as one of the variables.
    """
    template = text.replace("{{", "{").replace("}}", "}")
    escaped = re.findall(r"\{\{(\w+)\}\}", text)
    if taken := [name for name in escaped if name in variables]:
        raise InputError(f"{what} holds {{{{{taken[0]}}}}}, which would be filled in; rename it")
    return template


def _read_options(text: str) -> tuple[list[dict[str, Any]], str]:
    """The options, and the text behind the list."""
    options: list[dict[str, Any]] = []
    lines = text.strip("\n").split("\n")
    for number, line in enumerate(lines):
        match = _OPTION.match(line)
        if match:
            name, description = _name_and_description(match[3].strip())
            options.append({"key": match[1] or match[2], "name": name, "description": description})
        elif options and line.startswith((" ", "\t")) and line.strip():
            last = options[-1]
            last["description"] = f"{last['description']} {line.strip()}".strip()
        elif line.strip():
            return options, "\n".join(lines[number:])
    return options, ""


def _name_and_description(text: str) -> tuple[str, str]:
    """A short name in front of a dash or colon, else the whole text as the name."""
    parts = re.split(r"\s+[-\u2013\u2014]\s+|:\s+", text, maxsplit=1)
    if len(parts) == 2 and len(parts[0]) <= 60:
        return parts[0], parts[1]
    return text, ""


def _without_material(text: str, remarks: list[str]) -> str:
    """The instructions alone: without lines that hold prompts or responses, and without tags."""
    names = "|".join(TEXT_VARIABLES)
    variable = re.compile(rf"\{{(?:{names})\}}")
    inside = r"(?:(?!</?\w)[\s\S])*?"
    text = re.sub(rf"<(\w+)[^<>]*>{inside}{variable.pattern}{inside}</\1>", "", text)
    kept = []
    for line in text.split("\n"):
        if not variable.search(line):
            kept.append(line)
        elif len(re.findall(r"[A-Za-z]{2,}", variable.sub("", line))) > 2:
            remarks.append(f"left out, as it held the material: {line.strip()!r}")
    # Doubled braces become single ones; a space keeps them from reading as a variable.
    text = "\n".join(kept).replace("{{", "{ ").replace("}}", " }")
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _question(instructions: str) -> str:
    """The last line that asks a question, to show where people choose."""
    questions = re.findall(r"[^.?!\n]*\?", instructions)
    return questions[-1].strip() if questions else "Which option fits best?"


def _swap_sides(fields: dict[str, Any], remarks: list[str]) -> None:
    by_key = {option["key"]: option for option in fields["options"]}
    if fields["unit"] == "pair" and {"A", "B"} <= set(by_key):
        by_key["A"] |= {"swapped": "B", "favours": "a"}
        by_key["B"] |= {"swapped": "A", "favours": "b"}
        remarks.append(
            "options A and B change places when the sides do, and favour one each; edit `swapped` "
            "and `favours` if not"
        )


def _settle_affirmative(
    fields: dict[str, Any], wanted: dict[str, Sequence[str]], remarks: list[str]
) -> None:
    name = fields["name"]
    keys = tuple(option["key"] for option in fields["options"])
    if name in wanted:
        fields["affirmative"] = tuple(wanted.pop(name))
    elif name in shipped_rubrics() and load_rubric(name).categories == keys:
        fields["affirmative"] = load_rubric(name).affirmative
        remarks.append(f"affirmative options {', '.join(fields['affirmative'])}, as in {name}")
    else:
        remarks.append(
            "no affirmative options, so no binary verdict; set `affirmative` in the file"
        )
