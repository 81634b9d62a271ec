"""Published graders (LLM judges) on public labels, as one page.

`python -m examples.public` writes docs/public.md from the shipped labels.
`python -m examples.public FOLDER --out PAGE` adds data sets that you have downloaded: each file
that `evenhand check` reads, and each folder with human_annotations.json and llm_annotations.json,
the format of the authors of the alternative annotator test. public.toml, here and in FOLDER, has an
entry for each data set: keys with a capital letter, such as its licence, are shown on the page; the
table `check` has options of `evenhand.check`.
"""

import argparse
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import evenhand
from evenhand.analysis.report.files import markdown
from evenhand.demo import PUBLISHED, published_labels
from evenhand.study.tables.formats import MOST_JSON
from evenhand.texts import DASH, number_of, written

PAGE = Path(__file__).parents[1] / "docs" / "public.md"
SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx")
FILE_BY_KIND = {"human": "human_annotations.json", "model": "llm_annotations.json"}
Catalogue = dict[str, dict[str, Any]]
"""The content of public.toml: the entry of each data set by its name."""


def data_sets(folder: Path | None) -> Iterator[tuple[str, Any]]:
    """Yield the name of each data set, shipped or in the folder, with its labels or their path."""
    for name in PUBLISHED:
        yield name, published_labels(name)
    for path in sorted(folder.iterdir()) if folder else ():
        if all((path / file).is_file() for file in FILE_BY_KIND.values()):
            yield path.name, path
        elif path.suffix in SUFFIXES and not path.name.startswith("."):
            yield path.stem, path


def read_pair_of_files(folder: Path) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Return a folder's two files {rater: {item: label}} as a wide table, and its raters by kind.
    Items whose ids have the same text before "__" are one cluster. Raises InputError for another
    format.
    """
    raters, columns = {}, {}
    for kind, file in FILE_BY_KIND.items():
        try:
            with (folder / file).open("rb") as content:
                labels_by_rater = json.loads(content.read(MOST_JSON))
            for rater, labels in labels_by_rater.items():
                columns[rater] = pd.Series(dict(labels))
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            fault = f"{file} is not a table; give it the form {{rater: {{item: label}}}}"
            raise evenhand.InputError(f"{folder.name}, {fault}") from error
        raters[kind] = list(labels_by_rater)
    table = pd.DataFrame(columns).rename_axis("item_id").reset_index()
    return table.assign(cluster_id=table["item_id"].str.partition("__")[0]), raters


def section(name: str, labels: Any, catalogue: Catalogue) -> tuple[list[list[str]], list[str]]:
    """Analyse a data set; return its rows of the page's table and the lines of its section."""
    is_pair_of_files = isinstance(labels, Path) and labels.is_dir()
    is_alt_test = is_pair_of_files and name in catalogue["alt-test"]["names"]
    entry = catalogue.get(name, catalogue["alt-test" if is_alt_test else "unknown"])
    title = str(entry.get("title", name))
    options = {"name": name, **dict(entry.get("check", {}))}
    lines = [f"{field}: {text}" for field, text in entry.items() if field[0].isupper()]
    try:
        if is_pair_of_files:
            labels, raters = read_pair_of_files(labels)
            options |= raters
        check = evenhand.check(labels, **options)
    except evenhand.InputError as error:
        rows = [[title, *[DASH] * 4, "Not judged", str(error)]]
    else:
        rows = [[title, *row] for row in verdict_rows(check, single="reference" in options)]
        for rubric, size in check.analysis.counts.items():
            sizes = {"annotator": size.annotators, "item": size.items, "cluster": size.clusters}
            numbers = ", ".join(number_of(count, word) for word, count in sizes.items())
            lines.append(f"Size{rubric and f' of {rubric}'}: {numbers}.")
    return rows, [f"\n## {markdown(title)}\n", *(f"- {markdown(line)}" for line in lines)]


def verdict_rows(check: evenhand.Check, *, single: bool) -> Iterator[list[str]]:
    """Yield a row for each verdict with its kappas, or one with human agreement if there is no
    grader. With a `single` annotator there is no human agreement.
    """
    table = check.results.set_index(list(check.results.columns[:6]))  # rubric to level
    for verdict in check.verdicts:
        grader_kappa, *human_kappas = [_figure(table, tuple(key)) for key in verdict["kappas"]]
        title = written(f"title.{verdict['verdict']}")
        ceiling = "one annotator" if single else next(iter(human_kappas), DASH)
        name = ": ".join(filter(None, (verdict["rubric"], verdict["grader"])))
        key = tuple(verdict["evidence"][0])
        difference = _figure(table, key) if "human_ceiling_difference" in key else DASH
        yield [name, ceiling, grader_kappa, difference, title, verdict["reason"]]
    if not check.verdicts:
        kappas = ("weighted_kappa_linear", "cohen_kappa")
        keys = [("", statistic, "humans", "", "all", "") for statistic in kappas]
        ceiling = next((_figure(table, key) for key in keys if key in table.index), DASH)
        yield [DASH, ceiling, DASH, DASH, "Not judged", "The data set has no grader."]


def _figure(table: pd.DataFrame, key: tuple[str, ...]) -> str:
    """Return an estimate with its interval, looked up in the table of results."""
    estimate, low, high = (table[column].loc[key] for column in ("estimate", "low", "high"))
    return f"{estimate:.2f} [{low:.2f}, {high:.2f}]".replace("-0.00", "0.00")


def page(sets: Iterable[tuple[str, Any]], catalogue: Catalogue) -> str:
    """Return the page in Markdown; names and texts of data sets are escaped."""
    rows: list[list[str]] = []
    sections: list[str] = []
    for name, labels in sets:
        new_rows, section_lines = section(name, labels, catalogue)
        rows += new_rows
        sections += section_lines
    verdicts = Counter(row[-2] for row in rows).most_common()
    summary = "; ".join(f"{verdict}: {number_of(count, 'row')}" for verdict, count in verdicts)
    header = "Data set,Grader,Human agreement,Grader-annotator agreement,Difference,Verdict,Reason"
    table = [header.split(","), ["---"] * 7, *(map(markdown, row) for row in rows)]
    table_lines = [f"| {' | '.join(cells)} |" for cells in table]
    intro = catalogue["page"]["intro"].strip()
    return "\n".join([intro, f"\n**{summary}.**\n", *table_lines, *sections]) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Write the page; the docstring of this file describes the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="data sets that you have downloaded")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page (docs/public.md)")
    options = parser.parse_args(arguments)
    catalogue: Catalogue = {}
    try:
        for folder in filter(None, (Path(__file__).parent, options.folder)):
            if (file := folder / "public.toml").is_file():
                catalogue |= tomllib.loads(file.read_text("utf-8"))
        options.out.write_text(page(data_sets(options.folder), catalogue), "utf-8")
    except (OSError, ValueError) as error:
        parser.error(f"the page is not written: {error}")


if __name__ == "__main__":
    main()
