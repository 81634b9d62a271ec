"""Rules that the app's files keep: what they are called and set, and what the lead's never do.

What may import what stands in pyproject.toml, for import-linter.
"""

import ast
import re
import sys
import tomllib
from pathlib import Path

from evenhand import annotate_app
from evenhand.annotate_app import command
from evenhand.annotate_app.lead.parts import MOST_MB

FOLDER = Path(annotate_app.__file__).resolve().parent


def test_every_part_of_a_page_that_runs_by_itself_asks_again():
    for module in (FOLDER / "lead").glob("*.py"):
        tree = ast.parse(module.read_text("utf-8"))
        for node in tree.body:
            if any("fragment" in ast.unparse(d) for d in getattr(node, "decorator_list", [])):
                assert "require(study, 'lead')" in ast.unparse(node.body[0]), module.name


def test_no_text_of_the_study_becomes_markdown_or_markup():
    for module in (FOLDER / "lead").glob("*.py"):
        code = module.read_text("utf-8")
        assert not re.search(r"st\.(markdown|write|caption|info|warning|error|table)\(", code)
        if module.name not in ("pages.py", "parts.py"):
            assert "st.html(" not in code, module.name


def test_streamlits_server_is_used_by_its_public_ways_alone():
    for module in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{each.name}" for each in node.names]
            elif isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            else:
                continue
            for name in names:
                assert not re.match(r"streamlit\.(web|.*\b_)", name), (module, name)
    assert not {module.stem for module in FOLDER.glob("*.py")} & sys.stdlib_module_names


def test_settings():
    with (FOLDER / ".streamlit" / "config.toml").open("rb") as file:
        settings = tomllib.load(file)
    assert settings["runner"]["postScriptGC"] is False
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["server"]["maxUploadSize"] == MOST_MB
    assert settings["server"]["enableCORS"] is True
    assert settings["server"]["enableXsrfProtection"] is True
    assert settings["client"]["showErrorDetails"] == "none"
    assert settings["browser"]["gatherUsageStats"] is False
    assert {"light", "dark"} <= settings["theme"].keys()


def test_command_names_script_and_study_in_full(tmp_path, monkeypatch):
    (tmp_path / "my study").mkdir()
    monkeypatch.chdir(tmp_path)
    words = command(["my study"], 8599, path="/a")
    assert words[:3] == [sys.executable, "-P", str(FOLDER / "app.py")]
    assert words[3:] == [str(tmp_path / "my study"), "--port=8599", "--public-host=", "--path=/a"]
    assert "--path" not in " ".join(command(["a", "b"], 8599))  # each has its folder's name
