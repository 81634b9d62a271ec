"""Measure the product's size against ceilings that only go down: `python -m harness.weight`.

The ceilings stand in weight.toml. Who lowers a figure lowers its ceiling with it (`--write`); what
is above one fails. Lines are those of Python files, links not followed.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.settings import settings_table
from evenhand.cli.main import Parser, build_parser

ROOT = Path(__file__).resolve().parents[1]
CEILINGS = ROOT / "weight.toml"
_ROOMS = ("analysis", "annotate_app", "evenhand", "exchange", "graders", "rubrics", "study")


def weights() -> dict[str, int]:
    """Return the figures by their names in weight.toml."""
    product, tests = _python_files(*_ROOMS), _python_files("tests")
    sources = [path.read_text("utf-8") for path in product]
    return {
        "product_lines": sum(source.count("\n") for source in sources),
        "product_files": len(product),
        "options": len({*_options(build_parser())} - {"--help"}),
        "settings": settings_table().count("\n") - 1,
        "statistics": _leaves(_table("analysis/statistics.toml"), depth=1),
        "texts": _leaves(_table("evenhand/texts.toml")),
        "test_lines": sum(path.read_text("utf-8").count("\n") for path in tests),
    }


def too_heavy(now: Mapping[str, int], ceilings: Mapping[str, int]) -> list[str]:
    """Return a sentence for each figure that is above its ceiling.

    >>> too_heavy({"options": 141, "texts": 9}, {"options": 140, "texts": 9})
    ['options: 141, at most 140']
    """
    return [
        f"{name}: {now[name]:,}, at most {most:,}"
        for name, most in ceilings.items()
        if now[name] > most
    ]


def _python_files(*folders: str) -> list[Path]:
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return [path for path in paths if path.resolve() == path]


def _options(parser: Parser) -> Iterator[str]:
    parser.declare()
    yield from parser.options
    for verb in parser.verbs.values():
        yield from _options(verb)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text("utf-8"))


def _leaves(table: Mapping[str, Any], depth: int = 99) -> int:
    if depth == 1:
        return len(table)
    return sum(_leaves(each, depth - 1) if isinstance(each, dict) else 1 for each in table.values())


def main(arguments: list[str]) -> int:
    """Print the figures with their ceilings; return 1 if one is above its ceiling."""
    now, ceilings = (
        weights(),
        tomllib.loads(CEILINGS.read_text("utf-8")) if CEILINGS.is_file() else {},
    )
    if arguments == ["--write"]:
        lower = {name: min(value, ceilings.get(name, value)) for name, value in now.items()}
        CEILINGS.write_text("".join(f"{name} = {most}\n" for name, most in lower.items()), "utf-8")
        return 0
    for name, value in now.items():
        print(f"{name:14}{value:8,}{ceilings[name]:8,}")
    faults = too_heavy(now, ceilings)
    print(
        "\n".join(
            [*faults, "Take something out; ceilings in weight.toml only go down."] if faults else []
        )
    )
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
