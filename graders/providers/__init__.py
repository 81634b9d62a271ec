"""Providers of models: their addresses and keys, and the names of graders.

`known_providers` merges the table `providers.toml` with the providers that a study names itself.
`endpoint_of` finds the address of a grader's requests and the key for it: a key is sent only to the
address that it belongs to. `parse_spec` reads the name of a grader as a user types it. `Scrubber`
removes keys from texts: no key may reach the store, a log or a message, even if a server sends it.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import quote, urlsplit

from evenhand.errors import InputError
from evenhand.graders.providers.forms import is_form
from evenhand.study.settings.study_toml import REFERENCE, ProviderSettings, fault_of_address
from evenhand.texts import table_of

_PROVIDER_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
DeclaredProviders = Mapping[str, ProviderSettings]
"""The providers named in study.toml, by name."""
_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A row of `providers.toml`, which describes the fields, or a provider named in study.toml.
    `by_study` is True if study.toml sets the address; `declared` are the settings in study.toml.
    """

    name: str
    speaks: str  # the form of its requests: OpenAI's "chat", Claude's "messages", or one of `forms`
    base_url: str = ""
    base_url_env: str = ""  # variable whose address replaces `base_url`
    key_env: str = ""  # variable that holds the key
    key: str = "needed"  # or "optional"
    prices: str = ""  # its name in the package genai-prices
    client: str = ""  # the SDK's own client for it, such as "bedrock"
    headers: Mapping[str, str] = field(default_factory=dict)
    by_study: bool = False
    declared: ProviderSettings | None = None


@cache
def _table() -> dict[str, Provider]:
    """Return the providers of `providers.toml`, by name."""
    table = table_of("evenhand.graders.providers", "providers.toml")
    return {name: Provider(name=name, **row) for name, row in table.items()}


def known_providers(declared: DeclaredProviders) -> dict[str, Provider]:
    """Return the providers by name; settings in study.toml override the table. Raises InputError
    if study.toml has an invalid setting, or a new provider without an address.
    """
    table = _table()
    return table | {
        name: _provider_with(table.get(name), name, settings) for name, settings in declared.items()
    }


