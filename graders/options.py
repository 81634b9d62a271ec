"""Options of a grading run, and the plan made from them, without network or key.

`GradingOptions`, `RequestLimits` and `Shard` are what the user chooses for a run. `GraderSettings`
are one grader's settings under these options, and `rater_id` its name with them. `warnings_about`
looks up in a small table what a model cannot give and when it retires. `plan_grading` returns every
grader's open questions. A question is about a unit (what gets a label: a response, or a pair of
them) under one rubric, in one order of a pair's sides ("ab" or "ba"), and for one of its draws.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from hashlib import blake2b
from typing import Any

from evenhand.errors import InputError
from evenhand.graders.providers import GraderSpec, Scrubber, parse_spec
from evenhand.rubrics import Instructions, JudgePrompt, Rubric
from evenhand.rubrics.loading import OWN_PROMPT
from evenhand.study import Study
from evenhand.study.lead.disagreements import held_out_units
from evenhand.study.prompts.units import Question
from evenhand.study.store.grades import tried_rater
from evenhand.texts import table_of, written

BOTH_ORDERS = ("ab", "ba")
"""Orders of sides in which a pair is shown by default: many graders favour what they read first."""
TIMEOUT = 300.0  # seconds for one answer, about the time that 16,000 tokens take
MAX_SHARDS = 1000


@dataclass(frozen=True, slots=True)
class Shard:
    """Part number `index`, from 1, of `of` parts of the units, for machines that collect grades
    at the same time. A unit is in the same part on every machine, whatever is added to the study.

    >>> [sum(Shard(part, 3).contains(f"p{unit}|s") for unit in range(300)) for part in (1, 2, 3)]
    [94, 105, 101]
    """

    index: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read a shard written as "2/8". Raises InputError where the text is not valid."""
        match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
        index, of = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= index <= of <= MAX_SHARDS:
            raise InputError(
                f"--shard is {text!r}; write which part of how many, such as 2/8 for the second of "
                f"eight (at most {MAX_SHARDS})"
            )
        return cls(index, of)

    def contains(self, unit_id: str) -> bool:
        """Return True if a unit is in this part."""
        unit_hash = int.from_bytes(blake2b(unit_id.encode(), digest_size=8).digest())
        return unit_hash % self.of == self.index - 1

    def others(self) -> Iterator[Shard]:
        """Yield the other parts, the next one first."""
        for step in range(self.of - 1):
            yield Shard((self.index + step) % self.of + 1, self.of)

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


WHOLE = Shard()
"""All units in one part."""


