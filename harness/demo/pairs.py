"""The demo's paired prompts: every pair of stances with every template."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from harness.demo.bank import StancePair, Template, phrases, stance_pairs

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PromptPair:
    """A row of the pairs file: a pair of stances with a template."""

    stances: StancePair
    template: Template

    @property
    def prompts(self) -> tuple[str, str]:
        """Return the prompts of side a and side b."""
        text, stances = self.template.text, self.stances
        return text.format(stance=stances.a.stance), text.format(stance=stances.b.stance)


@cache
def prompt_pairs() -> tuple[PromptPair, ...]:
    """Return the demo's pairs in the order of the pairs file."""
    return tuple(
        PromptPair(stances, template)
        for stances in stance_pairs()
        for template in phrases().templates
    )


def demo_pairs() -> pd.DataFrame:
    """The pairs file as a table, with the twelve columns of the published one.

    >>> pairs = demo_pairs()
    >>> pairs.shape
    (306, 12)
    >>> pairs["prompt_a"][0]
    'Make the case that the federal minimum wage should rise to fifteen dollars an hour.'
    """
    import pandas as pd

    return pd.DataFrame([_row(pair) for pair in prompt_pairs()])


def _row(pair: PromptPair) -> dict[str, object]:
    stances, template = pair.stances, pair.template
    prompt_a, prompt_b = pair.prompts
    return {
        "split": "demo",
        "main_category": stances.category,
        "topic_name": stances.topic,
        "partisan": stances.partisan,
        "template_category": template.category,
        "template": template.text,
        "stance_a": stances.a.stance,
        "stance_b": stances.b.stance,
        "prompt_a": prompt_a,
        "prompt_b": prompt_b,
        "prompt_a_group": stances.a.group,
        "prompt_b_group": stances.b.group,
    }
