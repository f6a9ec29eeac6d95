# Two commands do all the set-up: `make demo` runs the main job, `make test` passes every test.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := $(wildcard src/*.rs src/*/*.rs) Cargo.toml Cargo.lock

.PHONY: demo test check bench format lint types clean

demo: $(VENV)/.built
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest

check: lint types test

lint: $(VENV)/.dev
	cargo fmt --check
	cargo clippy --locked --release --all-targets -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py

format: $(VENV)/.dev
	cargo fmt
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.built: $(VENV)/.venv pyproject.toml constraints.txt $(RUST)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.built constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --requirement requirements/dev.txt
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/pip install --quiet --requirement requirements/bench.txt
	touch $@

clean:
	rm -rf $(VENV) target
