"""Rules that the app's files keep: what they import, what they are called, what they never do."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import annotate_app
from annotate_app import command

FOLDER = Path(annotate_app.__file__).parent
MODULES = sorted(FOLDER.glob("*.py"))


def _imported(module: Path) -> set[str]:
    tree = ast.parse(module.read_text("utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.name}: relative imports fail when run as a script"
            names.add(node.module or "")
    return names


def test_the_annotators_page_reaches_neither_grades_nor_agreement():
    allowed = {"annotate_app", "rubrics", "streamlit", "study"} | sys.stdlib_module_names
    assert len(MODULES) > 5
    for module in MODULES:
        for name in _imported(module):
            assert name.partition(".")[0] in allowed, f"{module.name} imports {name}"
            assert name not in ("study.grades", "study.store", "study.database", "study.schema")


def test_no_module_shadows_the_standard_library():
    # Streamlit puts the script's folder first on sys.path.
    assert not {module.stem for module in MODULES} & sys.stdlib_module_names


def test_texts_only_ever_become_text_nodes():
    for script in FOLDER.glob("panel/*.js"):
        code = script.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", code)


def test_every_part_of_the_panel_is_on_the_page():
    page = (FOLDER / "unit_page.py").read_text("utf-8")
    parts = [part.name for part in (FOLDER / "panel").iterdir() if part.suffix != ".svg"]
    assert len(parts) > 6
    for part in parts:
        assert f'"{part}"' in page


def test_settings():
    with (FOLDER / ".streamlit" / "config.toml").open("rb") as file:
        settings = tomllib.load(file)
    assert settings["runner"]["postScriptGC"] is False
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["server"]["enableCORS"] is True
    assert settings["server"]["enableXsrfProtection"] is True
    assert settings["client"]["showErrorDetails"] == "none"
    assert settings["browser"]["gatherUsageStats"] is False
    assert {"light", "dark"} <= settings["theme"].keys()


def test_command_names_script_and_study_in_full(tmp_path, monkeypatch):
    (tmp_path / "my study").mkdir()
    monkeypatch.chdir(tmp_path)
    words = command("my study", port=8599)
    assert words[:5] == [sys.executable, "-m", "streamlit", "run", str(FOLDER / "app.py")]
    assert "--server.headless=true" in words
    assert "--server.port=8599" in words
    assert words[-2:] == ["--", str(tmp_path / "my study")]
    assert "--server.headless=false" in command("x", open_browser=True)
