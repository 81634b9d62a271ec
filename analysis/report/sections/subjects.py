"""Sections on subjects, the models whose responses are rated: their scores by rater, which subject
raters prefer, the side of pairs that raters favour, and subjects' rates and means.

Each `*_part` function makes a section's part on one rubric, of which `figures` are all figures. A
name such as "rates.parts" is that of a table in `report/tables.toml` and of its caption in the
texts; "report.rates" is a sentence in the texts.

Rates and means are shown as graders give them (*raw*), and corrected with people's labels. A
`_Quantity` is either the rates or the means, so that the same functions show both; `statistics` has
their names. *Pair sides* are the two sides of a pair of prompts, such as left and right; *net
direction* is how much more often a rater favours the first. *Annotator sides* are groups of
annotators, such as parties. `with_every_rubric` adds the table of rates on all rubrics.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, combinations, product
from operator import attrgetter
from typing import Literal, NamedTuple

from evenhand.analysis.report import blocks, charts
from evenhand.analysis.report import source as src
from evenhand.analysis.report.blocks import Chart, Part, Table, items
from evenhand.analysis.results import from_to, names_in
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.subjects.corrected_rates import MEANS, RATES, SubjectStatistics
from evenhand.texts import DASH, in_pieces, written

_PEOPLE, _GRADER = src.rater_title("humans"), written("chart.scores_grader")
_CORRECTED_WIN_RATE = "win_rate_ppi"
_SIDE_DIFFERENCE, _CORRECTED_SHARE = "rate_side_difference_ppi", "prevalence_ppi"
_STEPS = [0.05, 0.15, 0.3, 0.5, 0.75]  # rates at which the shading changes
_MAX_PARTS = 40  # values of a column that a chart of parts shows


def overall_part(figures: src.RubricFigures) -> Part:
    """Make the part on subjects' scores and the correlations between raters' scores."""
    scores = figures.select("subject_score", src.ALL_BINARY)
    columns = _rater_columns(figure.rater for figure in scores)
    tables = figures.table("overall.caption", sorted(src.distinct_rows(scores, "at")), columns)
    blocks_of_scores = _score_chart(figures, tables) or tables
    answers = [_correlation_answer(figures)] if blocks_of_scores else []
    return Part(answers, folded=[*blocks_of_scores, *figures.table("overall.correlations")])


def _rater_columns(raters: Iterable[str]) -> list[src.HeadedColumn]:
    """Return a column for each rater, with its figure of the row's statistic."""
    return [(src.rater_title(rater), {"rater_a": rater}) for rater in dict.fromkeys(raters)]


def _correlation_answer(figures: src.RubricFigures) -> list[object]:
    """Name the graders whose subject scores correlate best and worst with people's."""
    correlations = figures.select("spearman", src.ALL_BINARY)
    with_people = src.largest_first(figure for figure in correlations if figure.rater == "humans")
    if not with_people:
        scored = {row.rater for row in figures.select("subject_score", src.ALL_BINARY)}
        if "humans" in scored or not (others := src.largest_first(correlations)):
            return in_pieces("report.scores_unknown")
        first, second = others[0].raters
        return in_pieces("report.scores_of_graders", first=first, second=second, rho=others[0])
    best, worst = with_people[0], with_people[-1]
    highest = in_pieces("report.scores", grader=best.grader, rho=best)
    lowest = in_pieces("report.scores_least", grader=worst.grader, rho=worst)
    return highest if worst is best else src.join_sentences(highest, lowest)


