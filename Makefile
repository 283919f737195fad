# Two commands on a fresh machine: `make tour` shows a first result, `make test` proves the tree.
PYTHON ?= python3
BIN := .venv/bin
EVERYTHING := pytorch,jax,tensorflow,onnxruntime,openvino,int8,data,guide,postgres,dev

.PHONY: tour test whole frameworks clean

tour: .venv/tour.done
	$(BIN)/steptime run
	$(BIN)/steptime certify mnist-mlp --framework pytorch --framework onnxruntime
	$(BIN)/steptime compare workload=mnist-mlp,phase=inference framework=onnxruntime,mode=graph --profile quick

test: .venv/test.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(MAKE) --jobs=2 whole frameworks

whole:
	$(BIN)/pytest --ignore=tests/frameworks --ignore=tests/contracts

# A framework keeps its threads for as long as its process lives, so each has a process of its own here as elsewhere.
FRAMEWORKS := $(filter-out %/__pycache__/,$(wildcard tests/frameworks/*/))
frameworks:
	$(BIN)/pytest tests/contracts --deselect tests/contracts/test_trained_weights.py
	$(BIN)/pytest tests/contracts/test_trained_weights.py
	$(BIN)/pytest tests/frameworks/test_*.py
	set -e; for folder in $(FRAMEWORKS); do $(BIN)/pytest $$folder; done

# An interrupted install leaves no stamp, so the next call goes on with it.
.venv/tour.done: pyproject.toml | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[pytorch,onnxruntime]'
	touch $@

.venv/test.done: pyproject.toml | .venv/bin/python .venv/system.done
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[$(EVERYTHING)]'
	touch $@ .venv/tour.done

# What is no Python package. Where apt is missing or forbidden the tests that need these skip and say so.
.venv/system.done: | .venv/bin/python
	(command -v chromium && ls /usr/lib/postgresql/*/bin/initdb) >/dev/null || (apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium postgresql) \
	    || echo 'chromium or postgresql could not be installed'
	touch $@

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steptime needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv build dist src/*.egg-info
