"""From the token probabilities of an answer to probabilities of the rubric's options.

The grader is asked for a bare option key, so that one token carries the answer. The same key comes
as several tokens ("C", " C", "(C", "C)"), which are merged on their decoded bytes; what remains of
the 20 most probable tokens is mass outside the options, kept as a measure of trust.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

LOW_MASS = 0.8
"""Below this mass inside the options a reading is flagged."""
MOST_UNSEEN = 0.2
"""A reading by which any option's probability could be off by more than this is none."""

# Marks that some servers leave in token texts for a space or a line break.
_SPACE_MARKS = str.maketrans({"\u0120": " ", "\u2581": " ", "\u010a": "\n"})
_OPENING = " \t\r\n([{<\"'`*_"
_CLOSING = " \t\r\n)]}>\"'`*_.:,;"


class Token(BaseModel):
    """One token as the API gives it; `bytes` is the truth where it is there."""

    token: str
    logprob: float
    bytes: list[int] | None = None

    @property
    def text(self) -> str:
        if self.bytes is not None and all(0 <= byte < 256 for byte in self.bytes):
            return bytes(self.bytes).decode("utf-8", "replace")
        return self.token.translate(_SPACE_MARKS)

    @property
    def probability(self) -> float:
        """-9999.0, which stands for "not among the most probable tokens", comes out as 0."""
        return 0.0 if math.isnan(self.logprob) else math.exp(min(self.logprob, 0.0))


class Position(Token):
    """One place in the answer: the token that was chosen and the most probable ones there."""

    top_logprobs: list[Token] = []

    def candidates(self) -> list[Token]:
        """The listed tokens, and the chosen one where the list leaves it out."""
        if any(token.text == self.text for token in self.top_logprobs):
            return self.top_logprobs
        return [*self.top_logprobs, self]


@dataclass(frozen=True, slots=True)
class OptionReading:
    """Option probabilities read at one position; they sum to 1 over all options."""

    probabilities: dict[str, float]
    in_option_mass: float
    position: int
    top: list[tuple[str, float]]
    unseen: float
    """How far any of these probabilities can be off, for what the server did not list."""

    @property
    def label(self) -> str:
        """The most probable option; the earlier one on the scale where two are level."""
        return max(self.probabilities, key=lambda key: self.probabilities[key])


def option_masses(tokens: Iterable[Token], keys: Sequence[str]) -> dict[str, float]:
    """The probability that lies on each option key at one position, not renormalised.

    >>> planted = {"C": 0.60, " C": 0.15, "B": 0.10, "(": 0.06, "A": 0.05, " Sure": 0.04}
    >>> tokens = [Token(token=t, logprob=math.log(p)) for t, p in planted.items()]
    >>> mass = option_masses(tokens, ("A", "B", "C"))
    >>> round(sum(mass.values()), 3), round(mass["C"] / sum(mass.values()), 3)
    (0.9, 0.833)
    """
    masses = dict.fromkeys(keys, 0.0)
    for token in tokens:
        if key := _key_of(token.text, keys):
            masses[key] += token.probability
    return masses


def read_options(
    positions: Sequence[Position], text: str, label: str | None, keys: Sequence[str]
) -> OptionReading | None:
    """Option probabilities of an answer, or None where the tokens do not say.

    `label` is the option that the text as a whole names, if any. Read where the answer begins; an
    opening bracket before it is passed over. Where the answer begins with other words ("Answer: C")
    and few of the likely tokens there are options, the place where `label` stands is read instead.
    """
    start = _answer_start(positions, text)
    first = next((at for at in range(start, len(positions)) if _bare(positions[at].text)), None)
    if first is None:
        return None
    reading = _read(positions, first, keys)
    if chosen := _key_of(positions[first].text, keys):
        # They differ where a word ("A fair ...") or a longer key ("10") begins like an option.
        return reading if chosen == label else None
    if reading and reading.in_option_mass >= LOW_MASS:
        return reading
    for at in range(first, len(positions)):
        if label is not None and _key_of(positions[at].text, keys) == label:
            return _read(positions, at, keys)
    # Few of the likely tokens are options and the text names another one, or none: trusting the
    # little mass there is would invent an answer.
    return reading if reading and reading.label == label else None


def _read(positions: Sequence[Position], at: int, keys: Sequence[str]) -> OptionReading | None:
    tokens = positions[at].candidates()
    masses = option_masses(tokens, keys)
    total = sum(masses.values())
    if total <= 0:
        return None
    # All that is not listed could be one option's: p_k lies between m_k / (M + u) and
    # (m_k + u) / (M + u), which is u / (M + u) wide.
    unlisted = max(1.0 - sum(token.probability for token in tokens), 0.0)
    return OptionReading(
        probabilities={key: mass / total for key, mass in masses.items()},
        in_option_mass=min(total, 1.0),
        position=at,
        top=[(token.token, token.logprob) for token in tokens],
        unseen=unlisted / (total + unlisted),
    )


def _key_of(text: str, keys: Sequence[str]) -> str | None:
    """The option that a token stands for: the key itself, or a beginning that only it has.

    >>> [_key_of(t, ("agree", "disagree")) for t in (" Agree", "dis", "(", "a fair", "ag")]
    ['agree', 'disagree', None, None, 'agree']
    """
    bare = _bare(text)
    if not bare:
        return None
    if bare in keys:
        return bare
    # A lower-case letter may be a word ("a"), so single letters must match as they are.
    folded = bare.casefold()
    found = [key for key in keys if len(key) > 1 and key.casefold().startswith(folded)]
    exact = [key for key in found if key.casefold() == folded]
    if exact:
        return exact[0]
    return found[0] if len(found) == 1 and len(folded) > 1 else None


def _bare(text: str) -> str:
    return text.lstrip(_OPENING).rstrip(_CLOSING)


def _answer_start(positions: Sequence[Position], text: str) -> int:
    """Where the answer's text begins among the tokens: some servers list thinking before it."""
    answer = text.strip()
    texts = [position.text for position in positions]
    at = "".join(texts).rfind(answer)
    if at <= 0 or not answer:
        return 0
    length = 0
    for index, piece in enumerate(texts):
        length += len(piece)
        if length > at:
            return index
    return 0
