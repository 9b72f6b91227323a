# Two commands for newcomers: `make demo` and `make test`. Each does all the set-up itself.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench soak hosts clean help

help:
	@echo "make demo   install into $(VENV), ingest real text, drive the server, show what memory does"
	@echo "make test   install with the test extra, then lint, type check and run every test"
	@echo "make bench  print the benchmark tables"
	@echo "make hosts  install real hosts from npm into a scratch folder; which of them connect?"
	@echo "make soak   thousands of random operations, every store compared after each"

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cortex needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/cortex demo $(ARGS)

test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/.installed-test
	$(BIN)/python -m bench

# Random operations for some minutes, from a fresh seed; `make test` runs the short form.
soak: $(VENV)/.installed-test
	PARITY_EXAMPLES=2000 PARITY_STEPS=60 $(BIN)/python -m pytest tests/test_parity.py -k any_steps

hosts: $(VENV)/.installed
	$(BIN)/python tests/hosts/run.py $(ARGS)

clean:
	rm -rf $(VENV)
