# Everything a fresh clone needs. `make run` and `make test` set up what is missing first.
# Override from the command line: make run ARGS="--suite libero_goal --task 3"

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

ARGS ?=
# Two at a time; a file stays in one process, because a process renders for one environment only.
PYTEST_ARGS ?= -n 2 --dist loadfile
BIN := .venv/bin
EXTRAS := libero,drive,evolve,llm,dev
TRAIN_EXTRAS := libero,drive,evolve,train,dev
# Tests speak to our servers with it. It declares numpy below 2 and runs with newer ones, so pip must
# not read what it declares; what it needs is in the base and in the extra dev.
OPENPI_CLIENT := openpi-client==0.1.2

# Simulators with virtual environments of their own, which `make test-sims` tests.
SIMS := maniskill robocasa robosuite robotwin

# Headless rendering on Debian and Ubuntu: EGL with Mesa's software driver, OSMesa as second choice.
DEBIAN_LIBS := libegl1 libegl-mesa0 libgl1-mesa-dri libgles2 libosmesa6 libgl1 libglib2.0-0 libusb-1.0-0

# What tests of the dashboard look at it with; nothing else needs it.
BROWSER_LIBS := chromium

# A set-up is bound to the project file and to this place; either changing makes it stale.
KEY := $(shell { cat pyproject.toml; pwd; echo '$(OPENPI_CLIENT)'; } | sha256sum | cut -c1-16)
STAMP := .venv/.setup-$(KEY)
TRAIN_STAMP := .venv/.train-setup-$(KEY)
VENV_WORKS := $(shell test -x $(BIN)/python && echo yes)

# One thread for each process: many processes share the cores, and results must not depend on them.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export NUMEXPR_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
unexport PYTHONPATH

.PHONY: help setup train-setup browser run test test-slow test-sims docs lint man format clean stale

help: ## say what can be made
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | column -t -s '|' 2>/dev/null \
	  || sed -n 's/^\([a-z-]*\):.*## /  make \1   /p' Makefile

setup: $(STAMP) ## prepare the virtual environment and the system libraries

train-setup: $(TRAIN_STAMP) ## the same with torch, for `zetta train`

run: setup ## run an episode in LIBERO with the embedded policy
	@$(BIN)/zetta run --sim libero $(ARGS)

browser:
	@$(debian_install)
	debian_install $(BROWSER_LIBS)

test: lint browser ## check everything and run the tests that are not slow
	@$(BIN)/python -m pytest -m "not slow" $(PYTEST_ARGS)

test-slow: lint browser ## run every test
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

test-sims: setup ## install, check and run the simulators of environments of their own; then their tests
	@for sim in $(SIMS); do echo "== $$sim"; \
	  $(BIN)/zetta sims install $$sim || exit 1; \
	  $(BIN)/zetta sims check $$sim || { $(BIN)/zetta sims graphics && $(BIN)/zetta sims check $$sim; } || exit 1; \
	  $(BIN)/zetta run --sim $$sim --policy oracle/expert --sensing oracle --require-success --no-video --no-strip || exit 1; \
	done
	$(BIN)/python -m pytest -m sims

docs: setup ## build the documentation as a site that works without a network: site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --clean
	echo "open site/index.html"

lint: setup ## style, types and layers
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p zetta
	$(BIN)/lint-imports --no-logo

man: setup ## write manual pages into docs/man: man -M docs/man zetta-run
	@$(BIN)/python -m zetta.runtime.cli.man_pages docs/man

format: setup ## put the code into the house style
	@$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the virtual environment, build products and caches; runs/ stays
	@rm -rf .venv build dist site .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -maxdepth 2 -name '*.egg-info' -type d -prune -exec rm -rf {} +

# ------------------------------------------------------------------------------------- set-up

ifneq ($(VENV_WORKS),yes)
$(STAMP): stale
endif
stale:

define find_python
python=""
for candidate in python3 python3.11 python3.12 python3.13 python3.14; do
  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python="$$candidate"
    break
  fi
done
if [ -z "$$python" ]; then
  echo "error: no Python 3.11 or newer found (python3 is: $$(python3 --version 2>&1 | head -n 1));" \
       "install one, for example: sudo apt-get install python3 python3-venv" >&2
  exit 1
fi
endef

# Called with package names: installs what is missing when root, names it when not.
define debian_install
debian_install() {
  local missing=() name
  command -v dpkg-query >/dev/null || return 0
  for name in "$$@"; do
    # Newer releases append t64 to some names; dpkg-query fails when either is unknown.
    { dpkg-query -W -f '$${db:Status-Status}\n' "$$name" "$${name}t64" 2>/dev/null || true; } \
      | grep -qx installed || missing+=("$$name")
  done
  [ $${#missing[@]} -gt 0 ] || return 0
  if [ "$$(id -u)" != 0 ]; then
    echo "note: missing system packages; install them with:" \
         "sudo apt-get update && sudo apt-get install -y $${missing[*]}" >&2
    return 0
  fi
  echo "installing system packages: $${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq || true
  apt-get install -y -qq --no-install-recommends "$${missing[@]}" >/dev/null || {
    echo "note: apt-get could not install $${missing[*]}; what needs them does not" \
         "work (zetta doctor says what is missing)" >&2
  }
}
endef

define make_venv
if ! $(BIN)/python -c 'import pip' 2>/dev/null; then
  if ! "$$python" -c 'import venv, ensurepip' 2>/dev/null; then
    debian_install "$$("$$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
  fi
  "$$python" -m venv --clear .venv || {
    echo "error: $$python cannot make a virtual environment; install its venv module, for" \
         "example: sudo apt-get install python3-venv" >&2
    exit 1
  }
fi
endef

# Two set-ups at once: the second waits for the first (on the Makefile itself, so that no lock file
# is left) and then finds nothing to do.
define one_at_a_time
exec 9<Makefile
if command -v flock >/dev/null; then flock 9; fi
if [ -e $@ ] && [ -x $(BIN)/python ]; then exit 0; fi
endef

$(STAMP):
	@$(one_at_a_time)
	$(find_python)
	$(debian_install)
	echo "setting up once: 3 to 5 minutes and 4 GB (LIBERO with its assets is most of it)" >&2
	debian_install $(DEBIAN_LIBS)
	$(make_venv)
	$(BIN)/python -m pip install --quiet --progress-bar off --use-pep517 -e '.[$(EXTRAS)]'
	$(BIN)/python -m pip install --quiet --progress-bar off --no-deps '$(OPENPI_CLIENT)'
	rm -f .venv/.setup-* .venv/.train-setup-*
	touch $@

$(TRAIN_STAMP): $(STAMP)
	@$(one_at_a_time)
	echo "adding torch for training: some minutes, at least 1 GB" >&2
	$(BIN)/python -m pip install --quiet --progress-bar off --use-pep517 -e '.[$(TRAIN_EXTRAS)]'
	touch $@
