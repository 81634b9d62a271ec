"""Names in what annotators see that tell who answered, or what a judge said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.rubrics.content import image_of
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study

_VERSION = r"\d(?:[\w.-]*\w)?"
_MODELS = (
    rf"(?i:chat-?gpt|(?:gpt|llama|gemini|grok|phi|alpaca)-?{_VERSION}|claude-\w[\w.-]*\w|gemma|"
    r"codellama|mistral-\w+|ministral|magistral|mixtral|qwen|qwq|deepseek|command-r|vicuna|"
    r"o[134]-(?:mini|preview|pro)|openai|anthropic)|"
    r"Claude|Gemini|Grok|LLaMA|Llama|Mistral"  # in small letters some are words
)
"""Names of families of models, and of those who make them."""
_WORDS = {"score", "rating", "label", "answer", "verdict", "grade", "correct", "result"}
"""Names of judges' columns that texts hold for other reasons."""
_NO_SUBJECT = "responses"  # the subject of items of which none is known
_SHORTEST = 3


def names_shown(study: Study, option: str = "") -> list[str]:
    """Return sentences on items whose shown texts, and on headings that, hold the name of a model,
    of a subject of the study or of a judge; `option` is what leaves a column out, "" if none does.
    """
    from evenhand.study.store.store import rater_kinds

    with study.store.read() as connection:
        judges = [name for name, kind in rater_kinds(connection).items() if kind == "model"]
    subjects = [name for name in study.subjects() if name != _NO_SUBJECT]
    in_texts = _pattern(
        subjects, [rf"{re.escape(name)}(?=\s*[:=])" for name in judges if name not in _WORDS]
    )
    in_headings = _pattern([*subjects, *judges], [])
    items: dict[str, str] = {}
    for item, column, cell in shown_texts(study):
        image = image_of(cell)
        text = cell if image is None else image.alt
        if item not in items and (name := in_texts.search(text)):
            items[item] = f"{name[0]} in {column}"
    blocks = [block for rubric in study.labelled_rubrics() for block in rubric.blocks]
    headings = dict.fromkeys(b.label for b in blocks if in_headings.search(b.label))
    said = []
    if items:
        first, what = next(iter(items.items()))
        counts = {"count": len(items), "total": len(study.store.pairs())}
        said.append(written("items.names_in_texts", **counts, first=first, what=what))
    if headings:
        listed = ", ".join(headings)
        said.append(written("items.names_in_headings", headings=listed))
    if said and option:
        said.append(written("items.names_left_out", option=option))
    return said


def _pattern(names: list[str], others: list[str]) -> re.Pattern[str]:
    """A pattern of whole words; letter case counts in the names, but not in those of models."""
    exact = [re.escape(name) for name in names if len(name) >= _SHORTEST or re.search(r"\d", name)]
    either = "|".join([*sorted(exact, key=len, reverse=True), *others, _MODELS])
    return re.compile(rf"(?<![\w-])(?:{either})(?![\w])")


def shown_texts(study: Study) -> Iterator[tuple[str, str, str]]:
    """Yield the item, the column and the text, or image, of every cell that the rubrics show."""
    shown = {name for rubric in study.labelled_rubrics() for name in rubric.variables}
    sides = {f"{name}_{side}": name for name in ("prompt", "stance") for side in "ab"}
    pairs, responses = study.store.pairs(), study.store.responses()
    for item, text in zip(responses["pair_id"], responses["response"], strict=True):
        yield item, "response", text
    for column in pairs.columns.drop(["pair_id", "sample_position"]):
        if column in shown or sides.get(column) in shown:
            for item, text in zip(pairs["pair_id"], pairs[column], strict=True):
                yield item, sides.get(column, column), text
