# One command for each thing done daily; `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Made last, after all that running needs, or all that development needs, is installed.
RUNNABLE := $(VENV)/.runnable
READY := $(VENV)/.ready
LOCKER := build/locker
UV_VERSION := 0.13.7

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# Without bytecode every process compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test prove test-tools screenshots site times check format promises reference access bench bench-quick chaos wheel dist lock clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

setup: $(READY)  ## .venv with the project (editable) and all it is developed with

run: $(RUNNABLE)  ## a living demo fleet; Ctrl-C stops it
	@PYTHONPATH=src $(BIN)/python -m wakeful.cli demo

# Options with `=`: pytest takes a path that stands alone and exists for the tests to run, and does not know our options then.
test: $(READY)  ## the tests, with every promise on each store, in minutes
	@$(BIN)/python -m pytest --scope=test --times=build/times/test.json --promises-json=build/promises/test.json

prove: $(READY)  ## every test there is: all cases on both stores, long worlds, kills; not again what `make test` has just passed
	@$(BIN)/python -m tools.promises --forget-stale
	@$(BIN)/python -m pytest --scope=prove --times=build/times/prove.json --promises-json=build/promises/prove.json --but-for=build/promises/test.json

test-tools: $(READY)  ## the presets with the agent programs themselves, installed into build/tools; TOOLS="claude llm" for some
	@$(BIN)/python -m tests.tools $(TOOLS)

times: $(READY)  ## tests/times.txt as the last `make test` and `make prove` measured it
	@$(BIN)/python -m tools.times

check: $(READY)  ## format, lint, types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(READY)  ## put the code into its format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

promises: $(READY)  ## every promise and the tests that proved it in the last `make prove`; RUN=1 runs them
	@$(BIN)/python -m tools.promises $(if $(RUN),--run)

reference: $(READY)  ## regenerate docs/reference.md from the docstrings
	@$(BIN)/python -m tools.reference

access: $(READY)  ## regenerate docs/access.md from the server's routes
	@$(BIN)/python -m tools.access

screenshots: $(READY)  ## the pictures of the dashboard in docs/images, taken with Chromium
	@$(BIN)/python -m tests.web.screenshots

site: $(READY)  ## the documentation as a site, in build/site/html
	@$(BIN)/python -m tools.site

bench: $(READY)  ## the benchmarks, peers side by side
	@$(BIN)/python -m bench

bench-quick: $(READY)  ## the benchmarks within a minute, without peers
	@$(BIN)/python -m bench --quick

chaos: $(READY)  ## kill -9 runs on real processes, with their counts
	@$(BIN)/python -m tests.chaos

wheel: $(READY)  ## a wheel in dist/, to install elsewhere
	@$(BIN)/python -m hatchling build -t wheel -d dist

dist: $(READY)  ## the sdist and the wheel in dist/, built twice and compared, with their metadata checked
	@$(BIN)/python -m tools.packages

lock:  ## pin the dependencies again, with hashes, after a change in pyproject.toml
	@$(PYTHON) -m venv $(LOCKER)
	@$(LOCKER)/bin/pip install -qq uv==$(UV_VERSION)
	@$(COMPILE) pyproject.toml --group dev --all-extras --output-file requirements/dev.txt
	@$(COMPILE) pyproject.toml --constraints requirements/dev.txt --output-file requirements/run.txt
	@$(COMPILE) pyproject.toml --all-extras --constraints requirements/dev.txt --output-file requirements/service.txt
	@$(COMPILE) --group build --constraints requirements/dev.txt --output-file requirements/build.txt

clean:  ## remove what the other commands made
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# Both run again only when a pin or the project's own description changed. The environment is created again when its Python is gone.
$(RUNNABLE): requirements/run.txt
	$(make-venv)
	$(call install,$<,--no-compile)
	@touch $@

$(READY): pyproject.toml requirements/dev.txt requirements/run.txt
	$(make-venv)
	$(call install,requirements/dev.txt)
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(RUNNABLE) $@

# The pip of the Python that makes the environment installs into it: a pip inside takes seconds more, so there is one only where it is the only one.
define make-venv
@command -v $(PYTHON) >/dev/null || { echo "Wakeful needs Python 3.11 or newer: install it (Debian: apt-get install python3 python3-venv) and run make again."; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Wakeful needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1): name another one, such as make PYTHON=python3.12 setup."; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is missing: install it (Debian: apt-get install python3-venv) and run make again."; exit 1; }
@$(BIN)/python -c "" 2>/dev/null || { echo "Creating $(VENV) with $$($(PYTHON) -V) ..."; $(PYTHON) -m venv --clear $$($(PYTHON) -c 'import pip' 2>/dev/null && echo --without-pip) $(VENV); }
endef

define install
@echo "Installing $$(grep '^[a-z]' $(1) | grep -cv win32) packages from $(1) ..."
@$(PIP) --require-hashes --no-deps $(2) --requirement $(1)
endef

# Errors only: what else pip has to say is about the machine's own settings.
PIP = $$($(BIN)/python -c 'import pip' 2>/dev/null && echo $(BIN)/python -m pip || echo $(PYTHON) -m pip --python $(BIN)/python) install -qq
COMPILE = $(LOCKER)/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make lock" --quiet $(LOCK_FLAGS)
