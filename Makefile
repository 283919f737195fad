# Two commands on a fresh machine: `make tour` shows a first result, `make test` proves the tree.
PYTHON ?= python3
BIN := .venv/bin
EVERYTHING := pytorch,jax,tensorflow,onnxruntime,openvino,int8,data,guide,trace,postgres,dev
# Else each of the many processes would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: tour test lint commands engine documentation contracts frameworks horovod clean

tour: .venv/tour.done
	$(BIN)/steptime run
	$(BIN)/steptime certify mnist-mlp --framework pytorch --framework onnxruntime
	$(BIN)/steptime compare workload=mnist-mlp,phase=inference framework=onnxruntime,mode=graph --preset quick

test: .venv/test.done
	$(MAKE) --jobs=2 lint documentation commands engine contracts frameworks

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The longest parts first, two side by side: the commands of the docs; what people see; then everything else.
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

# For exchange=horovod. Its last release is written for C++14 and PyTorch's headers want C++20; and a set of processes
# forgets which network interface it was told.
HOROVOD := 0.28.1
horovod: .venv/tour.done
	$(BIN)/pip install --quiet --disable-pip-version-check setuptools wheel packaging cffi cloudpickle pyyaml
	$(BIN)/pip download --quiet --no-deps --no-build-isolation --no-binary horovod --dest build horovod==$(HOROVOD)
	tar --extract --directory build --file build/horovod-$(HOROVOD).tar.gz
	cd build/horovod-$(HOROVOD) && sed -i 's/CMAKE_CXX_STANDARD 1[47]/CMAKE_CXX_STANDARD 20/' CMakeLists.txt horovod/torch/CMakeLists.txt
	cd build/horovod-$(HOROVOD)/horovod/common/gloo && \
	    sed -i '/InitializeForProcessSet/,$$ s/iface = gloo_iface_/iface = global_context.gloo_iface_/' gloo_context.cc
	PATH="$(CURDIR)/$(BIN):$$PATH" MAKEFLAGS=--jobs=2 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 \
	    HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 \
	    $(BIN)/pip install --no-build-isolation --no-deps ./build/horovod-$(HOROVOD)

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steptime needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv build dist src/*.egg-info
