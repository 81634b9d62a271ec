"""How much a budget sets aside for a request, from what replies have really cost.

A request's worst price may be a hundred times its real one, because its limit on output is. So
where the worst does not fit into what is left, the request goes out with a lower limit: its worst
price is then lower indeed, and the budget holds whatever the server answers. The limit stays far
above what replies have needed; one that is cut short all the same says nothing about its unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from evenhand.graders.clients.grader import Reply
from evenhand.graders.money import LIMIT_NAMES, Budget, Tariff, Terms, Tokens, output_limit
from evenhand.graders.replies.outcome import Outcome
from evenhand.study.store.grades import CUT_SHORT

ENOUGH = 1_024
"""Tokens. No limit on output is set below this."""
_TIMES_THE_LONGEST = 4


class Reservations:
    """The amounts that one grader sets aside from the budget for its requests."""

    def __init__(self, budget: Budget, tariff: Tariff | None, longest: int = 0) -> None:
        self._budget = budget
        self._tariff = tariff
        self.longest = longest
        """The tokens of the longest answer so far."""

    async def set_aside(self, request: dict[str, Any]) -> Decimal:
        """Reserve a request's worst price in US dollars and return it. The request's limit on
        output is lowered where that is too much, or where replies were lost: a lost reply counts in
        full, so the next request should cost little. Raises OverBudget where not even a low limit
        fits.
        """
        if self._tariff is None:
            return Decimal(0)
        most = self._tariff.at_most(request)
        least = self._least(self._tariff, request)
        careful = self._budget.limit is not None and self._budget.lost and self.longest
        granted = await self._budget.reserve(least if careful else most, least)
        if granted < most:
            _lower(self._tariff, request, granted)
        return granted

    def fit(self, request: dict[str, Any], taken: Decimal, among: int) -> Decimal | None:
        """Return the worst price in US dollars of the next of `among` requests of a batch. Its
        limit on output is lowered where they would not all fit in addition to what is `taken`; None
        where the request does not fit even so.
        """
        if self._tariff is None:
            return Decimal(0)
        most = self._tariff.at_most(request)
        if self._budget.fits(taken + most * among):
            return most
        least = self._least(self._tariff, request)
        if not self._budget.fits(taken + least):
            return None
        if least < most:
            _lower(self._tariff, request, least)
        return least

    def least(self, request: Mapping[str, Any]) -> Decimal:
        """Return the amount in US dollars that must be free before a request is sent."""
        if self._tariff is None:
            return Decimal(0)
        return self._least(self._tariff, request)

    def learn(self, reply: Reply, asked: int) -> Reply:
        """Remember the tokens that a reply used, and return the reply. Where a lower limit than
        `asked` (tokens) has cut it short, its outcome says so.
        """
        outcomes = (reply.outcome, *reply.more)
        usage = reply.outcome.evidence.get("usage")
        if isinstance(usage, Mapping):
            self.longest = max(self.longest, Tokens.of(usage).output // len(outcomes))
        tier = Terms.of(reply.outcome.evidence).tier
        if self._tariff and tier and tier != self._tariff.tier:
            self._tariff = replace(self._tariff, tier=tier)
        if output_limit(reply.request) >= asked:
            return reply
        first, *more = (_cut_short(outcome) for outcome in outcomes)
        return replace(reply, outcome=first, more=tuple(more))

    def _least(self, tariff: Tariff, request: Mapping[str, Any]) -> Decimal:
        most = tariff.at_most(request)
        if not any(name in request for name in LIMIT_NAMES):
            return most
        limit = max(ENOUGH, _TIMES_THE_LONGEST * self.longest)
        return min(tariff.at_most(request, limit), most)


def _lower(tariff: Tariff, request: dict[str, Any], granted: Decimal) -> None:
    """Lower a request's limit on output so that it costs no more than was granted."""
    limit = output_limit(request)
    bare = tariff.at_most(request, 0)
    each = (tariff.at_most(request, limit) - bare) / limit
    name = next(name for name in LIMIT_NAMES if name in request)
    request[name] = max(int((granted - bare) / each), 1)


def _cut_short(outcome: Outcome) -> Outcome:
    if outcome.unscored_reason != "truncated":
        return outcome
    return replace(outcome, unscored_reason=CUT_SHORT)
