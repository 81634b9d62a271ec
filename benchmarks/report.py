"""How long `evenhand report` takes, and how large the page is.

`python -m benchmarks.report` writes results/performance-report.md. With `--pages` it writes
results/report-size.md: what the page is for who reads it, on the demos and, where EVENHAND_SHARED
has them, on real labels.

The studies are the demo's, made
larger: its pairs again and again, its synthetic responses, more synthetic annotators and graders.
Each report is made by the command itself, in a process of its own; the time is the whole process,
from start to exit.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.documents import RESULTS, library_versions
from evenhand.rubrics import load_rubric
from evenhand.study import create_study, open_study
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.lead.imports import import_ratings
from harness.chromium import launched_chromium
from harness.demo.raters import ANNOTATORS, GRADERS, simulate_ratings
from harness.demo.responses import demo_responses
from harness.page_size import PageSize, page_size

ROOT = Path(__file__).resolve().parents[1]
PAGE = RESULTS / "performance-report.md"
SIZES = RESULTS / "report-size.md"
SEED = 7
_NUMBERED = r" \(\d+\)$"
"""How a prompt ends that repeats one of the demo's."""


BEFORE = {
    "demo": PageSize(85_502, 133_421, 25_452, 122),
    "demo, stance": PageSize(37_864, 56_721, 11_476, 53),
    "DICES-350": PageSize(4_927, 7_769, 1_323, 7),
    "LLMBar": PageSize(17_868, 31_372, 4_385, 31),
    "Newsroom": PageSize(5_592, 8_568, 1_476, 8),
    "large study": PageSize(30_832, 50_612, 9_705, 43),
}
"""As measured before sections opened with their answers."""
_REAL = {"DICES-350": "dices350", "LLMBar": "llmbar", "Newsroom": "newsroom"}


@dataclass(frozen=True)
class Case:
    """A study to report on, and the bound that it must keep."""

    pairs: int
    rubrics: tuple[str, ...]
    humans: int
    graders: int
    seconds: float
    megabytes: float


@dataclass(frozen=True)
class Result:
    """What a report took: seconds, and the page's size in bytes."""

    case: Case
    units: int
    ratings: int
    wall: float
    size: int


def cases() -> list[Case]:
    """The two sizes that are promised."""
    rubrics = usual_rubrics(propositions=False)
    one = next(rubric.name for rubric in rubrics if rubric.unit == "response")
    names = tuple(rubric.name for rubric in rubrics)
    return [Case(250, names, 6, 4, 10, 5), Case(1000, (one,), 3, 2, 30, 5)]


def build(folder: Path, case: Case) -> tuple[int, int]:
    """Make the study; returns how many units were rated and how many ratings there are."""
    rubrics = [load_rubric(name) for name in case.rubrics]
    pairs = _pairs(folder.parent / f"{folder.name}.csv", case.pairs)
    plan = StudyPlan(pairs=pairs, rubrics=rubrics, seed=SEED, synthetic=True)
    create_study(folder, plan)
    people = [_again(ANNOTATORS, n) for n in range(case.humans)]
    models = [_again(GRADERS, n) for n in range(case.graders)]
    with open_study(folder) as study:
        known = study.store.pairs().replace(_NUMBERED, "", regex=True)
        made = demo_responses(known, SEED)
        study.store.add_responses(made.responses)
        ratings = simulate_ratings([*people, *models], made.truth, study.rubrics, SEED)
        import_ratings(study, ratings, "synthetic ratings")
    return len(ratings[["rubric", "unit_id"]].drop_duplicates()), len(ratings)


def _pairs(path: Path, wanted: int) -> Path:
    """The demo's pairs, repeated with a number until there are so many."""
    with (ROOT / "data" / "demo_pairs.csv").open(encoding="utf-8", newline="") as file:
        known = list(csv.DictReader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(known[0]))
        table.writeheader()
        for n in range(wanted):
            row, again = known[n % len(known)], n // len(known)
            prompts = {side: f"{row[side]} ({again})" for side in ("prompt_a", "prompt_b")}
            row = row | (prompts if again else {})
            table.writerow(row | ({"pair_id": f"p{n + 1:04}"} if "pair_id" in row else {}))
    return path


def _again(raters: Sequence, n: int):  # type: ignore[no-untyped-def, type-arg]
    """The n-th rater, taking the demo's in turn under names of their own."""
    rater = raters[n % len(raters)]
    return replace(rater, rater_id=f"{rater.rater_id}-{n}")


def measure(folder: Path, case: Case, units: int, ratings: int) -> Result:
    """Run the command and weigh what it wrote."""
    started = time.perf_counter()
    _evenhand("report", folder)
    wall = time.perf_counter() - started
    size = (folder / "report" / "report.html").stat().st_size
    return Result(case, units, ratings, wall, size)


