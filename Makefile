# The two commands of a fresh machine: `make demo` and `make test`. Both need Python 3.11+ and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= demo-study

LANES ?= -n 2

# A hundred processes start in the tests: what Python compiled for one is kept for the next.
test test-fast test-thorough test-load: export PYTHONDONTWRITEBYTECODE =

.PHONY: demo install install-dev test test-fast test-thorough test-load mutants check docs lock clean

demo: install
	$(BIN)/evenhand demo $(DEMO)

install: $(VENV)/.installed

install-dev: $(VENV)/.installed-dev

# Before each commit: whatever is quick, and the journeys that everybody makes, also in a browser.
test: install-dev
	$(BIN)/python -m pytest $(LANES) -m "$(QUICK) and (journey or not browser)" $(PYTEST_ARGS)

test-fast: install-dev
	$(BIN)/python -m pytest $(LANES) -m "$(QUICK) and not (browser or journey)" $(PYTEST_ARGS)

# All that `make test` leaves out. Browsers by themselves, in three lanes, which in part wait: beside
# simulations a page may wait for a core longer than a test waits for the page. PART=1, 2, ... runs
# every fourth file only, as CI does by turns; a release runs all.
QUICK := not slow and not thorough and not load
LONG = $$(grep -rlE 'mark\.(thorough|slow|browser)' --include='test_*.py' tests | sort | \
	awk 'NR % 4 == "$(PART)" % 4 || "$(PART)" == ""')
test-thorough: install-dev
	$(BIN)/python -m pytest -n 3 -m "browser and not journey and not load" $(PYTEST_ARGS) $(LONG)
	$(BIN)/python -m pytest $(LANES) -m "(slow or thorough) and not browser and not load" $(PYTEST_ARGS) $(LONG)

test-load: install-dev
	$(BIN)/python -m pytest -m load $(PYTEST_ARGS)

# What the quick tests of a room (ROOM=study/store) notice of what goes wrong in it: mutants.toml.
mutants: install-dev
	$(BIN)/python -m harness.mutants $(ROOM)

check: install-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m harness.weight

# The site, in site/, and what is tested of it; a warning is an error.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	$(BIN)/python -m pytest tests/site -m "not load"

# Without the libraries of the clouds: boto3 wants an older python-dateutil.
lock:
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --extra all --extra postgresql --extra oidc pyproject.toml requirements-build.in -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --extra dev --extra all --extra postgresql -c requirements.lock pyproject.toml requirements-build.in -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url -c requirements.lock pyproject.toml -o requirements-check.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --extra docs --extra all -c requirements-dev.lock pyproject.toml -o requirements-docs.lock

clean:
	rm -rf $(VENV) build site *.egg-info

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "evenhand needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed-dev requirements-docs.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	touch $@
