# Every target sets up what it needs: `make demo` and `make test` work in a fresh clone.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

# The first interpreter that is new enough; `make PYTHON=/path/to/python ...` overrides it.
ifndef PYTHON
PYTHON := $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { command -v $$python; exit; }; done)
endif

VENV := .venv
STAMP := $(VENV)/.stamp
SITE_VENV := build/docs-venv
SITE_STAMP := $(SITE_VENV)/.stamp
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python

.PHONY: help demo demo-adls demo-gcs demo-s3 demo-s3-express demo-azure-flat demo-hdfs test test-rest test-all test-field \
	witness bench docs lint format lock man clean setup java

help:  ## list the targets
	@awk -F ':.*  ## ' '/^[a-z0-9-]+:.*  ## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: java $(STAMP)  ## kill a driver in its commit, once with Spark's committer, once with ours
	$(BIN)/asynccommit demo local $(ARGS)

demo-adls: java $(STAMP)  ## the same data to an emulated ADLS Gen2: slow, strict, lossy
	$(BIN)/asynccommit demo adls $(ARGS)

demo-gcs: java $(STAMP)  ## and to an emulated bucket of Google Cloud Storage, both ways
	$(BIN)/asynccommit demo gcs $(ARGS)

demo-s3: java $(STAMP)  ## and to an S3 of tests by uploads: completed by Hadoop, and by us
	$(BIN)/asynccommit demo s3 $(ARGS)

demo-s3-express: $(STAMP)  ## Python's files to an emulated bucket that renames: killed and resumed
	$(BIN)/asynccommit demo s3-express $(ARGS)

demo-azure-flat: $(STAMP)  ## Python's files to an emulated flat account of Azure: killed and resumed
	$(BIN)/asynccommit demo azure-flat $(ARGS)

demo-hdfs: java $(STAMP)  ## and to the servers of HDFS: committed by Spark, by us, killed and resumed
	$(BIN)/asynccommit demo hdfs $(ARGS)

test: java $(STAMP)  ## prove each behaviour, in minutes; ARGS=... are for pytest
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	$(BIN)/python -m tests.support.run quick
endif

test-rest: java $(STAMP)  ## run what `make test` leaves out; of the longest tests, those that are due today
	$(BIN)/python -m tests.support.run rest

test-all: java $(STAMP)  ## run every test, as before a release, and the fast suites of `make witness`
	$(BIN)/python -m tests.support.run all
	$(BIN)/python -m tests.witness --fast

test-field: java $(STAMP)  ## start Spark in each way there is, of five versions; ARGS="submit 4.0" for some
	$(BIN)/python -m tests.field $(ARGS)

witness: java $(STAMP)  ## run the test suites of other projects against the emulators; ARGS="adlfs" for some
	$(BIN)/python -m tests.witness $(ARGS)

bench: java $(STAMP)  ## measure against Hadoop's committers
	$(BIN)/python -m bench $(ARGS)

docs: $(SITE_STAMP)  ## build the documentation site into build/site; a broken link fails it
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --strict --quiet

lint: $(STAMP)  ## check style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## rewrite the code in the house style
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

setup: $(STAMP)  ## make the virtual environment only

# setuptools and hatchling come from the lock as well, so nothing unpinned builds a package.
# uv takes a quarter of pip's time, but knows nothing of pip's settings (a mirror, a proxy): where
# it fails, pip installs the same lock.
$(STAMP): pyproject.toml requirements/build.txt requirements/dev.txt requirements/uv.txt
	@test -n "$(PYTHON)" || { echo >&2 \
	"No Python 3.11 or newer was found. Install one, or name it: make PYTHON=/path/to/python"; \
	exit 1; }
	@echo "Setting up $(VENV) (once; a minute or more, most of it for PySpark)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/build.txt
	{ $(PIP) --require-hashes -r requirements/uv.txt \
		&& $(UV) --require-hashes --no-build-isolation -r requirements/dev.txt; } \
	|| $(PIP) --require-hashes --no-build-isolation -r requirements/dev.txt
	$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

# The site has an environment of its own: what builds it is no part of what is tested.
$(SITE_STAMP): requirements/docs.txt
	@test -n "$(PYTHON)" || { echo >&2 "No Python 3.11 or newer was found."; exit 1; }
	$(PYTHON) -m venv $(SITE_VENV)
	$(SITE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		-r requirements/docs.txt
	@touch $@

java:
	@version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 \
	| sed -n 's/.* version "\([0-9]*\).*/\1/p'); \
	test "$${version:-0}" -ge 17 || { echo >&2 \
	"Spark needs Java 17 or newer, and $${version:+only Java }$${version:-no Java} was found." \
	"Install one (openjdk-17-jre-headless) or set JAVA_HOME."; exit 1; }

lock:  ## renew the lock files (needs uv)
	@command -v uv >/dev/null || { echo >&2 "make lock needs uv: pip install uv"; exit 1; }
	uv pip compile $(LOCK) requirements/build.in --output-file requirements/build.txt
	uv pip compile $(LOCK) requirements/uv.in --output-file requirements/uv.txt
	uv pip compile $(LOCK) pyproject.toml --extra dev --output-file requirements/dev.txt
	uv pip compile $(LOCK) pyproject.toml --extra test --constraint requirements/dev.txt \
		--output-file requirements/test.txt
	uv pip compile $(LOCK) requirements/docs.in --output-file requirements/docs.txt

LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url

man: $(STAMP)  ## write the manual page to build/asynccommit.1
	mkdir -p build
	$(BIN)/asynccommit man > build/asynccommit.1

clean:  ## remove what these targets made, the virtual environment included
	rm -rf $(VENV) .tox .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis \
		.coverage .coverage.* htmlcov build dist demo-out bench/results spark-warehouse \
		metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
