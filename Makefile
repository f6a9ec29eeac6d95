# Two commands do all the set-up: `make demo` runs the main job, `make test` passes every test.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := $(wildcard src/*.rs src/*/*.rs src/*/*/*.rs) Cargo.toml Cargo.lock

# Executions of each fuzz target, and which targets (all if none).
RUNS    ?= 100000
TARGETS ?=

# Where the results by level go.
LEVELS ?= target/levels.json

.PHONY: demo test test-arm test-levels check versions instructions fuzz bench bench-levels format lint types system emulation clean

demo: $(VENV)/.built
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	cargo test --quiet --locked --no-default-features
	$(BIN)/python -m pytest

# The tests of the core on a CPU that is not here: on aarch64, and at every instruction level of x86-64. Processors
# are emulated, so this takes minutes.
CORE      := cargo test --quiet --locked --no-default-features
ARM       := aarch64-unknown-linux-gnu
X86       := x86_64-unknown-linux-gnu
EMULATION := qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross

test-arm: emulation
	rustup target add $(ARM)
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
	NEARDUP_SIMD_BEST=neon $(CORE) --target $(ARM)

# Each level that this machine has, then a CPU without AVX2 and one without AVX-512. NEARDUP_SIMD_BEST is the level that
# the tests must then find.
test-levels: emulation
	for level in scalar avx2 avx512-base avx512; do NEARDUP_SIMD=$$level $(CORE) --target $(X86) || exit 1; done
	for cpu in Nehalem:scalar Haswell:avx2; do \
	  CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="qemu-x86_64 -cpu $${cpu%:*}" \
	  NEARDUP_SIMD_BEST=$${cpu#*:} $(CORE) --target $(X86) || exit 1; \
	done

check: lint types test instructions versions

# The main jobs on the lowest declared version of everything, and on the newest.
versions: $(VENV)/.built
	$(BIN)/python tests/versions.py

# The instructions of each kernel, as valgrind counts them, against those that are stored. After a change that is meant:
# make instructions STORE=--store
instructions: $(VENV)/.dev
	$(BIN)/python benchmarks/instructions.py $(STORE)

# Damaged inputs for everything that reads foreign bytes; the tests have a short form of it.
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz $(TARGETS) --runs $(RUNS)

lint: $(VENV)/.dev
	cargo fmt --check
	cargo clippy --locked --release --all-targets --features instructions -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py

# The tables by level of docs/benchmarks.md and README.md; DATA is a folder of *.jsonl.gz with real documents.
bench-levels: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py levels --level all --peers $(BIN)/python $(addprefix --data ,$(DATA)) --out $(LEVELS)
	$(BIN)/python benchmarks/tables.py $(LEVELS)

format: $(VENV)/.dev
	cargo fmt
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	touch $@

# Nothing is installed whose digest is not in the lock, the build tool included.
$(VENV)/.locked: $(VENV)/.venv requirements/run.lock
	$(BIN)/pip install --quiet --require-hashes --requirement requirements/run.lock
	touch $@

# Verbose: cargo names each crate that it compiles, so that nobody takes the longest one, ours, for a hang.
$(VENV)/.built: $(VENV)/.locked pyproject.toml $(RUST)
	@echo "compiling the core: one to three minutes on two cores, the last crate (neardup) most of it"
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pip install --verbose --no-deps --no-build-isolation --editable .
	touch $@

# What the tests need beside Python, where we may install it; else the test that needs it says so.
system:
	@missing=$$(for name in $$(cat requirements/system.txt); do command -v $$name >/dev/null || echo $$name; done); \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing \
	  || echo "could not install: $$missing" >&2; \
	fi

emulation:
	@missing=; for name in qemu-aarch64 qemu-x86_64 aarch64-linux-gnu-gcc; do command -v $$name >/dev/null || missing=1; done; \
	[ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(EMULATION); \
	else echo "missing; on Debian: apt-get install $(EMULATION)" >&2; exit 1; fi

$(VENV)/.dev: $(VENV)/.built requirements/dev.lock requirements/system.txt
	$(MAKE) --no-print-directory system
	$(BIN)/pip install --quiet --require-hashes --requirement requirements/dev.lock
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/pip install --quiet --requirement requirements/bench.txt
	touch $@

clean:
	rm -rf $(VENV) target
