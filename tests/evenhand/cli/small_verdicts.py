"""Small files whose verdict a careful reader sees at once: what that reader says, and evenhand.

All labels here are made by fixed patterns: ann, ben and cem agree on about nine of ten units.
"""

from collections.abc import Iterable

from tests.evenhand.cli.small_files import Case, Label, csv

N, RARE = 240, 48
"""Units, and how many of them, the first, are in the slice `rare`."""


def truth(unit: int) -> str:
    """1 to 5, with no order that any pattern below follows."""
    return "12345"[(unit * 7 + unit // 5) % 5]


def with_slips(offset: int, of: Label = truth, every: int = 10) -> Label:
    """Right but on one unit in so many, where the label is that of another unit."""
    return lambda unit: of(unit + 1) if unit % every == offset else of(unit)


PEOPLE: dict[str, Label] = {"ann": with_slips(0), "ben": with_slips(3), "cem": with_slips(7)}
GOOD = with_slips(5)


def labels(
    gpt: Label, people: dict[str, Label] = PEOPLE, units: int = N, missing: Iterable[int] = ()
) -> list[tuple[str, ...]]:
    """Everybody's rows, in two slices."""
    absent = set(missing)
    raters = [*((who, "human", label) for who, label in people.items()), ("gpt", "model", gpt)]
    return [
        (f"u{unit}", rater, kind, label(unit), "rare" if unit < RARE else "usual")
        for unit in range(units)
        for rater, kind, label in raters
        if not (rater == "gpt" and unit in absent) and label(unit) != "-"
    ]


HEADER = ("unit_id", "rater_id", "rater_kind", "label", "slice")
SCALE = "check r.csv --level ordinal --categories 1,2,3,4,5"


def file(name: str, reader: str, rows: list[tuple[str, ...]], *says: str, more: str = "") -> Case:
    """A case whose verdict is printed, and which ends well."""
    return Case(name, reader, csv(rows, HEADER), says, 0, command=f"{SCALE} {more}".strip())


def reverse(unit: int) -> str:
    """The scale the other way round."""
    return str(6 - int(GOOD(unit)))


def only(at: int) -> Label:
    """One unit in three."""
    return lambda unit: truth(unit) if unit % 3 == at else "-"


def in_slice(rare: Label, usual: Label) -> Label:
    """One grader where the slice is rare, another elsewhere."""
    return lambda unit: rare(unit) if unit < RARE else usual(unit)


def yes_no(unit: int) -> str:
    """Half and half, on no unit as `truth` would have it."""
    return "12"[(unit * unit // 3) % 2]


ONE = {"ann": truth}

VERDICTS = (
    file("good", "as good as annotators", labels(GOOD), "gpt can replace an annotator"),
    file("good, by slice", "as good as annotators; of the rare slice there is too little to tell",
         labels(GOOD, units=900), "gpt can replace an annotator",
         "within the margin in slice=usual; too few labels to tell in 1 of 2",
         more="--slice slice"),
    file("nobody looked at parts", "what holds on the whole need not hold in every part",
         labels(in_slice(reverse, GOOD), units=900), "and so whether gpt can replace an annotator",
         "nor in every part of the sample"),
    file("fails in a slice", "wrong wherever the slice is rare",
         labels(in_slice(reverse, GOOD), units=900),
         "Use gpt only with correction, and not for slice=rare", more="--slice slice"),
    file("fails in a large slice", "wrong on a fifth of the items, and so on the whole",
         labels(in_slice(reverse, GOOD)), "Use gpt only with correction, and not for slice=rare",
         "Do not use single labels in place of annotators'", more="--slice slice"),
    file("inverted", "reads the scale backwards", labels(reverse), "It looks inverted", "reversed"),
    file("one answer", "says 3 whatever it reads", labels(lambda unit: "3"), "Do not use gpt",
         "no better than a baseline"),
    file("noise", "its labels have nothing to do with the items",
         labels(lambda unit: truth(unit * 3 + 11)), "Do not use gpt"),
    file("rows are missing", "no label on two of five",
         labels(GOOD, missing=[unit for unit in range(N) if unit % 5 < 2]),
         "no label on 40% of 240 items", "absent 96"),
    file("a row or two is missing", "hardly worth a word", labels(GOOD, missing={4, 9}),
         "gpt can replace an annotator", "1% of items have no label from this grader (absent 2)"),
    file("a copy of ben", "ben's file under another name", labels(PEOPLE["ben"]),
         "Its labels are those of ben on 100% of items", "compared with the other annotators only"),
    file("a copy of one of two", "nobody is left to set it beside",
         labels(PEOPLE["ben"], {name: PEOPLE[name] for name in ("ann", "ben")}),
         "Inconclusive", "only one other annotator labelled", "perhaps a copy of ben",
         "further annotators' labels would show which"),
    file("one expert", "one annotator shows nothing of how far annotators agree", labels(GOOD, ONE),
         "Only one annotator labelled", "--reference"),
    file("one expert, declared", "agrees with ann, whatever others say", labels(GOOD, ONE),
         "gpt agrees with ann well enough", "this does not show that it can replace annotators",
         more="--reference ann"),
    file("one expert, declared, and a bad grader", "does not agree with ann", labels(reverse, ONE),
         "gpt does not agree with ann", more="--reference ann"),
    file("human agreement too low", "nothing can be judged beside annotators who do not agree",
         labels(GOOD, {"ann": truth, "ben": yes_no, "cem": lambda unit: truth(unit * 3 + 1)}),
         "is too low to evaluate any grader", "Make the rubric or its instructions clearer"),
    file("an annotator upside down", "ben takes 5 for the worst",
         labels(GOOD, PEOPLE | {"ben": reverse}), "ben seems to label the other way round",
         "first check the labels of ben"),
    file("one annotator an item", "nobody has labelled an item a second time",
         labels(GOOD, {who: only(at) for at, who in enumerate(PEOPLE)}),
         "No item has labels of two annotators",
         "Have a second annotator label 60 items drawn at random"),
    file("few items", "too little to tell, however good", labels(GOOD, units=25),
         "Inconclusive", "label 5 more items"),
    file("only two annotators, for annotators like them", "two annotators tell nothing of "
                                                          "how annotators differ",
         labels(GOOD, {name: PEOPLE[name] for name in ("ann", "ben")}), "needs three",
         more="--set scope=like_these"),
    file("no annotator", "nobody to set it beside", labels(GOOD, {}), "No annotator has labelled"),
)  # fmt: skip
