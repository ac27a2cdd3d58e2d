# Everything runs in .venv, which is made on first use and brought up to date when pyproject.toml changes.
# `make PYTHON=python3.12 test` chooses the interpreter of a new .venv.

VENV := .venv
PY := $(VENV)/bin/python
# What pip says goes into a file: twenty lines about one missing network hide the one that helps.
PIP_LOG := $(VENV)/pip.log
INSTALL := $(PY) -m pip install -q --disable-pip-version-check --no-input --editable
NOT_INSTALLED = echo "make: pip could not install atomic into $(VENV): $$(grep -m 1 '^ERROR' $(PIP_LOG) | cut -c 1-160);" \
    "it needs a package registry (PIP_INDEX_URL, PIP_PROXY); all that it said is in $(PIP_LOG)" >&2; exit 1
SOURCES := protocol actors runtime conformance tests
PYTEST_ARGS ?=

# Newest first; a given PYTHON is the only candidate.
PYTHON ?=
CANDIDATES := $(if $(PYTHON),'$(PYTHON)',python3.13 python3.12 python3.11 python3)

.DEFAULT_GOAL := help
.PHONY: help demo test conformance simulate interop check contract reference schema format clean compile

help:
	@echo "make demo     play a short conversation against atomic --mode rpc (no key needed)"
	@echo "make test     make check, then all tests (PYTEST_ARGS='-k name' narrows them)"
	@echo "make conformance hold atomic to every case of the conformance kit (CASES=section narrows them)"
	@echo "make simulate play SEEDS=100000 orders of the mail between the actors, on all cores; a failure is made short"
	@echo "make interop  install clients that others wrote, from npm and PyPI, and let them drive atomic (needs npm)"
	@echo "make check    format, lint, types and import layers"
	@echo "make contract write anew, in docs/protocol.md, which tests show what it promises"
	@echo "make reference write docs/reference.md anew from the types of the wire"
	@echo "make schema   write docs/schema/ anew from the types of the wire"
	@echo "make format   format the sources and sort their imports"
	@echo "make clean    remove .venv and the tools' caches"

demo: $(VENV)/.installed compile
	@$(PY) -m runtime.demo

test: check compile
	$(PY) -m pytest $(PYTEST_ARGS)

CASES ?= *
CONFORMANCE_ARGS ?=

conformance: $(VENV)/.installed compile
	$(PY) -m conformance run --schema strict --only '$(CASES)' $(CONFORMANCE_ARGS) -- $(VENV)/bin/atomic --mode rpc

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

reference: $(VENV)/.installed-dev
	@$(PY) -m tests.house.reference_page

schema: $(VENV)/.installed-dev
	@$(PY) -m tests.house.schema_files

contract: $(VENV)/.installed-dev
	@$(PY) -m tests.house.contract_table

format: $(VENV)/.installed-dev
	$(PY) -m ruff check --quiet --fix-only --select I $(SOURCES)
	$(PY) -m ruff format --quiet $(SOURCES)

clean:
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

# The interpreter for a new .venv, or "?" and why there is none. A candidate counts only with ensurepip: Debian's python3
# has none until python3-venv is installed.
VERSION := import sys; v = sys.version_info[:2]; print("is Python %d.%d" % v); sys.exit(not (3, 11) <= v <= (3, 13))
FIND_PYTHON = $(shell \
    for python in $(CANDIDATES); do \
        command -v "$$python" >/dev/null 2>&1 || { missing="$$missing $$python"; continue; }; \
        version=$$("$$python" -c '$(VERSION)' 2>/dev/null) || \
            { other="$$other; $$python $${version:-does not run}"; continue; }; \
        "$$python" -c 'import ensurepip, venv' 2>/dev/null && { echo "$$python"; exit; }; \
        echo "? $$python cannot make a virtual environment; its venv module is missing" \
            "(Debian: apt-get install python3-venv)"; exit; \
    done; \
    echo "? atomic needs Python 3.11, 3.12 or 3.13$${missing:+; not found:$$missing}$$other." \
        "Install one (Debian: apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3.13")

# $(error) and not a failing command, so that exactly one line is printed.
$(PY):
	$(eval python := $(FIND_PYTHON))
	$(if $(filter ?,$(firstword $(python))),$(error $(wordlist 2,99,$(python))))
	@echo "making $(VENV) with $(python)"
	@"$(python)" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.installed: pyproject.toml | $(PY)
	@echo "installing atomic-runtime into $(VENV); this takes about a minute"
	@$(INSTALL) . >$(PIP_LOG) 2>&1 || { $(NOT_INSTALLED); }
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(PY)
	@echo "installing atomic-runtime and its development tools into $(VENV); this takes about a minute"
	@$(INSTALL) '.[dev]' >$(PIP_LOG) 2>&1 || { $(NOT_INSTALLED); }
	@touch $(VENV)/.installed $@