def _score_chart(figures: src.RubricFigures, data: Iterable[Table]) -> list[Chart]:
    """Draw subjects' scores by people and by graders, a panel for each grader, if both scored."""
    scores = figures.select("subject_score", src.ALL_BINARY)
    people = {figure.at: figure for figure in scores if figure.rater == "humans"}
    names = dict.fromkeys(figure.rater for figure in scores if figure.rater != "humans")
    graders = figures.sorted_by_agreement(names, src.ALL_BINARY)
    subjects = sorted(people, key=lambda name: people[name].exact.estimate, reverse=True)
    listed_subjects = subjects[: charts.MAX_LISTED]
    values: list[charts.Datum] = []
    drawn = set()
    for grader, subject in product(graders[: charts.MAX_LISTED], listed_subjects):
        figure = figures.by_key(people[subject].key._replace(rater_a=grader))
        if figure is not None and not figure.reason:
            panel = {"grader": charts.shorten(grader), "subject": charts.shorten(subject)}
            values.append(people[subject].datum(who=_PEOPLE, **panel))
            values.append(figure.datum(who=_GRADER, **panel))
            drawn |= {grader, subject}
    if not values:
        return []
    scored = list(dict.fromkeys([*subjects, *(figure.at for figure in scores)]))
    return figures.chart(
        "scores", values, data,
        charts.omitted_note(graders, drawn), charts.omitted_note(scored, drawn, "subjects"),
        x=charts.axis_through_zero(charts.bounds_of(values)), people=_PEOPLE, grader=_GRADER,
        subjects=[charts.shorten(name) for name in listed_subjects if name in drawn],
        graders=charts.unique_values(values, "grader"),
    )  # fmt: skip


def preference_part(figures: src.RubricFigures) -> Part:
    """Make the part on subjects' win rates and strengths, by annotators and by every grader."""
    names = dict.fromkeys(figure.rater for figure in figures.select("win_rate"))
    graders = figures.sorted_by_agreement([name for name in names if name != "humans"])
    raters = ["humans", *graders]
    rows: list[src.RowSpec] = []
    for statistic in ("win_rate", "strength"):
        shown = (figure for figure in figures.select(statistic) if figure.rater in raters)
        rows += [src.RowSpec(entry_for(statistic).name), *sorted(src.distinct_rows(shown, "at"))]
    tables = figures.table("preference.caption", rows, _rater_columns(raters))
    folded = [*tables, *_corrected_win_rates(figures, graders)]
    answers: list[list[object]] = []
    for rater in raters:  # the subject that each prefers
        if by_rate := src.largest_first(figures.select("win_rate", raters=(rater, ""))):
            best = by_rate[0]
            key = "preference_people" if rater == "humans" else "preference_grader"
            answers.append(in_pieces(f"report.{key}", grader=rater, subject=best.at, rate=best))
    return Part(answers, folded=folded, about=[written("preference.strength")])


def _corrected_win_rates(figures: src.RubricFigures, graders: list[str]) -> list[Table]:
    """Tabulate corrected win rates on the pairs of answers that only a grader compared."""
    rows: list[src.RowSpec] = []
    for grader in graders:
        if src.largest_first(figures.select(_CORRECTED_WIN_RATE, raters=("humans", grader))):
            rates = figures.select("win_rate", raters=(grader, ""))
            rows += [src.RowSpec(grader), *src.rows_of(rates, attrgetter("at"))]

    def corrected(key: src.Key) -> src.Figure | None:
        return figures.get(_CORRECTED_WIN_RATE, "humans", key.rater_a, key.subset, key.at)

    column = (entry_for(_CORRECTED_WIN_RATE).label, corrected)
    return figures.table("preference.corrected", rows, [column])


def direction_part(figures: src.RubricFigures) -> Part:
    """Make the part on net direction by rater and subject; empty without sides of pairs."""
    net = figures.select_all("direction_net")
    others = [figure for figure in net if figure.column != "subject"]
    titles = {figure.subset: _sides_title(figure, figure.value) for figure in others}
    rows = src.rows_of(
        others, lambda row: src.rater_title(row.rater), lambda row: titles[row.subset], by="subset"
    )
    has_unnamed_sides = any(figure.at == "side a>side b" for figure in net)
    folded = [*_subject_directions(figures, net), *figures.table("direction.by_rater", rows)]
    about = [written("direction.side_a")] if has_unnamed_sides else []
    return Part(_direction_answer(net), folded=folded, about=about)


