"""Rubrics: one file each, read alike by the annotation app, the prompts and the parsers."""

from __future__ import annotations

from rubrics.loading import dump_rubric, load_rubric, shipped_rubrics
from rubrics.model import LexicalCues, Option, Published, Rubric
from rubrics.parsing import RubricParser
from rubrics.rendering import Block, PeopleText, PromptText

__all__ = [
    "Block",
    "LexicalCues",
    "Option",
    "PeopleText",
    "PromptText",
    "Published",
    "Rubric",
    "RubricParser",
    "dump_rubric",
    "load_rubric",
    "shipped_rubrics",
]
