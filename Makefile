# Every target does its own set-up. The second time, nothing is installed and it takes seconds.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
export HF_HUB_OFFLINE ?= 1

.PHONY: run test bench experiment mutants
run: .venv/run
	@$(BIN)/python rag.py

test: .venv/test
	@$(BIN)/python -m pytest

experiment: .venv/run
	@echo "All experiments take about 10 minutes on 2 cores from a warm cache, twice that from a cold one."
	@$(BIN)/python eval_chunk_sizes.py
	@$(BIN)/python eval_strategies.py
	@$(BIN)/python eval_stages.py
	@$(BIN)/python refusal.py
	@$(BIN)/python eval_answers.py
	@$(BIN)/python encoder.py --picture

bench: .venv/bench
	@$(BIN)/python bench.py

# How many small changes to the four primitives do their tests notice? Takes minutes; writes results/mutants.md
mutants: .venv/mutants
	@HYPOTHESIS_PROFILE=mutants $(BIN)/python tests/mutants.py ranking bm25 fusion metrics

# torch first and alone: where pip's default is the GPU build (several gigabytes), offer it a CPU build of this version
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

.venv/mutants: .venv/torch pyproject.toml
	$(INSTALL) --editable '.[dev,mutants]'
	touch $@
