"""Who can be asked: a grader's name, its provider's place and key, what its model can do, and the
provider that docs/graders.md adds: added as it stands there, asked by the command line.
"""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.graders import GraderSpec, GradingOptions, forecast
from evenhand.graders.clients import Access, open_grader
from evenhand.graders.money import Tariff
from evenhand.graders.options import GraderSettings, retirement_warnings
from evenhand.graders.providers import Scrubber, key_variable, known_providers, parse_spec
from evenhand.study import Study
from evenhand.study.settings.study_toml import ProviderSettings
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer, error
from harness.studies import with_settings
from tests.cases import refused
from tests.commands import Done, python
from tests.conftest import ROOT
from tests.graders.bench import Bench
from tests.graders.grading import grade, rows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("anthropic:claude-x", ("anthropic", "claude-x", "")),
        ("openai:gpt-x", ("openai", "gpt-x", "")),
        ("gemini:m", ("gemini", "m", "")),
        ("openai:l:8b@http://localhost:1/v1", ("openai", "l:8b", "http://localhost:1/v1")),
        ("openai:org/model@https://h/v1", ("openai", "org/model", "https://h/v1")),
        ("baseline:lexical", ("baseline", "lexical", "")),
    ],
)
def test_names_of_graders(text: str, expected: tuple[str, str, str], monkeypatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://api.anthropic.com/")
    assert parse_spec(text) == GraderSpec(text, *expected)


SECRET = "sk-SECRETVALUE-0123456789"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("claude-x", "is not a valid grader"),
        ("nobody:x", "is not a valid grader"),
        ("azure:x", "AZURE_OPENAI_ENDPOINT"),
        ("anthropic:", "does not name a model"),
        ("anthropic: claude", "does not name a model"),
        ("baseline:random", "no baseline"),
        ("openai:m@localhost:8000/v1", "must begin with http"),
        ("openai:m@http://h:port/v1", "not a valid address"),
        ("openai:m@http:///v1", "not a valid address"),
        (f"openai:m@http://user:{SECRET}@h/v1", None),
        (f"openai:m@http://{SECRET}@h/v1", None),
        (f"openai:m@https://h/v1?api_key={SECRET}", None),
        (f"openai:m@user:{SECRET}@h/v1", None),
        (f"anthropic:{SECRET}", None),
        (f"openai:m@https://h/{SECRET}/v1", None),
        ("vllm:m", "VLLM_BASE_URL"),
    ],
)
def test_what_is_no_grader_is_refused_and_credentials_not_repeated(text, sentence, monkeypatch):
    monkeypatch.setenv("VLLM_BASE_URL", f"https://lab:{SECRET}@gw.example/v1?key={SECRET}")
    fault = refused(sentence or "", parse_spec, text)
    assert "\n" not in fault and "SECRETVALUE" not in fault


HOST_KEY = "key-for-this-host-alone"
OTHER_KEY = "key-of-another-provider"


def keys_sent(bench: Bench) -> set[str]:
    return {call.headers["authorization"].removeprefix("Bearer ") for call in bench.calls}


@pytest.mark.parametrize(("variable", "said", "typed", "named"), [
    ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/", "anthropic:m",
     "anthropic:m@http://127.0.0.1:9"),
    ("OPENAI_BASE_URL", "https://gw.example/v1", "openai:m", "openai:m@https://gw.example/v1"),
    ("LITELLM_BASE_URL", "https://gw.example", "litellm:m", "litellm:m@https://gw.example"),
    ("VLLM_BASE_URL", "", "vllm:m", "vllm:m@http://localhost:8000/v1"),
    ("AZURE_OPENAI_ENDPOINT", "https://lab.openai.azure.com/", "azure:m",
     "azure:m@https://lab.openai.azure.com/openai/v1"),
    ("ANTHROPIC_FOUNDRY_RESOURCE", "lab", "foundry:m",
     "foundry:m@https://lab.services.ai.azure.com/anthropic"),
])  # fmt: skip
def test_any_other_address_is_a_part_of_the_name(monkeypatch, variable, said, typed, named):
    monkeypatch.setenv(variable, said)
    assert parse_spec(typed).text == named


