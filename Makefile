# `make demo` and `make test` install everything they need on a new machine.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NATIVE_SOURCES := $(wildcard xstream/*/*.[ch])
RUN_PYTEST := $(BIN)/python -m pytest
BENCH := $(RUN_PYTEST) bench --benchmark-enable --benchmark-only -p no:cacheprovider

.PHONY: docs dist bench-record instructions install test test-slow asan fuzz chaos demo bench bench-linearroad bench-peers lint format clean help

help: ## what each target does
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1: /' | column -t -s: -l 2

install: $(VENV)/.native ## .venv with the package, all of its extras and the development tools

$(VENV)/.installed: pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "xstream needs Python 3.11 or newer and '$(PYTHON)' was not found: install it, or run make PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "xstream needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1): install a newer one, or run make PYTHON=/path/to/python3." >&2; exit 1; }
	@set -- $${CC:-cc}; command -v "$$1" >/dev/null || { echo "xstream needs a C compiler and '$$1' was not found: install one (Debian: apt install gcc; Fedora: dnf install gcc; macOS: xcode-select --install), or name yours in CC." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "xstream needs Python's venv module: install it (Debian: apt install python3-venv)." >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all,dev,docs]'
	@touch $@ $(VENV)/.native

$(VENV)/.native: $(NATIVE_SOURCES) hatch_build.py | $(VENV)/.installed
	$(BIN)/python hatch_build.py
	@touch $@

# One more process than cores: some tests wait for clocks, sockets and other processes.
test: install ## the tests (without slow tests and benchmarks), in several processes, at most four
	$(RUN_PYTEST) -m "not slow" --numprocesses $$(( $$(nproc) < 3 ? $$(nproc) + 1 : 4 )) --dist loadgroup

test-slow: install ## the tests that take minutes
	$(RUN_PYTEST) -m slow

asan: install ## segments, engine and operators under AddressSanitizer and UBSan; PART=engine runs that
	$(BIN)/python tests/run_sanitized.py $(if $(PART),--part $(PART))

fuzz: install ## fuzz the parsers of files, for a minute or SECONDS; ONLY=csv fuzzes that format, COVERAGE=1 guided by atheris
	$(BIN)/python -m tests.fuzz.parsers --seconds $(or $(SECONDS),60) $(if $(ONLY),--only $(ONLY)) $(if $(COVERAGE),--coverage)

chaos: install ## kill runs, break their disks and damage their checkpoints, for 20 minutes or SECONDS
	$(BIN)/python -m tests.chaos --seconds $(or $(SECONDS),1200) $(if $(SEED),--seed $(SEED))

demo: install ## Linear Road: generate rush-hour traffic, run it, validate the answers, show the report
	@$(BIN)/xstream linearroad demo

bench: install ## benchmarks and small experiments, with their targets; ONLY=append runs some
	$(BENCH) $(if $(ONLY),-k "$(ONLY)",--ignore-glob='bench/test_linearroad_*.py')
	$(if $(ONLY),,$(BIN)/xstream experiment all)

bench-record: install ## keep benchmark results with commit, machine and load in bench/records; `xstream bench compare A B` compares two
	$(BIN)/xstream bench record --out bench/records

instructions: install ## count the instructions of five core paths with valgrind, and compare with the stored counts
	$(BIN)/python -m bench.instructions

bench-linearroad: install ## the benchmarks of Linear Road in full size; XSTREAM_TRAFFIC=DIR uses generated traffic
	$(RUN_PYTEST) bench/test_linearroad_*.py --benchmark-enable --benchmark-only -p no:cacheprovider -s

bench-peers: install ## the paper's benchmarks compared with other engines, which it installs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all,dev,docs,peers]'
	@if /usr/bin/python3 -c 'import gnuradio' 2>/dev/null; then :; \
	elif ! command -v apt-get >/dev/null; then echo "GNU Radio is left out: this system has no apt-get; install it for /usr/bin/python3."; \
	elif [ "$$(id -u)" != 0 ]; then echo "GNU Radio is left out because only root can install it: sudo apt-get install gnuradio python3-numba"; \
	else apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends gnuradio python3-numba; fi
	$(BIN)/xstream bench passchain --peers
	$(BIN)/xstream bench statfilter --peers
	$(BIN)/xstream bench silencefilter --peers
	$(BIN)/xstream bench elementwise --peers

docs: install ## the documentation site in build/docs: warnings are errors, and every example runs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/docs
	@mkdir -p build/docs-doctest/files
	cd build/docs-doctest/files && ../../../$(BIN)/python -m sphinx --quiet --fail-on-warning -b doctest ../../../docs ..
	$(RUN_PYTEST) -q tests/docs
	@echo "the site: build/docs/index.html"

dist: install ## the source distribution and a manylinux wheel in dist, tried in a fresh environment without a compiler
	rm -rf dist
	$(BIN)/python -m build --outdir dist/plain .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m auditwheel repair --wheel-dir dist dist/plain/*.whl
	mv dist/plain/*.tar.gz dist/ && rm -rf dist/plain
	$(BIN)/python tests/try_wheel.py --no-compile dist/*.whl

lint: install ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install ## ruff's formatter and its safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## delete everything that can be rebuilt
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks demo-out
	find . -name '*.so' -not -path './.git/*' -delete
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
