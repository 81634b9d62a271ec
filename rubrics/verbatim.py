"""A prompt that is sent word for word, as in a published measurement."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from evenhand.rubrics.rendering import TEXT_VARIABLES, PromptText, fields_of, filled


class PromptTemplate(BaseModel):
    """A prompt sent in place of our own frame: `template` with the rubric's variables in braces,
    and a `system` part without any. White space counts; other braces are text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    template: str = Field(min_length=1)
    system: str = ""

    def fault(self, variables: Collection[str]) -> str:
        """Return the fault of the template with these variables; empty where there is none."""
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
        """Return the places up to which the prompt may be cached: all units share the text before
        the first field, units of the same group that before the first prompt or response.
        """
        places = [(self.template.find(f"{{{name}}}"), name) for name in variables]
        found = [(place, name) for place, name in places if place >= 0]
        texts = [place for place, name in found if name in TEXT_VARIABLES]
        return sorted({min(place for place, _ in found), min(texts)} - {0})
