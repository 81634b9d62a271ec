"""`baseline:lexical`: an offline grader that counts words. All its words stand in the rubric file.

A floor for the comparison with people, not a serious judge: it needs no key and no network, and a
grader that agrees with people no better than this one measures little.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from evenhand.errors import InputError
from evenhand.graders.baselines.cue_reader import CueReader
from evenhand.graders.baselines.polarity import PolarityReader
from evenhand.graders.replies.outcome import Outcome
from evenhand.rubrics import PolarityWords, Rubric


class LexicalGrader:
    """Reads units under one rubric. Raises InputError where the rubric has no words it can use."""

    def __init__(self, rubric: Rubric) -> None:
        words = rubric.lexical
        if words is None:
            raise InputError(
                f"rubric {rubric.name!r} has no [lexical] table, so baseline:lexical cannot grade "
                "it; add one to the rubric's file or leave the rubric out"
            )
        self._reader: PolarityReader | CueReader
        if isinstance(words, PolarityWords):
            self._reader = PolarityReader(words)
        else:
            self._reader = CueReader(rubric, words)
        self.evidence = {
            "cues_hash": hashlib.sha256(words.model_dump_json().encode()).hexdigest()[:16]
        }

    def grade(self, values: Mapping[str, str]) -> Outcome:
        """A label and a probability for every option."""
        return replace(self._reader.read(values), evidence=self.evidence)
