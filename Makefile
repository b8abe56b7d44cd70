# Two commands for a newcomer: `make demo` and `make test`. Each sets up its own virtual environment first.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin

# Programs that are started hundreds of times read kept bytecode, also where the environment forbids to keep it.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
PYTEST := $(BIN)/python -m pytest --dist worksteal
QUICK := -m 'not (slurm or browser or fault or slow)' --hypothesis-profile quick

.PHONY: help demo test smoke areas snapshots test-all check docs bench nightly fuzz mutants audit release clean

help:
	@echo "make demo     set up, then the whole job on the embedded workload: trials, fits, evaluation, export (results in demo/)"
	@echo "make test     set up, then the tests for every change: some minutes"
	@echo "make smoke    the afternoon's page on a real Slurm, and a report in a Chromium"
	@echo "make test-all all tests: also real Slurm, browser, faults, hostile input, wide random cases"
	@echo "make areas    tests of minutes, of Slurm's rules and of exports on a real Slurm, if their sources changed (docs/trust.md)"
	@echo "make snapshots write anew what tests keep of outputs in tests/data/snapshots; git diff tells what changed"
	@echo "make check    lint, format, types, import contract"
	@echo "make docs     build the documentation into site/"
	@echo "make bench    all benchmarks and one table (build/bench); python benchmarks/page.py takes it over into docs/"
	@echo "make nightly  all tests, with new random examples, and what else is for every night (.ci/night): hours, resumable"
	@echo "              (steps: ARGS='faults audit'). If installed, a real Grid Engine (gridengine-master, -exec, -client) and OAR"
	@echo "              (oar-server, oar-user, their -pgsql, postgresql)"
	@echo "make mutants  which changes of the engine, the scores and the fits no test notices: hours, resumable"
	@echo "              (a piece: ARGS='--budget 3600'; a sample: ARGS='--sample 200')"
	@echo "make audit    look up published vulnerabilities of what is installed here"
	@echo "make release  sdist, wheel, bill of materials and checksums in dist/ (ARGS=--rehearsal: of the last commit)"
	@echo "make clean    remove the environment and everything built"

# Without bytecode, which is made of what is imported when it is: of all of it is half of the time.
$(VENV)/.ready-%: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "policyfactory needs Python 3.11 or newer; found $$($(PYTHON) --version). Try: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing policyfactory ($*) into $(VENV) (once; about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '$(if $(filter base,$*),.,.[$*])'
	@touch $@

demo: $(VENV)/.ready-base
	@$(BIN)/policyfactory demo --output demo --overwrite

# One worker more than processors, which has work while others wait: for a kernel that one of them compiles, for children.
test: $(VENV)/.ready-test
	@$(PYTEST) -n $$($(BIN)/python -c 'import os; print(min((os.cpu_count() or 1) + 1, 8))') $(QUICK) $(ARGS)

smoke: $(VENV)/.ready-test
	@$(PYTEST) -n 2 tests/slurm/test_afternoon.py tests/report/test_page_in_browser.py $(ARGS)

# One worker more than CI's processors: Slurm's tests wait for Slurm.
test-all: $(VENV)/.ready-test
	@$(PYTEST) -n 3 $(ARGS)

areas: $(VENV)/.ready-test
	@$(BIN)/python .ci/changed.py --run

# Away with all of them first, so that none is left that no test compares.
snapshots: $(VENV)/.ready-test
	@rm -rf tests/data/snapshots
	@POLICYFACTORY_SNAPSHOTS=rewrite $(PYTEST) -n 0 $(QUICK) $$(grep -l "import snapshot" -r tests --include="test_*.py")

check: $(VENV)/.ready-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.ready-docs
	$(BIN)/zensical build --strict --clean

bench: $(VENV)/.ready-test
	$(BIN)/python -m pytest benchmarks --benchmark-enable --benchmark-columns=min,median,rounds -s $(ARGS)

nightly:
	bash .ci/night $(ARGS)

fuzz: $(VENV)/.ready-fuzz
	cd tests && PYTHONPATH=. nice $(abspath $(BIN))/python -m hostile.guided --seed $$(date +%s) --folder ../.fuzz $(ARGS)

mutants: $(VENV)/.ready-test
	cd tests && PYTHONPATH=. $(abspath $(BIN))/python -m mutation $(ARGS)

# Tools that are no part of the project have an environment of their own.
.venv-release/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check \
	  $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["release"])')
	@touch $@

audit: .venv-release/.ready
	$(BIN)/python .ci/audit.py $(BIN)/python

release: .venv-release/.ready
	bash .ci/release $(ARGS)

clean:
	rm -rf $(VENV) .venv-* .fuzz .night build dist site demo .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# Options and their words are declared all over the package.
.PHONY: docs/commands.md docs/protocols.md
docs/commands.md: $(VENV)/.ready-base
	$(BIN)/python -m policyfactory.cli.reference > $@.tmp && mv $@.tmp $@

docs/protocols.md: $(VENV)/.ready-base
	$(BIN)/python -m policyfactory.cli.reference $@ > $@.tmp && mv $@.tmp $@
