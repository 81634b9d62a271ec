"""Settings, and changes of a study that runs: what may be changed and how it is written."""

import json
import signal
import stat
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError

from docs.settings import PAGE, renewed
from evenhand.study import Study, changing, open_study, trust
from evenhand.study.desk.claims import KnownUnit
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.settings import analysis, study_toml
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from evenhand.study.settings.sections import _PATTERN_WORDS, DisplayNames, Section
from evenhand.study.settings.study_toml import FILE_NAME, OidcSettings, StudyConfig, with_values
from evenhand.study.store.logs.decisions import acts, note_settings
from harness.studies import panel_study, work_through
from tests.cases import refused
from tests.commands import python

WRITTEN = """# our study
name = "mine"   # its name
seed = 1

[sample]
pairs = 3

[annotation]  # who labels what
# three of them
raters_per_unit = 3

[consent]
text = \"\"\"
You may stop.

At any time.\"\"\"

[[comprehension]]
# the one question
question = "What?"   # really
options = ["this", "that"]
answer = "this"
"""
UNIT = """# practice
[[unit]]
name = "first"   # easy
values = { prompt_a = "A", response_a = "a", prompt_b = "B", response_b = "b b" }
expected = { shorter = "L" }
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    folder = panel_study(tmp_path, 3, raters_per_unit=2)
    (folder / FILE_NAME).write_text(WRITTEN + '\n[training]\nfile = "training.toml"\n', "utf-8")
    (folder / "training.toml").write_text(UNIT, "utf-8")
    with open_study(folder) as opened:
        yield opened


def with_settings(study: Study, changes: dict[str, object]) -> dict[str, bytes | None]:
    files = changing.read_files(study)
    return files | {FILE_NAME: with_values(files[FILE_NAME].decode(), changes).encode()}


def saved(study: Study, changes: dict[str, object], who: str = "ada") -> None:
    changing.save(study, changing.read_files(study), with_settings(study, changes), who)


def said(study: Study, after: dict[str, bytes | None]) -> str:
    before = changing.contents_of(study, changing.read_files(study))
    return " ".join(changing.effects(study, before, changing.contents_of(study, after)))


def test_what_is_not_changed_stays_as_written_and_any_text_is_read_as_it_was():
    new = with_values(WRITTEN, {"annotation": {"raters_per_unit": 4}, "": {"name": "ours"}})
    assert new == WRITTEN.replace("unit = 3", "unit = 4").replace('"mine"', '"ours"')
    assert with_values(WRITTEN, {"annotation": {"raters_per_unit": 3}}) == WRITTEN
    kept = with_values(WRITTEN, {"pay": {"complete": 6.0, "currency": "GBP"}})
    assert kept.startswith(WRITTEN)
    assert with_values(kept, {"pay": None}).strip() == WRITTEN.strip()
    for text in ('a "b" \\ c', "two\n\nlines\n", '"""\nx\\', "\nfirst", "é\r\nx"):
        new = with_values(WRITTEN, {"consent": {"text": text}})
        assert tomllib.loads(new)["consent"]["text"] == text
        entry = {"question": text, "options": ["a", "b"], "answer": "a"}
        new = study_toml.with_entry(WRITTEN, "comprehension", 1, entry)
        assert tomllib.loads(new)["comprehension"][1] == entry


def test_an_entry_is_changed_in_its_place_or_added_to_a_table_in_one_line():
    entry = {"question": "Which?", "options": ["this", "that"], "answer": "this"}
    changed = study_toml.with_entry(WRITTEN, "comprehension", 0, entry)
    assert changed == WRITTEN.replace('"What?"', '"Which?"')
    assert "comprehension" not in study_toml.with_entry(changed, "comprehension", 0, None)
    unit = {"name": "first", "expected": {"shorter": ["R"]}}
    assert '"first"   # easy' in study_toml.with_entry(UNIT, "unit", 0, unit)
    new = study_toml.with_entry("background = {}\n", "background.questions", 0, entry)
    assert tomllib.loads(new) == {"background": {"questions": [entry]}}


