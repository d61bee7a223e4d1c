# One line for each thing a contributor does; CI runs the same lines.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Tests of one file share servers and sandboxes, so they stay in one process. More than four processes gain little.
# tests/conftest.py orders the files.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: help setup setup-heavy demo test test-heavy check format lock site clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: $(STAMP)  ## Make .venv with the locked dependencies

# pip is silent while it installs what it has downloaded, for most of a minute. A person should see that it moves.
DOTS := (while sleep 4 && kill -0 $$$$ 2>/dev/null; do printf . >&2; done) &

$(STAMP): constraints/dev.txt pyproject.toml
	@echo "Making $(VENV) with the locked dependencies; this takes a minute or two."
	@$(DOTS) $(PYTHON) -m venv $(VENV)
	@$(DOTS) $(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r constraints/dev.txt
	@$(DOTS) $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP)  ## Heal a broken program and write a function, live
	$(BIN)/suture models pull qwen2.5-coder-1.5b
	$(BIN)/suture heal examples/broken/ --test "python -m pytest -q"
	$(BIN)/suture run --example

test: $(STAMP)  ## Run the tests of the whole product, without what is slow by nature
	$(PYTEST) -m "not heavy"

test-heavy: $(STAMP)  ## Run what is slow by nature: browsers, containers, Ray, live models, field packages
	$(PYTEST) -m heavy

setup-heavy: $(STAMP)  ## Add the large packages that some heavy tests need: Ray, MLflow and its server
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints/heavy.txt

check: $(STAMP)  ## Format, lint and types, exactly as CI does
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy

format: $(STAMP)  ## Format the code and fix what can be fixed
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet

lock: $(STAMP)  ## Regenerate constraints/ from pyproject.toml
	$(COMPILE) pyproject.toml --extra local --extra anthropic --extra ollama --extra google --extra bedrock --extra docker --extra e2b --extra quality --extra otel --extra postgres --extra serve --extra mcp --extra watch --extra ui --extra editor --extra notebook --group dev --output-file constraints/dev.txt
	$(COMPILE) pyproject.toml --extra hub --extra mlflow --extra ray --group heavy --constraint constraints/dev.txt --output-file constraints/heavy.txt
	$(COMPILE) pyproject.toml --group build --constraint constraints/dev.txt --output-file constraints/action.txt
	$(COMPILE) pyproject.toml --extra serve --extra postgres --extra ollama --group build --constraint constraints/dev.txt --output-file constraints/service.txt
	$(COMPILE) --group mlflow --constraint constraints/heavy.txt --output-file constraints/mlflow.txt
	$(COMPILE) --group sbom --constraint constraints/dev.txt --output-file constraints/sbom.txt
	$(COMPILE) --group gate --constraint constraints/dev.txt --output-file constraints/gate.txt

site: $(STAMP)  ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean:  ## Remove everything that was made here
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage site
