# ruff: noqa: E501 - servers' sentences stand as they came
"""What servers say when they refuse, as it was recorded, means what the table says it does."""

import re

import pytest

from evenhand.graders.failures import Refusal, refusal_of, refusals

MEANS = {"passing", "credit", "key", "permission", "model", "path", "redirect", "filter", "unit"}
RECORDED = [row for row in refusals() if row.words]


def test_every_row_is_whole() -> None:
    for row in refusals():
        assert row.means in MEANS
        assert row.source.startswith("https://")
        assert row.status or row.words
        re.compile(row.words)
        assert row.recorded or not row.words


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row.who)
def test_a_recorded_refusal_is_known_by_its_own_row(row: Refusal) -> None:
    for status in [each for each in row.status if isinstance(each, int)] or [400, 403, 422, 429]:
        assert refusal_of(status, row.recorded) is row


# Passing refusals as providers write them, none of which stands in the table.
PASSING = [
    (429, "rate_limit_error This request would exceed your organization's rate limit of 50,000 input tokens per minute"),
    (429, "rate_limit_exceeded Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 1500. Please try again in 1s."),
    (429, "requests rate_limit_exceeded Rate limit reached for gpt-4o on requests per day (RPD): Limit 200, Used 200. Please try again in 7m12s."),
    (429, "429 Requests to the ChatCompletions_Create Operation have exceeded call rate limit of your current pricing tier. Please retry after 6 seconds."),
    (429, "Rate limit exceeded: free-models-per-min."),
    (429, "Provider returned error"),
    (529, "overloaded_error Overloaded"),
    (503, "The model is overloaded. Please try again later."),
    (503, "Model meta-llama/Llama-3 is currently loading"),
    (500, "api_error Internal server error"),
    (408, "Request timed out"),
    (524, "error code: 524"),
]  # fmt: skip


UNITS = [
    (400, "invalid_request_error messages: text content blocks must be non-empty"),
    (400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
    (400, "context_length_exceeded This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."),
    (422, "Input should be less than or equal to 5"),
    (413, "request_too_large Request exceeds the maximum size"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "said", "means"),
    [*((*each, "passing") for each in PASSING), *((*each, "unit") for each in UNITS)],
)
def test_what_passes_is_asked_again_and_a_requests_own_fault_is_not_the_accounts(
    status, said, means
):
    assert refusal_of(status, said).means == means
