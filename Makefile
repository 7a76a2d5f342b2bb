# The two commands a newcomer needs: `make demo` and `make test`. Both set up .venv first.
PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
READY       := $(VENV)/.ready
JOBS        ?= auto
DEMO_ARGS   ?=
PYTEST_ARGS ?=
BENCH_ARGS  ?=
CHECKED     := src tests benchmarks examples docs/conf.py docs/check_links.py docs/_ext
DOCS        := docs/_build
PACKAGE     := build/package
COVER       := $(if $(COVERAGE),--cov --cov-report=term --cov-report=html)
LOCK        := $(if $(LOCKED),--constraint requirements.lock)

.PHONY: help venv demo test coverage lint format bench bench-check docs package lock clean

help:
	@echo "Each command sets up $(VENV) first; that needs python3 (3.11 or newer) and the network."
	@echo
	@echo "make demo    simulate the paper's Example 1, recognise the policy, draw it in demo/"
	@echo "             about a minute; DEMO_ARGS='--quick' a look, DEMO_ARGS='--seed 1' another"
	@echo "make test    run all tests, one process a core"
	@echo "             JOBS=1 in a single one; PYTEST_ARGS='tests/test_plot.py' only some;"
	@echo "             those of the web page need chromium, and say so where they are skipped"
	@echo "make coverage  the same, with the lines and branches that they reach; fails below 90 %"
	@echo "make lint    ruff (style, format) and mypy (types)"
	@echo "make format  let ruff format the code and mend what it can"
	@echo "make bench   measure, as ratios in one run on this machine; takes many minutes;"
	@echo "             makes docs/benchmarks.md; BENCH_ARGS='--resume' goes on where it stopped,"
	@echo "             BENCH_ARGS='--quick' smaller sizes, BENCH_ARGS='--list' what there is"
	@echo "make docs    the documentation as pages, in docs/_build/html; what its code shows is computed"
	@echo "make package build the wheel and the source archive in dist/, install it in build/package, try it"
	@echo "make lock    write the newest versions that go together to requirements.lock"
	@echo "make venv    only set up $(VENV): the package, editable, with every extra"
	@echo "             PYTHON=python3.13 with another interpreter, LOCKED=1 with the versions of"
	@echo "             requirements.lock (either after make clean)"
	@echo "make clean   remove $(VENV), caches, compiled kernels, built pages and demo/"

venv: $(READY)

# Some systems ship python3 without ensurepip: then pip is brought in from outside.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "onlooker needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || \
	  { rm -rf $(VENV) && $(PYTHON) -m venv --without-pip $(VENV) && \
	    $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; } || \
	  { rm -rf $(VENV); echo "$(PYTHON) has neither ensurepip nor pip:" \
	    "install python3-venv or python3-pip" >&2; exit 1; }
	@echo "Installing the package and its extras into $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]" $(LOCK)
	@touch $(READY)

demo: venv
	$(BIN)/onlooker demo --output demo $(DEMO_ARGS)

# Work stealing keeps a file's tests mostly in one process, which compiles what they need once.
test: venv
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(COVER) $(PYTEST_ARGS)

# Kernels that numba compiles do not count: their twins in tests/ do. Details are in htmlcov/.
coverage:
	$(MAKE) test COVERAGE=1

lint: venv
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy

format: venv
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

bench: venv
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

bench-check: venv
	$(BIN)/python -m benchmarks --check

# Warnings are errors. Sphinx warns of a page only when it reads it: after a failure all are read again.
# A notebook runs again only if its code, or the package, has changed.
docs: venv
	$(BIN)/python -m sphinx -W --keep-going -j auto -d $(DOCS)/doctrees -b html docs $(DOCS)/html || \
	  { rm -rf $(DOCS)/doctrees; exit 1; }
	$(BIN)/python docs/check_links.py $(DOCS)/html

# Installed by the pip of $(VENV), since some systems ship python3 without ensurepip.
package: venv
	rm -rf dist $(PACKAGE)
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m venv --without-pip $(PACKAGE)
	$(BIN)/python -m pip --python $(PACKAGE)/bin/python install --quiet --no-compile dist/*.whl
	$(PACKAGE)/bin/python -I -W error tests/support/package_smoke.py

# For every platform and Python at once; versions only, so that no index is named.
lock: venv
	$(BIN)/uv pip compile --quiet --upgrade --universal --no-annotate --no-header --extra dev \
	  --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) $(DOCS) $(PACKAGE) dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks \
	  .coverage .coverage.* htmlcov
	find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +
