"""Every field of usage that the SDKs know is read or known to cost nothing; prices, forecasts
without network, and a budget that is never overspent.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any, get_args

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.graders import GradingOptions, RequestLimits, forecast, money
from evenhand.graders.clients import Reply
from evenhand.graders.providers import parse_spec
from evenhand.graders.replies import Outcome
from evenhand.graders.running import Forecast, GraderForecast, Reservations, Rounds, propose
from evenhand.rubrics import PromptText
from evenhand.study.settings.study_toml import ModelPrices
from harness.replies import DROPPED, Call, answer, error, message
from harness.replies import Reply as Answer
from harness.studies import MarkedStudy
from tests.cases import refused
from tests.graders.bench import Bench
from tests.graders.grading import grade, respond, rows
from tests.peers import anthropic_types, openai_types

PRICED = "anthropic:claude-opus-5"  # $5 and $25 a million tokens, $6.25 and $10 written to a cache

COUNTED, WITHIN, TERMS = "counted", "within another count", "how it was served"
CLAUDE_FIELDS = {
    **dict.fromkeys(("cache_creation.ephemeral_1h_input_tokens", "input_tokens", "output_tokens",
        "cache_creation.ephemeral_5m_input_tokens", "cache_creation_input_tokens",
        "cache_read_input_tokens", "server_tool_use.web_search_requests"), COUNTED),
    "output_tokens_details.thinking_tokens": WITHIN,
    "server_tool_use.web_fetch_requests": "free",
    **dict.fromkeys(("inference_geo", "service_tier", "speed"), TERMS),
}  # fmt: skip
OPENAI_FIELDS = {
    **dict.fromkeys(("completion_tokens", "prompt_tokens", "total_tokens",
        "prompt_tokens_details.cache_write_tokens", "prompt_tokens_details.cached_tokens"),
        COUNTED),
    **{f"completion_tokens_details.{each}_tokens": WITHIN for each in
       ("accepted_prediction", "audio", "reasoning", "rejected_prediction", "text")},
    **{f"prompt_tokens_details.{each}_tokens": WITHIN for each in ("audio", "image", "text")},
}  # fmt: skip


def fields_of(model: type[BaseModel], before: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        yield from fields_of(inner[0], f"{before}{name}.") if inner else [before + name]


@pytest.mark.parametrize(
    ("sdk", "model", "fields", "start"),
    [
        (anthropic_types, "Usage", CLAUDE_FIELDS, ("input", "output")),
        (openai_types, "CompletionUsage", OPENAI_FIELDS, ("prompt", "completion")),
    ],
)
def test_no_field_of_an_sdk_is_unknown_and_what_counts_is_counted(sdk, model, fields, start):
    assert set(fields_of(getattr(sdk, model))) == set(fields)
    for path, role in fields.items():
        *outer, name = path.split(".")
        held = {name: 7}
        for each in reversed(outer):
            held = {each: held}
        tokens = money.Tokens.from_usage({f"{each}_tokens": 0 for each in start} | held)
        assert (tokens != money.Tokens()) == (role == COUNTED), path


@pytest.mark.parametrize(("grader", "evidence", "usd"), [
    (PRICED, {"usage": {"input_tokens": 10**6, "output_tokens": 0}}, 5),
    (PRICED, {"usage": {"cache_creation_input_tokens": 10**6}}, 6.25),
    (PRICED, {"usage": {"cache_creation": {"ephemeral_5m_input_tokens": 10**6}}}, 6.25),
    (PRICED, {"usage": {"cache_creation": {"ephemeral_1h_input_tokens": 10**6}}}, 10),
    (PRICED, {"usage": {"cache_read_input_tokens": 10**6}}, 0.5),
    (PRICED, {"usage": {"input_tokens": 10**6, "inference_geo": "us"}}, 5.5),
    (PRICED, {"usage": {"input_tokens": 10**6, "speed": "fast"}}, 10),
    # $4, and $5 written to a cache
    ("openai:gpt-5.6-sol", {"usage": {"prompt_tokens": 100_000, "completion_tokens": 0,
        "prompt_tokens_details": {"cache_write_tokens": 100_000}}}, 0.5),
    ("openai:gpt-4o", {"usage": {"prompt_tokens": 10**6}, "service_tier": "priority"}, 4.25),
    # thinking that stands in the total only, at $10
    ("openai:gpt-4o",
        {"usage": {"prompt_tokens": 0, "completion_tokens": 1, "total_tokens": 10**6}}, 10),
])  # fmt: skip
def test_each_kind_has_its_price(grader: str, evidence: dict[str, Any], usd: float) -> None:
    facts = money.usage_facts(evidence, money.Tariff.find(parse_spec(grader)))
    assert facts["cost_usd"] == pytest.approx(usd)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    budget=st.floats(0.05, 2),
    outputs=st.lists(st.integers(1, 20_000), min_size=5, max_size=60),
    lost=st.lists(st.booleans(), min_size=3, max_size=3),
    workers=st.integers(1, 12),
)
def test_no_reply_of_any_length_exceeds_a_budget(budget, outputs, lost, workers):
    """Requests side by side, each billed at the dearest kind for all of its bytes."""
    tariff = money.Tariff.find(parse_spec(PRICED))
    shared, billed, waiting = money.Budget(budget), [], list(outputs)
    reservations = Reservations(shared, tariff)

    async def work() -> None:
        while waiting:
            output = waiting.pop()
            request = {"model": "m", "max_tokens": 16_000, "messages": "x" * (output % 5_000)}
            try:
                held = await reservations.set_aside(request)
            except money.OverBudget:
                return
            for _ in range(output % 4):
                await anyio.sleep(0)
            size = len(str(request))
            usage = {
                "input_tokens": 0,
                "cache_creation_input_tokens": size,
                "cache_creation": {"ephemeral_1h_input_tokens": size},
                "output_tokens": min(output, money.output_limit(request)),
                "inference_geo": "us",
            }
            bill = Decimal(str(money.usage_facts({"usage": usage}, tariff)["cost_usd"]))
            billed.append(bill)
            if lost[output % 3]:
                shared.settle(held, held)
            else:
                reply = Reply(request, "", [Outcome(evidence={"usage": usage})])
                reservations.record_usage(reply, 16_000)
                shared.settle(held, bill)
            assert bill <= held

    async def everyone() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(workers):
                group.start_soon(work)

    anyio.run(everyone)
    assert sum(billed) <= shared.spent <= shared.limit


def test_what_a_budget_cut_short_is_asked_again(bench: Bench) -> None:
    def script(call: Call) -> Answer:
        most = call.body["max_tokens"]
        cut = message("", stop_reason="max_tokens").body
        usage = {"input_tokens": 900, "output_tokens": most}
        whole = answer(call) if call.system else message("Tex", stop_reason="max_tokens")
        return whole if most == 16_000 else Answer(body=cut | {"usage": usage})

    bench.script, study = script, bench.study(pairs=1)
    summary = grade(study, [PRICED], budget=0.4, concurrency=1)
    assert set(summary.graders[0].unscored) == {"truncated_by_budget"}
    assert grade(study, [PRICED], budget=5).scored == 2
    response = respond(study, PRICED, budget=0.4, concurrency=1)
    assert set(response.run.unscored) == {"truncated_by_budget"}
    assert respond(study, PRICED, budget=5).added == 2, "cut at the model's usual limit"
    rounds = [Rounds.begin(study, RequestLimits(budget=budget)) for budget in (0.4, 5)]
    cut, whole = (propose(run, "hedging", PRICED, PromptText("", "Write."), {}) for run in rounds)
    assert (cut, whole.reply) == (None, "Tex")


def test_bounds_on_a_bill_and_a_lowered_limit_are_those_by_hand() -> None:
    """An hour's cache costs $10 a million tokens, output $25, and in the US a tenth more."""
    tariff, limits = money.Tariff.find(parse_spec(PRICED)), {"max_tokens": 16_000}
    request = limits | {"messages": "x" * 8_000}
    n_bytes, output = len(json.dumps(request)), 1.1 * 25e-6
    prompt = 1.1 * (n_bytes + 2_000) * 10e-6
    assert float(tariff.at_most(request)) == pytest.approx(prompt + 16_000 * output)
    three = prompt + len(', "n": 3') * 11e-6 + 3 * 7 * output
    assert float(tariff.at_most(request | {"n": 3}, 7)) == pytest.approx(three)
    assert float(tariff.at_least(request)) == pytest.approx(1_000 * 0.5e-6 + 25e-6)
    assert money.input_estimate(request) == n_bytes // 4
    picture = {"messages": [{"type": "base64", "data": "A" * 9_000}, "data:image/png;base64,AA"]}
    bare = {"messages": [{"type": "base64"}, ""]}
    assert money.input_estimate(picture) == len(json.dumps(bare)) // 4 + 2 * 1_600
    dearer = float(tariff.at_most(picture) - tariff.at_most(bare))
    assert dearer == pytest.approx(1.1 * 5_000 * 10e-6)  # one is in it anyway
    reservations = Reservations(money.Budget(0.3), tariff)
    assert anyio.run(reservations.set_aside, request) == Decimal("0.3")
    assert request["max_tokens"] == int((0.3 - prompt) / output)
    thinks = request | {"thinking": {"budget_tokens": 6_000}, "max_tokens": 22_000}
    assert reservations.lowest_price(thinks) == tariff.at_most(thinks, 6_000 + 1_024)
    reservations, request = Reservations(money.Budget(1.0), tariff), request | limits
    prices = [reservations.price_in_batch(dict(request), Decimal(0), n) for n in (1, 5)]
    assert list(map(float, prices)) == pytest.approx([prompt + n * output for n in (16_000, 1_024)])
    assert reservations.price_in_batch(dict(request), Decimal("0.9"), 1) is None
    reservations.longest_answer = 1_000
    assert float(reservations.lowest_price(request)) == pytest.approx(prompt + 4_000 * output)