def _provider_with(provider: Provider | None, name: str, settings: ProviderSettings) -> Provider:
    """Return a provider with its settings in study.toml, based on its row of the table, if any."""
    section, declared_url = f"[providers.{name}] in study.toml", settings.base_url
    if name == "baseline" or not _PROVIDER_NAME.fullmatch(name):
        raise InputError(f"{section}: choose a name of lower-case letters, digits and -")
    if provider is None and not declared_url:
        raise InputError(f"{section} needs a base_url")
    provider = provider or Provider(name=name, speaks="chat", key="optional")
    if settings.speaks not in ("", "chat", "messages") and not is_form(settings.speaks):
        raise InputError(f"{section}: speaks is {settings.speaks!r}; write chat or messages")
    if declared_url:
        # A key of the table is for the table's address, and is not sent to this one.
        provider = replace(provider, key_env="", key="optional")
        provider = replace(provider, base_url=declared_url, base_url_env="", by_study=True)
    return replace(
        provider,
        declared=settings,
        speaks=settings.speaks or provider.speaks,
        headers=settings.headers or provider.headers,
        key_env=settings.key_env or provider.key_env,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of a grader's requests and what may be sent there. `base_url` is empty if the
    SDK's own client finds it. `is_own` is True for the provider's own address, where its key,
    headers and prices apply. `login` is the `USER:PASSWORD@` of the environment's address, if any.
    """

    provider: Provider
    base_url: str
    is_own: bool
    key_env: str
    login: str = field(default="", repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that study.toml names for the provider's own address."""
        return self.provider.headers if self.is_own else {}

    @property
    def address(self) -> str | None:
        """The URL that a client connects to, with any login; None if the SDK finds it."""
        return self.base_url.replace("://", f"://{self.login}", 1) or None

    @property
    def host(self) -> str:
        """The host and port, as shown in messages."""
        return urlsplit(self.base_url).netloc or f"{self.provider.name}'s own address"

    @property
    def needs_key(self) -> bool:
        """True if no request can be sent without a key."""
        return self.is_own and self.provider.key == "needed" and bool(self.provider.key_env)

    @property
    def has_account(self) -> bool:
        """True at the provider's own address if study.toml did not choose it: the environment's
        custom headers, organisation and cloud credentials may be sent there.
        """
        return self.is_own and not self.provider.by_study

    @property
    def prices(self) -> dict[str, Any]:
        """The arguments by which the price package finds the provider."""
        if self.is_own and self.provider.prices:
            return {"provider_id": self.provider.prices}
        return {"provider_api_url": self.base_url}

    @property
    def address_in_name(self) -> str:
        """The address if it is part of a grader's name, else "". Claude at Anthropic's public
        address is one grader for everyone; a gateway, deployment or local port may have any model.
        """
        url = self.provider.base_url
        is_public = url.startswith("https://") and "${" not in url and not self.provider.by_study
        return "" if is_public and same_address(self.base_url, url) else self.base_url


def endpoint_of(provider: Provider, typed: str) -> Endpoint:
    """Return the endpoint of a grader. `typed` is the address after the @ in its name, or "".
    Raises InputError if the address of the environment or the table is not valid, or if study.toml
    names a variable of the environment that must not be sent there.
    """
    address, login = _own_address(provider)
    if typed and not (address and same_address(typed, address)):
        key_env = key_variable(typed)
        return Endpoint(provider=provider, base_url=typed, is_own=False, key_env=key_env)
    _check_declared(provider, address)
    key_env = provider.key_env or (key_variable(address) if provider.by_study else "")
    url = typed or address
    return Endpoint(provider=provider, base_url=url, is_own=True, key_env=key_env, login=login)


def _check_declared(provider: Provider, address: str) -> None:
    """Raise InputError if study.toml sends to this address a variable of the environment that is
    not meant for it: neither the address's own key nor that of its provider in the table. The
    operator can permit others by confirming the provider's section (`ProviderSettings.check`).
    """
    if (settings := provider.declared) is None:
        return
    variables = list(settings.variables())  # (setting, variable that it sends)
    if provider.by_study and not settings.key_env and os.environ.get(key_variable(address)):
        variables.append(("base_url", key_variable(address)))  # the key by default
    for setting, variable in variables:
        if setting == "base_url" and "${" in settings.base_url:  # checked before it is filled in
            settings.check(f"[providers.{provider.name}] {setting}", variable, settings.base_url)
            continue
        owners = [row for row in _table().values() if row.key_env == variable]  # whose key it is
        owner_urls = [url for owner in owners for url in (owner.base_url, _own_address(owner)[0])]
        goes_to_owner = any(url and _origin(url) == _origin(address) for url in owner_urls)
        is_own_key = not provider.by_study and any(owner.name == provider.name for owner in owners)
        if setting == "key_env" and is_own_key:  # the key would be sent without the section, too
            continue
        allowed = {key_variable(address)} | ({variable} if goes_to_owner or is_own_key else set())
        settings.check(f"[providers.{provider.name}] {setting}", variable, address, allowed)


def key_variable(url: str) -> str:
    """Return the variable that holds the key for an address: KEY_ and the host in capitals.

    A dot and the colon of a port become _, a hyphen __, so that no two hosts share one.

    >>> key_variable("https://llm.example.com/v1"), key_variable("http://gpu-1:8000/v1")
    ('KEY_LLM_EXAMPLE_COM', 'KEY_GPU__1_8000')
    """
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port and parts.port != _USUAL_PORTS.get(parts.scheme) else ""
    return "KEY_" + re.sub(r"[^A-Z0-9_]", "_", f"{parts.hostname}{port}".upper().replace("-", "__"))


def same_address(url: str, other_url: str) -> bool:
    """Return True if two URLs are the same address.

    >>> same_address("https://H.example/v1/", "https://h.example:443/v1")
    True
    """
    paths = [urlsplit(address).path.rstrip("/") for address in (url, other_url)]
    return paths[0] == paths[1] and _origin(url) == _origin(other_url)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Return the scheme, host and port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _USUAL_PORTS.get(parts.scheme)


def filled_from_environment(text: str, source: str) -> str:
    """Return a text with each `${NAME}` taken from the environment. Raises InputError if one is not
    set, or has characters that no header or address can have. `source` names the text.
    """

    def value(match: re.Match[str]) -> str:
        setting = os.environ.get(match[1], "").strip()
        if not setting or not setting.isprintable():
            raise InputError(f"{source} needs the variable {match[1]}; set it")
        return setting

    return REFERENCE.sub(value, text)


def _own_address(provider: Provider) -> tuple[str, str]:
    """Return a provider's (address, login), from the environment or its row, else ("", "")."""
    variable = provider.base_url_env
    if variable and (address := os.environ.get(variable, "").strip()):
        return _split_login(address, f"the address in {variable}")
    if any(not os.environ.get(name) for name in REFERENCE.findall(provider.base_url)):  # ${NAME}
        return "", ""
    url = filled_from_environment(provider.base_url, provider.name)
    # A variable in the middle of the address may end in a slash: two slashes become one.
    return _split_login(re.sub(r"(?<!:)//+", "/", url), f"the address of {provider.name}")


def _split_login(url: str, source: str) -> tuple[str, str]:
    """Return a URL without its login, and the login as "USER:PASSWORD@" or "". Raises InputError
    with the name of its `source` if the address is not valid.
    """
    if not url:
        return "", ""
    try:
        login, at_sign, host = urlsplit(url).netloc.rpartition("@")
    except ValueError:
        raise InputError(f"{source} is not a valid address") from None
    without_login = url.replace(f"{login}{at_sign}{host}", host, 1).rstrip("/")
    if fault := fault_of_address(without_login):
        raise InputError(f"{source} {fault}")
    return without_login, f"{login}{at_sign}"


# ---- a grader, as its user names it -------------------------------------------------------------

BASELINES = ("lexical",)

_BEFORE_SERVER = re.compile(r"@(?=https?://)")  # the @ between a model and its address
_LOOKS_LIKE_KEY = re.compile(r"\bsk-[A-Za-z0-9_-]{16,}")
_USAGE = "anthropic:MODEL, openai:MODEL, openai:MODEL@BASE_URL or baseline:lexical"


@dataclass(frozen=True, slots=True)
class GraderSpec:
    """A grader as its user named it, and the endpoint where it is asked (None for a baseline).
    `text` is its `rater_id` at default settings: the name, plus an address that the environment or
    study.toml sets, if it is not the provider's public one. `base_url` is the address in it.
    """

    text: str
    provider: str
    model: str
    base_url: str = ""
    network_endpoint: Endpoint | None = field(default=None, compare=False, repr=False)

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the grader's requests. Raises LookupError for a baseline."""
        if self.network_endpoint is None:
            raise LookupError(f"{self.text} is not behind a network")
        return self.network_endpoint

    @property
    def api_format(self) -> str:
        """The form of its requests: "chat", "messages", "baseline" or a module of `forms`."""
        endpoint = self.network_endpoint
        return endpoint.provider.speaks if endpoint else self.provider  # "baseline"


def parse_spec(text: str, declared: Mapping[str, ProviderSettings] | None = None) -> GraderSpec:
    """Read a grader's name; `declared` are the providers that study.toml names.

    >>> parse_spec("openai:qwen3:8b@http://localhost:11434/v1")
    GraderSpec(text='openai:qwen3:8b@http://localhost:11434/v1', provider='openai', \
model='qwen3:8b', base_url='http://localhost:11434/v1')

    Raises InputError if the name is not valid, or has a key in it: keys come from the environment
    only, and no message repeats a possible key.
    """
    if _LOOKS_LIKE_KEY.search(text):
        raise InputError(
            "a grader's name must not hold an API key; put the key in the environment "
            "(such as ANTHROPIC_API_KEY or OPENAI_API_KEY)"
        )
    providers = known_providers(declared or {})
    name, colon, after_colon = text.partition(":")
    if not colon or name not in providers:
        others = [other for other in providers if f"{other}:" not in _USAGE]
        prefixes = ", ".join(f"{other}:" for other in others)
        raise InputError(
            f"{_shown(text)!r} is not a valid grader; write {_USAGE}; or begin with {prefixes}"
        )
    model, *addresses = _BEFORE_SERVER.split(after_colon, maxsplit=1)
    if not model or not model.isprintable() or re.search(r"\s", model):
        raise InputError(f"{_shown(text)!r} does not name a model; write {_USAGE}")
    if name == "baseline":
        if after_colon not in BASELINES:
            raise InputError(
                f"there is no baseline {_shown(after_colon)!r}; write baseline:{BASELINES[0]}"
            )
        return GraderSpec(text, name, model)
    provider, typed_address = providers[name], addresses[0] if addresses else ""
    if not typed_address and "@" in model and provider.speaks != "messages":  # Vertex: NAME@DATE
        raise InputError(f"grader {_shown(text)!r}: BASE_URL must begin with http:// or https://")
    if typed_address and (fault := fault_of_address(typed_address)):
        raise InputError(f"grader '{name}:{model}@...': the BASE_URL {fault}")
    endpoint = endpoint_of(provider, typed_address)
    if not endpoint.base_url and not provider.client:  # an SDK's own client finds its address
        variables = ", ".join(REFERENCE.findall(provider.base_url))
        raise InputError(
            f"grader {_shown(text)!r}: it is not known where {name} is; write "
            f"{name}:MODEL@BASE_URL, or set {variables}"
        )
    if typed_address or not endpoint.address_in_name:
        return GraderSpec(text, name, model, typed_address, endpoint)
    address = endpoint.address_in_name
    return GraderSpec(f"{text}@{address}", name, model, address, endpoint)


def _shown(text: str) -> str:
    """Return at most 80 characters of a grader's name, without what follows an @ (credentials)."""
    before_at, at_sign, _ = text.partition("@")
    return before_at[:80] + ("@..." if at_sign else "")


# ---- keys ---------------------------------------------------------------------------------------

_SECRETS = (
    "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "OPENAI_ADMIN_KEY", "OPENAI_CUSTOM_HEADERS",
)  # fmt: skip
"""Secrets in addition to the table's keys, every KEY_..., and those that a study names."""
_CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key", "x-amz-security-token")
# Servers quote keys shortened or with asterisks, which no exact match finds.
_KEY_LIKE = re.compile(r"\bsk-[A-Za-z0-9_*.-]{6,}|\b(?:Bearer|Basic)\s+[^\s\"',}]+", re.IGNORECASE)
_SIGNATURE = "AWS4-"  # begins a signature of one request, which is no secret
_MIN_LENGTH = 8  # of a secret: shorter placeholders ("none", "ollama") occur in ordinary text
_PLAIN_WORD = re.compile(r"[A-Za-z][a-z]{,19}")  # no key, but perhaps a team's name
_REMOVED = "[removed]"


def key_from_environment(name: str) -> str | None:
    """Return the key in an environment variable, or None. Raises InputError if it is not valid."""
    key = os.environ.get(name, "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(
            f"{name} is not a valid key: it has a space or an odd character; set it again"
        )
    return key or None


class Scrubber:
    """Removes known secrets from texts, in every form in which a reply may quote them.

    >>> Scrubber(["hunter2-hunter2"]).text("401: hunter2-hunter2 is no key")
    '401: [removed] is no key'
    """

    def __init__(self, secrets: Iterable[str], words: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._words = [word for word in words if len(word) >= _MIN_LENGTH]
        self._forms: list[str] = []  # in which replies may quote the secrets, the longest first
        self._json_forms: list[str] = []  # the same, as JSON writes them
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add secrets that are removed from now on."""
        if new_secrets := set(secrets) - self._secrets:
            self._secrets |= new_secrets
            forms = set[str]()
            for secret in map(str.strip, self._secrets):
                encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
                forms |= {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], encoded}
            long_forms = [form for form in forms if len(form) >= _MIN_LENGTH]
            self._forms = sorted(long_forms, key=len, reverse=True)
            self._json_forms = [json.dumps(form)[1:-1] for form in self._forms]  # without quotes

    def learn_from(self, headers: Mapping[str, str]) -> None:
        """Learn the credentials in a request's headers, wherever they came from."""
        values = [headers[name] for name in _CREDENTIAL_HEADERS if name in headers]
        secrets = [value for value in values if not value.startswith(_SIGNATURE)]
        self.learn([*secrets, *(value.partition(" ")[2] for value in secrets)])  # "Bearer KEY"

    @classmethod
    def from_environment(cls, declared: DeclaredProviders | None = None) -> Scrubber:
        """Return a scrubber of the environment's secrets and those that study.toml names."""
        names = {*_SECRETS, *(name for name in os.environ if name.startswith("KEY_"))}
        names |= {row.key_env for row in _table().values()} - {""}
        for settings in (declared or {}).values():
            names |= {name for _, name in settings.variables()}
        values = [os.environ.get(name, "") for name in sorted(names)]
        # A variable such as OPENAI_CUSTOM_HEADERS has a header on each line.
        parts = {line.partition(":")[2].strip() for value in values for line in value.splitlines()}
        # Plain words are no secrets in a response. Only messages go without them.
        words = {part for part in parts if _PLAIN_WORD.fullmatch(part)}
        return cls([*values, *(parts - words)], words)

    def text(self, text: str) -> str:
        """Return the text without known secrets; ordinary words stay as they are."""
        for form in self._forms:
            text = text.replace(form, _REMOVED)
        return text

    def message(self, text: str) -> str:
        """Return at most 400 printable characters of a message, without secrets and likely keys."""
        for word in self._words:
            text = text.replace(word, _REMOVED)
        words = " ".join(_KEY_LIKE.sub(_REMOVED, self.text(text)).split())
        return "".join(letter for letter in words if letter.isprintable())[:400]

    def tree(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a JSON-able object without known secrets in any text, field names included."""
        text = json.dumps(values)
        if not any(form in text for form in self._json_forms):  # nearly always, and much faster
            return dict(values)
        return dict(self._scrub_value(values))

    def _scrub_value(self, value: Any) -> Any:
        """Return a part of a JSON-able object without known secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._scrub_value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._scrub_value(item) for item in value]
        return value
