"""What the site takes from elsewhere: pages that stand outside docs/, and what the code knows.

MkDocs calls it (`hooks` of mkdocs.yml). Each text has one place, where GitHub shows it too; links
between the files of the checkout become links between the pages of the site.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # MkDocs runs this file by its path

from docs.diagrams import DIAGRAM, picture_name
from docs.list_statistics import rows_page
from docs.site_map import ELSEWHERE, ROOT, ROWS, VERBS, WRITTEN, address_of, llms_txt, source_of
from evenhand.cli.main import GROUPS, Parser, build_parser

WIDTH = "84"
"""Of the verbs' help, in characters."""

_LINK = re.compile(
    r"^```.*?^```|(?P<image>!?)\[(?P<words>[^\]]*)\]\((?!\w+:|#)(?P<target>[^)#\s]*)(?P<at>#[^)\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)
"""A link to a file; a block of code as a whole, so that nothing within it is one."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere, and the verbs as the command line's parser has them."""
    for source, page in ELSEWHERE.items():
        text = (ROOT / source).read_text("utf-8")
        if source.endswith(".ipynb"):
            text = notebook_page(json.loads(text))
        elif page.startswith("results/"):
            text = f"---\nsearch: {{exclude: true}}\n---\n\n{text}"
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, VERBS, content=verbs_page()))
    files.append(File.generated(config, ROWS, content=rows_page()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links as the site has them, and diagrams as they were drawn."""
    here = page.file.src_uri
    markdown = _LINK.sub(lambda found: _link(found, here), markdown)
    return DIAGRAM.sub(lambda found: _picture_of(found, here), markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """What programs read at the site's root."""
    site = Path(config.site_dir)
    (site / "llms.txt").write_text(llms_txt(config.nav or [], address_of), "utf-8")
    (site / "SKILL.md").write_bytes((ROOT / "SKILL.md").read_bytes())


def _link(found: re.Match[str], here: str) -> str:
    """A link to a file of the checkout: to its page, or, where it is no page, its words alone."""
    if found["target"] is None:
        return found[0]
    file = os.path.normpath(PurePosixPath(source_of(here)).parent / found["target"])
    known = ELSEWHERE | WRITTEN
    page = known.get(file) or (file.removeprefix("docs/") if file.startswith("docs/") else "")
    if not (ROOT / file).exists():
        return found[0]  # for MkDocs to complain of
    if not page:
        return found["words"]
    to = os.path.relpath(page, PurePosixPath(here).parent)
    return f"{found['image']}[{found['words']}]({to}{found['at'] or ''})"


def _picture_of(found: re.Match[str], page: str) -> str:
    name = picture_name(found[1])
    if not (ROOT / "docs" / name).is_file():
        return found[0].replace("```mermaid", "```text", 1)
    return f"![Diagram]({os.path.relpath(name, PurePosixPath(page).parent)}){{ .diagram }}"


# ---- notebooks -----------------------------------------------------------------------------------


def notebook_page(notebook: dict[str, Any]) -> str:
    """A notebook that has been run, as Markdown with what its cells showed; as wide as can be."""
    parts = [part for cell in notebook["cells"] for part in _cell(cell)]
    return "\n\n".join(["---\nhide: [toc]\n---", *parts]) + "\n"


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield text
        return
    yield f"```py\n{text}\n```"
    for output in cell["outputs"]:
        shown = output.get("data", {})
        for kind in ("text/html", "image/svg+xml"):
            if kind in shown:
                lines = "".join(shown[kind]).splitlines()
                # Markdown ends a block of HTML at an empty line; the site's styles stay outside.
                inside = "\n".join(line for line in lines if line.strip())
                yield f'<div><template shadowrootmode="open">{inside}</template></div>'
                break
        else:
            printed = "".join(output.get("text", shown.get("text/plain", "")))
            yield f"```text\n{printed.rstrip()}\n```"


# ---- verbs ---------------------------------------------------------------------------------------


def verbs_page() -> str:
    """Every verb under its group with what `--help` says of it."""
    os.environ["COLUMNS"] = WIDTH
    parser = build_parser()
    parts = ["# Verbs", "What `evenhand VERB --help` says, written from the parser itself."]
    for group, verbs in GROUPS.items():
        parts.append(f"## {group}")
        for verb in verbs:
            parts += _verb(parser.verbs[verb.name], 3)
    return "\n\n".join(parts) + "\n"


def _verb(parser: Parser, level: int) -> Iterator[str]:
    parser.declare()
    yield f"{'#' * level} {parser.prog}"
    yield f"```text\n{parser.format_help().rstrip()}\n```"
    for inner in parser.verbs.values():
        yield from _verb(inner, level + 1)