def _direction_answer(net: list[src.Figure]) -> list[list[object]]:
    """State on which subjects people, or else a grader, favour a side; or the largest possible."""
    intervals = [figure for figure in net if figure.interval]
    raters = [figure.rater for figure in intervals]
    rater = "humans" if "humans" in raters else next(iter(raters), "")
    rater_figures = [figure for figure in intervals if figure.rater == rater]
    candidates = [figure for figure in rater_figures if figure.column == "subject"] or rater_figures
    if not candidates:
        return [in_pieces("report.direction_unknown")] if net else []
    title, everywhere = src.rater_title(rater), written("direction.everywhere")
    favoured = []
    for figure in candidates:
        if figure.is_clear:
            first, second = figure.sides
            fields = {"favoured": first if figure.exact.estimate > 0 else second, "net": figure}
            favoured.append(in_pieces("direction.on", place=figure.value or everywhere, **fields))
    if favoured:
        key = "direction" if rater == "humans" else "direction_by_one"
        return [in_pieces(f"report.{key}", who=title, favoured=src.join_listed(favoured))]
    widest = max(candidates, key=lambda figure: max(-figure.exact.low, figure.exact.high))
    key = "direction_even" if rater == "humans" else "direction_even_by_one"
    return [in_pieces(f"report.{key}", who=title, place=widest.value or everywhere, net=widest)]


def _subject_directions(figures: src.RubricFigures, net: list[src.Figure]) -> list[Table]:
    """Tabulate net direction: every subject in a row, every rater in a column."""
    by_subject = [figure for figure in net if figure.column == "subject"]
    rows = [src.RowSpec(_sides_title(figure)) for figure in by_subject[:1]]  # the heading
    rows += src.rows_of({row.subset: row for row in by_subject}.values(), attrgetter("value"))
    columns = _rater_columns(figure.rater for figure in by_subject)
    return figures.table("direction.by_subject", rows, columns)


def _sides_title(figure: src.Figure, value: str = "") -> str:
    """Name the two sides of a figure, and the `value` of its column, unless that is empty."""
    first, second = figure.sides
    if not value:
        return written("direction.sides", first=first, second=second)
    fields = {"column": figure.column, "value": value}
    return written("direction.sides_where", first=first, second=second, **fields)


# ---- Rates and means -----------------------------------------------------------------------------
@dataclass(frozen=True)
class _Quantity:
    """The rates, or the means, of subjects on one rubric. The subject of all units is ""."""

    figures: src.RubricFigures
    statistics: SubjectStatistics

    @property
    def subset(self) -> str:
        """The subset of the figures: rates are of the binary label, means of the categories."""
        return src.ALL_BINARY if self.statistics.is_rate else src.ALL

    @property
    def label(self) -> str:
        """The word for the figures: rates, or means."""
        return written("rates.rates" if self.statistics.is_rate else "rates.means")

    @cached_property
    def statistic(self) -> str:
        """Name of the shown statistic: corrected, or raw without annotators' labels."""
        corrected = self.statistics.corrected
        return corrected if self.figures.select(corrected, self.subset) else self.statistics.raw

    @property
    def graders(self) -> list[str]:
        """Graders with raw figures."""
        raw = self.figures.select(self.statistics.raw, self.subset)
        names = dict.fromkeys(figure.grader or figure.rater for figure in raw)
        return [name for name in names if name != "humans"]

    @cached_property
    def distinct_graders(self) -> list[str]:
        """Graders whose figures differ: of those with people's own figures only the first."""
        with_own = [name for name in self.graders if self.kind(name) == "own"]
        return [name for name in self.graders if name not in with_own[1:]]

    def raw(self, grader: str) -> dict[str, src.Figure]:
        """Return a grader's raw figures by subject, "" for all units."""
        # A raw rate has the raters of the corrected one; a raw mean is the grader's own score.
        raters = ("humans", grader) if self.statistics.is_rate else (grader, "")
        rows = self.figures.select(self.statistics.raw, self.subset, raters)
        return {row.at: row for row in rows}

    def by_subject(self, statistic: str, grader: str) -> dict[str, src.Figure]:
        """Return the figures of one statistic of people and a grader, by subject as in `raw`."""
        rows = self.figures.select(statistic, self.subset, ("humans", grader))
        return {row.at: row for row in rows}

    def kind(self, grader: str) -> Literal["corrected", "own", "raw"]:
        """Return the kind of a grader's figures: without correction "raw"; "own" if people labelled
        all units that it graded, so that a correction gives their own figures; else "corrected".
        """
        if self.statistic == self.statistics.raw:
            return "raw"
        rows = src.largest_first(self.by_subject(self.statistics.corrected, grader).values())
        return "own" if rows and all(row.has_remark("peoples_own") for row in rows) else "corrected"

    def heading(self, grader: str) -> str:
        """Return the heading over a grader's rows."""
        return written("rates.own") if self.kind(grader) == "own" else grader

    def rows(self, figures: Iterable[src.Figure]) -> list[src.RowSpec]:
        """Return a row for each figure, titled by its subject, under the grader."""
        all_units = written("rates.all_units")
        return src.rows_of(
            figures, lambda row: row.at or all_units, lambda row: self.heading(row.grader)
        )

    def label_source(self, grader: str) -> str:
        """State whose labels the figures of a grader rest on."""
        return written(f"rates.by_{self.kind(grader)}", grader=grader)

    def differences(self, grader: str) -> list[tuple[str, str, src.Figure]]:
        """Return (first subject, second, their difference) for all known differences."""
        differences = self.by_subject(self.statistics.difference, grader)
        subjects = self.by_subject(self.statistics.corrected, grader)
        pairs = ((*pair, differences.get(from_to(*pair))) for pair in combinations(subjects, 2))
        return [(first, second, figure) for first, second, figure in pairs if figure]

    def pair_differences(self, grader: str) -> list[src.Figure]:
        """Return a grader's differences between pair sides, by subject."""
        rows = self.figures.select_all(self.statistics.side_difference)  # also of annotator sides
        return [row for row in rows if row.column == "side" and row.raters == ("humans", grader)]


def rate_part(figures: src.RubricFigures) -> Part:
    """Make the part on rates and means of subjects, and on subjects' ranks by these."""
    rates, means = _Quantity(figures, RATES), _Quantity(figures, MEANS)
    shares = figures.select_all(_CORRECTED_SHARE)
    if not (rates.graders or means.graders or shares):
        return Part()
    quantities = (rates, means)
    folded: list[blocks.Block] = [*_raw_table(rates, means)]
    for quantity in quantities:
        folded += [*_difference_tables(quantity), *_annotator_side_tables(quantity)]
    folded += _rates_by_part(rates)
    by_subset = figures.by_subset(MEANS.corrected).items()
    part_means = chain.from_iterable(rows for subset, rows in by_subset if subset != src.ALL)
    title = written("rates.parts", what=written("rates.means"))
    folded += [*_part_table(means, [*part_means], title), *_share_table(figures, shares)]
    raters = [src.RowSpec(grader, ("humans", grader)) for grader in rates.graders]
    folded += figures.table("rates.errors", raters)
    folded += items(written("rates.what"), _rate_sentences(rates, means))
    ranks: list[src.RowSpec] = []
    for quantity in quantities:
        rank_sets = figures.select("rate_rank_set", quantity.subset)
        ranks += src.rows_of(rank_sets, attrgetter("at"), attrgetter("grader"))
    answers = [_rate_answer(quantity) for quantity in quantities if quantity.graders]
    if not rates.graders and answers == [in_pieces("report.rates_nothing")]:
        return Part()  # means alone, and nothing to correct in them
    answers += chain.from_iterable(map(_annotator_side_answers, quantities))
    return Part(answers=answers, folded=folded, appendix=figures.table("rates.ranks", ranks))


def _raw_table(rates: _Quantity, means: _Quantity) -> list[Table]:
    """Tabulate subjects' rates and means as every grader gives them, without correction."""
    figures, all_units = rates.figures, written("rates.all_units")
    rows: list[src.RowSpec] = []
    for grader in dict.fromkeys([*rates.graders, *means.graders]):
        subjects = {**rates.raw(grader), **means.raw(grader)}
        keys = (figures.key(RATES.raw, "humans", grader, src.ALL_BINARY, name) for name in subjects)
        rows += [src.RowSpec(grader), *(src.RowSpec(key.at or all_units, key) for key in keys)]
    # The mean is in the row that has the key of a rate: of the same grader and subject.
    mean = entry_for(MEANS.raw).label, lambda key: figures.get(MEANS.raw, key.rater_b, at=key.at)
    return figures.table("rates.caption", rows, [mean])


def _share_table(figures: src.RubricFigures, shares: list[src.Figure]) -> list[Table]:
    """Tabulate the corrected share of each category, for each grader and part of the sample."""
    one_category = {(row.raters, row.subset): row for row in shares}.values()

    def title(figure: src.Figure) -> str:
        return written("rates.all_units") if figure.part == src.ALL else figure.part

    rows = src.rows_of(one_category, title, attrgetter("grader"))
    categories = dict.fromkeys(row.at for row in shares)
    return figures.table("rates.shares", rows, [(name, {"at": name}) for name in categories])