def test_grades_at_everybodys_address_have_the_keys_that_they_had(monkeypatch) -> None:
    """The address is a part of a grade's key, to the letter."""
    for name, found in (
        ("anthropic", ("https://api.anthropic.com", "messages")),
        ("openai", ("https://api.openai.com/v1/", "chat/completions")),
    ):
        monkeypatch.setenv(f"{name.upper()}_API_KEY", HOST_KEY)
        access = Access(parse_spec(f"{name}:m"), GraderSettings("label"), Scrubber([]), 1)
        identity = open_grader(access).identity
        assert (identity["base_url"], identity["endpoint"]) == found


def test_what_a_mock_says_is_not_claudes(bench: Bench, monkeypatch) -> None:
    study = bench.study(pairs=1)
    assert grade(study, ["anthropic:claude-test"]).scored == 2
    assert {row["rater_id"] for row in rows(study)} == {bench.claude}
    (same,) = forecast(study, [bench.claude], GradingOptions())
    assert (same.already, same.new) == (2, 0)
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    (real,) = forecast(study, ["anthropic:claude-test"], GradingOptions())
    assert (real.rater_id, real.already, real.new) == ("anthropic:claude-test", 0, 2)


def test_no_two_hosts_share_a_variable() -> None:
    hosts = ("a.b", "a-b", "a.b:1", "b.a", "ab", "a-b:1", "a.b-1")
    assert len({key_variable(f"https://{host}/v1") for host in hosts}) == len(hosts)


def test_openais_key_stays_with_openai(bench: Bench, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OTHER_KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", OTHER_KEY)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"x-secret: {OTHER_KEY}")
    study = bench.study(pairs=1)
    grade(study, [bench.openai])
    bench.script = lambda call: Reply(401, {"error": {"message": "no key"}})
    (sentence,) = grade(study, [bench.openai.replace("test-model", "other")]).stopped
    assert f"set {key_variable(bench.root)}" in sentence
    monkeypatch.setenv(key_variable(bench.root), HOST_KEY)
    grade(study, [bench.openai.replace("test-model", "other")])
    assert keys_sent(bench) == {"none", HOST_KEY}
    assert not [call for call in bench.calls if OTHER_KEY in repr(call.headers)]


def test_anthropics_key_stays_with_anthropic(bench: Bench, monkeypatch) -> None:
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    for name in ("API_KEY", "AUTH_TOKEN"):
        monkeypatch.setenv(f"ANTHROPIC_{name}", OTHER_KEY)
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"x-secret: {OTHER_KEY}")
    assert grade(bench.study(pairs=1), [f"anthropic:m@{bench.root}"]).scored == 2
    assert not [call for call in bench.calls if OTHER_KEY in repr(call.headers)]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_missing_key_is_one_sentence(marked_study, provider: str) -> None:
    refused(f"{provider.upper()}_API_KEY", grade, marked_study(), [f"{provider}:m"])


