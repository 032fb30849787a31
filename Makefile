# `make demo` and `make test` do all of their own set-up in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip --quiet

.PHONY: demo test slow bench mutants mutants-native lint format stubs docs wheels clean

demo: .venv/.installed
	@$(BIN)/attractor run demo --out runs
	@$(BIN)/attractor run demo-optimisers --out runs
	@$(BIN)/attractor run demo-continual --out runs
	@$(BIN)/attractor report runs/demo runs/demo-optimisers runs/demo-continual --out runs/demo/report.html

test: .venv/.installed-dev
	@$(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not slow"

slow: .venv/.installed-all
	@$(BIN)/python -m pytest -n 2 --dist worksteal -q -m slow --timeout 900

bench: .venv/.installed
	@$(BIN)/attractor bench --out runs/bench.json

lint: .venv/.installed-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: .venv/.installed-dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

stubs: .venv/.installed-dev
	@PYTHONPATH=tests $(BIN)/python -m contracts.stubs

mutants: .venv/.installed-dev
	@$(BIN)/python tests/mutation/run.py

mutants-native: .venv/.installed-dev
	@$(BIN)/python tests/mutation/native.py

docs: .venv/.installed-dev
	@$(BIN)/zensical build --clean --strict

wheels: .venv/.installed
	@$(PIP) install -e ".[build]"
	@$(BIN)/python hatch_build.py wheels

clean:
	rm -rf .venv site runs dist

.venv/.installed: pyproject.toml constraints.txt $(wildcard src/attractor/cells/kernels/native/*.?pp src/attractor/cells/kernels/native/*/*)
	@echo "setting up .venv (once; torch is large)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install -e .
	@touch $@

.venv/.installed-dev: .venv/.installed
	@echo "installing the test tools (once)"
	@$(PIP) install -e ".[dev,docs]"
	@touch $@

.venv/.installed-all: .venv/.installed-dev
	@echo "installing all extras (once)"
	@$(PIP) install -e ".[all]"
	@touch $@
