# `make demo` and `make test` are all a fresh machine needs; both install first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NATIVE_SOURCES := $(wildcard xstream/*/*.[ch])
RUN_PYTEST := $(BIN)/python -m pytest
BENCH := $(RUN_PYTEST) bench --benchmark-enable --benchmark-only -p no:cacheprovider

.PHONY: install test test-slow asan fuzz demo bench bench-linearroad bench-peers lint format clean help

help: ## what each target does
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1: /' | column -t -s: -l 2

install: $(VENV)/.native ## .venv with the package, all of its extras and the development tools

$(VENV)/.installed: pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "xstream needs Python 3.11 or newer and '$(PYTHON)' was not found: install it, or say make PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "xstream needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1): install a newer one, or say make PYTHON=/path/to/python3." >&2; exit 1; }
	@set -- $${CC:-cc}; command -v "$$1" >/dev/null || { echo "xstream needs a C compiler and '$$1' was not found: install one (Debian: apt install gcc; Fedora: dnf install gcc; macOS: xcode-select --install), or name yours in CC." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "xstream needs Python's venv module: install it (Debian: apt install python3-venv)." >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all,dev]'
	@touch $@ $(VENV)/.native

$(VENV)/.native: $(NATIVE_SOURCES) hatch_build.py | $(VENV)/.installed
	$(BIN)/python hatch_build.py
	@touch $@

test: install ## the tests (slow ones and benchmarks aside), in as many processes as there are cores
	$(RUN_PYTEST) -m "not slow" --numprocesses auto --maxprocesses 4 --dist loadgroup

test-slow: install ## the tests that take minutes
	$(RUN_PYTEST) -m slow

asan: install ## segments, engine and operators under AddressSanitizer and UBSan; PART=engine runs that
	$(BIN)/python tests/run_sanitized.py $(if $(PART),--part $(PART))

fuzz: install ## the parsers of files under arbitrary bytes, for a minute or SECONDS; ONLY=csv fuzzes that format
	$(BIN)/python -m tests.fuzz.parsers --seconds $(or $(SECONDS),60) $(if $(ONLY),--only $(ONLY))

demo: install ## the main job: rush-hour traffic generated, run, validated, reported
	@$(BIN)/xstream linearroad demo

bench: install ## benchmarks and small experiments, with the figures they must reach; ONLY=append runs those
	$(BENCH) $(if $(ONLY),-k "$(ONLY)",--ignore-glob='bench/test_linearroad_*.py')
	$(if $(ONLY),,$(BIN)/xstream experiment all)

bench-linearroad: install ## what Linear Road takes, in full size; XSTREAM_TRAFFIC=DIR uses generated traffic
	$(RUN_PYTEST) bench/test_linearroad_*.py --benchmark-enable --benchmark-only -p no:cacheprovider -s

bench-peers: install ## the paper's benchmarks beside other engines, which it installs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all,dev,peers]'
	@if /usr/bin/python3 -c 'import gnuradio' 2>/dev/null; then :; \
	elif ! command -v apt-get >/dev/null; then echo "GNU Radio is left out: this system has no apt-get; install it for /usr/bin/python3."; \
	elif [ "$$(id -u)" != 0 ]; then echo "GNU Radio is left out, for only root may install it: sudo apt-get install gnuradio python3-numba"; \
	else apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends gnuradio python3-numba; fi
	$(BIN)/xstream bench passchain --peers
	$(BIN)/xstream bench statfilter --peers
	$(BIN)/xstream bench silencefilter --peers
	$(BIN)/xstream bench elementwise --peers

lint: install ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install ## ruff's formatter and its safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## everything that can be made again
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks demo-out
	find . -name '*.so' -not -path './.git/*' -delete
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
