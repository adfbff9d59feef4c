# make test PYTHON=python3.13   picks the interpreter; each has its own environment
# make test SLOW=1              runs the statistical tests too
# make test WORKERS=0           runs all tests in one process
# make test SLOW=1 MARKED="not newest"   leaves out some of them, as .ci/run does
# make bench ONLY="name"        runs one benchmark, and keeps the results of the others
# make fuzz SEED=1000           reads and samples other random models than those from 0 on
# make paper ONLY=name          runs one experiment of the paper, in the same way

PYTHON ?= python3
WORKERS ?= auto
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
BIN := $(VENV)/bin
NEWEST := pymc pytensor numba numpy scipy pandas rich arviz matplotlib pillow pytest pytest-xdist hypothesis zarr

.PHONY: demo test test-newest lint bench trust fuzz paper map docs wheel clean

demo: $(VENV)/.test
	$(BIN)/python examples/demo.py

# Each worker has a core: threads of BLAS would wait for each other there.
test: export OMP_NUM_THREADS = 1
test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) $(if $(SLOW),-m "$(MARKED)" --durations 20)

# Whether the bounds in setup.cfg can be raised: the fast tests, with the newest releases of today.
test-newest:
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install -qq --no-deps -e .
	.venv-newest/bin/python -m pip install -qq $(NEWEST)
	.venv-newest/bin/python -m pytest

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(VENV)/.bench .venv-hopsy/.bench
	$(BIN)/python -m benchmarks $(if $(ONLY),--only "$(ONLY)")

trust: $(VENV)/.bench .venv-hopsy/.bench
	$(BIN)/python -m trust

fuzz: $(VENV)/.test
	$(BIN)/python -m fuzz $(if $(SEED),--seed $(SEED))

paper: $(VENV)/.bench
	$(BIN)/python -m examples.paper $(if $(ONLY),--only $(ONLY))

map:
	$(PYTHON) docs/map.py

# Outputs of pages are kept in build/outputs until the page or the package changes.
docs: export OMP_NUM_THREADS = 1
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going docs build/docs
	$(BIN)/python docs/check_links.py build/docs

# By way of an archive of the sources, so that nothing left in build/ gets into it.
wheel: $(VENV)/.test
	$(BIN)/python -m build --no-isolation --outdir dist

# One stamp for each extra.
$(VENV)/.%: setup.cfg pyproject.toml
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq -e '.[$*]'
	touch $@

# A peer with its own pins; where it cannot be installed, the benchmarks say so.
.venv-hopsy/.bench:
	$(PYTHON) -m venv .venv-hopsy
	.venv-hopsy/bin/python -m pip install -qq hopsy || rm -r .venv-hopsy/bin
	touch $@

clean:
	rm -rf .venv-* build dist docs/notebooks *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
