"""From the token probabilities of an answer to probabilities of the rubric's options.

The grader is asked for a bare option key. The same key comes as several tokens ("C", " C", "(C",
"C)"), which are merged on their decoded bytes; what remains of the 20 most probable tokens is mass
outside the options, kept as a measure of trust. Where a token may still become one key or another
("1" of 1 and 10), its mass is known only along the tokens that were chosen, place by place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

LOW_MASS = 0.8
"""Below this mass inside the options a reading is flagged."""
MOST_UNSEEN = 0.2
"""A reading is discarded where any option's probability could be off by more than this."""
MOST_BEGUN = 0.1
"""It is also discarded where mere beginnings of an answer, such as a bracket on a path that was
not taken, could move it by more than this. The possible shift is kept with the grade."""
MOST_SPLIT = 1e-9
"""It is also discarded where more than this mass belongs to one of two options, unknown which."""

# Marks that some servers leave in token texts for a space or a line break.
_SPACE_MARKS = str.maketrans({"\u0120": " ", "\u2581": " ", "\u010a": "\n"})
_OPENING = " \t\r\n([{<\"'`*_"
_NOT_LISTED = -9000.0
_ROUNDING = 0.01
_CLOSING = " \t\r\n)]}>\"'`*_.:,;"


T = TypeVar("T")


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


OrNone = Annotated[T | None, WrapValidator(_or_none)]
"""A field that is None where the value has another type."""


class Token(BaseModel):
    """A token as the API gives it; `bytes`, where present, takes precedence over `token`."""

    token: str
    logprob: float
    bytes: OrNone[list[int]] = None

    @property
    def text(self) -> str:
        if self.bytes is not None and all(0 <= byte < 256 for byte in self.bytes):
            return bytes(self.bytes).decode("utf-8", "replace")
        return self.token.translate(_SPACE_MARKS)

    @property
    def probability(self) -> float:
        """The probability, 0 to 1. The API's -9999.0 for "not among the most probable" gives 0."""
        return 0.0 if math.isnan(self.logprob) else math.exp(min(self.logprob, 0.0))


class Position(Token):
    """A place in the answer: the token that was chosen and the most probable ones there."""

    top_logprobs: OrNone[list[OrNone[Token]]] = None

    def candidates(self) -> list[Token]:
        """Return the listed tokens, and the chosen one where the list leaves it out."""
        listed = [token for token in self.top_logprobs or () if token]
        if any(token.text == self.text for token in listed):
            return listed
        return [*listed, self]


@dataclass(frozen=True, slots=True)
class OptionReading:
    """Option probabilities read at one position; they sum to 1 over all options."""

    probabilities: dict[str, float]
    in_option_mass: float
    position: int
    top: list[tuple[str, float]]
    unseen: float
    """The most that any of these probabilities can be off, given the mass not listed."""
    begun: float = 0.0
    """The part of `unseen` on beginnings that name no option yet, such as a bracket."""
    split: float = 0.0
    """The mass on beginnings that two options share, on paths that were not taken."""

    @property
    def label(self) -> str:
        """The most probable option; the earlier one on the scale in case of a tie."""
        return max(self.probabilities, key=lambda key: self.probabilities[key])


def fault_of(positions: Sequence[Position]) -> str:
    """Return the reason why figures cannot be natural logarithms of probabilities, else "".

    >>> def place(*figures):
    ...     top = [Token(token=str(n), logprob=each) for n, each in enumerate(figures)]
    ...     return [Position(token="0", logprob=figures[0], top_logprobs=top)]
    >>> [fault_of(place(*each)) for each in ((-0.1, -3.0), (0.6, 0.2), (-0.1, -0.1), (-3, -3, -3))]
    ['', 'above zero', 'more than one in all', 'all the same']
    """
    for position in positions:
        figures = [token.logprob for token in position.candidates()]
        if any(math.isnan(each) or each > _ROUNDING for each in figures):
            return "above zero"
        if math.fsum(token.probability for token in position.candidates()) > 1 + _ROUNDING:
            return "more than one in all"
        if len(figures) > 2 and len(set(figures)) == 1:
            return "all the same"
        if all(each <= _NOT_LISTED for each in figures):
            return "all the same"
    return ""


def read_options(
    positions: Sequence[Position],
    text: str,
    label: str | None,
    keys: Sequence[str],
    *,
    whole_numbers: bool = False,
) -> OptionReading | None:
    """Return the option probabilities of an answer, or None where the tokens do not give them.

    `label` is the option that the text as a whole names, if any. Reading starts where the answer
    begins and follows the chosen tokens as long as they may become one key or another, or are only
    an opening bracket. Where the answer begins with other words ("Answer: C") and few of the likely
    tokens there are options, the position of `label` is read instead. `whole_numbers` says that
    the tokenizer has a token of its own for every number.
    """
    start = _answer_start(positions, text)
    first = next((at for at in range(start, len(positions)) if _bare(positions[at].text)), None)
    if first is None:
        return None
    reading = _read(positions, start, keys, whole_numbers)
    if chosen := _key_at(positions, start, keys):
        # They differ where a word ("A fair ...") begins like an option.
        return reading if chosen == label else None
    if reading and reading.in_option_mass >= LOW_MASS:
        return reading
    for at in range(first, len(positions)):
        if label is not None and _key_at(positions, at, keys) == label:
            return _read(positions, at, keys, whole_numbers)
    # Few of the likely tokens are options and the text names another one, or none: trusting the
    # little mass there is would invent an answer.
    return reading if reading and reading.label == label else None


