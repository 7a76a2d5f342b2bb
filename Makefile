# The two commands a newcomer needs: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
JOBS   ?= auto

.PHONY: help venv demo test lint format bench clean

help:
	@echo "make venv    make $(VENV) with the package (editable) and every extra"
	@echo "make demo    simulate the paper's Example 1, recognise the policy, draw it"
	@echo "make test    run all tests        (JOBS=1 for one process)"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff format the code"
	@echo "make bench   measure: ratios in one run on this machine"
	@echo "make clean   remove $(VENV) and caches"

venv: $(READY)

# Some systems ship python3 without ensurepip: then pip is brought in from outside.
$(READY): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) 2>/dev/null || \
	  { rm -rf $(VENV) && $(PYTHON) -m venv --without-pip $(VENV) && \
	    $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $(READY)

demo: venv
	$(BIN)/onlooker demo --output demo

test: venv
	$(BIN)/python -m pytest -n $(JOBS) $(PYTEST_ARGS)

lint: venv
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

format: venv
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

bench: venv
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