def _difference_tables(quantity: _Quantity) -> list[Table]:
    """Tabulate differences between subjects, then those between pair sides."""
    figures, graders = quantity.figures, quantity.distinct_graders
    rows: list[src.RowSpec] = []
    for grader in graders:
        rows.append(src.RowSpec(quantity.heading(grader)))
        for first, second, figure in quantity.differences(grader):
            title = written("rates.difference", first=first, second=second)
            rows.append(src.RowSpec(title, figure.key))
    first, second = figures.analysis.settings.sides
    side_rows = quantity.rows(chain.from_iterable(map(quantity.pair_differences, graders)))
    # Both tables have one column, with the figure whose key the row has.
    column: list[src.HeadedColumn] = [(entry_for(RATES.difference).label, figures.by_key)]
    fields = {"first": first, "second": second, "what": quantity.label}
    differences = figures.table("rates.differences", rows, column, what=quantity.label)
    return differences + figures.table("rates.sides", side_rows, column, **fields)


def _annotator_side_tables(quantity: _Quantity) -> list[Table]:
    """Tabulate subjects' figures by annotator side, such as a party: a table for each column."""
    figures, statistics = quantity.figures, quantity.statistics
    graders, tables = quantity.distinct_graders, []
    # The `least` figure of a subject is the smallest of those by the annotator sides of a column.
    by_column = src.group_by(figures.select_all(statistics.least_side), attrgetter("column"))
    for column, least in by_column.items():
        side_figures = figures.select_all(statistics.corrected, statistics.side_difference)
        on_column = [row for row in side_figures if row.column == column]
        titles = {(row.statistic, row.subset): _annotator_side_title(row) for row in on_column}
        columns: list[src.HeadedColumn] = [
            (title, {"statistic": statistic, "subset": subset})
            for (statistic, subset), title in titles.items()
        ]
        rows = quantity.rows(row for row in least if row.grader in graders)
        fields = {"column": column, "what": quantity.label}
        tables += figures.table("rates.publics", rows, [*columns, statistics.least_side], **fields)
    return tables


def _annotator_side_title(figure: src.Figure) -> str:
    """Name the annotator side that a figure is on, or the two of a difference."""
    first, second = names_in(figure.value)
    return written("rates.difference", first=first, second=second) if second else first


def _annotator_side_answers(quantity: _Quantity) -> Iterator[list[object]]:
    """Yield a sentence on the subject that annotator sides differ on most, for each column."""
    figures, statistics = quantity.figures, quantity.statistics
    columns = {row.column for row in figures.select_all(statistics.least_side)}  # of annotators
    side_differences = figures.select_all(statistics.side_difference)  # also of pair sides
    differences = (row for row in side_differences if row.column in columns)
    for column, rows in src.group_by(differences, attrgetter("column")).items():
        gap = max(rows, key=lambda row: abs(row.exact.estimate))  # its `value` is "first>second"
        first, second = names_in(gap.value)
        key = gap.key._replace(statistic=statistics.corrected)
        subsets = (gap.subset.replace(f"={gap.value}", f"={side}") for side in (first, second))
        first_figure, second_figure = (figures.by_key(key._replace(subset=on)) for on in subsets)
        if first_figure and second_figure:
            fields = {"first": first, "second": second, "gap": gap, "column": column}
            fields |= {"one": first_figure, "other": second_figure}
            subject = gap.at or written("direction.everywhere")
            yield in_pieces("report.publics", subject=subject, **fields)


