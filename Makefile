# The two commands a newcomer needs: `make demo` and `make test`. Both set up .venv first.
PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
MADE        := $(VENV)/.made
LIGHT       := $(VENV)/.ready-demo
READY       := $(VENV)/.ready
INSTALL     := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
JOBS        ?= auto
DEMO_ARGS   ?=
PYTEST_ARGS ?=
BENCH_ARGS  ?=
MUTANT_ARGS ?=
CHECKED     := src tests benchmarks docs/conf.py
DOCS        := docs/_build
PACKAGE     := build/package
COVER       := $(if $(COVERAGE),--cov --cov-report=term --cov-report=html)
PYTEST      := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(COVER)
LOCK        := $(if $(LOCKED),--constraint requirements.lock)

.PHONY: help venv demo test test-all coverage mutants lint format bench bench-check docs package lock clean

help:
	@echo "Each command sets up $(VENV) first; that needs python3 (3.11 or newer) and the network."
	@echo
	@echo "make demo      simulate the paper's Example 1, recognise the policy, draw it in demo/,"
	@echo "               with a report to click through; installs only what it needs; about a minute;"
	@echo "               DEMO_ARGS='--quick' is faster, DEMO_ARGS='--seed 1' differs"
	@echo "make test      run the tests, one process per core, without the slow ones;"
	@echo "               JOBS=1 in a single process, PYTEST_ARGS='tests/plot' only some;"
	@echo "               tests of the web page need chromium and are skipped without it"
	@echo "make test-all  the same with the slow ones (also: make test SLOW=1): all calibrations, all pages"
	@echo "               in a browser, twenty kills; this is what .ci/run runs"
	@echo "make coverage  the same with branch coverage; fails below 90 %"
	@echo "make mutants   make 60 small mistakes in copies of the package and report which the tests"
	@echo "               catch; about 10 minutes, the first time as long as make test before;"
	@echo "               MUTANT_ARGS='--seed 1' makes others"
	@echo "make lint      ruff (style, format) and mypy (types)"
	@echo "make format    let ruff format the code and fix what it can"
	@echo "make bench     run the benchmarks and make docs/benchmarks.md; takes many minutes;"
	@echo "               BENCH_ARGS='--resume' continues, '--quick' uses smaller sizes, '--list' lists"
	@echo "make bench-check  test the benchmarks; fail if a kernel has become slower"
	@echo "make docs      build the documentation in docs/_build/html; its code cells are run"
	@echo "make package   build wheel and source archive in dist/, check what they hold,"
	@echo "               install the wheel in build/package and try it"
	@echo "make lock      write the newest versions that work together to requirements.lock"
	@echo "make venv      only set up $(VENV): the package, editable, with every extra;"
	@echo "               PYTHON=python3.13 uses another interpreter, LOCKED=1 the versions of"
	@echo "               requirements.lock (either after make clean)"
	@echo "make clean     remove $(VENV), caches, compiled kernels, built pages and demo/"

venv: $(READY)

# Some systems ship python3 without ensurepip: then pip is brought in from outside.
$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "onlooker needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || \
	  { rm -rf $(VENV) && $(PYTHON) -m venv --without-pip $(VENV) && \
	    $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; } || \
	  { rm -rf $(VENV); echo "$(PYTHON) has neither ensurepip nor pip:" \
	    "install python3-venv or python3-pip" >&2; exit 1; }
	@touch $(MADE)

# What the demo needs, and what all else needs: tools of tests, documentation and releases.
$(LIGHT): pyproject.toml | $(MADE)
	@test ! $(READY) -nt pyproject.toml || { touch $(LIGHT); exit 0; }; \
	  echo "Installing the package and Matplotlib into $(VENV) (once) ..."; \
	  $(INSTALL) ".[plot]" $(LOCK) && touch $(LIGHT)

$(READY): pyproject.toml | $(MADE)
	@echo "Installing the package and its extras into $(VENV) (once) ..."
	@$(INSTALL) ".[dev]" $(LOCK)
	@touch $(READY)

demo: $(LIGHT)
	$(BIN)/onlooker demo --output demo $(DEMO_ARGS)

# Work stealing keeps a file's tests mostly in one process, and with them what its fixtures made.
test: venv
	$(PYTEST) $(if $(SLOW),,-m "not slow") $(PYTEST_ARGS)

test-all:
	$(MAKE) test SLOW=1

# Kernels that numba compiles do not count: their twins in tests/ do. Details are in htmlcov/.
coverage:
	$(MAKE) test-all COVERAGE=1

# The last line of its report says what survived: a test is missing there, or a line is.
mutants: venv
	$(BIN)/python tests/support/mutants.py --jobs $(if $(filter auto,$(JOBS)),2,$(JOBS)) $(MUTANT_ARGS)

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
	$(BIN)/python -m pytest -q benchmarks
	$(BIN)/python -m benchmarks --check

# Warnings are errors. Sphinx warns of a page only when it reads it: after a failure all are read again.
# A notebook runs again only if its code, or the package, has changed.
docs: venv
	$(BIN)/python -m sphinx -W --keep-going -j auto -d $(DOCS)/doctrees -b html docs $(DOCS)/html || \
	  { rm -rf $(DOCS)/doctrees; exit 1; }
	$(BIN)/python -m sphinx -W -q -d $(DOCS)/doctrees -b linkcheck docs $(DOCS)/links
	! grep -rnE '<(script|img|link rel="stylesheet")[^>]* (src|href)="(https?:)?//' --include='*.html' $(DOCS)/html

# Installed by the pip of $(VENV), since some systems ship python3 without ensurepip.
package: venv
	rm -rf dist $(PACKAGE)
	$(BIN)/python -m build --outdir dist
	$(BIN)/python tests/support/package_contents.py dist
	$(BIN)/python -m venv --without-pip $(PACKAGE)
	$(BIN)/python -m pip --python $(PACKAGE)/bin/python install --quiet --no-compile dist/*.whl
	$(PACKAGE)/bin/python -I -W error tests/support/package_smoke.py
	$(BIN)/mypy --python-executable $(PACKAGE)/bin/python tests/typed/program.py

# For every platform and Python at once; versions only, so that no index is named.
lock: venv
	$(BIN)/uv pip compile --quiet --upgrade --universal --no-annotate --no-header --extra dev \
	  --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) $(DOCS) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks \
	  .coverage .coverage.* htmlcov
	find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +
