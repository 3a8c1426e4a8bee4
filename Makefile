# Everything runs in .venv, made from requirements.lock. Nothing but Python 3.11+, pip and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made-from-the-lock

.PHONY: setup demo demo-fleet demo-tracks test test-ui check ui bench lock clean
.DEFAULT_GOAL := setup

setup: $(STAMP)  ## the virtual environment, from the lock file with hashes

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; assert (3, 11) <= sys.version_info[:2] < (3, 14), "Python 3.11, 3.12 or 3.13 is needed"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $(STAMP)

demo: $(STAMP)  ## New York's flights of 2013 through the whole platform
	$(BIN)/python samples/flights.py
	$(BIN)/lowwater run nyc_departures

demo-fleet: $(STAMP)  ## a made-up network through a flood and a wildfire, and which grace its links need
	$(BIN)/python samples/fleet.py
	$(BIN)/lowwater run fleet
	$(BIN)/lowwater grace fleet

demo-tracks: $(STAMP)  ## the same network on two tracks: one for who warns, one for who reports
	$(BIN)/python samples/fleet.py
	$(BIN)/lowwater run early_warning

test: $(STAMP)  ## every test that needs no browser
	$(BIN)/pytest -m "not ui"

test-ui: $(STAMP)  ## the quality page, and a whole installation on PostgreSQL, in headless Chromium, which must be installed
	$(BIN)/pytest -m ui

check: $(STAMP)  ## format, lint, types, imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

ui: $(STAMP)  ## the Dagster UI and daemon on the embedded instance
	$(BIN)/lowwater ui

bench: $(STAMP)  ## speed and memory, as ratios inside one run
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.checks

lock:  ## resolve pyproject.toml anew; needs uv
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-strip-extras \
		--no-header --extra dev pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) data