def _rate_answer(quantity: _Quantity) -> list[object]:
    """State the best grader's rate on all units, or else the highest and lowest subject's."""
    figures, is_raw = quantity.figures, quantity.statistic == quantity.statistics.raw
    people = figures.get(quantity.statistics.by_people, "humans", subset=quantity.subset)
    for grader in figures.sorted_by_agreement(quantity.graders, quantity.subset):
        raw_rates = quantity.raw(grader)
        rates = raw_rates if is_raw else quantity.by_subject(quantity.statistic, grader)
        raw, rate = raw_rates.get(""), rates.get("")  # those of all units
        fields = {"grader": grader, "what": quantity.label.removesuffix("s")}
        if raw and is_raw:
            return in_pieces("report.rates_raw", raw=raw, **fields)
        if raw and rate and not (rate.reason or rate.has_remark("peoples_own")):
            both = in_pieces("report.rates", raw=raw, corrected=rate, **fields)
            people_sentence = in_pieces("report.rates_people", rate=people) if people else []
            return src.join_sentences(both, people_sentence)
        if len(by_size := src.largest_first(rates.values())) > 1:
            highest, lowest = by_size[0], by_size[-1]
            ends = {"first": highest.at, "highest": highest, "last": lowest.at, "lowest": lowest}
            labels = quantity.label_source(grader)
            return in_pieces("report.rates_of_subjects", by=labels, **ends, **fields)
    return in_pieces("report.rates_nothing")


def _rates_by_part(rates: _Quantity) -> list[blocks.Block]:
    """Show the best grader's rates in every part of the sample, then those of answers by side."""
    figures, graders = rates.figures, rates.distinct_graders
    columns = {part.partition("=")[0] for part in figures.binary_parts("rate_raw")}
    # With pair sides, rates by these columns are of single answers: a pair has one on each side.
    # Rates by all other columns are of pairs, and have another caption.
    by_side = {"side", "leaning"} if figures.analysis.settings.leanings else {"side"}
    answer_columns = by_side if "side" in columns else set()
    folded: list[blocks.Block] = []
    is_corrected = "corrected" in {rates.kind(grader) for grader in graders}
    keys = ("parts", "parts_by_side") if is_corrected else ("parts_plain", "parts_by_side_plain")
    ranked = figures.sorted_by_agreement(graders, src.ALL_BINARY)
    parts = chain.from_iterable(figures.binary_parts(rates.statistic).values())
    # Without remarks that most cells would repeat.
    rows = [row.without("labelled_by_people").without("peoples_own") for row in parts]
    for key, is_by_side in zip(keys, (False, True), strict=True):
        part_rows = [row for row in rows if (row.column in answer_columns) == is_by_side]
        tables = _part_table(rates, part_rows, written(f"rates.{key}", what=rates.label))
        caption = written(f"chart.rates_by_{key}")
        drawn = (_part_chart(rates, grader, part_rows, tables, caption) for grader in ranked)
        folded += next(filter(None, drawn), tables)  # of the best grader with rates; or the tables
    return folded


def _part_table(quantity: _Quantity, rows: Sequence[src.Figure], caption: str) -> list[Table]:
    """Tabulate each grader and part in a row, each subject in a column."""
    by_key = {row.key: row for row in rows}
    subjects = dict.fromkeys(row.at for row in rows)
    if len(subjects) > charts.MAX_LISTED:  # they are in results.csv
        return []

    def cell_of(key: src.Key, *, at: str) -> src.Figure | None:
        return by_key.get(key._replace(at=at))

    columns = [(at or written("rates.all_units"), partial(cell_of, at=at)) for at in subjects]
    parts = {row.part: row.key for row in rows}
    table_rows: list[src.RowSpec] = []
    for grader in quantity.distinct_graders:
        of_parts = (src.RowSpec(part, key._replace(rater_b=grader)) for part, key in parts.items())
        table_rows += [src.RowSpec(quantity.heading(grader)), *of_parts]
    return quantity.figures.table("rates.parts", table_rows, columns, caption=caption)