@pytest.mark.journey
def test_settings_are_sent_and_belong_to_the_graders_identity(bench: Bench) -> None:
    study, raters = bench.study(pairs=1), []
    own = {"max_tokens": 500, "effort": "low", "service_tier": "flex"}
    for options in ({}, *({name: value} for name, value in own.items()), own):
        summary = grade(study, [bench.claude, bench.openai], **options)
        raters += [part.rater_id for part in summary.graders]
    assert len(set(raters)) == 10
    for body in (call.body for call in bench.calls[-4:]):
        assert (body["service_tier"], body["max_tokens"]) == ("flex", 500)
        assert (body.get("reasoning_effort") or body["output_config"]["effort"]) == "low"
    with pytest.raises(InputError, match="effort is 'very high!'; it must be one word"):
        grade(study, [bench.claude], effort="very high!")


def test_temperature_and_seed_are_sent_and_stand_in_the_provenance(bench: Bench) -> None:
    study, own = bench.study(pairs=1), {"temperature": 0, "seed": 7}
    summary = grade(study, [bench.openai], method="label", **own)
    assert summary.graders[0].rater_id not in ("", bench.openai)
    sent = [call.body for call in bench.calls]
    for settings_of in (*sent, *(row["provenance"]["settings"] for row in rows(study))):
        assert own.items() <= settings_of.items()
    grade(study, [bench.claude], temperature=0.5)
    assert bench.calls[-1].body["temperature"] == 0.5
    for grader, options, said in (
        (bench.claude, {"seed": 7}, "anthropic takes no seed"),
        (bench.claude, {"temperature": 3}, "temperature is 3; it must be from 0 to 2"),
        (bench.openai, {"seed": 1, "draws": 3}, "with a seed all draws would be one"),
    ):
        refused(said, grade, study, [grader], **options)


