"""The site's pages: the files that they come from, and the list of them for language models.

`python -m docs.site_map` writes that list, llms.txt, for the checkout; the site has its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "llms.txt"
LOGS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
"""What benchmarks wrote; evidence.md leads to them."""
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "SKILL.md": "skill.md",
    "data/README.md": "tables.md",
    "examples/llmbar/README.md": "cases/llmbar.md",
    "examples/dices/README.md": "cases/dices.md",
    "docs/notebooks/dices.ipynb": "notebooks/dices.md",
    **{f"benchmarks/results/{log.name}": f"results/{log.name}" for log in LOGS},
}
"""Files of the checkout that do not lie in docs/, and the pages that they become."""
VERBS, ROWS = "verbs.md", "rows.md"
WRITTEN = {"evenhand/cli": VERBS, "analysis/statistics.toml": ROWS}
"""Code of the checkout, and the pages that are written from it."""
OVERVIEW = "Overview"
ENOUGH = 60
"""Characters; a lead that is shorter goes on with the next sentence."""

Link = Callable[[str], str]
_ABOUT = {
    VERBS: "What `evenhand VERB --help` says of every verb.",
    ROWS: "Every statistic of `results.csv`: its name, its meaning and its source.",
    "changes.md": "What has changed, and what you must change, version by version.",
}
"""Leads of pages that begin with none."""
_SENTENCES = re.compile(r".*?[^.].[.?!:](?<!et al\.)(?=\s|$)")


def source_of(page: str) -> str:
    """The file of the checkout that becomes this page."""
    known = ELSEWHERE | WRITTEN
    return next((file for file, its in known.items() if its == page), f"docs/{page}")


def address_of(page: str) -> str:
    """Where the page lies in the site."""
    return page.removesuffix(".md") + ".html"


def llms_txt(nav: list[Any], link: Link) -> str:
    """Every page of the nav in its order, with a link and what its first sentence says.

    The form is that of llmstxt.org.
    """
    title, about = (_settings()[key] for key in ("site_name", "site_description"))
    return "\n".join([f"# {title}", "", f"> {about}", *_listed(OVERVIEW, nav, link)]) + "\n"


def _listed(heading: str, nav: list[Any], link: Link) -> Iterator[str]:
    pages = [_titled(entry) for entry in nav]
    yield from ["", f"## {heading}", ""]
    for title, page in pages:
        if isinstance(page, str):
            yield f"- [{title}]({link(page)}): {lead(page)}"
    for title, inner in pages:
        if isinstance(inner, list):
            whole = title if heading == OVERVIEW else f"{heading}: {title}"
            yield from _listed(whole, inner, link)


def _titled(entry: str | dict[str, Any]) -> tuple[str, Any]:
    if isinstance(entry, str):
        text = (ROOT / source_of(entry)).read_text("utf-8")
        return text.partition("\n")[0].removeprefix("# "), entry
    ((title, inner),) = entry.items()
    return title, inner


def lead(page: str) -> str:
    """What a page begins with: a sentence, or more of them if they are short."""
    if page in _ABOUT:
        return _ABOUT[page]
    text = (ROOT / source_of(page)).read_text("utf-8")
    if source_of(page).endswith(".ipynb"):
        text = "".join(json.loads(text)["cells"][0]["source"])
    text = re.sub(r"\A---\n.*?^---\n|^```.*?^```", "", text, flags=re.M | re.S)
    blocks = (block.strip() for block in re.split(r"\n\s*\n", text))
    first = next(block for block in blocks if re.match(r"(?!\d+\.)[\w*`\[\"]", block))
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)|^\d+\. |\*", r"\1", " ".join(first.split()))
    told = ""
    for sentence in _SENTENCES.findall(words) or [words]:
        told += sentence
        if len(told) >= ENOUGH:
            break
    return re.sub(":$", ".", told)


def _settings() -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    return settings


def for_checkout() -> str:
    """llms.txt with links to the files themselves."""
    return llms_txt(_settings()["nav"], lambda page: source_of(page))


if __name__ == "__main__":
    LIST.write_text(for_checkout(), "utf-8")
