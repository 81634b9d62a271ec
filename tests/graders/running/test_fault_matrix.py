"""Every way in which a request can end, against what a server bills for it: the budget bounds the
bill, the dry run's range contains it, and a bill that cannot be paid leaves its units open.
"""

import random
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pytest

from evenhand.graders import GradingOptions, forecast
from evenhand.graders.money import Tariff, Tokens
from evenhand.graders.providers import parse_spec
from evenhand.study.store.store import total_spent
from harness.replies import DROPPED, Call, Reply, answer, error
from tests.graders.bench import Bench
from tests.graders.grading import grade, rows

PRICED = "anthropic:claude-opus-5"
USAGE = {"input_tokens": 900, "output_tokens": 12}
CACHED = {"input_tokens": 40, "cache_read_input_tokens": 860, "output_tokens": 12}


@dataclass
class Biller:
    """Answers like a server that bills first and may then fail; `billed` is what it charges."""

    fault: Reply
    share: float
    bills_faults: bool
    usage: dict[str, int] = field(default_factory=lambda: dict(USAGE))
    billed: Decimal = Decimal(0)
    luck: random.Random = field(default_factory=lambda: random.Random(4))

    def __call__(self, call: Call) -> Reply:
        fails = self.luck.random() < self.share
        if not fails or self.bills_faults:
            self.billed += Tariff.find(parse_spec(PRICED)).cost(Tokens.from_usage(self.usage))
        if fails:
            return self.fault
        reply = answer(call)
        return replace(reply, body=reply.body | {"usage": self.usage})


BILLED = {str(status): error(status) for status in (500, 502, 503, 504, 524, 529, 408, 409)}
BILLED |= {
    "connection cut": DROPPED,
    "a page": Reply(200, "<!doctype html><title>Just a moment</title>"),
    "half a reply": Reply(200, '{"id": "msg_1", "content": [{"type": "te'),
    "filtered": error(400, "Output blocked by content filtering policy"),
}

NOT_BILLED = {"429": error(429), "400": error(400, "no such parameter"), "413": error(413)}
CASES = [
    *(pytest.param(fault, share, True, id=f"{name}-{share}") for name, fault in BILLED.items()
      for share in (0.3, 0.8)),
    *(pytest.param(fault, 0.3, False, id=name) for name, fault in NOT_BILLED.items()),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "share", "bills"), CASES)
def test_the_bill_is_within_the_budget_and_the_dry_runs_range(bench, fault, share, bills):
    study = bench.study(pairs=8)
    (told,) = forecast(study, [PRICED], GradingOptions())
    bench.script = biller = Biller(fault, share, bills)
    summary = grade(study, [PRICED], budget=0.8, concurrency=4)
    assert biller.billed <= Decimal("0.8")
    if not (summary.over_budget or summary.stopped):
        assert told.cost[0] <= float(biller.billed) <= told.cost[1]


@pytest.mark.parametrize("usage", [USAGE, CACHED], ids=["without a cache", "from the cache"])
def test_the_dry_run_contains_what_is_paid(bench: Bench, usage: dict[str, int]) -> None:
    study = bench.study(pairs=2)
    (told,) = forecast(study, [PRICED], GradingOptions())
    bench.script = biller = Biller(DROPPED, 0.0, False, usage)
    grade(study, [PRICED])
    assert told.cost[0] <= float(biller.billed) <= told.cost[1]
    bench.script = lambda call: replace(answer(call), body=answer(call).body | {"usage": None})
    silent = bench.study(pairs=1, name="silent")
    summary = grade(silent, [PRICED])
    assert 0.8 < total_spent(silent.store) == pytest.approx(float(summary.spent))
    bench.script = lambda call: error(504)
    for grader, draws in ((PRICED, 1), (bench.as_openai(), 3)):  # three draws in one request
        lost = bench.study(pairs=3, name=f"lost{draws}")
        summary = grade(lost, [grader], draws=draws, budget=0.5)
        assert summary.over_budget
        assert 0.4 < sum(row["provenance"]["held_usd"] for row in rows(lost)) <= 0.5
        assert "for lost replies that may have been billed" in summary.stopped[0]


CREDIT = {
    "Anthropic": (400, "invalid_request_error",
        "Your credit balance is too low to access the API."),
    "OpenAI": (429, "insufficient_quota",
        "You exceeded your current quota, please check your plan"),
    "LiteLLM's older": (422, "None", "ExceededBudget: User=u over budget. Spend=3, Budget=2"),
    "own gateway": (403, "forbidden", "Your project's monthly budget is exhausted: limit reached"),
    "another": (422, "quota", "The remaining balance of this tenant is insufficient"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("who", CREDIT)
@pytest.mark.parametrize("batch", [False, True])
def test_credit_that_ends_leaves_the_units_open(bench, who, grader, batch):
    status, code, text = CREDIT[who]
    if batch and grader == bench.claude:
        # A line of Anthropic's results has no status, and gateways that offer its batches borrow.
        code = "invalid_request_error"
    error = {"type": code, "code": code, "message": text}
    refused = bench.batches.refusal = Reply(status, {"type": "error", "error": error})
    bench.script = lambda call: answer(call) if batch or len(bench.calls) <= 7 else refused
    bench.batches.fate = lambda call: "refused" if call.unit >= "p0005" else ""
    study = bench.study(pairs=10)
    summary = grade(study, [grader], concurrency=4, batch=batch)
    unasked = summary.graders[0].unasked
    assert "no credit left" in summary.stopped[0]
    assert "add credit or raise the limit and run again" in summary.stopped[0]
    assert (summary.scored, summary.unscored) == (20 - unasked, 0)
    assert unasked in ((11, 12) if batch else (13,))  # the one asked live was answered
    assert len(bench.calls) <= 7 + 4
    assert len(bench.batches.made) == batch
    bench.script, bench.batches.fate = answer, lambda call: ""
    again = grade(study, [grader], batch=batch)
    assert (again.scored, again.unscored, again.graders[0].unasked) == (unasked, 0, 0)


@pytest.mark.journey
def test_a_reply_of_a_batch_without_usage_counts_in_full(bench: Bench) -> None:
    study = bench.study(pairs=4)
    bench.script = lambda call: Reply(body=answer(call).body | {"usage": None})
    assert grade(study, [PRICED], batch=True, budget=3.0, draws=1).scored == 8
    assert grade(study, [PRICED], batch=True, budget=0.01, draws=2).over_budget
