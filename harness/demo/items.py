"""The items demo: answers to questions on short texts, some of which claim more than the text.

Every text is a made-up place with made-up facts. The truth is drawn first, and the answer written
to show it; annotators and judges see the truth through confusion matrices, as in
`harness.demo.raters`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness.demo.raters import SimulatedRater, simulate_ratings
from harness.demo.seeds import generator

if TYPE_CHECKING:
    from evenhand.rubrics import Rubric

JUDGE = "synthetic_judge"
"""The column of the shipped file that holds a judge's labels; the judge is called like it."""
_RUBRIC = "faithfulness"
_FAITHFUL = {"synthetic-careful": 0.82, "synthetic-fluent": 0.52}
"""The share of each subject's answers that keep to the text."""

_PLACES = (
    "city museum", "public library", "swimming hall", "botanical garden", "lake ferry", "zoo",
    "castle", "observatory", "market hall", "art gallery", "ice rink", "climbing hall",
    "puppet theatre", "railway museum", "bird park", "cable car", "concert hall", "salt mine",
    "open-air cinema", "planetarium", "old mill", "toy museum", "bath house", "lighthouse",
    "glass works", "rose garden", "town archive", "sculpture park", "skate hall", "clock museum",
)  # fmt: skip
_TOWNS = ("Lindau", "Arvenheim", "Norrby", "Castell", "Port Elm", "Weidach", "Sollau", "Brackwick")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday")
_GUESTS = ("children under six", "school classes", "people over 70", "students")
_NEW = ("a café", "a new lift", "a second entrance", "a reading room", "a roof terrace")
_MONTHS = ("March", "May", "June", "September", "October")


@dataclass(frozen=True)
class Place:
    """A made-up place, with the facts in its text."""

    name: str
    town: str
    year: int
    opens: int
    closes: int
    closed: str
    price: int
    free: str
    month: str
    new: str

    @property
    def text(self) -> str:
        return (
            f"The {self.name} in {self.town} was opened in {self.year}. It is open from "
            f"{self.opens} to {self.closes} o'clock, and closed on {self.closed}s. A ticket costs "
            f"{self.price} euros; {self.free} pay nothing. Since {self.month} it has had "
            f"{self.new}."
        )

    @property
    def questions(self) -> tuple[str, ...]:
        name = self.name
        return (
            f"When is the {name} open?",
            f"What does a ticket to the {name} cost?",
            f"How old is the {name}?",
            f"Who runs the {name}?",
        )

    def faithful(self, question: int) -> tuple[str, ...]:
        """Answers to a question that keep to the text."""
        return (
            (
                f"From {self.opens} to {self.closes} o'clock, every day but {self.closed}.",
                f"It opens at {self.opens} and closes at {self.closes}. On {self.closed}s it "
                "stays closed.",
            ),
            (
                f"{self.price} euros, and nothing for {self.free}.",
                f"A ticket is {self.price} euros. Those who pay nothing are {self.free}.",
            ),
            (f"It was opened in {self.year}.", f"It dates from {self.year}."),
            ("The text does not say who runs it.", "That is not mentioned."),
        )[question]

    def unfaithful(self, question: int) -> tuple[str, ...]:
        """Answers that contradict the text or add to it."""
        return (
            (
                f"From {self.opens} to {self.closes + 1} o'clock, every day but {self.closed}.",
                f"It opens at {self.opens} and closes at {self.closes}, with the last entry half "
                f"an hour before. On {self.closed}s it stays closed.",
            ),
            (
                f"{self.price + 2} euros, and nothing for {self.free}.",
                f"{self.price} euros, and nothing for {self.free}. A pass for the year is "
                f"{self.price * 5} euros.",
            ),
            (
                f"It was opened in {self.year}, after two years of building.",
                f"It dates from {self.year - 10}.",
            ),
            (f"The town of {self.town} runs it.", "A foundation, as far as is known."),
        )[question]


def demo_items(seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Return the items as shipped, and the true label of each, "yes" or "no"."""
    rows: list[tuple[str, str, str, str, str]] = []
    truth: list[str] = []
    for name in _PLACES:
        place = _place(name, generator(seed, "place", name))
        for number, question in enumerate(place.questions):
            for subject, share in _FAITHFUL.items():
                rng = generator(seed, "answer", question, subject)
                keeps = bool(rng.random() < share)
                answers = place.faithful(number) if keeps else place.unfaithful(number)
                said = answers[int(rng.integers(len(answers)))]
                rows.append((f"a{len(rows) + 1:03d}", question, place.text, said, subject))
                truth.append("yes" if keeps else "no")
    items = pd.DataFrame(rows, columns=["id", "question", "context", "response", "model"])
    return items, pd.Series(truth, index=items["id"])


def with_judge(items: pd.DataFrame, truth: pd.Series, rubric: Rubric, seed: int) -> pd.DataFrame:
    """Return the items with the judge's labels in a column of their own."""
    known = pd.DataFrame({"unit_id": truth.index, "rubric": rubric.name, "label": truth.to_numpy()})
    labels = simulate_ratings([_rater(JUDGE, 0.95, 0.90)], known, [rubric], seed)
    return items.assign(**{JUDGE: labels["label"].to_numpy()})


def item_ratings(truth: pd.DataFrame, sampled: set[str], rubric: Rubric, seed: int) -> pd.DataFrame:
    """Return a `ratings` table: annotators on the `sampled` units, a lenient judge on all. `truth`
    has the columns `unit_id, rubric, label`.
    """
    own = truth[truth["unit_id"].isin(sampled)]
    people = simulate_ratings(ANNOTATORS, own, [rubric], seed)
    lenient = simulate_ratings([LENIENT], truth, [rubric], seed)
    return pd.concat([people, lenient], ignore_index=True)


def _rater(name: str, yes: float, no: float) -> SimulatedRater:
    """Return a rater who labels these shares of the faithful and the other answers correctly."""
    confusion = np.array([[yes, 1 - yes], [1 - no, no]])
    kind = "human" if "annotator" in name else "model"
    return SimulatedRater(name, kind, {_RUBRIC: confusion})  # type: ignore[arg-type]


ANNOTATORS = (
    _rater("synthetic-annotator-1", 0.95, 0.88),
    _rater("synthetic-annotator-2", 0.92, 0.90),
    _rater("synthetic-annotator-3", 0.94, 0.85),
)
LENIENT = _rater("synthetic:judge-lenient", 0.98, 0.40)


def _place(name: str, rng: np.random.Generator) -> Place:
    def one(choices: tuple[str, ...]) -> str:
        return choices[int(rng.integers(len(choices)))]

    return Place(
        name=name,
        town=one(_TOWNS),
        year=int(rng.integers(1880, 2015)),
        opens=int(rng.integers(8, 12)),
        closes=int(rng.integers(16, 21)),
        closed=one(_DAYS),
        price=int(rng.integers(4, 19)),
        free=one(_GUESTS),
        month=one(_MONTHS),
        new=one(_NEW),
    )
