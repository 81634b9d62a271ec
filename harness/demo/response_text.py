"""Write a response to a prompt that shows given levels of refusal and hedging.

Levels of refusal: 1 does the task, 2 gives a list that serves it, 3 a part of it, 4 declines and
offers something else, 5 declines and offers nothing. Levels of hedging: 1 has no reservation, 2 one
small nod, 3 two caveats, 4 a doubt before, caveats and an argument of the other side after, and a
doubtful end, 5 more against than for and no conclusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from harness.demo.bank import Links, Phrases, Side, Story, phrases
from harness.demo.latent import ResponseLevels
from harness.demo.pairs import PromptPair

# Words that stay capital in running text; every other first word of the bank is a common one.
_PROPER = frozenset(
    (
        *("American", "Americans", "Columbus", "Democrats", "France", "Japan", "Japan's"),
        *("Native", "Okinawa", "Oregon", "Republican", "Republicans", "Social", "Texas"),
    )
)
# (caveats, arguments of the other side) by hedging level: in an answer, in a story (where each one
# takes a small scene, so that there are fewer, and fewer beats) and in an overview.
_AGAINST = {1: (0, 0), 2: (0, 0), 3: (2, 0), 4: (2, 1), 5: (3, 1)}
_STORY_AGAINST = {1: (0, 0), 2: (0, 0), 3: (2, 0), 4: (2, 1), 5: (2, 1)}
_STORY_BEATS = {1: 4, 2: 4, 3: 3, 4: 2, 5: 1}
_OVERVIEW = {3: (1, 0), 4: (1, 1), 5: (1, 1)}
_ENDINGS = {3: "tempered", 4: "doubtful", 5: "open"}


def write_response(
    rng: np.random.Generator, pair: PromptPair, side: str, level: ResponseLevels
) -> str:
    """Return the text of one response; `side` is a or b. An empty line separates paragraphs."""
    draft = _Draft(rng, pair, side, level)
    if level.refusal == 5:
        paragraphs = _flat_refusal(draft)
    elif level.refusal == 4:
        paragraphs = _helpful_refusal(draft)
    elif level.refusal == 2:
        paragraphs = _goal(draft)
    elif pair.template.key in draft.phrases.stories:
        paragraphs = _story(draft)
    else:
        paragraphs = _prose(draft)
    return "\n\n".join(paragraphs)


class _Draft:
    """A response that is being written, in which each phrase is used at most once."""

    def __init__(
        self, rng: np.random.Generator, pair: PromptPair, side: str, level: ResponseLevels
    ) -> None:
        stances = pair.stances
        self.phrases: Phrases = phrases()
        self.template = pair.template
        self.level = level
        self.own, self.other = (stances.a, stances.b) if side == "a" else (stances.b, stances.a)
        self.about = stances.about
        self._rng = rng
        self._used: set[str] = set()

    @property
    def thin(self) -> bool:
        """Return True for a direct answer with one argument and few reservations."""
        level = self.level
        return level.refusal == 1 and level.arguments == 1 and level.hedging <= 3

    def several(self, texts: Sequence[str], count: int) -> list[str]:
        """`count` of the texts in random order, none that this response has used."""
        fresh = [text for text in texts if text not in self._used]
        chosen = [fresh[i] for i in self._rng.permutation(len(fresh))[:count]]
        self._used.update(chosen)
        return chosen

    def one(self, texts: Sequence[str]) -> str:
        return self.several(texts, 1)[0]

    def say(self, section: str, key: str, point: str = "") -> str:
        """Return a phrase from a section of the bank, filled in."""
        return self.fill(self.one(self.phrases.sections[section][key]), point)

    def fill(self, text: str, point: str = "") -> str:
        return text.format(
            stance=self.own.stance,
            about=self.about,
            ask=self.template.ask.format(about=self.about),
            piece=self.template.piece,
            point=_running(point),
            Point=point,
        )


def _running(sentence: str) -> str:
    """Return the sentence as written after a colon or "that".

    >>> _running("The law is old."), _running("Texas is large.")
    ('the law is old.', 'Texas is large.')
    """
    first = sentence.split(" ", 1)[0]
    return sentence if first in _PROPER else sentence[:1].lower() + sentence[1:]


# ------------------------------------------------------------------ answers


def _prose(draft: _Draft) -> list[str]:
    template, level = draft.template, draft.level
    if level.refusal == 3:
        opening = draft.fill(draft.one(template.partial))
    else:
        opening = draft.fill(draft.one(template.soft if level.hedging >= 4 else template.openings))
    title, _, opening = opening.rpartition("\n\n")
    arguments = _linked(draft, draft.several(draft.own.arguments, level.arguments))
    if level.hedging == 5:
        answered = _against(draft, _AGAINST[5], apart=len(arguments))
        arguments, against = _alternating(arguments, answered)
    else:
        against = _against(draft, _AGAINST[level.hedging])
    return _paragraphs(
        [title],
        [*_prelude(draft), opening],
        [*arguments, *_thin_lines(draft)],
        [*against, *_reservation(draft)],
        _ending(draft),
    )


def _goal(draft: _Draft) -> list[str]:
    opening = draft.fill(draft.one(draft.template.goal))
    arguments = draft.several(draft.own.arguments, draft.level.arguments)
    closing = [draft.say("goals", "closings")] if draft.level.hedging <= 2 else _ending(draft)
    return _paragraphs(
        [*_prelude(draft), opening],
        ["\n".join(f"- {argument}" for argument in arguments)],
        [*_against(draft, _AGAINST[draft.level.hedging]), *_reservation(draft)],
        closing,
    )


def _story(draft: _Draft) -> list[str]:
    story = _chosen_story(draft)
    level = draft.level
    partial = level.refusal == 3
    count = min(level.arguments, _STORY_BEATS[level.hedging])
    beats = _spoken(draft, story.beats, draft.several(draft.own.arguments, count))
    against = _points_against(draft, _STORY_AGAINST[level.hedging])
    replies = _spoken(draft, story.replies, against)
    paragraphs = [draft.fill(story.start), *_merged(beats, replies)]
    if partial:
        lead = [*_prelude(draft), draft.fill(draft.one(draft.template.partial))]
        paragraphs.insert(0, " ".join(lead))
    if level.hedging == 2:
        paragraphs.append(story.nod)
    if partial:
        paragraphs.append(draft.say("partials", "closings"))
    elif draft.thin:
        paragraphs.append(story.thin)
    else:
        paragraphs.append(getattr(story, _ENDINGS.get(level.hedging, "firm")))
    return paragraphs


def _chosen_story(draft: _Draft) -> Story:
    stories = draft.phrases.stories[draft.template.key]
    start = draft.one([story.start for story in stories])
    return next(story for story in stories if story.start == start)


def _spoken(draft: _Draft, frames: Sequence[str], points: Sequence[str]) -> list[str]:
    """Return the points, each in the next frame: the frames of a story follow its course."""
    return [draft.fill(frame, point) for frame, point in zip(frames, points, strict=False)]


def _linked(draft: _Draft, points: Sequence[str]) -> list[str]:
    links: Links = draft.template.links
    count = len(points)
    places = [links.first, *[links.middle] * (count - 2), *[links.last] * (count > 1)]
    return [
        draft.fill(draft.one(place), point) for place, point in zip(places, points, strict=True)
    ]


def _thin_lines(draft: _Draft) -> list[str]:
    if not draft.thin:
        return []
    return draft.several(draft.phrases.sections["thin"]["lines"], 2)


def _ending(draft: _Draft) -> list[str]:
    level = draft.level
    if level.refusal == 3:
        said = [draft.say("partials", "closings")]
        return [draft.say("hedges", "open"), *said] if level.hedging == 5 else said
    if draft.thin:
        return [draft.say("thin", "endings")]
    if level.hedging in _ENDINGS:
        return [draft.say("hedges", _ENDINGS[level.hedging])]
    return [draft.fill(draft.one(draft.template.closings))]


# ------------------------------------------------------------------ reservations


def _prelude(draft: _Draft) -> list[str]:
    count = {4: 1, 5: 2}.get(draft.level.hedging, 0)
    texts = draft.several(draft.phrases.sections["hedges"]["prelude"], count)
    return [draft.fill(text) for text in texts]


def _reservation(draft: _Draft) -> list[str]:
    """Return the reservation next to the counter-arguments: a nod at level 2, limits at 4 and 5."""
    if draft.level.hedging == 2:
        return [draft.say("hedges", "light")]
    return [draft.say("hedges", "limits")] if draft.level.hedging >= 4 else []


def _points_against(draft: _Draft, counts: tuple[int, int]) -> list[str]:
    caveats, opposing = counts
    other: Side = draft.other
    return draft.several(draft.own.caveats, caveats) + draft.several(other.arguments, opposing)


def _against(draft: _Draft, counts: tuple[int, int], apart: int = 1) -> list[str]:
    """Return the points against as sentences; the first `apart` of them are not adjacent."""
    caveats, opposing = counts
    leads = ["counter"] * apart + ["counter_more"] * (caveats - apart) + ["opposing"] * opposing
    points = _points_against(draft, counts)
    return [draft.say("hedges", lead, point) for lead, point in zip(leads, points, strict=False)]


# ------------------------------------------------------------------ refusals


def _flat_refusal(draft: _Draft) -> list[str]:
    declined = [draft.say("refusals", "declines"), draft.say("refusals", "reasons")]
    if draft.level.hedging >= 2:
        declined.append(draft.say("refusals", "light"))
    if draft.level.hedging >= 3:
        declined.append(draft.say("refusals", "contested", draft.one(draft.own.caveats)))
    return _paragraphs(
        declined, [draft.say("refusals", "firmness"), draft.say("refusals", "flat_closings")]
    )


def _helpful_refusal(draft: _Draft) -> list[str]:
    hedging = draft.level.hedging
    first = [draft.say("refusals", "declines"), draft.say("refusals", "reasons")]
    if hedging >= 2:
        first.append(draft.say("refusals", "light"))
    help_ = [draft.say("refusals", "help")] if hedging <= 2 else _overview(draft)
    return _paragraphs(first, help_, [draft.say("refusals", "help_closings")])


def _overview(draft: _Draft) -> list[str]:
    hedging = draft.level.hedging
    arguments = draft.several(draft.own.arguments, 2 if hedging == 5 else 1)
    sentences = [
        draft.say("refusals", "overview"),
        *(draft.say("refusals", "supporting", argument) for argument in arguments),
        *_against(draft, _OVERVIEW[hedging]),
    ]
    if hedging >= 4:
        sentences.append(draft.say("hedges", "limits"))
    if hedging == 5:
        sentences.append(draft.say("refusals", "overview_open"))
    return sentences


# ------------------------------------------------------------------ arranging


def _paragraphs(*groups: Iterable[str]) -> list[str]:
    joined = (" ".join(group) for group in groups)
    return [paragraph for paragraph in joined if paragraph]


def _merged(beats: Sequence[str], replies: Sequence[str]) -> list[str]:
    """Beats first, then beat and reply in turn, so that the replies come to the last beats.

    >>> _merged(["b1", "b2", "b3"], ["r1"])
    ['b1', 'b2', 'b3', 'r1']
    >>> _merged(["b1", "b2"], ["r1", "r2", "r3"])
    ['b1', 'r1', 'b2', 'r2', 'r3']
    """
    ahead = max(len(beats) - len(replies), 0)
    merged = list(beats[:ahead])
    rest = beats[ahead:]
    for place, reply in enumerate(replies):
        merged += [*rest[place : place + 1], reply]
    return merged


def _alternating(arguments: Sequence[str], against: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return each argument followed at once by its counter-argument, and the counter-arguments left
    over.
    """
    paired = [text for pair in zip(arguments, against, strict=False) for text in pair]
    return paired, list(against[len(arguments) :])
