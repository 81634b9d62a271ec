from .loading import Instructions as Instructions
from .loading import JudgedRubric as JudgedRubric
from .loading import JudgePrompt as JudgePrompt
from .loading import Reworded as Reworded
from .loading import asked_comparison as asked_comparison
from .loading import asked_rubric as asked_rubric
from .loading import dump_rubric as dump_rubric
from .loading import library_rubrics as library_rubrics
from .loading import load_rubric as load_rubric
from .loading import named_rubrics as named_rubrics
from .loading import read_own_words as read_own_words
from .loading import shipped_rubrics as shipped_rubrics
from .model import Rubric as Rubric
from .options import Block as Block
from .parsing import RubricParser as RubricParser
from .parsing import answer_of as answer_of
from .rendering import PeopleText as PeopleText
from .rendering import PromptText as PromptText
from .rendering import TextBlock as TextBlock

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
