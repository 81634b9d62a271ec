"""Every field of usage that the SDKs know is read or known to cost nothing, and budgets hold."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, get_args

import anyio
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.graders import GradingOptions, forecast
from evenhand.graders.clients import Reply
from evenhand.graders.money import Budget, OverBudget, Tariff, Tokens, output_limit, usage_facts
from evenhand.graders.options import GraderSettings, rater_id
from evenhand.graders.providers import parse_spec
from evenhand.graders.replies import Outcome
from evenhand.graders.running import Reservations
from evenhand.study.settings.study_toml import ModelPrices
from evenhand.study.store.schema import grades
from evenhand.study.store.store import grade_totals
from harness.replies import Call, answer, message
from harness.replies import Reply as Answer
from harness.studies import MarkedStudy
from tests.graders.bench import Bench
from tests.graders.grading import grade

PRICED = "anthropic:claude-opus-5"  # $5 and $25 a million tokens, $6.25 and $10 written to a cache

COUNTED, WITHIN, TERMS = "counted", "within another count", "how it was served"
CLAUDE_FIELDS = {
    "cache_creation.ephemeral_1h_input_tokens": COUNTED,
    "cache_creation.ephemeral_5m_input_tokens": COUNTED,
    "cache_creation_input_tokens": COUNTED,
    "cache_read_input_tokens": COUNTED,
    "inference_geo": TERMS,
    "input_tokens": COUNTED,
    "output_tokens": COUNTED,
    "output_tokens_details.thinking_tokens": WITHIN,
    "server_tool_use.web_fetch_requests": "free",
    "server_tool_use.web_search_requests": COUNTED,
    "service_tier": TERMS,
    "speed": TERMS,
}
OPENAI_FIELDS = {
    "completion_tokens": COUNTED,
    "completion_tokens_details.accepted_prediction_tokens": WITHIN,
    "completion_tokens_details.audio_tokens": WITHIN,
    "completion_tokens_details.reasoning_tokens": WITHIN,
    "completion_tokens_details.rejected_prediction_tokens": WITHIN,
    "completion_tokens_details.text_tokens": WITHIN,
    "prompt_tokens": COUNTED,
    "prompt_tokens_details.audio_tokens": WITHIN,
    "prompt_tokens_details.cache_write_tokens": COUNTED,
    "prompt_tokens_details.cached_tokens": COUNTED,
    "prompt_tokens_details.image_tokens": WITHIN,
    "prompt_tokens_details.text_tokens": WITHIN,
    "total_tokens": COUNTED,
}


def fields_of(model: type[BaseModel], before: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if inner:
            yield from fields_of(inner[0], f"{before}{name}.")
        else:
            yield before + name


def nested(path: str, value: object) -> dict[str, Any]:
    head, _, rest = path.partition(".")
    return {head: nested(rest, value) if rest else value}


def test_no_field_of_either_sdk_is_unknown() -> None:
    import anthropic.types
    import openai.types

    assert set(fields_of(anthropic.types.Usage)) == set(CLAUDE_FIELDS)
    assert set(fields_of(openai.types.CompletionUsage)) == set(OPENAI_FIELDS)


@pytest.mark.parametrize(
    ("fields", "start"),
    [
        (CLAUDE_FIELDS, {"input_tokens": 0, "output_tokens": 0}),
        (OPENAI_FIELDS, {"prompt_tokens": 0, "completion_tokens": 0}),
    ],
)
def test_what_counts_is_counted(fields: Mapping[str, str], start: dict[str, int]) -> None:
    for path, role in fields.items():
        tokens = Tokens.of(start | nested(path, 7))
        assert (tokens != Tokens()) == (role == COUNTED), path


@pytest.mark.parametrize(
    ("grader", "evidence", "usd"),
    [
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
    ],
)  # fmt: skip
def test_each_kind_has_its_price(grader: str, evidence: dict[str, Any], usd: float) -> None:
    facts = usage_facts(evidence, Tariff.find(parse_spec(grader)))
    assert facts["cost_usd"] == pytest.approx(usd)


def dearest(request: Mapping[str, Any], size: int, output: int) -> dict[str, Any]:
    """The worst usage that a server could bill for a request."""
    written = {"ephemeral_1h_input_tokens": size, "ephemeral_5m_input_tokens": 0}
    return {
        "input_tokens": 0,
        "cache_creation_input_tokens": size,
        "cache_creation": written,
        "output_tokens": min(output, output_limit(request)),
        "inference_geo": "us",
    }


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
    tariff = Tariff.find(parse_spec(PRICED))
    assert tariff is not None
    shared, billed, waiting = Budget(budget), [], list(outputs)
    reservations = Reservations(shared, tariff)

    async def work(number: int) -> None:
        while waiting:
            output = waiting.pop()
            request = {"model": "m", "max_tokens": 16_000, "messages": "x" * (output % 5_000)}
            try:
                held = await reservations.set_aside(request)
            except OverBudget:
                return
            for _ in range(output % 4):
                await anyio.sleep(0)
            usage = dearest(request, len(str(request)), output)
            bill = Decimal(str(usage_facts({"usage": usage}, tariff)["cost_usd"]))
            billed.append(bill)
            if lost[output % 3]:
                shared.settle(held, held)
            else:
                reservations.learn(Reply(request, "", Outcome(evidence={"usage": usage})), 16_000)
                shared.settle(held, bill)
            assert bill <= held

    async def everyone() -> None:
        async with anyio.create_task_group() as group:
            for number in range(workers):
                group.start_soon(work, number)

    anyio.run(everyone)
    assert sum(billed) <= shared.spent <= shared.limit


@pytest.mark.slow
def test_a_small_budget_buys_what_replies_really_cost(bench: Bench) -> None:
    study = bench.study(pairs=40)
    summary = grade(study, [PRICED], budget=0.4, concurrency=8)
    spent = grade_totals(study.store)["cost_usd"].sum()
    assert summary.scored > 0.75 * 0.4 / 0.0048
    assert spent <= 0.4
    limits = {call.body["max_tokens"] for call in bench.calls}
    assert max(limits) < 16_000
    assert min(limits) >= 1_024


def test_what_a_budget_cut_short_is_asked_again(bench: Bench) -> None:
    def script(call: Call) -> Answer:
        if call.body["max_tokens"] == 16_000:
            return answer(call)
        cut = message("", stop_reason="max_tokens")
        usage = {"input_tokens": 900, "output_tokens": call.body["max_tokens"]}
        return replace(cut, body=cut.body | {"usage": usage})

    bench.script = script
    study = bench.study(pairs=1)
    summary = grade(study, [PRICED], budget=0.4, concurrency=1)
    assert set(summary.graders[0].unscored) == {"truncated_by_budget"}
    assert grade(study, [PRICED], budget=5).scored == 2


@pytest.mark.slow
def test_settings_are_sent_and_belong_to_the_graders_identity(bench: Bench) -> None:
    study = bench.study(pairs=1)
    own = {"max_tokens": 500, "effort": "low", "service_tier": "flex"}
    raters = []
    for options in ({}, *({name: value} for name, value in own.items()), own):
        summary = grade(study, [bench.claude, bench.openai], **options)  # type: ignore[arg-type]
        raters += [part.rater_id for part in summary.graders]
    assert len(set(raters)) == 10
    bodies = [call.body for call in bench.calls[-4:]]
    for body in bodies:
        assert body["service_tier"] == "flex"
        assert body["max_tokens"] == 500
    efforts = {body.get("reasoning_effort") or body["output_config"]["effort"] for body in bodies}
    assert efforts == {"low"}
    with pytest.raises(InputError, match="effort is 'very high!'; it must be one word"):
        grade(study, [bench.claude], effort="very high!")


def test_temperature_and_seed_are_sent_and_stand_in_the_provenance(bench: Bench) -> None:
    study = bench.study(pairs=1)
    summary = grade(study, [bench.openai], method="label", temperature=0, seed=7)
    assert summary.graders[0].rater_id not in ("", bench.openai)
    assert [(call.body["temperature"], call.body["seed"]) for call in bench.calls] == [(0, 7)] * 2
    with study.store.read() as connection:
        kept = connection.execute(sa.select(grades.c.provenance)).scalars().all()
    own = [each["settings"] for each in kept]
    assert {(each["temperature"], each["seed"]) for each in own} == {(0, 7)}
    grade(study, [bench.claude], temperature=0.5)
    assert bench.calls[-1].body["temperature"] == 0.5
    for options, said in (
        ({"seed": 7}, "anthropic takes no seed"),
        ({"temperature": 3}, "temperature is 3; it must be from 0 to 2"),
    ):
        with pytest.raises(InputError, match=said):
            grade(study, [bench.claude], **options)
    with pytest.raises(InputError, match="with a seed all draws would be one"):
        grade(study, [bench.openai], seed=1, draws=3)


def test_the_rater_id_without_settings_is_as_before() -> None:
    spec = parse_spec("anthropic:m")
    assert rater_id(spec, GraderSettings("verbalised")) == "anthropic:m#7707ad"
    assert rater_id(spec, GraderSettings("label", max_tokens=9)) != "anthropic:m"


def test_what_a_gateway_says_it_charged_is_the_cost(bench: Bench) -> None:
    bench.script = lambda call: replace(answer(call), headers={"x-litellm-response-cost": "0.0125"})
    study = bench.study(pairs=2)
    grade(study, [bench.openai])
    assert grade_totals(study.store)["cost_usd"].sum() == pytest.approx(4 * 0.0125)


def test_a_study_can_name_prices(bench: Bench) -> None:
    study = bench.study(pairs=2)
    prices = {"test-model": ModelPrices(input=2, output=10)}
    study.config = study.config.model_copy(update={"prices": prices})
    grade(study, [bench.openai], budget=5)
    assert grade_totals(study.store)["cost_usd"].sum() == pytest.approx(4 * (900 * 2 + 10) / 1e6)
    prices = ModelPrices(input=2, output=10, cache_read=0.5, cache_write=3)
    assert float(prices.cost(10**6, 400_000, 100_000, 0)) == pytest.approx(1.0 + 0.2 + 0.3)


def test_a_forecast_follows_what_was_paid(bench: Bench) -> None:
    study = bench.study(pairs=5)
    grade(study, [PRICED])
    every = GradingOptions(orders=("ab",), rubrics=["hedging"], scope="all")
    (more,) = forecast(study, [PRICED], every)
    assert more.new == 0
    study.rubrics["hedging"] = study.rubrics["hedging"].model_copy(update={"question": "Really?"})
    study.rubrics["hedging"].__dict__.pop("hash", None)
    (more,) = forecast(study, [PRICED], GradingOptions())
    assert more.expected == pytest.approx(10 * 0.0048)
    assert "like its 10 requests so far" in more.basis
    words = ["grade", str(study.folder), "--grader", PRICED, "--dry-run", "--effort", "low"]
    assert main(words) == 0


def test_a_large_forecast_prices_some_prompts_and_says_so(marked_study: MarkedStudy) -> None:
    study = marked_study(pairs=9)
    (whole,) = forecast(study, [PRICED], GradingOptions(draws=3))
    assert "spread evenly" not in whole.basis
    (some,) = forecast(study, [PRICED], GradingOptions(draws=3), most=5)
    assert some.new == whole.new == 54
    assert "all 54 are extrapolated from 15 spread" in some.basis
    assert some.cost == pytest.approx(whole.cost, rel=0.02)  # the prompts are about equally long
    assert some.expected == pytest.approx(whole.expected, rel=0.02)
