# 0cron: every word a developer or CI needs. Nothing but Python >= 3.11 and make is expected.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS := -n auto --dist loadfile --no-loadscope-reorder

.PHONY: help setup run test services quick check fmt docs screenshots faults bench lock clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

# Two stamps: running needs only the product, developing needs its tools too.
$(VENV)/product.stamp: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "0cron needs Python 3.11 or later; this is $$($(PYTHON) --version). Set PYTHON=python3.11 or newer."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "Install the venv module first, for example: apt-get install python3-venv"; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/developer.stamp: $(VENV)/product.stamp requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

# What the pages are made of, by the lock file; npm comes as a Python package where there is none.
$(VENV)/frontend.stamp: frontend/package-lock.json frontend/fetch.py requirements-node.lock $(VENV)/product.stamp
	@command -v npm >/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-node.lock
	$(BIN)/python frontend/fetch.py
	@touch $@

setup: $(VENV)/developer.stamp $(VENV)/frontend.stamp ## Make the virtual environment with everything, hashes checked

run: $(VENV)/product.stamp $(VENV)/frontend.stamp ## Start 0cron with sample jobs (0cron serve --demo)
	@$(BIN)/0cron serve --demo

test: setup services ## Everything CI runs: checks, then all tests
	@$(MAKE) --no-print-directory check
	$(BIN)/pytest $(WORKERS)

# The tests start a PostgreSQL and a Redis of their own; here their programs are installed where they are missing.
services:
	@missing=""; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="postgresql"; \
	command -v redis-server >/dev/null || missing="$$missing redis-server"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then sudo=""; \
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo="sudo"; \
	else echo "The tests need $$missing. Install them, for example: apt-get install $$missing"; exit 1; fi; \
	export DEBIAN_FRONTEND=noninteractive; \
	$$sudo apt-get update -qq && $$sudo apt-get install -y -qq --no-install-recommends $$missing >/dev/null && \
	echo "Installed for the tests: $$missing"

quick: setup services ## The tests of the rules and of the house alone, in a minute
	$(BIN)/pytest $(WORKERS) -q tests/core tests/house

check: setup ## Lint, types, import rules, generated files up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m docs.generate --check
	$(BIN)/python -m docs.words --check

fmt: setup ## Format the code and sort its imports
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## Write what is generated: settings, command line, OpenAPI, catalogs of the pages
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.words

screenshots: setup services ## Take pictures of the pages (docs/screenshots)
	$(BIN)/python -m docs.screenshots

faults: setup services ## Hurt a cluster for an hour and publish the table (build/faults); MINUTES and SEED choose
	$(BIN)/python -m tests.faults.cluster_long --minutes $(or $(MINUTES),60) --seed $(or $(SEED),1) --out build/faults

bench: setup services ## Measure; JSON lines on standard output
	$(BIN)/python -m bench

lock: ## Renew the dependency locks (hashes for every platform)
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links pyproject.toml requirements-build.in -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links requirements-node.in -o requirements-node.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --extra dev pyproject.toml requirements-build.in -c requirements.lock -o requirements-dev.lock

clean: ## Remove what the other words made (data is kept)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist
