# CI runs `make check`, then `make long`. Another interpreter: make check PYTHON=python3
PYTHON ?= .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help check fast format lint types imports sql docs-current test long golden docs demo

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

check: fast sql docs-current test  ## everything; green before each commit

fast: format lint types imports  ## the part that needs no running product; pre-commit runs it

format:  ## formatting is as ruff leaves it
	$(PYTHON) -m ruff format --check .

lint:  ## ruff's rules
	$(PYTHON) -m ruff check .

types:  ## mypy strict
	$(PYTHON) -m mypy

imports:  ## who may import whom
	$(PYTHON) -c 'import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())'

sql:  ## the store's schema
	$(PYTHON) -m sqlfluff lint store/schema

docs-current:  ## generated pages are what `make docs` would write
	$(PYTHON) docs/generate.py --check

test:  ## every test and doctest
	$(PYTHON) -m pytest -n 2

# One more at a time than CI has cores: some only wait, for minutes that have to pass.
long:  ## the tests that take minutes: all schedules of trouble, many kills, all examples of laws
	TEST_EXAMPLES=all $(PYTHON) -m pytest -n 3 -o timeout=600 -m "long or law"

golden:  ## rewrite the expectations of golden cases; review the diff like code
	$(PYTHON) -m pytest -n 0 tests --golden-rewrite

docs:  ## write the generated pages
	$(PYTHON) docs/generate.py

demo:  ## the product on its sample
	$(PYTHON) -m service.cli demo