def test_what_a_gateway_says_it_charged_is_the_cost_or_what_the_study_says(bench: Bench) -> None:
    study = bench.study(pairs=1)
    prices = ModelPrices(input=2, output=10, cache_read=0.5, cache_write=3)
    assert float(prices.cost(10**6, 400_000, 100_000, 0)) == pytest.approx(1.0 + 0.2 + 0.3)
    study.config = study.config.model_copy(update={"prices": {"test-model": prices}})
    grade(study, [bench.openai], budget=5)
    cost = 2 * (900 * 2 + 10) / 1e6
    assert study.grade_totals()["cost_usd"].sum() == pytest.approx(cost)
    bench.script = lambda call: replace(answer(call), headers={"x-litellm-response-cost": "0.0125"})
    grade(study, [f"{bench.openai}/"])
    assert study.grade_totals()["cost_usd"].sum() == pytest.approx(cost + 2 * 0.0125)


def test_a_forecast_follows_what_was_paid(bench: Bench) -> None:
    study = bench.study(pairs=2)
    grade(study, [PRICED])
    every = GradingOptions(orders=("ab",), rubrics=["hedging"], scope="all")
    assert [each.new for each in forecast(study, [PRICED], every)] == [0]
    study.rubrics["hedging"] = study.rubrics["hedging"].model_copy(update={"question": "Really?"})
    study.rubrics["hedging"].__dict__.pop("hash", None)
    (more,) = forecast(study, [PRICED], GradingOptions())
    assert more.expected == pytest.approx(4 * 0.0048)
    assert "like its 4 requests so far" in more.basis
    words = ["grade", str(study.folder), "--grader", PRICED, "--dry-run", "--effort", "low"]
    assert main(words) == 0