def _part_chart(
    rates: _Quantity, grader: str, rows: Sequence[src.Figure], data: list[Table], caption: str
) -> list[Chart]:
    """Draw a grader's rates of subjects by part, a panel for each column; nothing without rates."""
    figures, parts = rates.figures, dict.fromkeys(row.part for row in rows)
    by_column = src.group_by(parts, lambda part: part.partition("=")[0])
    by_cell = {(row.part, row.at): row for row in rows if row.grader == grader}
    all_subjects = list(dict.fromkeys(subject for _, subject in by_cell))
    subjects = all_subjects[: charts.MAX_LISTED]
    first_parts = {part for group in by_column.values() for part in group[:_MAX_PARTS]}
    drawn = [part for part in parts if part in first_parts]
    cells = [by_cell[cell] for cell in product(drawn, subjects) if cell in by_cell]
    if all(figure.reason for figure in cells):
        return []
    titles = charts.short_names(subjects) | {"": written("rates.all_units")}
    names = charts.short_names([part.partition("=")[2] for part in drawn])
    values: list[charts.Datum] = []
    for figure in cells:
        mark = "*" if figure.has_remark("few_labelled") else ""
        datum = figure.datum(a=titles[figure.at], b=names[figure.value], column=figure.column)
        values.append(datum | {"shown": f"{figure.estimate}{mark}"})
    heads = [titles[subject] for subject in subjects]
    axes = {"x": written("chart.scores_subject"), "y": written("chart.rates_part")}
    panels = []
    for column, entries in src.group_by(values, lambda datum: datum["column"]).items():
        order = [*heads, *charts.unique_values(entries, "b")]  # of both axes
        grid = charts.heat_cells(order, _STEPS, **axes, slanted=True)
        panels.append(charts.fill_template("rates_panel", column=column, grid=grid)["spec"])
    few, undefined = written("chart.few_labelled"), written("chart.heat_map_note", dash=DASH)
    return figures.chart(
        "rates", values, data,
        few if any(figure.has_remark("few_labelled") for figure in cells) else "",
        undefined if any(figure.reason for figure in cells) else "",
        charts.omitted_note(all_subjects, subjects, "subjects"),
        *(charts.omitted_note(group, drawn, "values", _MAX_PARTS) for group in by_column.values()),
        caption=caption, by=rates.label_source(grader), subjects=heads, parts=drawn, panels=panels,
    )  # fmt: skip


def _rate_sentences(rates: _Quantity, means: _Quantity) -> Iterator[str]:
    """Yield sentences on each grader: why it does not inform on rates, and clear differences."""
    for grader in rates.graders:
        figures = rates.by_subject("rate_rogan_gladen", grader).values()
        reasons = {figure.reason.code if figure.reason else "" for figure in figures}
        if reasons == {"no_unlabelled_units"}:
            yield written("rates.nothing_else", grader=grader)
        if "grader_not_informative" in reasons:
            youden = rates.by_subject("youden_j", grader)[""]  # on all units
            yield written("rates.not_informative", grader=grader, j=youden.text, line=youden.line)
        if grader in rates.distinct_graders:
            yield from _difference_sentences(rates, grader)
            yield from _pair_sentences(rates, grader)
    for grader in means.distinct_graders:
        yield from _difference_sentences(means, grader)


def _difference_sentences(quantity: _Quantity, grader: str) -> Iterator[str]:
    """Yield a sentence on the subjects that differ clearly; nothing if no difference is known."""
    pairs, labels = quantity.differences(grader), quantity.label_source(grader)
    lower_by_higher: dict[str, list[str]] = {}
    for first, second, figure in pairs:
        if figure.is_clear and figure.interval:
            higher, lower = (first, second) if figure.exact.low > 0 else (second, first)
            lower_by_higher.setdefault(higher, []).append(lower)
    if not lower_by_higher and pairs:
        yield written("rates.none_apart", by=labels)
    elif lower_by_higher:
        clear = "; ".join(
            written("rates.above", subject=higher, others=", ".join(others))
            for higher, others in lower_by_higher.items()
        )
        n_clear = sum(map(len, lower_by_higher.values()))
        yield written("rates.apart", by=labels, pairs=len(pairs), apart=n_clear, clear=clear)


def _pair_sentences(rates: _Quantity, grader: str) -> Iterator[str]:
    """Yield a sentence on each subject whose rates on the pair sides differ clearly, or on none."""
    sides, labels = rates.figures.analysis.settings.sides, rates.label_source(grader)
    differences = [figure for figure in rates.pair_differences(grader) if figure.interval]
    clear = [figure for figure in differences if figure.is_clear]
    for figure in clear:
        is_toward_first = figure.exact.estimate > 0
        toward, other = sides if is_toward_first else sides[::-1]
        numbers = sorted(number if is_toward_first else -number for number in figure.exact)
        low, more, high = (src.format_number(number, _SIDE_DIFFERENCE) for number in numbers)
        fields = {"by": labels, "subject": figure.at, "toward": toward, "other": other}
        fields |= {"more": f"{more} [{low}, {high}]", "line": str(figure.line)}
        yield written("rates.side" if figure.at else "rates.side_of_all", **fields)
    if differences and not clear:
        has_subjects = any(figure.at for figure in differences)
        fields = {"by": labels, "first": sides[0], "second": sides[1]}
        yield written("rates.no_side" if has_subjects else "rates.no_side_of_all", **fields)


