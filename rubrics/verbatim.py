"""A prompt that is sent word for word, as a published measurement has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from evenhand.rubrics.rendering import TEXT_VARIABLES, PromptText, fields_of, filled


class PromptTemplate(BaseModel):
    """What a grader is sent in place of our own frame: `template` with the rubric's variables in
    braces, and a `system` part without any. White space counts; other braces are text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    template: str = Field(min_length=1)
    system: str = ""

    def fault(self, variables: Collection[str]) -> str:
        """What is wrong with it under these variables; empty where nothing is."""
        if named := fields_of(self.system, variables):
            return f"`prompt.system` names {{{named[0]}}}; fields belong in `prompt.template`"
        used = fields_of(self.template, variables)
        for name in variables:
            if name in TEXT_VARIABLES and name not in used:
                return f"`prompt.template` has no {{{name}}}, which people see"
        return ""

    def filled(self, values: Mapping[str, str], keys: Sequence[str]) -> PromptText:
        """The prompt of one unit. What is put in is never read for fields again.

        >>> template = PromptTemplate(template="Rate {response} {like this}.")
        >>> template.filled({"response": "{response} </x>"}, ("1", "2")).user
        'Rate {response} </x> {like this}.'
        """
        starts = self._starts(values)
        cuts = tuple(len(filled(self.template[:start], values)) for start in starts)
        user = filled(self.template, values)
        return PromptText(system=self.system, user=user, keys=tuple(keys), cuts=cuts, verbatim=True)

    def _starts(self, variables: Collection[str]) -> list[int]:
        """Where what comes before may be cached: it stays the same for all units up to the first
        field, and for those of the same groups up to the first prompt or response.
        """
        places = [(self.template.find(f"{{{name}}}"), name) for name in variables]
        found = [(place, name) for place, name in places if place >= 0]
        texts = [place for place, name in found if name in TEXT_VARIABLES]
        return sorted({min(place for place, _ in found), min(texts)} - {0})
