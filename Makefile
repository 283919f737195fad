# Two commands on a fresh machine: `make tour` shows a first result, `make test` proves the tree.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: tour test clean

tour: .venv/tour.done
	$(BIN)/steptime run

test: .venv/test.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

# An interrupted install leaves no stamp, so the next call goes on with it.
.venv/tour.done: pyproject.toml | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[pytorch]'
	touch $@

.venv/test.done: pyproject.toml | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[pytorch,jax,onnxruntime,openvino,dev]'
	touch $@ .venv/tour.done

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steptime needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv build dist src/*.egg-info