def test_a_large_forecast_prices_some_prompts_and_says_so(marked_study: MarkedStudy) -> None:
    study = marked_study(pairs=9)
    (whole,) = forecast(study, [PRICED], GradingOptions(draws=3))
    assert "spread evenly" not in whole.basis
    (some,) = forecast(study, [PRICED], GradingOptions(draws=3), max_priced=5)
    assert some.new == whole.new == 54
    assert "all 54 are extrapolated from 15 spread" in some.basis
    assert some.cost == pytest.approx(whole.cost, rel=0.02)  # the prompts are about equally long
    assert some.expected == pytest.approx(whole.expected, rel=0.02)


def test_price_and_usage_stand_with_every_grade(bench: Bench) -> None:
    study = bench.study(pairs=1)
    grade(study, [PRICED])
    totals = study.grade_totals().iloc[0]
    # What the server would have billed: 900 tokens in and 12 out a request.
    cost = len(bench.calls) * (900 * 5 + 12 * 25) / 1e6
    assert totals["cost_usd"] == pytest.approx(cost) == pytest.approx(2 * 0.0048)
    assert (totals["labelled"], totals["unscored"], totals["cached_share"]) == (2, 0, 0)
    bench.calls.clear()
    with pytest.raises(InputError, match=r"price of anthropic:claude-test@\S+ is not known"):
        grade(study, [bench.claude], budget=5)
    assert bench.calls == []
    assert grade(study, [bench.claude]).scored == 2  # without a price, which a budget alone needs
    assert study.grade_totals()["cost_usd"].isna().tolist() == [False, True]
    tokens, spec = money.Tokens(input=1000, cached=200, written=100, output=50), parse_spec(PRICED)
    assert money.Tariff(spec, batch=True).cost(tokens) == money.Tariff(spec).cost(tokens) / 2


@pytest.mark.journey
@pytest.mark.parametrize("batch", [False, True])
def test_the_budget_is_never_overspent_and_a_higher_one_goes_on(bench: Bench, batch: bool) -> None:
    study = bench.study(pairs=20)
    budget = 1.0  # one request may cost $0.43 at most, and costs $0.0048
    summary = grade(study, [PRICED], budget=budget, batch=batch)
    total = study.grade_totals()["cost_usd"].sum()
    assert total <= budget
    assert (summary.scored, summary.over_budget) == (40, False)
    more = grade(study, [PRICED], budget=0.15, draws=2, batch=batch)
    assert more.over_budget
    assert more.scored > 10  # though the worst price of one is more than the budget
    assert study.grade_totals()["cost_usd"].sum() - total <= 0.15
    assert "budget" in more.stopped[0]


@pytest.mark.journey
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
    def script(call: Call) -> Answer:
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
    assert study.grade_totals()["cost_usd"].sum() == pytest.approx(scored * 1.28225)


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


def test_a_forecast_of_several_steps_adds_up() -> None:
    first = GraderForecast(
        rater_id="a@http://h#x", already=1, new=60, cost=(1.0, 3.0), expected=2.0, warnings=("w",)
    )
    second = GraderForecast(rater_id="b", already=2, new=30, cost=(0.5, 0.5), warnings=("w", "v"))
    left, unpriced = first.remaining(45), replace(first, cost=None, expected=None)
    assert (left.already, left.new, left.cost, left.expected) == (45, 15, (0.25, 0.75), 0.5)
    assert [unpriced.remaining(done).cost for done in (45, 60)] == [None, (0.0, 0.0)]
    run = Forecast([("grades", first), ("responses", second)], ["Work."], 0.0, concurrency=4)
    total = run.total
    assert (total.already, total.new, total.cost, total.expected) == (3, 90, (1.5, 3.5), 2.0)
    assert (run.unpriced, run.lines[1:]) == ({}, ["Work.", "w", "v"])
    assert "4 min" in run.lines[0]  # 90 replies of 10 seconds, four at a time
    batch = replace(run, batch=True, spent=1.25)
    assert "2 min" in batch.lines[0]  # the 30 that no batch holds
    assert "1.25" in batch.lines[2] and batch.lines[3:] == run.lines[1:]
    more = replace(run, steps=[("grades", unpriced), *run.steps, ("grades", unpriced)])
    assert (more.unpriced, more.total.cost) == ({"models": "a", "first": "a"}, None)
    assert len(more.lines) == len(run.lines) + 1
