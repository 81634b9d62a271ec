"""Write pages, stores and requests to providers into a folder: a part of `harness.frozen`, run as
`python -m harness.frozen_pages FOLDER`.

One annotator labels the first items of studies of each kind; then a lead opens every page. What is
drawn at random or read from a clock is numbered in the order in which it first appears; only the
minutes of work on the page Recruitment may differ by a tenth.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from evenhand.annotate_app.lead.pages import PAGES
from evenhand.annotate_app.payload import page_data, read_sent
from evenhand.graders import GradingOptions, RequestLimits, grade
from evenhand.study import Study, open_study
from evenhand.study.access import set_account
from evenhand.study.desk.desk import AnnotationDesk
from harness.protocol_server import ProtocolServer
from harness.replies import Call
from harness.studies import marked_study, panel_study

_ITEMS = 20
_PASSWORD = "correct horse battery"
_ASKED = '--question "Is it right?" --options yes,no'
KINDS = {
    "rows": ("question,answer", _ASKED),
    "numbers": ("question,answer", '--question "How right?" --scale 0-100'),
    "several": ("question,answer", '--question "Which?" --options a,b,c --several'),
    "ordinal": ("question,answer,reference", '--question "How right?" --scale 1-5'),
    "compared": ("question,response_a,response_b", '--question "Which is better?"'),
}
"""Studies by the columns of their file and the options of `evenhand new`."""
_DRAWN = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:\+00:00|Z)?|(?<![0-9a-f])[0-9a-f]{16,64}(?![0-9a-f])"
    r"|\$argon2id[^']*|(?<=[\"'])[A-Za-z0-9_-]{20,44}(?=[\"'])"
)
_AT_WORK = "Computing the figures"
_FORMS = ("anthropic:m@{}", "openai:m@{}/v1")
_WAYS: tuple[Mapping[str, Any], ...] = (
    {},
    {"method": "reason-then-label"},
    {"temperature": 0.0, "max_tokens": 99},
    {"effort": "low"},
    {"draws": 2},
)


def freeze_pages(out: Path) -> None:
    """Write the page's data, the store and the lead's pages of each kind of study."""
    with tempfile.TemporaryDirectory(prefix="evenhand-frozen-") as home:
        for name, folder in _studies(Path(home)):
            kept = out / name
            kept.mkdir(parents=True)
            with closing(sqlite3.connect(folder / "study.db")) as store, store:
                # What decides on orders is drawn anew for each study.
                store.execute("INSERT OR REPLACE INTO meta VALUES ('secret', ?)", ["7" * 64])
            with open_study(folder) as study:
                set_account(study.store, "ada", _PASSWORD, "lead")
                _write(kept / "page.json", _labelled(study), home)
            for page in PAGES:
                text = "\n".join(_lead_page(folder, page.title))
                _write(kept / f"lead-{page.title}.txt", text, home)
            _write(kept / "store.sql", _dump(folder), home)


def freeze_requests(out: Path) -> None:
    """Write what is sent to a server of each form: path, headers but those of the client, body."""
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="evenhand-frozen-") as home:
        for number, way in enumerate(_WAYS):
            for form in _FORMS:
                server = ProtocolServer()
                folder = Path(home) / f"{form[:4]}-{number}"
                study = marked_study(folder, 1, ["hedging", "refusal", "even-handedness"])
                options = GradingOptions(scope="all", **way)
                with study:
                    summary = grade(
                        study, [form.format(server.root)], options, RequestLimits(concurrency=1)
                    )
                sent = [_sent(call) for call in server.calls]
                text = json.dumps([*sent, summary.stopped], indent=1, ensure_ascii=False)
                _write(out / f"{form[:4]}-{number}.json", text, server.root)
                server.close()


def _studies(home: Path) -> Iterator[tuple[str, Path]]:
    yield "pairs", panel_study(home, _ITEMS)
    for name, (columns, options) in KINDS.items():
        lines = [
            ",".join(f"{column} {number}" for column in columns.split(","))
            for number in range(1, _ITEMS + 1)
        ]
        (home / f"{name}.csv").write_text("\n".join([columns, *lines]) + "\n", "utf-8")
        command = f"new --items {name}.csv {options} {name}"
        run = subprocess.run(
            [sys.executable, "-P", "-m", "evenhand", *shlex.split(command)],
            cwd=home, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if run.returncode:
            raise SystemExit(run.stdout + run.stderr)
        yield name, home / name


def _labelled(study: Study) -> str:
    """Return the page's data for each item, as an annotator's answers bring them."""
    desk = AnnotationDesk(study)
    receipts: dict[str, str] = {}
    pages: list[dict[str, Any]] = []
    for number in range(_ITEMS + 1):
        data = page_data(desk, "ann", receipts)
        pages.append(data)
        if data["sheet"] is None:
            break
        answers = read_sent({"answers": list(_answers(data["sheet"], number))})
        given = desk.submit_all("ann", answers)
        receipts = {a.submit_id: r for a, r in zip(answers, given, strict=True)}
    return json.dumps(pages, indent=1, ensure_ascii=False, default=str)


def _answers(sheet: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    for place, question in enumerate(sheet["questions"]):
        options = question.get("options") or []
        label = options[number % len(options)]["key"] if options else str(number % 5 + 1)
        yield {
            "submit_id": f"{number:016x}{place:016x}",
            "sheet_id": sheet["id"],
            "task_id": question["task"],
            "option_key": label,
            "skip_reason": "",
            "seconds": 1.0,
            "edit": False,
            "confidence": None,
            "rationale": "",
        }


def _lead_page(folder: Path, title: str) -> Iterator[str]:
    """Return the kinds and texts of all elements of a page."""

    def script(folder: str, title: str, password: str) -> None:
        from evenhand.annotate_app import entry
        from evenhand.annotate_app.lead.pages import PAGES
        from evenhand.study import open_study
        from evenhand.study.access import sign_in

        with open_study(folder) as study:
            entry.admit_lead(sign_in(study.store, "ada", password))
            (page,) = [page for page in PAGES if page.title == title]
            page.show(study)

    arguments = (str(folder), title, _PASSWORD)
    app = AppTest.from_function(script, args=arguments, default_timeout=120).run()
    while any(_AT_WORK in str(text.value) for text in app.text):
        time.sleep(0.5)
        app.run()
    for element in app:
        value = getattr(element, "value", None)
        shown = [getattr(element, "label", ""), value, getattr(element, "options", "")]
        yield f"{element.type}: {' | '.join(str(each) for each in shown if each is not None)}"


def _dump(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "study.db")) as store:
        lines = store.iterdump()
        # Each look at a page logs in, as often as the figures take to be there.
        return "\n".join(line for line in lines if '"login_attempts"' not in line)


def _sent(call: Call) -> dict[str, Any]:
    ours = {
        name: value
        for name, value in call.headers.items()
        if not name.startswith("x-stainless") and name not in ("host", "user-agent")
    }
    return {"path": call.path, "headers": ours, "body": call.body}


def _write(path: Path, text: str, home: str) -> None:
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return numbers.setdefault(found[0], f"DRAWN-{len(numbers)}")

    path.write_text(_DRAWN.sub(number, text.replace(home, "HOME")), "utf-8")


PARTS = {"pages": freeze_pages, "requests": freeze_requests}

if __name__ == "__main__":
    logging.disable(logging.WARNING)  # Streamlit misses its server
    for part in sys.argv[2:] or ("requests", "pages"):
        PARTS[part](Path(sys.argv[1]) / part)
