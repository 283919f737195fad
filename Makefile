# Two commands on a fresh machine: `make tour` shows a first result, `make test` proves the tree.
PYTHON ?= python3
BIN := .venv/bin
EVERYTHING := pytorch,jax,tensorflow,onnxruntime,openvino,int8,data,guide,trace,postgres,dev
# Else each of the many processes would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: tour test commands engine documentation contracts frameworks clean

tour: .venv/tour.done
	$(BIN)/steptime run
	$(BIN)/steptime certify mnist-mlp --framework pytorch --framework onnxruntime
	$(BIN)/steptime compare workload=mnist-mlp,phase=inference framework=onnxruntime,mode=graph --profile quick

test: .venv/test.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(MAKE) --jobs=2 documentation commands engine contracts frameworks

# The longest part first, two side by side: the commands of the docs; what people see; then everything else.
SEEN := tests/cli tests/guide tests/browser
commands:
	$(BIN)/pytest --durations=10 $(SEEN)

engine:
	$(BIN)/pytest --durations=10 $(SEEN:%=--ignore=%) --ignore=tests/test_documentation.py --ignore=tests/frameworks --ignore=tests/contracts

documentation:
	$(BIN)/pytest --durations=10 tests/test_documentation.py

contracts:
	$(BIN)/pytest --durations=5 tests/contracts --deselect tests/contracts/test_trained_weights.py
	$(BIN)/pytest tests/contracts/test_trained_weights.py

# A framework keeps its threads for as long as its process lives, so each has a process of its own here as elsewhere.
FRAMEWORKS := $(filter-out %/__pycache__/,$(wildcard tests/frameworks/*/))
frameworks:
	$(BIN)/pytest tests/frameworks/test_*.py
	set -e; for folder in $(FRAMEWORKS); do $(BIN)/pytest --durations=3 $$folder; done

# An interrupted install leaves no stamp, so the next call goes on with it.
.venv/tour.done: pyproject.toml | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[pytorch,onnxruntime]'
	touch $@

.venv/test.done: pyproject.toml | .venv/bin/python .venv/system.done
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[$(EVERYTHING)]'
	touch $@ .venv/tour.done

SYSTEM := chromium postgresql slurmctld slurmd slurm-client munge bubblewrap iproute2
# What is no Python package. Where apt is missing or forbidden the tests that need these skip and say so.
.venv/system.done: Makefile | .venv/bin/python
	(which chromium slurmctld slurmd sbatch munged bwrap tc && ls /usr/lib/postgresql/*/bin/initdb) >/dev/null || \
	    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(SYSTEM)) \
	    || echo 'one of $(SYSTEM) could not be installed'
	touch $@

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steptime needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv build dist src/*.egg-info
