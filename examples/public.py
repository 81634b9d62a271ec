"""Published graders (LLM judges) on public labels, as one page.

`python -m examples.public` writes docs/public.md from the labels that come along.
`python -m examples.public FOLDER --out PAGE` adds the data sets that you have downloaded: each file
that `evenhand check` reads, and each folder with human_annotations.json and llm_annotations.json,
as the authors of the alternative annotator test publish theirs. public.toml, here and in FOLDER,
has by name who made a data set, its licence, what was concluded (keys with a capital letter are
shown), and keywords of `check`.
"""

from __future__ import annotations

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
KINDS = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx")
PAIR = {"human": "human_annotations.json", "model": "llm_annotations.json"}
Catalogue = dict[str, dict[str, Any]]


def data_sets(folder: Path | None) -> Iterator[tuple[str, Any]]:
    """Each data set's name with its labels or their path: those shipped, then the folder's."""
    for name in PUBLISHED:
        yield name, published_labels(name)
    for path in sorted(folder.iterdir()) if folder else ():
        if all((path / file).is_file() for file in PAIR.values()):
            yield path.name, path
        elif path.suffix in KINDS and not path.name.startswith("."):
            yield path.stem, path


def paired(folder: Path) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The two files {rater: {item: label}} of a folder as a wide table, and its raters by kind.

    Items whose ids are alike up to "__" are one cluster. Raises InputError on another form.
    """
    raters, columns = {}, {}
    for kind, file in PAIR.items():
        try:
            with (folder / file).open("rb") as content:
                given = json.loads(content.read(MOST_JSON))
            columns.update({who: pd.Series(dict(said)) for who, said in given.items()})
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            fault = f"{file} is not a table; give it the form {{rater: {{item: label}}}}"
            raise evenhand.InputError(f"{folder.name}, {fault}") from error
        raters[kind] = list(given)
    table = pd.DataFrame(columns).rename_axis("item_id").reset_index()
    return table.assign(cluster_id=table["item_id"].str.partition("__")[0]), raters


def section(name: str, labels: Any, catalogue: Catalogue) -> tuple[list[list[str]], list[str]]:
    """Judge a data set: its rows of the table (one with the reason if it cannot be judged), and its
    section below.
    """
    pair = isinstance(labels, Path) and labels.is_dir()
    alt_test = pair and name in catalogue["alt-test"]["names"]
    about = catalogue.get(name, catalogue["alt-test" if alt_test else "unknown"])
    title = str(about.get("title", name))
    told = {"name": name, **dict(about.get("check", {}))}
    said = [f"{what}: {text}" for what, text in about.items() if what[0].isupper()]
    try:
        if pair:
            labels, raters = paired(labels)
            told |= raters
        found = evenhand.check(labels, **told)
    except evenhand.InputError as error:
        rows = [[title, *[DASH] * 4, "Not judged", str(error)]]
    else:
        rows = [[title, *row] for row in judged(found, single="reference" in told)]
        for rubric, each in found.analysis.counts.items():
            sizes = {"annotator": each.annotators, "item": each.items, "cluster": each.clusters}
            numbers = ", ".join(number_of(count, word) for word, count in sizes.items())
            said.append(f"Size{rubric and f' of {rubric}'}: {numbers}.")
    return rows, [f"\n## {markdown(title)}\n", *(f"- {markdown(line)}" for line in said)]


def judged(found: evenhand.Check, *, single: bool) -> Iterator[list[str]]:
    """A row for each verdict, with the figures that it names; without a grader, human agreement,
    which a `single` annotator has none of.
    """
    table = found.results.set_index(list(found.results.columns[:6]))
    for verdict in found.verdicts:
        own, *people = [_figure(table, tuple(key)) for key in verdict["kappas"]]
        title = written(f"title.{verdict['verdict']}")
        ceiling = "one annotator" if single else next(iter(people), DASH)
        name = ": ".join(filter(None, (verdict["rubric"], verdict["grader"])))
        key = tuple(verdict["evidence"][0])
        difference = _figure(table, key) if "human_ceiling_difference" in key else DASH
        yield [name, ceiling, own, difference, title, verdict["reason"]]
    if not found.verdicts:
        kappas = ("weighted_kappa_linear", "cohen_kappa")
        keys = [("", each, "humans", "", "all", "") for each in kappas]
        ceiling = next((_figure(table, key) for key in keys if key in table.index), DASH)
        yield [DASH, ceiling, DASH, DASH, "Not judged", "The data set has no grader."]


def _figure(table: pd.DataFrame, key: tuple[str, ...]) -> str:
    estimate, low, high = (table[column].loc[key] for column in ("estimate", "low", "high"))
    return f"{estimate:.2f} [{low:.2f}, {high:.2f}]".replace("-0.00", "0.00")


def page(sets: Iterable[tuple[str, Any]], catalogue: Catalogue) -> str:
    """The page, in Markdown; names and texts of data sets are shown literally."""
    rows: list[list[str]] = []
    sections: list[str] = []
    for name, labels in sets:
        found, said = section(name, labels, catalogue)
        rows += found
        sections += said
    verdicts = Counter(row[-2] for row in rows).most_common()
    answer = "; ".join(f"{verdict}: {number_of(count, 'row')}" for verdict, count in verdicts)
    heads = "Data set,Grader,Human agreement,Grader-annotator agreement,Difference,Verdict,Reason"
    table = [heads.split(","), ["---"] * 7, *(map(markdown, row) for row in rows)]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    intro = catalogue["page"]["intro"].strip()
    return "\n".join([intro, f"\n**{answer}.**\n", *lines, *sections]) + "\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="data sets that you have downloaded")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page (docs/public.md)")
    given = parser.parse_args(arguments)
    catalogue: Catalogue = {}
    try:
        for place in filter(None, (Path(__file__).parent, given.folder)):
            if (file := place / "public.toml").is_file():
                catalogue |= tomllib.loads(file.read_text("utf-8"))
        given.out.write_text(page(data_sets(given.folder), catalogue), "utf-8")
    except (OSError, ValueError) as error:
        parser.error(f"the page is not written: {error}")


if __name__ == "__main__":
    main()
