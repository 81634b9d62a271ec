"""When a server that gave no token probabilities is asked for them again.

One refusal may be of the moment, and a gateway may drop the wish for them without a word where the
model reasons. So before a run is settled on labels another unit is asked: after a refusal as the
run began, after a reply without any with reasoning off.
"""

from __future__ import annotations

import math
from dataclasses import replace

from evenhand.graders.clients.chat_requests import Shape
from evenhand.graders.replies.outcome import Outcome

_TIMES_AS_LATE = 4  # each next time; a server that refuses them always is asked 6 times in 1,000
_PUT_OFF = 3  # so often a trial may fail for another reason


class Probing:
    """The choice of shape for a grader's next request: `usual`, or for a single request a shape on
    trial that asks for probabilities and becomes the usual one only if it brings some.
    """

    def __init__(self, shape: Shape) -> None:
        self.usual = shape
        self.gave = False
        """True once probabilities have come."""
        self._first = shape
        self._trial: Shape | None = None
        self._replies = self._refusals = self._failed = 0
        self._due = math.inf
        self._tried_effort = False

    @property
    def settled(self) -> bool:
        """True if the next request has the usual shape."""
        return self._trial is None

    def take(self) -> Shape | None:
        """Return the shape on trial, if any, for the next request alone."""
        trial, self._trial = self._trial, None
        return trial

    def failed(self, trial: Shape | None) -> None:
        """Put a shape back on trial after a request without a reply, at most 3 times."""
        self._failed += 1
        if self._failed <= _PUT_OFF:
            self._trial = trial

    def replied(self, began: Shape, ended: Shape, outcome: Outcome, *, tried: bool) -> None:
        """Learn from a reply to a request that began with one shape and ended with another."""
        self._replies += 1
        if outcome.prob_method == "logprobs":
            self.gave, self.usual = True, ended
            self._trial, self._due = None, math.inf
            return
        if self.gave:
            if ended.top_logprobs and not tried:
                self.usual = ended
            return
        refused = bool(began.top_logprobs and not ended.top_logprobs)
        if refused and (tried or self.usual.top_logprobs):  # of many at once the first counts
            self._due = _TIMES_AS_LATE**self._refusals
            self._refusals += 1
        if not tried:
            self.usual = ended
            self._try_effort(ended, outcome)
        if self._replies >= self._due:
            self._due = math.inf
            first = self._first
            self._trial = replace(
                self.usual,
                top_logprobs=first.top_logprobs,
                efforts=first.efforts,
                temperatures=first.temperatures,
            )

    def _try_effort(self, shape: Shape, outcome: Outcome) -> None:
        """After a label without probabilities, try the next reasoning effort, once."""
        bare = bool(outcome.label) and "unseen" not in outcome.evidence
        if bare and shape.top_logprobs and shape.efforts[1:] and not self._tried_effort:
            self._tried_effort = True
            self._trial = replace(shape, efforts=shape.efforts[1:])
