"""Rules that the app's files keep: what they import, what they are called, what they never do."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from evenhand import annotate_app
from evenhand.annotate_app import command
from evenhand.annotate_app.lead.pages import PAGES

FOLDER = Path(annotate_app.__file__).resolve().parent
ROOT = FOLDER.parent
LEAD = "evenhand.annotate_app.lead."
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
    own = {f"evenhand.{room}" for room in ("annotate_app", "errors", "rubrics", "study")}
    allowed = own | {"streamlit"} | sys.stdlib_module_names
    assert len(MODULES) > 5
    for module in MODULES:
        for name in _imported(module):
            depth = 2 if name.startswith("evenhand.") else 1
            # The watch hands work to another process, and that is all it does.
            apart = {"evenhand.reporting"} if module.name == "watch.py" else set()
            room = ".".join(name.split(".")[:depth])
            assert room in allowed | apart, f"{module.name} imports {name}"
            assert name not in (
                "evenhand.study.store.grades",
                "evenhand.study.store.store",
                "evenhand.study.store.database",
                "evenhand.study.store.schema",
            )


def _imports(module: Path, prefix: str) -> list[ast.AST]:
    """The import statements of a module that name something under a prefix."""
    return [
        node
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith(prefix))
        or (isinstance(node, ast.Import) and any(a.name.startswith(prefix) for a in node.names))
    ]


def test_the_leads_pages_are_loaded_at_their_door_alone_and_not_before_it_opens():
    importing = {
        module.name for module in MODULES if _imports(module, "evenhand.annotate_app.lead.")
    }
    assert importing == {"lead_entry.py"}
    tree = ast.parse((FOLDER / "lead_entry.py").read_text("utf-8"))
    (door,) = [node for node in tree.body if getattr(node, "name", "") == "show_lead_entry"]
    (at,) = _imports(FOLDER / "lead_entry.py", LEAD)
    # Within the function, behind the check and the way out of whom it does not let in.
    lines = ast.unparse(door).splitlines()
    order = [
        next(n for n, line in enumerate(lines) if text in line)
        for text in ("require(study", "return", ast.unparse(at))
    ]
    assert order == sorted(order)


def test_a_process_that_shows_the_annotators_page_has_loaded_no_figures():
    code = (
        "import sys, evenhand.annotate_app.page, evenhand.annotate_app.lead_entry\n"
        "figures = {'evenhand.analysis', 'evenhand.graders', 'evenhand.annotate_app.lead',\n"
        "    'krippendorff', 'scipy', 'sklearn', 'statsmodels', 'vl_convert'}\n"
        "print(figures & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_every_page_of_the_lead_asks_who_is_there_before_anything_else():
    for page in PAGES:
        tree = ast.parse(inspect.getsource(page.show))
        first = ast.unparse(tree.body[0].body[0])
        assert "require(study, " in first, page.title
        for role in ("lead", "expert"):
            assert (f"'{role}'" in first) is (role in page.roles), page.title


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
        if module.name not in ("tables.py", "pages.py"):
            assert "st.html(" not in code, module.name


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
    assert words[:6] == [sys.executable, "-P", "-m", "streamlit", "run", str(FOLDER / "app.py")]
    assert "--server.headless=true" in words
    assert "--server.port=8599" in words
    assert words[-2:] == ["--", str(tmp_path / "my study")]
    assert "--server.headless=false" in command("x", open_browser=True)
