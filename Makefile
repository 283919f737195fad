# `make tour` shows a first result, `make check` is for people who edit, `make test` runs everything.
PYTHON ?= python3
BIN := .venv/bin
# Our own environment has fixed versions: a plain torch would pull gigabytes of CUDA packages.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
TOUR := pytorch,onnxruntime,guide
EVERYTHING := pytorch,jax,tensorflow,onnxruntime,openvino,int8,data,guide,trace,postgres,dev
# Without compiled modules each of the many processes would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: tour check test lint commands engine documentation contracts frameworks horovod constraints audit clean

# The two compared cases differ by far more than the noise of a busy two-core machine.
tour: .venv/tour.done
	@$(BIN)/steptime run
	@echo
	@$(BIN)/steptime certify lenet5 --framework pytorch --framework onnxruntime
	@echo
	@$(BIN)/steptime compare workload=lenet5,phase=inference,batch_size=1,threads=1 framework=onnxruntime,mode=graph --preset quick
	@echo
	@$(BIN)/steptime chart 'x=model&by=framework,phase&split=replica_batch' -o tour.svg
	@echo 'Open the Performance Guide next: $(BIN)/steptime guide, then http://127.0.0.1:8765'

# No service, no browser, no second framework, no slow test; less than a minute.
HEAVY := tests/browser tests/frameworks tests/contracts tests/run/slurm tests/test_documentation.py tests/graph/test_onnx.py
check: .venv/test.done lint
	$(BIN)/pytest --quiet --numprocesses=2 -m 'not live and not slow and not service' $(HEAVY:%=--ignore=%)

test: .venv/test.done
	$(MAKE) --jobs=3 lint documentation commands engine contracts frameworks

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The longest first, three side by side on two cores, because many tests wait: commands in the docs,
# what people see, the rest.
SEEN := tests/cli tests/web tests/index tests/charts tests/report tests/browser
commands:
	$(BIN)/pytest --durations=10 $(SEEN)

engine:
	$(BIN)/pytest --durations=10 $(SEEN:%=--ignore=%) --ignore=tests/test_documentation.py --ignore=tests/frameworks --ignore=tests/contracts --ignore=tests/graph/test_onnx.py

documentation:
	$(BIN)/pytest --durations=10 tests/test_documentation.py

contracts:
	$(BIN)/pytest --durations=5 tests/contracts --deselect tests/contracts/test_trained_weights.py
	$(BIN)/pytest tests/contracts/test_trained_weights.py

# A framework keeps its threads as long as its process lives, so each gets its own process. So do
# the runtimes of ONNX: signals of other tests crashed an interpreter that had loaded them.
FRAMEWORKS := $(filter-out %/__pycache__/,$(wildcard tests/frameworks/*/))
frameworks:
	$(BIN)/pytest tests/graph/test_onnx.py tests/frameworks/test_*.py
	set -e; for folder in $(FRAMEWORKS); do $(BIN)/pytest --durations=3 $$folder; done

# An interrupted install leaves no stamp, so the next call continues it.
.venv/tour.done: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[$(TOUR)]'
	touch $@

.venv/test.done: pyproject.toml constraints.txt | .venv/bin/python .venv/system.done
	$(PIP) --editable '.[$(EVERYTHING)]'
	touch $@ .venv/tour.done

SYSTEM := chromium postgresql slurmctld slurmd slurm-client munge bubblewrap podman runc iproute2
# Not Python packages. If apt is missing or forbidden, the tests that need these skip and say so.
.venv/system.done: Makefile | .venv/bin/python
	(which chromium slurmctld slurmd sbatch munged bwrap podman runc tc && ls /usr/lib/postgresql/*/bin/initdb) >/dev/null || \
	    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(SYSTEM)) \
	    || echo 'one of $(SYSTEM) could not be installed'
	touch $@

# For exchange=horovod. Its last release is written for C++14, but PyTorch's headers need C++20; and
# a process set forgets its network interface.
HOROVOD := 0.28.1
horovod: .venv/tour.done
	$(PIP) setuptools wheel packaging cffi cloudpickle pyyaml
	$(BIN)/pip download --quiet --no-deps --no-build-isolation --no-binary horovod --dest build horovod==$(HOROVOD)
	tar --extract --directory build --file build/horovod-$(HOROVOD).tar.gz
	cd build/horovod-$(HOROVOD) && sed -i 's/CMAKE_CXX_STANDARD 1[47]/CMAKE_CXX_STANDARD 20/' CMakeLists.txt horovod/torch/CMakeLists.txt
	cd build/horovod-$(HOROVOD)/horovod/common/gloo && \
	    sed -i '/InitializeForProcessSet/,$$ s/iface = gloo_iface_/iface = global_context.gloo_iface_/' gloo_context.cc
	PATH="$(CURDIR)/$(BIN):$$PATH" MAKEFLAGS=--jobs=2 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 \
	    HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 \
	    $(BIN)/pip install --no-build-isolation --no-deps ./build/horovod-$(HOROVOD)

# Keeps the two comment lines. A local version such as +cpu exists in no registry.
constraints: .venv/test.done
	(grep '^#' constraints.txt; $(BIN)/pip freeze --exclude-editable | grep == | grep -v ^horovod | sed 's/+.*//' | sort --ignore-case) > .venv/constraints.txt
	mv .venv/constraints.txt constraints.txt

# Asks the registry for known vulnerabilities; --strict fails where it cannot be asked, as on a mirror.
audit: .venv/test.done
	$(PYTHON) -m venv .venv/audit
	.venv/audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	.venv/audit/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steptime needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv build dist src/*.egg-info