def test_no_redirect_is_followed(bench: Bench, server: ProtocolServer, monkeypatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", HOST_KEY)
    monkeypatch.setenv(key_variable(bench.root), HOST_KEY)
    study = bench.study(pairs=1)
    for status in (302, 308):
        bench.script = lambda call, status=status: Reply(
            status, "", {"location": f"{server.root}{call.path}?key={HOST_KEY}"}
        )
        summary = grade(study, [bench.openai, "anthropic:m"])
        assert len(summary.stopped) == 2
        assert all("sends requests on to another address" in why for why in summary.stopped)
        assert HOST_KEY not in str(summary)
    assert server.calls == []


def test_no_key_follows_the_address_of_a_batchs_results(bench: Bench, server: ProtocolServer):
    bench.batches.results_at = server.root
    assert grade(bench.study(pairs=1), [bench.claude], batch=True).scored == 2
    assert server.batches.headers == []


def test_a_provider_of_the_studys_own(bench: Bench, monkeypatch) -> None:
    key = 'key_env = "EVENHAND_LAB_SECRET"'
    own = f"""
[providers.claudes]
base_url = "{bench.root}"
{key}
speaks = "messages"
[providers.lab]
base_url = "{bench.root}/v1"
{key}
[providers.lab.headers]
x-team = "team ${{EVENHAND_TEAM_TOKEN}}"
"""

    def echoing(call: Call) -> Reply:
        """The right answer, with all that a request carries of secrets beside it."""
        secrets = f"{call.headers['authorization']} {call.headers['x-team']}"
        return Reply(200, answer(call).body | {"model": secrets, "system_fingerprint": secrets})

    study = with_settings(bench.study(pairs=1), own)
    refused("EVENHAND_TEAM_TOKEN", grade, study, ["lab:m"])
    monkeypatch.setenv("EVENHAND_LAB_SECRET", HOST_KEY)
    monkeypatch.setenv("EVENHAND_TEAM_TOKEN", "token-of-the-team")
    bench.script = echoing
    (summary,) = grade(study, ["lab:m"]).graders
    assert summary.scored == 2
    assert ["EVENHAND_LAB_SECRET" in line for line in summary.warnings] == [True, False]
    assert {row["rater_id"] for row in rows(study)} == {f"lab:m@{bench.root}/v1"}
    assert keys_sent(bench) == {HOST_KEY}
    assert {call.headers["x-team"] for call in bench.calls} == {"team token-of-the-team"}
    (part,) = forecast(study, ["lab:m"], GradingOptions())
    assert bench.root[7:] in next(line for line in part.warnings if "EVENHAND_LAB_SECRET" in line)
    bench.script = answer
    assert (grade(study, ["claudes:m"]).scored, bench.calls[-1].path) == (2, "/v1/messages")
    study.close()
    kept = (study.folder / "study.db").read_bytes().decode("latin-1")
    assert "token-of-the-team" not in kept
    assert HOST_KEY not in kept


def test_a_table_key_does_not_follow_to_an_address_of_the_study(bench: Bench, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OTHER_KEY)
    own = f'[providers.openai]\nbase_url = "{bench.root}/v1"\n'
    study = with_settings(bench.study(pairs=1), own)
    assert grade(study, ["openai:m"]).scored == 2
    with pytest.raises(InputError, match="key_env takes OPENAI_API_KEY"):
        grade(with_settings(study, 'key_env = "OPENAI_API_KEY"\n'), ["openai:m2"])
    assert keys_sent(bench) == {"none"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[providers.lab]\nkey_env = "X"', "needs a base_url"),
        ('[providers.lab]\nbase_url = "https://SECRET@h"', "holds credentials"),
        ('[providers.lab]\nbase_url = "https://h"\nkey_env = "sk-SECRET"', "never the key itself"),
        ('[providers.lab]\nbase_url = "https://h"\nspeaks = "os.path"', "write chat or messages"),
        ('[providers."A b"]\nbase_url = "https://h"', "lower-case"),
    ],
)
def test_what_is_no_provider_is_refused_and_no_secret_repeated(marked_study, text, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        grade(with_settings(marked_study(), text), ["lab:m"])
    assert "SECRET" not in str(caught.value)


def test_a_key_goes_to_its_owners_address_under_another_name() -> None:
    for port, is_owner in (("", True), (":444", False)):
        own = {"base_url": f"https://api.openai.com{port}/v1", "key_env": "OPENAI_API_KEY"}
        lab = ProviderSettings.model_validate(own, context={"file": Path("study.toml")})
        if is_owner:
            assert parse_spec("lab:m", {"lab": lab}).endpoint.key_env == "OPENAI_API_KEY"
        else:
            refused("key_env takes OPENAI_API_KEY", parse_spec, "lab:m", {"lab": lab})


def test_prices_follow_the_provider_not_the_address() -> None:
    assert Tariff.find(parse_spec("gemini:gemini-2.5-pro")) is not None
    assert Tariff.find(parse_spec("mistral:mistral-large-latest")) is not None
    assert Tariff.find(parse_spec("openai:gpt-4o@http://gw.example/v1")) is None


def test_every_row_of_the_table_is_one_that_can_be_asked() -> None:
    from evenhand.graders.providers.forms import is_form

    for name, row in known_providers({}).items():
        assert row.speaks in ("chat", "messages", "baseline") or is_form(row.speaks), name
        assert row.key in ("needed", "optional")
        assert row.client in ("", "bedrock", "vertex", "foundry")


AGAIN = "its grades cannot be collected again."


def entry(**fields: object) -> Reply:
    """A model's entry in the catalogue of the Messages API."""
    known = {"id": "claude-test", "type": "model", "display_name": "Test", "lifecycle": "active"}
    known |= {"created_at": "2026-01-01T00:00:00Z", "deprecated_at": None, "retires_at": None}
    return Reply(body=known | fields)


@pytest.mark.parametrize(("reply", "warnings"), [
    (entry(), ()),
    (entry(lifecycle="deprecated", retires_at="2026-11-30T00:00:00Z"),
     (f"claude-test retires on 2026-11-30. After that {AGAIN}",)),
    (entry(lifecycle="deprecated"),
     ("claude-test is deprecated. Its grades may soon be impossible to collect again.",)),
    (entry(lifecycle="retired", retires_at="2026-01-05T00:00:00Z"),
     (f"claude-test is retired, so {AGAIN}",)),
    (error(404, "no such model"), ()),
    (Reply(200, "<html>a proxy's page</html>"), ()),
    (entry(lifecycle="sk-ant-KEY", retires_at="sk-ant-KEY"), ()),
])  # fmt: skip
def test_the_catalogue_is_asked_and_grading_goes_on_whatever_it_says(bench, reply, warnings):
    bench.models["claude-test"] = reply
    batch = bool(warnings)  # it is asked before either way
    (summary,) = grade(bench.study(pairs=1), [bench.claude], batch=batch).graders
    assert (summary.warnings, summary.scored, summary.stopped) == (warnings, 2, "")


@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")  # the SDK says so too
@pytest.mark.parametrize("model", ["openai:gpt-5", "anthropic:claude-sonnet-4-5"])
def test_where_the_provider_says_nothing_our_own_table_does(bench: Bench, model: str) -> None:
    bench.as_openai()
    (summary,) = grade(bench.study(pairs=1), [model]).graders
    assert summary.warnings == tuple(retirement_warnings(parse_spec(model))) != ()


PAGE = (ROOT / "docs" / "graders.md").read_text("utf-8")


@pytest.fixture
def with_ollama(tmp_path: Path) -> Path:
    """A folder that holds evenhand with the page's provider in it."""
    package = tmp_path / "changed" / "evenhand"
    package.mkdir(parents=True)
    for item in (ROOT / "evenhand").iterdir():
        if item.name == "graders":
            shutil.copytree(item, package / "graders")
        else:
            (package / item.name).symlink_to(item.resolve())
    (module,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (entry,) = re.findall(r"^```toml\n(\[ollama\].*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    providers = package / "graders" / "providers"
    (providers / "forms" / "ollama.py").write_text(module, "utf-8")
    with (providers / "providers.toml").open("a", encoding="utf-8") as table:
        table.write("\n" + entry)
    return package.parent


def ollama(call: Call) -> Reply:
    """What Ollama's own API answers; to one unit, half of it."""
    if "|a]]" in call.user and call.unit.startswith("p0002"):
        return Reply(200, {"message": "?"})
    said = {"role": "assistant", "content": json.dumps({"answer": "2"})}
    why = "length" if call.unit.startswith("p0003") else "stop"
    told = {"model": "qwen3-of-today", "message": said, "done": True, "done_reason": why}
    return Reply(200, told | {"prompt_eval_count": 900, "eval_count": 3})


@pytest.mark.slow
def test_the_pages_example(with_ollama: Path, bench: Bench) -> None:
    def grades(study: Study, *more: str) -> Done:
        environment = os.environ | {"PYTHONPATH": str(with_ollama), "OLLAMA_BASE_URL": bench.root}
        words = ("-m", "evenhand", "grade", study.folder, "--grader", "ollama:qwen3")
        return python(*words, *more, env=environment)

    bench.script, study = ollama, bench.study(pairs=3)
    done = grades(study)
    assert done.returncode == 0, done.stderr
    kept = {row["unit_id"]: row for row in rows(study)}
    reasons = [kept[unit]["unscored_reason"] for unit in sorted(kept)]
    assert reasons == ["", "", "unparseable", "", "truncated", "truncated"]
    first = kept[min(kept)]
    assert (first["label"], first["rater_id"]) == ("2", f"ollama:qwen3@{bench.root}")
    assert first["provenance"]["tokens"]["input"] == 900
    assert {call.path for call in bench.calls} == {"/api/chat"}
    assert bench.calls[0].body["stream"] is False
    # Its limit, and what a gateway charges for it.
    bench.calls.clear()
    bench.script = lambda call: replace(ollama(call), headers={"x-litellm-response-cost": "0.0125"})
    study = bench.study(pairs=1, name="limited")
    assert grades(study, "--max-tokens", "700").returncode == 0
    assert {call.body["options"]["num_predict"] for call in bench.calls} == {700}
    assert {row["provenance"]["cost_usd"] for row in rows(study)} == {0.0125}
    assert "ollama takes no effort; leave out --effort" in grades(study, "--effort", "low").stderr
    assert len(bench.calls) == 2
