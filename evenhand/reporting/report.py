"""A study's report: made, written, and printed as PDF by a browser of this machine; and estimates
verified against other libraries.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.analysis.report import write_figures, write_report
from evenhand.analysis.verification import in_this_process, library_values, load_libraries
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.workers import beside, workers
from evenhand.study.tables.files import atomic_write, is_root

if TYPE_CHECKING:
    from evenhand.analysis import Analysis
    from evenhand.analysis.labels.matrix import Coded
    from evenhand.analysis.types import Array
    from evenhand.analysis.verification import Libraries, Value
    from evenhand.study import Study


def report_study(
    study: Study,
    out: Path,
    *,
    figures: Path | None = None,
    full: bool = False,
    on_stage: Callable[[str], None] | None = None,
) -> Analysis:
    """Analyse a study on all cores and write report.html, .md, .json and results.csv into `out`,
    and into `figures`, where that is named, each figure and table as a file. On a `full` page
    everything is unfolded.

    `on_stage` is called with the name of each stage. Raises InputError where nothing is labelled
    yet.
    """
    tell = on_stage or (lambda stage: None)
    tell("reading the labels")
    with workers() as pool:
        analysis, context = analyse_study(study, pool=pool, on_stage=tell)
        tell("writing the report")
        write_report(analysis, context, out, full=full, pool=pool)
    if figures is not None:
        tell("drawing figures")
        write_figures(analysis, context, figures)
    return analysis


_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""A Chromium without what it does in the background."""
_SECONDS = 120


def browser_path() -> Path:
    """The Chromium or Chrome of this machine. Raises InputError where there is none."""
    found = next(_browsers(), None)
    if found is None:
        raise InputError(
            "there is no Chromium or Chrome to print with; install one, or open report.html in any "
            "browser and print it to a file"
        )
    return found


def _browsers() -> Iterator[Path]:
    yield from map(Path, filter(None, map(shutil.which, _NAMES)))
    if sys.platform == "darwin" and _MAC.is_file():
        yield _MAC


def print_pdf(browser: Path, page: Path, pdf: Path) -> None:
    """Print a page of this machine, as its style sheet has it for paper. Raises InputError where
    the browser does not manage.
    """
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "page.pdf"
        # Chromium's sandbox does not start for root; the page is our own and loads nothing.
        as_root = ["--no-sandbox"] if is_root() else []
        profile = [f"--user-data-dir={place}/profile", f"--print-to-pdf={made}"]
        command = [str(browser), "--headless", *QUIET, *as_root, *profile, "--no-pdf-header-footer"]
        try:
            subprocess.run(
                [*command, page.resolve().as_uri()],
                capture_output=True,
                timeout=_SECONDS,
                check=True,
            )
            printed = made.read_bytes()
        except (subprocess.SubprocessError, OSError) as error:
            raise InputError(
                f"{browser.name} could not print {page.name}; open it in a browser and print it "
                "to a file"
            ) from error
    atomic_write(pdf, printed)


@contextmanager
def libraries_beside(meanwhile: Callable[[], None]) -> Iterator[bool | Libraries]:
    """Yield the `verify` argument of `evenhand.analysis.analyse`, with the libraries in a process
    of their own: enter it before anything else is loaded. `meanwhile` is called where their answer
    is not there yet.

    On a machine with one core they are loaded here, and where the process has ended, too.
    """
    if (os.cpu_count() or 1) < 2:
        yield True
        return
    with beside(_load) as process:

        def begin(coded: Coded, weight: Array | None) -> Callable[[], list[Value]]:
            here = in_this_process(coded, weight)
            try:
                answer = process.submit(library_values, coded, weight)
            except BrokenProcessPool:
                return here

            def values() -> list[Value]:
                if not answer.done():
                    meanwhile()
                try:
                    return answer.result()
                except BrokenProcessPool:
                    return here()

            return values

        yield begin


def _load() -> None:
    gc.disable()  # it lives for two seconds
    load_libraries()
