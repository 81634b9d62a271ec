"""How a grader is asked, where it is not asked in its provider's usual way."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace

from evenhand.errors import InputError
from evenhand.graders.options import GradingOptions
from evenhand.graders.spec import GraderSpec
from evenhand.rubrics.judge_prompt import OWN_PROMPT, JudgePrompt

REASON_FIRST = "reason-then-label"
METHODS = ("label", "logprobs", "verbalised", REASON_FIRST)

LEAST_THINKING, MOST_THINKING = 1_024, 100_000
"""Tokens. The API refuses fewer, and more would not leave room for an answer."""

_WORD = re.compile(r"[a-z][a-z_-]{0,30}")
_DEFAULT_METHOD = {"chat": "logprobs", "baseline": ""}
_OTHER_METHOD = "label"


@dataclass(frozen=True, slots=True)
class GraderSettings:
    """The way a grader is asked. `method` is "label", "logprobs", "verbalised" or "draws"; empty
    for a baseline, which has its own way. With `reason` the grader gives a reason before its label.

    `max_tokens` limits an answer, thinking included (0: as is usual for the provider). `effort` and
    `service_tier` are words of the provider's own, sent as they are; empty, nothing is sent.
    `thinking` is Claude's: "off", "adaptive" or a number of tokens. `temperature` and `seed` are
    numbers as they are written; empty, nothing is sent, so the model's own hold.
    """

    method: str = ""
    draws: int = 1
    max_tokens: int = 0
    effort: str = ""
    service_tier: str = ""
    thinking: str = ""
    temperature: str = ""
    seed: str = ""
    reason: bool = False

    @property
    def reading(self) -> str:
        """The method by which replies are read."""
        return REASON_FIRST if self.reason else self.method

    @classmethod
    def for_grader(cls, spec: GraderSpec, options: GradingOptions) -> GraderSettings:
        """Return one grader's settings under the user's options.

        Repeats of a hard label are draws; repeats of another method are means of that method.
        Raises InputError where the provider cannot do it.

        >>> from evenhand.graders.spec import parse_spec
        >>> GraderSettings.for_grader(parse_spec("anthropic:m"), GradingOptions(draws=10)).method
        'draws'
        """
        by_label = isinstance(options.prompt, JudgePrompt)
        draws, method = options.draws, options.method or ("label" if by_label else "")
        if draws < 1:
            raise InputError(f"draws is {draws}; it must be at least 1")
        if spec.speaks == "baseline":
            return cls()  # it would say the same every time
        if method not in ("", *METHODS):
            raise InputError(f"method is {method!r}; it must be one of {', '.join(METHODS)}")
        if method == "logprobs" and spec.speaks != "chat":
            api = "the Anthropic API" if spec.speaks == "messages" else f"{spec.provider}"
            raise InputError(
                f"grader {spec.text!r}: {api} gives no token probabilities; use "
                "--draws K or --method verbalised"
            )
        if options.max_tokens < 0:
            raise InputError(f"max-tokens is {options.max_tokens}; it must be at least 1")
        _check_words(spec, effort=options.effort, service_tier=options.service_tier)
        _check_sampling(spec, options)
        asked = cls(
            max_tokens=options.max_tokens,
            effort=options.effort,
            service_tier=options.service_tier,
            temperature="" if options.temperature is None else f"{options.temperature:g}",
            seed="" if options.seed is None else str(options.seed),
            reason=method == REASON_FIRST,
        )
        if asked.reason:
            method = "label"
        if draws > 1 and method in ("", "label"):
            return replace(asked, method="draws", draws=draws)
        return replace(
            asked, method=method or _DEFAULT_METHOD.get(spec.speaks, _OTHER_METHOD), draws=draws
        )

    @classmethod
    def for_subject(
        cls, spec: GraderSpec, *, effort: str = "", thinking: str = ""
    ) -> GraderSettings:
        """Return the settings for asking a subject for its response. Raises InputError where its
        provider does not take them.
        """
        _check_words(spec, effort=effort)
        if thinking and spec.speaks != "messages":
            raise InputError(
                f"subject {spec.text!r}: --thinking is for Claude; use --effort with other models"
            )
        if thinking not in ("", "off", "adaptive"):
            tokens = int(thinking) if re.fullmatch(r"[0-9]{1,6}", thinking) else 0
            if not LEAST_THINKING <= tokens <= MOST_THINKING:
                raise InputError(
                    f"thinking is {thinking[:40]!r}; it must be off, adaptive or a number of "
                    f"tokens from {LEAST_THINKING} to {MOST_THINKING}"
                )
            thinking = str(tokens)
        return cls("text", effort=effort, thinking=thinking)


def _check_sampling(spec: GraderSpec, options: GradingOptions) -> None:
    """Raise InputError where a provider takes no such setting, or where it cannot be combined with
    the number of draws.
    """
    temperature, seed = options.temperature, options.seed
    if temperature is not None and spec.speaks not in ("chat", "messages"):
        raise InputError(f"{spec.provider} takes no temperature; leave out --temperature")
    if temperature is not None and not 0 <= temperature <= 2:
        raise InputError(f"temperature is {temperature:g}; it must be from 0 to 2")
    if seed is not None and spec.speaks != "chat":
        raise InputError(f"{spec.provider} takes no seed; leave out --seed")
    if seed is not None and options.draws > 1:
        raise InputError("with a seed all draws would be one; leave out --seed or --draws")


def _check_words(spec: GraderSpec, **words: str) -> None:
    """Check words that are sent unchanged. Raises InputError where one is not a single word, or the
    provider does not take it.
    """
    for option, word in words.items():
        name = option.replace("_", " ")
        if word and not _WORD.fullmatch(word):
            raise InputError(f"{name} is {word[:40]!r}; it must be one word, such as low or flex")
        if word and spec.speaks not in ("chat", "messages"):
            raise InputError(
                f"{spec.provider} takes no {name}; leave out --{option.replace('_', '-')}"
            )


def rater_id(spec: GraderSpec, settings: GraderSettings, own_prompt: str = "") -> str:
    """Return the grader's name, plus a short hash where it is not asked in the usual way and
    another of the user's own prompt, if any. With an own prompt the usual way is a label.

    The number of draws is not part of it: more draws later add to the same rater.

    >>> from evenhand.graders.spec import parse_spec
    >>> rater_id(parse_spec("anthropic:m"), GraderSettings("label"))
    'anthropic:m'
    >>> rater_id(parse_spec("anthropic:m"), GraderSettings("verbalised"))
    'anthropic:m#7707ad'
    >>> rater_id(parse_spec("openai:m"), GraderSettings("label"), "0123456789abcdef")
    'openai:m#prompt-01234567'
    """
    usual = _OTHER_METHOD if own_prompt else _DEFAULT_METHOD.get(spec.speaks, _OTHER_METHOD)
    prompt = f"{OWN_PROMPT}{own_prompt[:8]}" if own_prompt else ""
    unusual = {
        name: value
        for name, value in asdict(settings).items()
        if name not in ("method", "draws") and value
    }
    if settings.method == usual and not unusual:
        return spec.text + prompt
    text = json.dumps({"method": settings.method, **unusual}, sort_keys=True)
    return f"{spec.text}#{hashlib.sha256(text.encode()).hexdigest()[:6]}{prompt}"
