# Everything runs in .venv, which is made on first use and brought up to date when pyproject.toml changes.
# `make PYTHON=python3.12 test` chooses the interpreter of a new .venv.

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install -qq --disable-pip-version-check --no-input
SOURCES := protocol actors runtime conformance tests
PYTEST_ARGS ?=

# Newest first; a given PYTHON is the only candidate.
PYTHON ?=
CANDIDATES := $(if $(PYTHON),'$(PYTHON)',python3.13 python3.12 python3.11 python3)

.DEFAULT_GOAL := help
.PHONY: help demo test simulate interop check contract format clean compile

help:
	@echo "make demo     play a short conversation against atomic --mode rpc (no key needed)"
	@echo "make test     make check, then all tests (PYTEST_ARGS='-k name' narrows them)"
	@echo "make simulate play SEEDS=100000 orders of the mail between the actors, and stop at the first that fails"
	@echo "make interop  install clients that others wrote, from npm and PyPI, and let them drive atomic (needs npm)"
	@echo "make check    format, lint, types and import layers"
	@echo "make contract write docs/contract.md anew from the tests that show what it promises"
	@echo "make format   format the sources and sort their imports"
	@echo "make clean    remove .venv and the tools' caches"

demo: $(VENV)/.installed compile
	@$(PY) -m runtime.demo

test: check compile
	$(PY) -m pytest $(PYTEST_ARGS)

SEEDS ?= 100000
SIMULATE_ARGS ?=

simulate: $(VENV)/.installed
	@$(PY) -m runtime.simulate --seeds $(SEEDS) $(SIMULATE_ARGS)

# The clients go into INTEROP_CACHE (~/.cache/atomic-interop), 600 MB; docs/interop.md tells what was found.
interop: $(VENV)/.installed-dev compile
	$(PY) -m pytest -o python_files='interop_*.py' -o timeout=900 tests/interop $(PYTEST_ARGS)

check: $(VENV)/.installed-dev
	$(PY) -m ruff format --check --quiet --output-format concise $(SOURCES)
	$(PY) -m ruff check --quiet --output-format concise $(SOURCES)
	$(PY) -m mypy
	$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'

# Without bytecode a start takes twice as long, and where PYTHONDONTWRITEBYTECODE is set nobody else writes it.
compile: $(VENV)/.installed
	@$(PY) -m compileall -q $(filter-out tests,$(SOURCES))

contract: $(VENV)/.installed-dev
	@$(PY) -m tests.house.contract_table

format: $(VENV)/.installed-dev
	$(PY) -m ruff check --quiet --fix-only --select I $(SOURCES)
	$(PY) -m ruff format --quiet $(SOURCES)

clean:
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

# The interpreter for a new .venv, or "?" and what came near. A candidate counts only with ensurepip: Debian's python3
# has none until python3-venv is installed.
FIND_PYTHON = $(shell \
    for python in $(CANDIDATES); do \
        "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || continue; \
        "$$python" -c 'import ensurepip, venv' 2>/dev/null && { echo "$$python"; exit; }; \
        near="$$python"; \
    done; echo "?$$near")

# $(error) and not a failing command, so that exactly one line is printed.
$(PY):
	$(eval python := $(FIND_PYTHON))
	$(if $(filter ?,$(python)),$(error atomic needs Python 3.11, 3.12 or 3.13, and $(CANDIDATES) is none: \
	    apt-get install python3 python3-venv, or give another one: make PYTHON=/path/to/python3.13))
	$(if $(filter ?%,$(python)),$(error $(patsubst ?%,%,$(python)) cannot make a virtual environment: \
	    apt-get install python3-venv))
	@echo "making $(VENV) with $(python)"
	@"$(python)" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.installed: pyproject.toml | $(PY)
	@echo "installing atomic-runtime into $(VENV)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(PY)
	@echo "installing atomic-runtime and its development tools into $(VENV)"
	@$(PIP) --editable '.[dev]'
	@touch $(VENV)/.installed $@
