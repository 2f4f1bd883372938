# Every target does its own set-up. The second time, nothing is installed and it takes seconds.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
export HF_HUB_OFFLINE ?= 1

.PHONY: run test bench experiment
run: .venv/run
	@$(BIN)/python rag.py

test: .venv/test
	@$(BIN)/python -m pytest

experiment: .venv/run
	@$(BIN)/python eval_chunk_sizes.py --explain

bench: .venv/bench
	@$(BIN)/python bench.py

# torch first: the packages below would otherwise pull its GPU build, several gigabytes
.venv/torch: constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) torch==2.13.0
	touch $@

.venv/run: .venv/torch pyproject.toml
	$(INSTALL) --editable .
	touch $@

.venv/test: .venv/torch pyproject.toml
	$(INSTALL) --editable '.[dev]'
	touch $@

.venv/bench: .venv/torch pyproject.toml
	$(INSTALL) --editable '.[dev,bench]'
	touch $@
