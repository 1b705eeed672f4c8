# Two commands for newcomers: `make repro` runs the demo season again in .scratch and compares it
# with the committed numbers, `make test` runs the tests. `make test-all` adds tests/attacks and
# those that are marked slow: whole seasons, other processes, browsers. `make bench` measures speed.
# Needs Python >= 3.11, git and make; everything else goes into .venv. With uv instead of pip:
# make repro INSTALL='uv pip install --python .venv'
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
INSTALL ?= $(BIN)/python -m pip install --quiet
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

.PHONY: repro bench test test-all check

repro: $(STAMP)
	$(BIN)/python -m benchmark verify demo

bench: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest benchmark

test: $(STAMP)
	$(PYTEST) -m 'not simulation and not slow' --ignore tests/attacks

test-all: $(STAMP)
	$(PYTEST)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rematch needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --constraint constraints.txt --editable '.[test]'
	touch $(STAMP)
