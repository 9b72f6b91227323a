# Two commands for newcomers: `make demo` and `make test`. Each does all the set-up itself.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench bench-million bench-memory bench-picture bench-peers bench-measures bench-retrieval notebooks soak fuzz lock audit hosts clean help

help:
	@echo "make demo   install into $(VENV), ingest real text, drive the server, show what memory does"
	@echo "make test   install with the test extra, then lint, type check and run every test"
	@echo "make bench  time every subject at 10,000 and 100,000 memories; one table, and a file a size"
	@echo "make bench-million  the same at 100,000 and a million; making the memory takes a while"
	@echo "make bench-memory  memory while idle and over 10,000 calls (20 minutes)"
	@echo "make bench-picture  draw how cost grows, from the results"
	@echo "make bench-retrieval DATA=FOLDER  search quality over the retrieval sets of a folder"
	@echo "make bench-peers  time cortex and other memory servers and graph libraries on the same memories"
	@echo "make bench-measures  time whole-graph measures beside igraph and others, keep the figures"
	@echo "make notebooks  execute the notebooks anew and keep their outputs"
	@echo "make hosts  install real hosts from npm into a scratch folder; which of them connect?"
	@echo "make fuzz   10,000 calls that no client should make, from a fresh seed; memory is measured"
	@echo "make lock   pin every dependency with its hashes in .ci/requirements.lock"
	@echo "make audit  ask whether a locked release is known to be vulnerable"
	@echo "make soak   random operations compared in every store, then servers killed under load"

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cortex needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
ifdef LOCKED
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
endif
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
ifndef LOCKED
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
endif
	touch $@

demo: $(VENV)/.installed
	$(BIN)/cortex demo $(ARGS)

test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal --nbmake --nbmake-timeout=600 tests notebooks

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Memories are made once, into CORTEX_BENCH_CACHE or the user's cache folder; ARGS as
# `--sizes 1000 --subjects open,search`.
bench: $(VENV)/.installed-test
	$(BIN)/python -m bench $(ARGS)

bench-million: $(VENV)/.installed-test
	$(BIN)/python -m bench --sizes 100000,1000000 $(ARGS)

bench-memory: $(VENV)/.installed-test
	$(BIN)/python -m bench.memory --calls 10000 --idle 600 --out bench/results/memory.json $(ARGS)

bench-picture: $(VENV)/.installed-test
	$(BIN)/python -m bench.picture

# The sets are not ours to ship: their folder is named, and only figures are kept.
bench-retrieval: $(VENV)/.installed-test
	$(BIN)/python -m bench.retrieval $(DATA) --ablations --out bench/results/retrieval.md $(ARGS)

bench-measures: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m bench.measures --out bench/results/measures.json $(ARGS)

# Peers are installed into folders of their own in that cache too, never into $(VENV).
bench-peers: $(VENV)/.installed-test
	$(BIN)/python -m bench.peers --out bench/results/peers.json $(ARGS)

notebooks: $(VENV)/.installed-test
	$(BIN)/python -m bench.notebooks

# Both from fresh seeds, within ten minutes; `make test` runs the short forms. First random
# operations, every store compared after each; then servers killed under load (SOAK_SECONDS,
# SOAK_KILLS, SOAK_SEED).
PARITY_EXAMPLES ?= 300
soak: $(VENV)/.installed-test
	PARITY_EXAMPLES=$(PARITY_EXAMPLES) PARITY_STEPS=60 $(BIN)/python -m pytest tests/test_parity.py -k any_steps
	$(BIN)/python -m tests.soak

fuzz: $(VENV)/.installed-test
	FUZZ_CALLS=$${FUZZ_CALLS:-10000} $(BIN)/python -m pytest tests/test_fuzz.py -rP

# For every platform and Python that pyproject.toml allows; what builds the package is in it too.
lock:
	test -x $(VENV)-tools/bin/uv || { $(PYTHON) -m venv $(VENV)-tools && $(VENV)-tools/bin/python -m pip install --quiet uv; }
	printf 'hatchling\neditables\n' | $(VENV)-tools/bin/uv pip compile --quiet --universal --generate-hashes \
		--no-header --no-emit-index-url --no-emit-find-links --python-version 3.11 --extra test \
		pyproject.toml - -o .ci/requirements.lock $(ARGS)

audit:
	test -x $(VENV)-tools/bin/pip-audit || { $(PYTHON) -m venv $(VENV)-tools && $(VENV)-tools/bin/python -m pip install --quiet pip-audit; }
	$(PYTHON) .ci/audit.py $(VENV)-tools/bin/python

hosts: $(VENV)/.installed
	$(BIN)/python tests/hosts/run.py $(ARGS)

clean:
	rm -rf $(VENV) $(VENV)-tools
