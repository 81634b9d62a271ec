"""Rubrics: one file each, used by the annotation app, the prompts and the parsers alike."""

from evenhand.rubrics.loading import (
    Instructions,
    JudgedRubric,
    JudgePrompt,
    Reworded,
    asked_comparison,
    asked_rubric,
    dump_rubric,
    library_rubrics,
    load_rubric,
    named_rubrics,
    read_own_words,
    shipped_rubrics,
)
from evenhand.rubrics.model import Rubric
from evenhand.rubrics.options import Block
from evenhand.rubrics.parsing import RubricParser, answer_of
from evenhand.rubrics.rendering import PeopleText, PromptText, TextBlock

__all__ = [
    "Block",
    "Instructions",
    "JudgePrompt",
    "JudgedRubric",
    "PeopleText",
    "PromptText",
    "Reworded",
    "Rubric",
    "RubricParser",
    "TextBlock",
    "answer_of",
    "asked_comparison",
    "asked_rubric",
    "dump_rubric",
    "library_rubrics",
    "load_rubric",
    "named_rubrics",
    "read_own_words",
    "shipped_rubrics",
]