def test_a_change_is_whole_private_noted_and_in_the_file(study):
    saved(study, {"annotation": {"raters_per_unit": 5}})
    file = study.folder / FILE_NAME
    assert "# three of them\nraters_per_unit = 5\n" in file.read_text("utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (act,) = acts(study.store).to_dict("records")
    assert (act["done_by"], act["kind"], act["about"]) == ("ada", "settings", FILE_NAME)
    assert act["detail"].endswith(" annotation.raters_per_unit: 3 -> 5")
    note_settings(study.store, file.read_text("utf-8-sig"))
    assert len(acts(study.store)) == 1  # it is known by whom
    with ThreadPoolExecutor(8) as pool:  # each hears of it while another holds the store
        list(pool.map(lambda _: note_settings(study.store, "edited by hand"), range(8)))
    assert len(acts(study.store)) == 2


def test_nothing_is_written_over_what_somebody_else_wrote(study):
    before = changing.read_files(study)
    after = with_settings(study, {"": {"name": "ours"}})
    theirs = with_settings(study, {"": {"name": "theirs"}})
    changing.save(study, before, theirs, "bea")
    told = "changed by someone else since you opened this page"
    refused(told, changing.save, study, before, after, "ada")
    assert changing.changed_since(study, before) == [FILE_NAME]
    assert changing.read_files(study) == theirs
    assert list(acts(study.store)["done_by"]) == ["bea"]


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_the_old_file_or_the_new_one(study):
    script = (
        "import sys\n"
        "from evenhand.study import open_study\n"
        "from evenhand.study.changing import read_files, save\n"
        "from evenhand.study.settings.study_toml import with_values\n"
        "study, number = open_study(sys.argv[1]), 0\n"
        "while True:\n"
        "    before, number = read_files(study), number + 1\n"
        "    new = {'': {'name': f'n{number}' * 2000}}\n"
        "    text = with_values(before['study.toml'].decode(), new)\n"
        "    save(study, before, before | {'study.toml': text.encode()}, 'ada')\n"
        "    print(number, flush=True)\n"
    )
    for moment in range(6):
        command = [sys.executable, "-c", script, str(study.folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout
        assert process.stdout.readline()
        time.sleep(0.007 * moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        config = changing.contents_of(study, changing.read_files(study)).config
        assert len(set(config.name.split("n"))) == 2  # of one number alone
        assert (study.folder / FILE_NAME).read_text("utf-8").endswith('"training.toml"\n')
    saved(study, {"": {"name": "after"}})
    assert changing.read_files(study)[FILE_NAME].decode().startswith('# our study\nname = "after"')


def test_what_does_not_hold_together_is_refused_in_a_sentence(study):
    before = changing.read_files(study)
    for changes, sentence in (
        ({"annotation": {"raters_per_unit": 0}}, "annotation.raters_per_unit is 0; it must"),
        ({"annotation": {"repeat_share": 0.7}}, "annotation.repeat_share is 0.7; it must"),
        ({"annotation": {"screen": "two"}}, "annotation.screen is 'two'; it must"),
        ({"pay": {"complete": 1.0, "currency": "pounds"}}, "three capital letters, such as GBP"),
        ({"annotation": {"rubrics": ["gone"]}}, "annotation.rubrics names the rubric 'gone'"),
        ({"training": {"file": "none.toml"}}, "names none.toml, which cannot be read"),
        ({"training": {"file": "/etc/passwd"}}, "/etc/passwd, which is not in the study's folder"),
        ({"comprehension_": {"x": 1}}, "comprehension_ is no known key"),
    ):
        fault = refused("", saved, study, changes)
        assert sentence in fault and "\n" not in fault
        assert changing.read_files(study) == before
    assert acts(study.store).empty


def test_what_the_study_rests_on_is_not_changed(study):
    for changes in ({"": {"seed": 2}}, {"sample": {"pairs": 2}}, {"session": {"hosts": ["x"]}}):
        refused("cannot be changed here: ", saved, study, changes)
    saved(study, {"annotation": {"pairs_per_block": 2}})
    assert not changing.has_begun(study)
    work_through(AnnotationDesk(study), "ann", 1)
    assert changing.has_begun(study)
    told = "pairs_per_block cannot be changed here: Items have been"
    refused(told, saved, study, {"annotation": {"pairs_per_block": 3}})
    assert changing.fixed_because("annotation.screen", begun=True)
    assert not changing.fixed_because("annotation.screen", begun=False)
    assert not changing.fixed_because("annotation.raters_per_unit", begun=True)


def test_every_setting_has_a_sentence_on_what_it_does(study):
    more = with_settings(study, {"annotation": {"raters_per_unit": 9}, "consent": {"text": "New"}})
    assert said(study, more).startswith("Every item is assigned until it has 9 annotators")
    assert "asked for consent again before their next item" in said(study, more)
    fewer = with_settings(study, {"annotation": {"raters_per_unit": 1}, "consent": None})
    assert "is assigned to from now on: at most 1." in said(study, fewer)
    assert "Annotators no longer see this step" in said(study, fewer)
    texts = changing.read_files(study) | {"consent.de.md": b"Einverstanden?"}
    assert "in that language" in said(study, texts)
    unit = UNIT.replace('"L"', '["L", "C"]').encode()
    training = changing.read_files(study) | {"training.toml": unit}
    assert "not passed the training" in said(study, training)
    pay = {"complete": 6.0, "currency": "GBP"}
    saved(study, {"consent": {"text": "Why"}, "pay": pay, "annotation": {"languages": ["de"]}})
    told = said(study, with_settings(study, {"pay": None}))
    assert told.startswith("These pages no longer show what is owed.")
    # A text that stays in another language is named.
    (study.folder / "consent.de.md").write_text("Warum", "utf-8")
    after = with_settings(study, {"consent": {"text": "Why not"}})
    assert "in other languages (de) stays as it is" in said(study, after)
    assert "stays as it is: whoever" not in said(study, after | {"consent.de.md": b"Warum nicht"})


@pytest.mark.parametrize("same", [False, True])
def test_a_rubrics_new_text_parts_the_labels_unless_it_means_the_same(study, same):
    assert work_through(AnnotationDesk(study), "ann") == 3
    rubric = study.rubrics["shorter"]
    assert changing.labels_under(study, rubric) == 3
    before = changing.read_files(study)
    file = "rubrics/shorter.toml"
    text = with_values(before[file].decode(), {"": {"question": "Which one is the shorter?"}})
    settings = {"same_text": {"shorter": [rubric.hash]}} if same else {}
    after = with_settings(study, settings) | {file: text.encode()}
    told = said(study, after)
    assert told.startswith("Labels given under the present text of Length (3) ")
    assert ("keep counting" in told) is same
    states = (changing.contents_of(study, each) for each in (before, after))
    (*_, found) = changing.differences(*states)
    assert (found.key, found.after) == ("rubric.shorter.question", "Which one is the shorter?")
    changing.save(study, before, after, "ada")
    with open_study(study.folder) as changed:
        assert changing.labels_under(changed, changed.rubrics["shorter"]) == (3 if same else 0)
        # Units that were labelled are given out again where the labels do not count.
        assert work_through(AnnotationDesk(changed), "ann") == (0 if same else 3)
    assert set(acts(study.store)["kind"]) == ({"settings", "file"} if same else {"file"})


def test_the_page_and_the_words_for_patterns_are_those_of_the_settings():
    schemas = [json.dumps(each.model_json_schema()) for each in (StudyConfig, KnownUnit)]
    for pattern in _PATTERN_WORDS:
        assert any(json.dumps(pattern) in schema for schema in schemas), pattern
    page = PAGE.read_text("utf-8")
    assert page == renewed(page), "run: python -m docs.settings"
    assert "| `analysis.margin` | how far below" in page


def test_changes_reach_the_section_that_has_them_and_a_wrong_one_is_one_sentence():
    for changes, sentence in (
        ({"margin": 0}, "margin is 0; it must be greater than 0"),
        ({"margin": 5}, "margin is 5; it must be less than 2"),
        ({"resamples": "many"}, "resamples is 'many'; it must be a valid integer"),
        ({"min_coverage": 2}, "min_coverage is 2; it must be less than or equal to 1"),
        ({"slices": "topic"}, "slices is 'topic'; it must be a valid tuple"),
        ({"leanings": {"left": ["x"]}}, "leanings names left; name the two that are to be compare"),
        ({"marginn": 1}, "'marginn' is no setting of the analysis; did you mean 'margin'?"),
        ({"usage": None}, "'usage' is no setting of the analysis; there are leanings, families"),
    ):
        sections = AnalysisSettings(), DecisionSettings()
        assert refused("", analysis.with_changes, *sections, changes).startswith(sentence)
    before = AnalysisSettings(slices=("topic", "side", "topic")), DecisionSettings(min_clusters=50)
    settings, decision = analysis.with_changes(*before, {"margin": 0.2, "bias_bound": 0.3})
    assert (settings.margin, settings.slices) == (0.2, ("topic", "side"))
    assert (decision.bias_bound, decision.min_clusters) == (0.3, 50)


@pytest.mark.parametrize("kind", [AnalysisSettings, StudyConfig])
def test_a_setting_that_went_is_accepted_only_as_it_was_written(kind):
    """Earlier versions wrote `ensembles = []` and `interval = "percentile"`."""

    def read(**went: object) -> Section:
        section = {"margin": 0.2, **went}
        whole = {"name": "s", "seed": 1, "sample": {"pairs": 3}, "analysis": section}
        return kind.model_validate(whole if kind is StudyConfig else section)

    settings = read(ensembles=[], interval="percentile")
    assert getattr(settings, "analysis", settings).margin == 0.2
    for went in ({"ensembles": [["g", "h"]]}, {"interval": "bca"}):
        with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
            read(**went)


@pytest.mark.journey
def test_the_settings_load_neither_a_store_nor_a_table():
    script = "import sys, evenhand.study.settings.analysis\n"
    script += "print(sorted({'pandas', 'numpy', 'sqlalchemy', 'tomlkit'} & set(sys.modules)))"
    assert python("-c", script, check=True).stdout.strip() == "[]"


SET = {
    "server_metadata_url": "https://id.example.org/.well-known/openid-configuration",
    "client_id": "evenhand",
    "client_secret": "${OIDC_SECRET}",
    "address": "https://study.example.org/",
    "leads": ["ada@example.org", "sub:00u1"],
}


def test_a_sound_section_is_taken_and_what_is_not_safe_or_names_nobody_is_refused():
    assert OidcSettings.model_validate(SET).address == "https://study.example.org"
    here = SET | {"address": "http://localhost:8501"}
    assert OidcSettings.model_validate(here).address == "http://localhost:8501"
    with_label = SET | {"label": "Log in"}  # a setting of former versions
    assert OidcSettings.model_validate(with_label) == OidcSettings.model_validate(SET)
    provider = "id.example.org"
    for key, values in {
        "server_metadata_url": (f"http://{provider}/.well-known/openid-configuration", provider),
        "client_id": ("",),
        "client_secret": ("hunter2 and more", "x${OIDC_SECRET}", ""),
        "address": (f"http://{provider}", "https://s.example/a/b", "https://x?b", "https://"),
        "leads": (["ada"], ["ada@"], ["ada@example.org "], ["sub:"]),
        "experts": (["@example.org"],),
    }.items():
        for value in values:
            with pytest.raises(ValidationError) as refusal:
                OidcSettings.model_validate(SET | {key: value})
            assert "hunter2" not in str(refusal.value.errors()[0]["msg"])


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        *((url, "") for url in ("https://h.example:8000/v1", "http://localhost/v1")),
        ("ftp://h", "must begin with http"),
        *((url, "holds credentials") for url in ("https://user@h", "https://:word@h")),
        *((url, "must end before any") for url in ("https://h/v1?key=x", "https://h/v1#x")),
        *((f"https://{rest}", "is not a valid address") for rest in ("h:port/v1", "", "h/a b")),
    ],
)
def test_an_address_of_a_server_is_sound_or_its_fault_is_named(url, fault):
    found = study_toml.fault_of_address(url)
    assert found.startswith(fault) and bool(found) == bool(fault)
    if fault:
        with pytest.raises(ValidationError, match=fault):
            study_toml.ProviderSettings(base_url=url)


def test_a_server_says_which_variables_it_uses_and_what_is_no_header_is_refused():
    used = {"x-a": "${A} ${B}", "x-b": "plain"}
    server = study_toml.ProviderSettings(base_url="https://h/${C}", key_env="D", headers=used)
    named = [("base_url", "C"), ("headers.x-a", "A"), ("headers.x-a", "B"), ("key_env", "D")]
    assert [*server.variables()] == named
    for wrong in ({"a b": "x"}, {"x-a": "a\nb"}, {"x-a": "${}"}, {"x-a": "${1}"}):
        with pytest.raises(ValidationError, match="header"):
            study_toml.ProviderSettings(headers=wrong)
    with pytest.raises(ValidationError, match="never the key itself"):
        study_toml.ProviderSettings(key_env="sk-12")


def test_hosts_are_commented_out_and_declared(tmp_path):
    hosts = '[providers.lab]\nbase_url = "https://h"\n'
    text = f'{WRITTEN}\n{hosts}[oidc]\nclient_id = "x"\n'
    bare, names = study_toml.without_hosts(text, "left out")
    assert names == ["[providers.lab]", "[oidc]"]
    assert tomllib.loads(bare) == tomllib.loads(WRITTEN)
    assert '# left out\n# [providers.lab]\n# base_url = "https://h"\n' in bare
    assert study_toml.without_hosts(WRITTEN, "left out") == (WRITTEN, [])
    (tmp_path / "models.toml").write_text(hosts + '[prices."m"]\ninput = 2\noutput = 3\n')
    models = study_toml.read_model_settings(tmp_path / "models.toml")
    lab, price = {"base_url": "https://h"}, {"input": 2.0, "output": 3.0}
    assert models.changes == {"providers.lab": lab, "prices.m": price}
    assert [*study_toml.declarations(models)] == ["[providers.lab]"]
    refused("there is no file", study_toml.read_model_settings, tmp_path / "none.toml")
    for store, own in (("study.db", []), ("postgresql://h/d", ["store"]), ("${URL}", ["store"])):
        config = {"name": "s", "seed": 1, "sample": {"pairs": 3}, "store": store, "oidc": SET}
        assert [*study_toml.declarations(StudyConfig.model_validate(config))] == [*own, "[oidc]"]


def test_leanings_orient_pairs_and_published_figures_have_units(tmp_path):
    settings = AnalysisSettings(leanings={"left": ["l", "m"], "right": ["r"]})
    assert (settings.sides, AnalysisSettings().sides) == (("left", "right"), ("side a", "side b"))
    sides = pd.DataFrame({"prompt_a_group": list("lrlxm"), "prompt_b_group": list("rmmrl")})
    assert settings.orientation(sides).tolist() == [1, -1, 0, 0, 0]
    about = {"rubric": "r", "statistic": "s", "between": "people", "of": "b"}
    for value, unit, printed, as_result, text in (
        ("94", "percent", "94%", 0.94, "0.94 (94%)"),
        (">99", "percent", ">99%", 0.99, ">0.99 (>99%)"),
        ("0.6", "coefficient", "0.6", 0.6, "0.6"),
    ):
        figure = analysis.PublishedFigure(**about, value=value, unit=unit)
        found = figure.printed, figure.as_result, figure.as_result_text
        assert found == (printed, as_result, text)
    for value, unit, says in (
        ("94", "", "s of b has no unit; name one of"),
        ("94", "metres", "has the unit 'metres'"),
        ("101", "percent", "is '101', which is no percent"),
        ("much", "coefficient", "is 'much', which is no coefficient"),
    ):
        with pytest.raises(ValidationError, match=says):
            analysis.PublishedFigure(**about, value=value, unit=unit)
    refused("published is 'none.toml'; name", analysis.read_published, "none.toml", tmp_path)
    assert analysis.read_published("stance", tmp_path).citation


def test_a_name_is_one_persons_and_the_rule_names_each_limit():
    names = TypeAdapter(DisplayNames)
    assert names.validate_python({"a": "Ann", "b": "Ben"}) == {"a": "Ann", "b": "Ben"}
    with pytest.raises(ValidationError, match="a and b are both called 'Ann'"):
        names.validate_python({"a": "Ann", "b": "Ann"})
    people = DecisionSettings(across_rubrics="holm", bias_bound=0.25, min_clusters=77)
    assert "0.25" in people.rule(0.1) and "77" in people.rule(0.1)
    assert people.rule(0.1) != DecisionSettings(bias_bound=0.25, min_clusters=77).rule(0.1)
    share = DecisionSettings(margin_share=0.3).rule(0.1)
    assert share.startswith("at most 30% of human kappa below human agreement")
    gold = DecisionSettings(reference="gold", reference_kappa=0.55, reference_sensitivity=0.65)
    assert all(part in gold.rule(0.1) for part in ("gold", "0.55", "0.65", "0.8"))


def test_trust_is_remembered_for_its_folder_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for declarations_given in (["a", {"b": 1}], ["a"]):
        monkeypatch.setattr(trust, "_confirmed", set())
        trust.remember(tmp_path, declarations_given)
        assert trust.is_trusted(tmp_path / "elsewhere", "a")  # while this process runs
    monkeypatch.setattr(trust, "_confirmed", set())
    asked = ((tmp_path, "a"), (tmp_path, {"b": 1}), (tmp_path, "c"), (tmp_path / "elsewhere", "a"))
    assert [trust.is_trusted(*each) for each in asked] == [True, True, False, False]
    file = tmp_path / "state" / "evenhand" / "trusted"
    assert (len(file.read_text().splitlines()), file.stat().st_mode & 0o777) == (2, 0o600)
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    refused("", trust.remember, tmp_path, ["d"])
    assert not trust.is_trusted(tmp_path, "a")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert trust.state_folder() == Path.home() / ".local" / "state" / "evenhand"