@dataclass(frozen=True, kw_only=True)
class GradingOptions:
    """The user's options for a run: what to grade, and how to ask.

    `rubrics` are names; None means all. `scope` is "sample" or "all". `orders` are those in which
    pairs are shown. The fields from `draws` to `seed` become each grader's `GraderSettings`. With
    `retry_unscored`, items without a label are asked again. `text` is a new version of one of the
    study's rubrics: only this version is tried, on pairs that did not inform it. `prompt` replaces
    the text of the only rubric (a `JudgePrompt`) or its instructions (`Instructions`). Only units
    in `shard` are graded, and only these `units` unless None.
    """

    rubrics: Sequence[str] | None = None
    scope: str = "sample"
    orders: Sequence[str] = BOTH_ORDERS
    draws: int = 1
    method: str = ""
    max_tokens: int = 0
    effort: str = ""
    service_tier: str = ""
    temperature: float | None = None
    seed: int | None = None
    retry_unscored: bool = False
    text: Rubric | None = None
    prompt: JudgePrompt | Instructions | None = None
    shard: Shard = WHOLE
    units: Collection[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The limits of a run: concurrent requests, seconds for each, a factor on all waits, the budget
    in US dollars (None: no limit) and what was `spent` before. Raises InputError if one is invalid.
    """

    concurrency: int = 32
    timeout: float = TIMEOUT
    wait_scale: float = 1.0
    budget: float | None = None
    spent: float = 0.0

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise InputError(f"concurrency is {self.concurrency}; it must be at least 1")
        if not self.timeout > 0:
            raise InputError(f"timeout is {self.timeout}; it must be above 0")


# ---- one grader's settings ----------------------------------------------------------------------

REASON_FIRST = "reason-then-label"
METHODS = ("label", "logprobs", "verbalised", REASON_FIRST)

MIN_THINKING, MAX_THINKING = 1_024, 100_000
"""Tokens of Claude's thinking: the API refuses fewer, and more leave no room for an answer."""

_PROVIDER_WORD = re.compile(r"[a-z][a-z_-]{0,30}")
_DEFAULT_METHODS = {"chat": "logprobs", "baseline": ""}  # by the form of a provider's API
_USUAL_METHOD = "label"  # the default for other forms


@dataclass(frozen=True, slots=True)
class GraderSettings:
    """The settings with which one grader is asked.

    `method` is "label", "logprobs", "verbalised", "draws", or "text" for a free text; empty for a
    baseline. With `reason` the grader gives a reason before its label. `max_tokens` limits an
    answer, thinking included (0: the provider's default). `effort` and `service_tier` are words of
    the provider's own, sent as they are. `thinking` is Claude's: "off", "adaptive" or a number of
    tokens. `temperature` and `seed` are numbers as text. What is empty is not sent.
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
        """The method by which replies are read: with a reason `REASON_FIRST`, else `method`."""
        return REASON_FIRST if self.reason else self.method

    @classmethod
    def for_grader(cls, spec: GraderSpec, options: GradingOptions) -> GraderSettings:
        """Return one grader's settings under the user's options.

        Several draws of a hard label become the method "draws"; draws by another method are
        averaged later. Raises InputError if the provider does not support an option.

        >>> from evenhand.graders.providers import parse_spec
        >>> GraderSettings.for_grader(parse_spec("anthropic:m"), GradingOptions(draws=10)).method
        'draws'
        """
        draws, method = options.draws, options.method
        if isinstance(options.prompt, JudgePrompt):
            method = method or "label"
        if draws < 1:
            raise InputError(f"draws is {draws}; it must be at least 1")
        if spec.api_format == "baseline":
            names, default = {field.name for field in fields(cls)}, GradingOptions()
            for name in (field.name for field in fields(options) if field.name in names):
                if getattr(options, name) != getattr(default, name):
                    raise InputError(f"{spec.text} takes no --{name.replace('_', '-')}")
            return cls()
        if method not in ("", *METHODS):
            raise InputError(f"method is {method!r}; it must be one of {', '.join(METHODS)}")
        if method == "logprobs" and spec.api_format != "chat":
            api = "the Anthropic API" if spec.api_format == "messages" else f"{spec.provider}"
            raise InputError(
                f"grader {spec.text!r}: {api} gives no token probabilities; use "
                "--draws K or --method verbalised"
            )
        if options.max_tokens < 0:
            raise InputError(f"max-tokens is {options.max_tokens}; it must be at least 1")
        _check_provider_words(spec, effort=options.effort, service_tier=options.service_tier)
        temperature, seed = options.temperature, options.seed
        if temperature is not None and spec.api_format not in ("chat", "messages"):
            raise InputError(f"{spec.provider} takes no temperature; leave out --temperature")
        if temperature is not None and not 0 <= temperature <= 2:
            raise InputError(f"temperature is {temperature:g}; it must be from 0 to 2")
        if seed is not None and spec.api_format != "chat":
            raise InputError(f"{spec.provider} takes no seed; leave out --seed")
        if seed is not None and draws > 1:
            raise InputError("with a seed all draws would be one; leave out --seed or --draws")
        gives_reason = method == REASON_FIRST
        if draws > 1 and method in ("", "label", REASON_FIRST):
            method = "draws"
        elif gives_reason:
            method = "label"
        return cls(
            method=method or _DEFAULT_METHODS.get(spec.api_format, _USUAL_METHOD),
            draws=draws,
            max_tokens=options.max_tokens,
            effort=options.effort,
            service_tier=options.service_tier,
            temperature="" if temperature is None else f"{temperature:g}",
            seed="" if seed is None else str(seed),
            reason=gives_reason,
        )

    @classmethod
    def for_subject(
        cls, spec: GraderSpec, *, effort: str = "", thinking: str = ""
    ) -> GraderSettings:
        """Return a subject's settings. Raises InputError if its provider does not take them."""
        _check_provider_words(spec, effort=effort)
        if thinking and spec.api_format != "messages":
            raise InputError(
                f"subject {spec.text!r}: --thinking is for Claude; use --effort with other models"
            )
        if thinking not in ("", "off", "adaptive"):
            tokens = int(thinking) if re.fullmatch(r"[0-9]{1,6}", thinking) else 0
            if not MIN_THINKING <= tokens <= MAX_THINKING:
                raise InputError(
                    f"thinking is {thinking[:40]!r}; it must be off, adaptive or a number of "
                    f"tokens from {MIN_THINKING} to {MAX_THINKING}"
                )
            thinking = str(tokens)
        return cls("text", effort=effort, thinking=thinking)


def _check_provider_words(spec: GraderSpec, **words: str) -> None:
    """Raise InputError if an option is not one word, or the provider does not take it."""
    for option, word in words.items():
        name, typed = option.replace("_", " "), option.replace("_", "-")
        if word and not _PROVIDER_WORD.fullmatch(word):
            raise InputError(f"{name} is {word[:40]!r}; it must be one word, such as low or flex")
        if word and spec.api_format not in ("chat", "messages"):
            raise InputError(f"{spec.provider} takes no {name}; leave out --{typed}")


def rater_id(spec: GraderSpec, settings: GraderSettings, own_prompt: str = "") -> str:
    """Return a grader's id: its name, plus a short hash of the settings if they are not the
    defaults, and the beginning of `own_prompt`, the hash of the user's own prompt, "" without one.
    With such a prompt, "label" is the method that an id does not name, for every provider.

    The number of draws is left out, so that more draws later add to the same rater.

    >>> from evenhand.graders.providers import parse_spec
    >>> rater_id(parse_spec("anthropic:m"), GraderSettings("label"))
    'anthropic:m'
    >>> rater_id(parse_spec("anthropic:m"), GraderSettings("verbalised"))
    'anthropic:m#7707ad'
    >>> rater_id(parse_spec("openai:m"), GraderSettings("label"), "0123456789abcdef")
    'openai:m#prompt-01234567'
    """
    default_method = ({} if own_prompt else _DEFAULT_METHODS).get(spec.api_format, _USUAL_METHOD)
    suffix = f"{OWN_PROMPT}{own_prompt[:8]}" if own_prompt else ""
    hashed = {name: value for name, value in asdict(settings).items() if value and name != "draws"}
    hashed["method"] = settings.method  # a baseline's, too, which is empty
    if hashed == {"method": default_method}:  # no other setting
        return spec.text + suffix
    text = json.dumps(hashed, sort_keys=True)
    return f"{spec.text}#{hashlib.sha256(text.encode()).hexdigest()[:6]}{suffix}"


# ---- what models can do -------------------------------------------------------------------------

_MIN_DRAWS = 30  # with fewer, a warning says how coarse their shares are


def warnings_about(
    spec: GraderSpec, settings: GraderSettings, today: date | None = None
) -> list[str]:
    """Return warnings to show before a run, one sentence each.

    >>> from evenhand.graders.providers import parse_spec
    >>> for sentence in warnings_about(
    ...     parse_spec("openai:gpt-5"), GraderSettings("logprobs"), date(2026, 11, 21)
    ... ):
    ...     print(sentence)
    gpt-5 retires on 2026-12-11. After that its grades cannot be collected again.
    gpt-5 gives no token probabilities. Expect hard labels, or use --draws or --method verbalised.
    """
    today = today or datetime.now(UTC).date()
    warnings = retirement_warnings(spec, today)
    if settings.method == "logprobs":
        capabilities = _capabilities(spec)
        rule = capabilities.get("probabilities", "")  # "never", or the condition in words
        until = capabilities.get("probabilities_until")  # the day from which it gives none
        if rule == "never" or (until and date.fromisoformat(until) <= today):
            warnings.append(written("grade.no_probabilities", model=spec.model))
        elif rule:
            warnings.append(written("grade.probabilities_if", model=spec.model, rule=rule))
        elif until:
            warnings.append(written("grade.probabilities_until", model=spec.model, day=until))
    if spec.api_format == "messages" and settings.method == "label":
        warnings.append(written("grade.hard_label", model=spec.model))
    if settings.method == "draws" and settings.draws < _MIN_DRAWS:
        from scipy.stats import binomtest  # which takes half a second to load

        draws = settings.draws
        ci_of_half = binomtest(round(draws / 2), draws).proportion_ci(method="wilson")
        ci_of_none = binomtest(0, draws).proportion_ci(method="wilson")
        bounds = {"low": ci_of_half.low, "high": ci_of_half.high, "rare": ci_of_none.high}
        warnings.append(written("grade.coarse_draws", draws=draws, **bounds))
    return warnings


def needs_effort_none(spec: GraderSpec) -> bool:
    """Return True if a model, even at a gateway, gives probabilities only at effort "none"."""
    name = spec.model.rpartition("/")[2]  # of "openai/gpt-5" at a gateway
    rows = table_of("evenhand.graders", "capabilities.toml")["models"]
    return any(row.get("effort") == "none" and re.search(row["match"], name) for row in rows)


def retirement_warnings(spec: GraderSpec, today: date | None = None) -> list[str]:
    """Return a warning if the model retires or has retired by our table, else []."""
    capabilities = _capabilities(spec)
    if capabilities.get("retired"):
        return [written("grade.retired", model=spec.model)]
    if not (retires := capabilities.get("retires")):
        return []
    if date.fromisoformat(retires) <= (today or datetime.now(UTC).date()):
        return [written("grade.retired_on", model=spec.model, day=retires)]
    return [written("grade.retires_on", model=spec.model, day=retires)]


def _capabilities(spec: GraderSpec) -> dict[str, Any]:
    """Return the model's row in `capabilities.toml`, or {}."""
    if not spec.endpoint.is_own:  # not the provider's own address: any model may have the name
        return {}
    for row in table_of("evenhand.graders", "capabilities.toml")["models"]:
        if row["provider"] == spec.provider and re.search(row["match"], spec.model):
            return dict(row)
    return {}


# ---- the plan of a run --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingTask:
    """One grader with its settings and its open questions. `rubrics` are the rubrics by name, in
    the version that is asked. `already` is the number of questions that the grader has answered.
    `attacked` is True for the questions of an injection audit.
    """

    spec: GraderSpec
    settings: GraderSettings
    rater_id: str
    rubrics: Mapping[str, Rubric]
    questions: Sequence[Question]
    already: int
    attacked: bool = False


def plan_grading(
    study: Study, grader_specs: Sequence[str], options: GradingOptions, scrubber: Scrubber
) -> list[GradingTask]:
    """Return one task for each grader, with its open questions: those that it has not answered
    under an accepted version of their rubric (`Study.accepted_hashes`). Raises InputError if a
    grader, a rubric or another option is not valid.
    """
    if not grader_specs:
        raise InputError("name at least one grader")
    if any(scrubber.text(name) != name for name in grader_specs):
        raise InputError("a grader's name must not hold an API key; take the key out")
    parsed = [parse_spec(name, study.config.providers) for name in grader_specs]
    specs = list({spec.text: spec for spec in parsed}.values())  # each grader once
    prompt, new_text = options.prompt, options.text
    if prompt:
        _check_own_prompt(specs, options)
    settings_by_grader = [GraderSettings.for_grader(spec, options) for spec in specs]
    if new_text is None:
        units_by_rubric, accepted = _units_by_rubric(study, options), study.accepted_hashes()
    else:
        units_by_rubric = {new_text: _held_out_units(study, new_text)}
        accepted = {new_text.name: (new_text.hash,)}
    allowed = None if options.units is None else set(options.units)
    for rubric, all_units in units_by_rubric.items():
        units = [unit for unit in all_units if options.shard.contains(unit)]
        units_by_rubric[rubric] = [unit for unit in units if allowed is None or unit in allowed]
    _check_rubrics(list(units_by_rubric), specs, options.method)
    tasks = []
    for spec, settings in zip(specs, settings_by_grader, strict=True):
        grader_id = rater_id(spec, settings, prompt.hash if prompt else "")
        if new_text is not None:  # grades of a text that is tried stay separate
            grader_id = tried_rater(grader_id, new_text.hash)
        questions, already = list[Question](), 0
        for rubric, units in units_by_rubric.items():
            finished = study.store.finished_grades(
                grader_id, rubric.name, accepted[rubric.name], labelled_only=options.retry_unscored
            )
            for order in options.orders if rubric.has_sides else [""]:
                keys = [(unit, order, draw) for unit in units for draw in range(settings.draws)]
                open_keys = [key for key in keys if key not in finished]
                already += len(keys) - len(open_keys)
                questions += [Question(unit, rubric, order, draw) for unit, _, draw in open_keys]
        task = GradingTask(
            spec=spec,
            settings=settings,
            rater_id=grader_id,
            rubrics={rubric.name: rubric for rubric in units_by_rubric},
            questions=questions,
            already=already,
        )
        tasks.append(task)
    return tasks


def _check_rubrics(rubrics: Sequence[Rubric], specs: Sequence[GraderSpec], method: str) -> None:
    """Raise InputError if a rubric cannot be graded: its answer has no options whose probability
    could be stated, its own prompt does not fit the method, or it shows images and a grader is
    known to take none. (A server may still refuse images; the run stops at its first reply.)
    """
    for rubric in rubrics:
        if not rubric.kind.is_choice and method == "verbalised":
            raise InputError(
                f"rubric {rubric.name!r} asks for {rubric.kind.short_name}, and not for the "
                "probability of an option; leave out --method verbalised"
            )
        if rubric.prompt and method in ("verbalised", REASON_FIRST):
            raise InputError(
                f"rubric {rubric.name!r} has a [prompt] of its own, which asks for one option; use "
                f"--draws, or leave out --method {method}"
            )
    with_images = [rubric.name for rubric in rubrics if rubric.images]
    for spec in specs if with_images else ():
        can_send_images = spec.api_format in ("messages", "chat")
        if not (can_send_images and _capabilities(spec).get("images", True)):
            raise InputError(written("grade.no_images", grader=spec.text, rubric=with_images[0]))


def _check_own_prompt(specs: Sequence[GraderSpec], options: GradingOptions) -> None:
    """Raise InputError if the user's own prompt cannot be combined with another option."""
    if options.text is not None:
        raise InputError(written("judge_prompt.with_text"))
    if isinstance(options.prompt, JudgePrompt) and options.method not in ("", "label"):
        raise InputError(written("judge_prompt.with_method", method=options.method))
    for spec in specs:
        if spec.api_format == "baseline":
            raise InputError(written("judge_prompt.with_baseline", grader=spec.text))


def _held_out_units(study: Study, text: Rubric) -> list[str]:
    """Return the units on which a new version of a rubric is tried. Raises InputError if the study
    has no such rubric, the text is not a new version of it, or no units are left.
    """
    if (rubric := study.rubrics.get(text.name)) is None:
        raise InputError(
            f"the text is of a rubric {text.name!r}; name it as one of the study's: "
            + ", ".join(study.rubrics)
        )
    if (rubric.unit, rubric.categories) != (text.unit, text.categories):
        raise InputError(
            f"the text asks for other items or options than the study's {text.name!r}; give it the "
            "same item and option keys"
        )
    if not text.kind.is_single:
        raise InputError(
            f"the study's {text.name!r} asks for several options; trying another text of such a "
            "rubric is not supported"
        )
    if text.hash in study.accepted_hashes()[text.name]:
        raise InputError(f"the text is the one that the study's {text.name!r} has already")
    if units := held_out_units(study, text.name):
        return units
    raise InputError(
        f"no pair of the sample is left to try the text on: a disagreement on {text.name!r} was "
        "sorted in each; enlarge the sample with `evenhand extend`"
    )


def _units_by_rubric(study: Study, options: GradingOptions) -> dict[Rubric, list[str]]:
    """Return the unit ids to grade, by rubric: for the rubrics that the options name, else for all
    rubrics except a wording that is tried among annotators only, whose grades would not be used.
    Raises InputError if an option is not valid, or there is nothing to grade.
    """
    rewording = study.config.rewording  # the trial of a wording, if any
    unused_names = {rewording.rubric} if rewording else set()
    unused_names -= {rubric.name for rubric in study.labelled_rubrics()}
    default_names = [name for name in study.rubrics if name not in unused_names]
    names = list(dict.fromkeys(default_names if options.rubrics is None else options.rubrics))
    for name in names:
        if name not in study.rubrics:
            raise InputError(f"the study has no rubric {name!r}; it has {', '.join(study.rubrics)}")
    rubrics: list[Rubric] = [study.rubrics[name] for name in names]
    if prompt := options.prompt:
        if len(rubrics) > 1:
            raise InputError(written("judge_prompt.which_rubric", names=", ".join(names)))
        rubrics = [prompt.for_rubric(rubrics[0])]
        if not rubrics[0].kind.is_single:
            raise InputError(
                f"rubric {names[0]!r} asks for several options, which a prompt of your own cannot; "
                "leave --prompt out"
            )
    if options.scope not in ("sample", "all"):
        raise InputError(f"scope is {options.scope!r}; it must be sample or all")
    units_by_kind = study.units_by_kind(options.scope)
    if not any(units_by_kind[rubric.unit] for rubric in rubrics):
        raise InputError(
            "the study has no responses to grade; add some with "
            "`evenhand import DIR FILE --kind responses`"
        )
    return {rubric: units_by_kind[rubric.unit] for rubric in rubrics}