def _evenhand(*words: object) -> None:
    """Run the command in a process of its own."""
    command = [sys.executable, "-P", "-m", "evenhand", *map(str, words)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def reports(home: Path, *, demos: bool, large: bool) -> Iterator[tuple[str, Path]]:
    """What each page is of, and its folder."""
    if demos:
        _evenhand("demo", home / "demo", "--no-app")
        yield "demo", home / "demo" / "report"
        _evenhand("demo", home / "stance", "--study", "stance", "--no-app")
        yield "demo, stance", home / "stance" / "report"
    shared = ROOT / os.environ.get("EVENHAND_SHARED", "../shared") / "data" / "real"
    for title, name in _REAL.items():
        if (shared / f"{name}.csv").is_file():
            _evenhand("check", shared / f"{name}.csv", "--out", home / name)
            yield title, home / name
    if large:
        build(home / "large", cases()[1])
        _evenhand("report", home / "large")
        yield "large study", home / "large" / "report"


def sizes(home: Path, *, demos: bool, large: bool) -> dict[str, PageSize]:
    """How large each page is."""
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as playwright:
        browser = launched_chromium(playwright)
        for title, folder in reports(home, demos=demos, large=large):
            found[title] = page_size(browser, folder / "report.html")
            print(f"{title}: {found[title]}")
        browser.close()
    return found


def size_page(found: Mapping[str, PageSize]) -> str:
    """The document on sizes."""
    columns = {
        "height": "px at 1440",
        "phone_height": "px at 390",
        "words": "words",
        "pages": "printed",
    }
    heads = ["report", *(f"{title}, before | after" for title in columns.values())]
    lines = [heads, ["---", *["---: | ---:"] * len(columns)]]
    for title, size in found.items():
        before = BEFORE[title]
        both = [f"{getattr(before, name):,} | {getattr(size, name):,}" for name in columns]
        lines.append([title, *both])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"""# How much there is to read

`report.html` as it opens, before and after its sections began with their answers and folded the
rest: pixels high at 1440 and at 390 across, words that are seen, and A4 pages that are printed.
`evenhand report --full` unfolds and prints everything. {datetime.date.today():%Y-%m-%d}; the demos
and the large study ({cases()[1].pairs:,} pairs, one rubric) are synthetic.

{table}

A test holds the demos to 12,000 px and 15 printed pages. `python -m benchmarks.report --pages
--large` writes this page.
"""


def page(results: Sequence[Result]) -> str:
    """The document."""
    rows = [
        f"| {r.case.pairs} pairs x 5 subjects x {len(r.case.rubrics)} rubrics x {r.case.humans} "
        f"humans x {r.case.graders} graders | {r.units:,} | {r.ratings:,} | {r.wall:.1f} | "
        f"{r.case.seconds:g} | {r.size / 1e6:.1f} | {r.case.megabytes:g} |"
        for r in results
    ]
    return f"""# How fast a report is

`evenhand report` as a whole: start, reading the store, the analysis with 2,000 resamples, holding
the estimates against other libraries, drawing the figures, writing the four files. Rubrics are
analysed side by side, in processes of their own; {os.cpu_count()} processors;
{library_versions("pandas", "vl-convert-python")};
{datetime.date.today():%Y-%m-%d}. Load of the machine meanwhile: {os.getloadavg()[1]:.1f} (up to
{os.cpu_count()} is this alone). All data are synthetic.

| study | units | ratings | seconds | at most | report.html, MB | at most |
| --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}

`python -m benchmarks.report` writes this page.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the page (in benchmarks/results)")
    parser.add_argument("--pages", action="store_true", help="measure the pages instead")
    parser.add_argument("--large", action="store_true", help="of the large study, too")
    parser.add_argument("--scale", type=float, default=1.0, help="of the studies (1)")
    parser.add_argument("--studies", type=int, default=2, help="how many of them, from the first")
    given = parser.parse_args(arguments)
    if given.pages:
        with tempfile.TemporaryDirectory() as home:
            found = sizes(Path(home), demos=given.studies > 0, large=given.large)
        (given.out or SIZES).write_text(size_page(found), "utf-8")
        return
    results = []
    with tempfile.TemporaryDirectory() as home:
        for number, case in enumerate(cases()[: given.studies]):
            case = replace(case, pairs=max(5, round(case.pairs * given.scale)))
            folder = Path(home) / f"study-{number}"
            result = measure(folder, case, *build(folder, case))
            print(f"{result.units:,} units: {result.wall:.1f} s")
            results.append(result)
    (given.out or PAGE).write_text(page(results), "utf-8")


if __name__ == "__main__":
    main()
