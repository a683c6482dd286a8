# One command for each thing done daily; `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCKER := build/locker
UV_VERSION := 0.13.7

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.DEFAULT_GOAL := help
.PHONY: help setup run test check format promises reference bench bench-quick chaos lock clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

setup: $(READY)  ## .venv with the project (editable) and all it is developed with

run: $(READY)  ## a living demo fleet; Ctrl-C stops it
	@$(BIN)/wakeful demo

test: $(READY)  ## all tests but the chaos runs
	@$(BIN)/python -m pytest -m "not chaos"

check: $(READY)  ## format, lint, types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(READY)  ## put the code into its format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

promises: $(READY)  ## every promise: kept, with the tests that prove it, or planned
	@$(BIN)/python -m tools.promises

reference: $(READY)  ## regenerate docs/reference.md from the docstrings
	@$(BIN)/python -m tools.reference

bench: $(READY)  ## the benchmarks, peers side by side
	@$(BIN)/python -m bench

bench-quick: $(READY)  ## the benchmarks within a minute, without peers
	@$(BIN)/python -m bench --quick

chaos: $(READY)  ## kill -9 runs on real processes, with their counts
	@$(BIN)/python -m tests.chaos

lock:  ## pin the dependencies again, with hashes, after a change in pyproject.toml
	@$(PYTHON) -m venv $(LOCKER)
	@$(LOCKER)/bin/pip install --quiet uv==$(UV_VERSION)
	@$(LOCKER)/bin/uv pip compile pyproject.toml --group dev --all-extras --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
		--quiet $(LOCK_FLAGS) --output-file requirements/dev.txt

clean:  ## remove what the other commands made
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# Runs again only when a pin or the project's own description changed. The environment is created again when its Python is gone.
$(READY): pyproject.toml requirements/dev.txt
	@command -v $(PYTHON) >/dev/null || { echo "Wakeful needs Python 3.11 or newer: install it (Debian: apt-get install python3 python3-venv) and run make again."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Wakeful needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1): name another one, such as make PYTHON=python3.12 setup."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is missing: install it (Debian: apt-get install python3-venv) and run make again."; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "Setting up $(VENV) ..."; $(PYTHON) -m venv --clear $(VENV); }
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
