# The commands of this repository. `make demo` and `make test` are all that a newcomer needs.
SHELL := /bin/sh
PYTHON ?= $(shell for p in python3.12 python3.11 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
PY := .venv/bin/python
PYTEST_WORKERS ?= 2

.PHONY: help demo run test fast lint types format bench soak lock assets docs clean

help:
	@echo "make demo    everything on this machine, with a simulated fleet of 64 nodes and 512 cards"
	@echo "make run     the same without the fleet, for real hardware"
	@echo "make test    everything that must pass; as root on Debian it installs what the tests need"
	@echo "make fast    lint and the tests without database, browser and labs"
	@echo "make lint    ruff, mypy, import contracts, migrations, generated documents"
	@echo "make bench   manage.py bench ingest"
	@echo "make soak    the long fault, fuzz and load trials"
	@echo "make lock    requirements*.txt anew from requirements*.in"

.venv/bin/python:
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or 3.12 with venv is needed (Debian: apt install python3 python3-venv)"; exit 1; fi
	@echo "Making the Python environment with $(PYTHON) ..."
	@$(PYTHON) -m venv .venv

.venv/.runtime: requirements.txt requirements-agent.txt | .venv/bin/python
	@echo "Installing what Sensaka runs on (a minute or two the first time) ..."
	@$(PY) -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements.txt
	@touch .venv/.runtime

.venv/.dev: requirements-dev.txt .venv/.runtime
	@echo "Installing what the tests need ..."
	@$(PY) -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements-dev.txt
	@touch .venv/.dev

demo: .venv/.runtime
	@exec $(PY) -m sensaka.supervisor demo

run: .venv/.runtime
	@exec $(PY) -m sensaka.supervisor run

assets: .venv/.runtime
	@$(PY) -m sensaka.assets

test: .venv/.dev
	@sh tests/system_packages.sh
	@$(MAKE) --no-print-directory lint
	@$(PY) -m sensaka.assets
	@$(PY) -m pytest -n $(PYTEST_WORKERS) --dist loadgroup tests

fast: .venv/.dev lint
	@$(PY) -m pytest -q tests/sensaka/kernel tests/inventory/rules tests/contracts -m "not lab"

lint: .venv/.dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@PYTHONPATH=. $(PY) -c "from importlinter.cli import lint_imports_command; lint_imports_command()"
	@$(PY) -m mypy .
	@$(PY) -m sensaka.documents --check

format: .venv/.dev
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

docs: .venv/.dev
	@$(PY) -m sensaka.documents

bench: .venv/.runtime
	@$(PY) manage.py bench ingest

soak: .venv/.dev
	@$(PY) -m pytest tests -m soak --timeout 3600

lock: .venv/bin/python
	@$(PY) -m pip install --quiet uv
	@for name in requirements-agent requirements requirements-dev; do \
	  $(PY) -m uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header --no-annotate $$name.in -o $$name.txt || exit 1; \
	done

clean:
	rm -rf .venv var .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
