"""Prices, forecasts without network, and a budget that is never overspent."""

import random
from dataclasses import replace
from decimal import Decimal

import anyio
import pytest

from evenhand.errors import InputError
from evenhand.graders import GradingOptions, forecast
from evenhand.graders.money import Budget, OverBudget, Tariff, Tokens
from evenhand.graders.providers import parse_spec
from evenhand.study.store.store import grade_totals
from harness.replies import DROPPED, Call, Reply, answer, error
from harness.studies import MarkedStudy
from tests.graders.bench import Bench
from tests.graders.grading import grade

PRICED = "anthropic:claude-opus-5"  # $5 and $25 a million tokens


def test_price_and_usage_stand_with_every_grade(bench: Bench) -> None:
    study = bench.study(pairs=1)
    grade(study, [PRICED])
    totals = grade_totals(study.store).iloc[0]
    # What the server would have billed: 900 tokens in and 12 out a request.
    cost = len(bench.calls) * (900 * 5 + 12 * 25) / 1e6
    assert totals["cost_usd"] == pytest.approx(cost) == pytest.approx(2 * 0.0048)
    assert (totals["labelled"], totals["unscored"], totals["cached_share"]) == (2, 0, 0)
    bench.calls.clear()
    with pytest.raises(InputError, match=r"price of anthropic:claude-test@\S+ is not known"):
        grade(study, [bench.claude], budget=5)
    assert bench.calls == []
    assert grade(study, [bench.claude]).scored == 2  # without a price, which a budget alone needs
    assert grade_totals(study.store)["cost_usd"].isna().tolist() == [False, True]
    tokens, spec = Tokens(input=1000, cached=200, written=100, output=50), parse_spec(PRICED)
    assert Tariff(spec, batch=True).cost(tokens) == Tariff(spec).cost(tokens) / 2


@pytest.mark.slow
@pytest.mark.parametrize("batch", [False, True])
def test_the_budget_is_never_overspent_and_a_higher_one_goes_on(bench: Bench, batch: bool) -> None:
    study = bench.study(pairs=20)
    budget = 1.0  # one request may cost $0.43 at most, and costs $0.0048
    summary = grade(study, [PRICED], budget=budget, batch=batch)
    total = grade_totals(study.store)["cost_usd"].sum()
    assert total <= budget
    assert (summary.scored, summary.over_budget) == (40, False)
    more = grade(study, [PRICED], budget=0.15, draws=2, batch=batch)
    assert more.over_budget
    assert more.scored > 10  # though the worst price of one is more than the budget
    assert grade_totals(study.store)["cost_usd"].sum() - total <= 0.15
    assert "budget" in more.stopped[0]


def test_the_budget_holds_whatever_happens() -> None:
    luck = random.Random(1)
    budget = Budget(10)
    billed = []

    async def spend() -> None:
        for _ in range(20):
            worst = Decimal(luck.randint(1, 300)) / 100
            try:
                await budget.reserve(worst)
            except OverBudget:
                return
            await anyio.sleep(0)
            bill = worst * luck.randint(0, 100) / 100
            billed.append(bill)
            budget.settle(worst, bill)
            assert budget.spent <= 10

    async def everyone() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(spend)

    anyio.run(everyone)
    assert budget.exhausted
    assert 7 < sum(billed) == budget.spent <= 10


@pytest.mark.slow
def test_a_lost_reply_may_have_been_billed(bench: Bench) -> None:
    bench.script = lambda call: DROPPED if call.nth == 1 else answer(call)
    summary = grade(bench.study(pairs=3), [PRICED], budget=0.7)
    # The first lost reply counts $0.43; later ones have a lower limit, and count some cents.
    assert summary.over_budget
    assert 1 <= summary.scored < 6
    bench.script = lambda call: error(429) if call.nth == 1 else answer(call)
    assert grade(bench.study(pairs=3, name="busy"), [PRICED], budget=1.0).scored == 6


@pytest.mark.parametrize(("budget", "scored"), [(0.5, 0), (3.0, 2)])
def test_a_request_that_the_server_makes_dearer_is_set_aside_for_anew(bench, budget, scored):
    def script(call: Call) -> Reply:
        """Refuses any limit, then answers at length: 128,000 tokens, $1.28."""
        if "max_completion_tokens" in call.body:
            return error(400, "max_completion_tokens is too large")
        reply = answer(call)
        usage = {"prompt_tokens": 900, "completion_tokens": 128_000}
        return replace(reply, body=reply.body | {"usage": usage})

    bench.script = script
    bench.as_openai()
    study = bench.study(pairs=2)
    summary = grade(study, ["openai:gpt-4o"], budget=budget)  # with its limit it is $0.05 at most
    assert (summary.over_budget, summary.scored) == (True, scored)
    assert len(bench.calls) == summary.graders[0].requests == 1 + scored
    assert grade_totals(study.store)["cost_usd"].sum() == pytest.approx(scored * 1.28225)


def test_a_forecast_needs_no_key_and_no_network(marked_study: MarkedStudy, run) -> None:
    study = marked_study(pairs=5)
    specs = [PRICED, "openai:gpt-5", "openai:m@http://127.0.0.1:9/v1", "baseline:lexical"]
    first, second, third, last = forecast(study, specs, GradingOptions())
    assert 0 < first.cost[0] < first.expected < 10 * 0.0048 < first.cost[1]
    assert "assumed" in first.basis
    assert "Prices: genai-prices" in first.basis
    assert (first.already, first.new) == (0, 10)
    assert "Argue" not in first.sample.system
    assert any("retires on 2026-12-11" in sentence for sentence in second.warnings)
    assert (third.cost, last.cost) == (None, (0.0, 0.0))
    (halved,) = forecast(study, [PRICED], GradingOptions(), batch=True)
    assert halved.cost == pytest.approx([usd / 2 for usd in first.cost])
    done = run("grade", study.folder, "--grader", PRICED, "--dry-run")
    assert done.returncode == 0
    assert "|m|a]] A plain answer." in done.stdout or "|m|b]] A plain answer." in done.stdout
    assert "no probability" in done.stderr
    assert " expected " in done.stdout