# ---- Rates on all rubrics ------------------------------------------------------------------------
class _RubricRates(NamedTuple):
    """Subjects' rates on one rubric, by its best grader."""

    title: str
    cells: dict[str, blocks.Cell]  # by subject
    published: dict[str, blocks.Cell]  # of published rates, by subject
    kind: Literal["corrected", "own", "raw"]  # of the rates (`_Quantity.kind`)
    label_source: str  # whose labels the rates rest on


def with_every_rubric(source: src.Source, section: blocks.ReportSection) -> blocks.ReportSection:
    """Add a table of subjects' rates on all rubrics, each by the grader that agrees most with
    people, and published rates that the study declares; no table for one subject, folded for many.
    """
    rubrics = list(_rates_by_rubric(source))
    columns: dict[str, dict[str, blocks.Cell]] = {}
    for rubric in rubrics:
        columns[rubric.title] = rubric.cells
        if rubric.published:
            columns[written("rates.published", rubric=rubric.title)] = rubric.published
    subjects = dict.fromkeys(chain.from_iterable(columns.values()))
    if len(subjects) < 2:
        return section
    table_rows = []
    for name in subjects:
        cells = tuple(column.get(name, blocks.Cell()) for column in columns.values())
        table_rows.append(blocks.Row(name, cells))
    kinds = {rubric.kind for rubric in rubrics}
    kind = rubrics[0].kind if len(kinds) == 1 else "corrected"  # a note states the kind of others
    caption, note = written(f"rates.every_rubric_{kind}"), _label_source_note(rubrics)
    table = Table(caption, "Subject", tuple(columns), tuple(table_rows), (note,))
    if len(table_rows) > charts.MAX_LISTED:
        return replace(section, parts=(Part(title=caption, folded=(table,)), *section.parts))
    return replace(section, blocks=(table,))


def _rates_by_rubric(source: src.Source) -> Iterator[_RubricRates]:
    """Yield the rates on every rubric with a rate of a subject; equal titles get the rubric."""
    titles = [figures.title for figures in source.rubrics]
    for figures in source.rubrics:
        rates = _Quantity(figures, RATES)
        rows = figures.select(rates.statistic, src.ALL_BINARY)
        graders = dict.fromkeys(row.grader for row in rows if row.at and not row.reason)
        if not graders:
            continue
        best = figures.sorted_by_agreement(graders, src.ALL_BINARY)[0]
        is_shared = titles.count(figures.title) > 1
        title = f"{figures.title} ({figures.rubric})" if is_shared else figures.title
        by_subject = rates.by_subject(rates.statistic, best)
        cells = {subject: figure.cell for subject, figure in by_subject.items()}
        published = _published_cells(figures, by_subject)
        yield _RubricRates(title, cells, published, rates.kind(best), rates.label_source(best))


def _label_source_note(rubrics: Sequence[_RubricRates]) -> tuple[str, str]:
    """Return the mark and the text of the footnote on whose labels the rates rest."""
    by_source = src.group_by(rubrics, attrgetter("label_source"))
    sources = [
        written("rates.by_rubrics", rubrics=", ".join(rubric.title for rubric in group), by=labels)
        for labels, group in by_source.items()
    ]
    if len(by_source) == 1:
        sources = [written("rates.by_one", by=next(iter(by_source)))]
    mark = "PPI++" if any(rubric.kind == "corrected" for rubric in rubrics) else "*"
    return mark, "; ".join(sources)


def _published_cells(figures: src.RubricFigures, names: Collection[str]) -> dict[str, blocks.Cell]:
    """Return the published rates that the study declares, of subjects with these names."""
    if (declared := figures.context.replication) is None:
        return {}
    published = declared.published
    return {
        quoted.at: blocks.Cell(quoted.as_result_text, published=published.citation)
        for quoted in published.figure
        if (quoted.rubric, quoted.between) == (figures.rubric, "subjects") and quoted.at in names
    }
