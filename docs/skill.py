"""The tables of SKILL.md, written from the code.

`python -m docs.skill` puts them between the page's marks.
"""

from __future__ import annotations

import re
from pathlib import Path

from evenhand.analysis.verdicts.wording import JUDGEMENTS
from evenhand.cli.main import GROUPS
from evenhand.reporting.gate import EXIT_CODES, VERDICT_OUTCOMES
from evenhand.texts import written

PAGE = Path(__file__).resolve().parents[1] / "SKILL.md"


def verdicts() -> str:
    """Every verdict by its code, as reports call it, and the exit of a gate."""
    rows = [
        f"| `{code}` | {written(f'title.{code}')} | {EXIT_CODES[VERDICT_OUTCOMES[code]]} |"
        for code in JUDGEMENTS
    ]
    return "\n".join(["| `verdict` | in words | `gate` exits with |", "| --- | --- | --- |", *rows])


def verbs(page: str) -> str:
    """The verbs that the page names, each with its line of `evenhand --help`."""
    named = set(re.findall(r"evenhand ([a-z]+)", page))
    rows = [
        f"| `{verb.name}` | {verb.summary} |"
        for group in GROUPS.values()
        for verb in group
        if verb.name in named
    ]
    return "\n".join(["| verb | does |", "| --- | --- |", *rows])


def renewed(page: str) -> str:
    """The page with both tables as they are now."""
    for name, table in (("verdicts", verdicts()), ("verbs", verbs(page))):
        begin, end = f"<!-- {name}: written from the code -->", f"<!-- end of the {name} -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
