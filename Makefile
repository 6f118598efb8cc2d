# The two commands for a newcomer are `make demo` and `make test`. Nothing here depends on the locale.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 3000

# Python would otherwise take ASCII for granted where LC_ALL is C.
export PYTHONUTF8 := 1
export DAGSTER_DISABLE_TELEMETRY := 1
unexport PYTHONPATH

.PHONY: demo test walk ui checks lint docs clean

demo: $(VENV)/.installed
	@$(BIN)/ragds demo

ui: $(VENV)/.installed
	@$(BIN)/ragds ui --port $(PORT)

checks: $(VENV)/.installed
	@$(BIN)/ragds checks $(CHECKS)

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 3 --dist worksteal

walk: $(VENV)/.installed-dev
	RAGDS_BROWSER=1 $(BIN)/python -m pytest ragds_pipeline_tests/integration/test_ui_walk.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/dagster definitions validate -m ragds_pipeline.definitions

docs: $(VENV)/.installed-dev
	$(BIN)/python -m ragds_pipeline.config_reference > docs/configuration.md

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,convert,postgres]"
	@touch $@

clean:
	rm -rf $(VENV) data/tables data/archive data/state data/golden data/review data/outbox data/dagster data/ledger.sqlite* data/ragds.duckdb