@dataclass(frozen=True, slots=True)
class _Spelled:
    """The reading of an answer's text so far: the option `key` that it spells, if any; `may` is
    True if further text may turn it into another option, `begun` if it is only the beginning of an
    answer.
    """

    key: str | None = None
    may: bool = False
    begun: bool = False


def _read(
    positions: Sequence[Position], at: int, keys: Sequence[str], whole_numbers: bool
) -> OptionReading | None:
    masses = dict.fromkeys(keys, 0.0)
    split = unlisted = begun = 0.0
    so_far, reach, place = "", 1.0, at
    for here in range(at, len(positions)):
        position, followed = positions[here], 0.0
        tokens = position.candidates()
        unlisted += reach * max(1.0 - math.fsum(token.probability for token in tokens), 0.0)
        ended = here + 1 == len(positions)
        goes_on = False
        for token in tokens:
            mass = reach * token.probability
            found = _spelled(so_far, token.text, keys)
            if whole_numbers and found.key and found.key.isdigit():
                found = _Spelled(found.key)
            open_ended = found.may or found.begun or _ends_in_key(found, so_far + token.text)
            if token.text == position.text and token.text and open_ended and not ended:
                followed, goes_on = followed + mass, True
            elif found.may:
                split += mass
            elif found.key:
                masses[found.key] += mass
            elif found.begun:
                begun += mass
        if not _bare(so_far):
            place = here
        if not goes_on:
            break
        so_far, reach = so_far + position.text, followed
    total = math.fsum(masses.values())
    if total + split <= 0:
        return None
    # All that is not listed could be one option's: p_k lies between m_k / (M + u) and
    # (m_k + u) / (M + u), which is u / (M + u) wide.
    unknown = unlisted + begun
    top = positions[place].candidates()
    return OptionReading(
        probabilities={key: mass / total if total else 0.0 for key, mass in masses.items()},
        in_option_mass=min(total + split, 1.0),
        position=place,
        top=[(token.token, token.logprob) for token in top],
        unseen=unknown / (total + split + unknown),
        begun=begun / (total + split + unknown),
        split=split,
    )


def _ends_in_key(found: _Spelled, said: str) -> bool:
    """Return True if a text ends where a key ends, so that a longer word may follow."""
    return bool(found.key and re.search(r"[^\W_]\Z|[+-]\Z", said))


def _spelled(so_far: str, text: str, keys: Sequence[str]) -> _Spelled:
    """Return the reading of an answer's text after one more token.

    >>> stances = ("agree", "disagree")
    >>> [_spelled("", each, stances).key for each in (" Agree", "dis", "(", "a", "ag")]
    ['agree', 'disagree', None, None, 'agree']
    >>> ten = tuple(str(n) for n in range(1, 11))
    >>> _spelled("", "1", ten), _spelled("1", "0", ten).key, _spelled("1", ".", ten).key
    (_Spelled(key='1', may=True, begun=False), '10', '1')
    """
    said = (so_far + text).lstrip(_OPENING)
    if not said:
        return _Spelled(begun=True)
    folded = said.casefold()
    for key in sorted(keys, key=len, reverse=True):
        # A lower-case letter may be a word ("a"), so single letters must match as they are.
        is_it = said.startswith(key) if len(key) == 1 else folded.startswith(key.casefold())
        rest = said[len(key) :]
        if not is_it or re.match(r"[A-Za-z0-9_+-]", rest):
            continue
        longer = [
            each for each in keys if each != key and each.casefold().startswith(key.casefold())
        ]
        over = bool(rest) or not text  # a token without text ends an answer
        return _Spelled(key, may=bool(longer) and not over)
    if not text:
        return _Spelled()
    longer = [key for key in keys if len(key) > 1 and key.casefold().startswith(folded)]
    if not longer:
        return _Spelled()
    if folded.isalpha() and len(longer) == 1 and len(folded) > 1:
        return _Spelled(longer[0])
    return _Spelled(may=not folded.isalpha() or len(folded) > 1, begun=True)


def _key_at(positions: Sequence[Position], at: int, keys: Sequence[str]) -> str | None:
    """Return the option that the chosen tokens spell from position `at` on, if any."""
    said = "".join(position.text for position in positions[at:]).lstrip(_OPENING)
    if not _bare(positions[at].text) and at:
        return None
    found = _spelled("", said, keys)
    whole = found.key and said[: len(found.key)].casefold() == found.key.casefold()
    return found.key if whole else None


def _bare(text: str) -> str:
    return text.lstrip(_OPENING).rstrip(_CLOSING)


def _answer_start(positions: Sequence[Position], text: str) -> int:
    """Return the index of the answer's first token: some servers list the thinking before it."""
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
