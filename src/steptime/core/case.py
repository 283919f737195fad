"""One point of the space: what is computed, by which framework, where and how.

Equal settings have equal keys."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from steptime.core.errors import SteptimeError, unknown
from steptime.core.schema import MOST_COUNT, Kind, Text, Whole

# Settings with a closed list of values. Workloads and frameworks are plugins, and are checked by
# the code that knows their names.
CHOICES: dict[str, tuple[str, ...]] = {
    "phase": ("training", "inference", "forward"),
    "mode": (
        "eager",
        "compiled",
        "cudagraph",
        "compiled-cudagraph",
        "max-autotune",
        "graph",
        "session",
        "xla",
    ),
    "precision": ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp64"),
    "layout": ("nchw", "nhwc"),
    "data": ("device", "host", "real"),
    "page_cache": ("warm", "cold"),
    "optimizer": ("own", "sgd", "momentum", "adam", "adamw"),
    "timing": ("stream", "latency"),
    "allocator": ("pinned", "stock"),
    "wait_policy": ("default", "active", "passive"),
    "compile_cache": ("warm", "cold"),
    "exchange": ("none", "allreduce", "horovod", "independent", "parameter_server"),
}
ALL_REDUCE = ("allreduce", "horovod")  # by the framework itself, or by Horovod
LEAST = {
    "batch_size": 1,
    "devices": 1,
    "nodes": 1,
    "threads": 0,
    "prefetch": 0,
    "seed": 0,
    "trial": 0,
}
# Random generators take larger seeds than a database's integer holds.
MOST = {name: MOST_COUNT for name in LEAST} | {"seed": 2**63 - 1}
# Always in the label, in this order, before the batch size.
LABELLED = ("workload", "phase", "framework", "mode", "device", "precision")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A later field needs a default that keeps old cases what they were: keys count on it."""

    workload: str  # a network's name, or FILE.py:NAME for your own
    framework: str = "pytorch"
    phase: str = "training"
    mode: str = "eager"
    device: str = "cpu"
    precision: str = "fp32"
    batch_size: int = 32  # of each rank
    layout: str = "nchw"
    # Where a step's batch comes from: random on the device, random in host memory, real files.
    data: str = "device"
    # Real data: read once before, or dropped before and after every step.
    page_cache: str = "warm"
    # Real data: batches that a thread prepares in advance; with 0 the step reads its own.
    prefetch: int = 0
    optimizer: str = "own"  # the one that the network's authors used
    timing: str = "stream"
    threads: int = 0  # 0: every CPU that the process may use
    allocator: str = "pinned"
    # Whether OpenMP's threads spin between two parallel regions; default: the library decides.
    wait_policy: str = "default"
    compile_cache: str = "warm"  # cold: compilers find nothing from earlier runs
    weights: str = ""  # a safetensors file; empty: initial weights from the seed
    # The [slurm.NAME] of the machine file to which it is submitted; without Slurm only a label.
    node_type: str = ""
    devices: int = 1  # that are allocated for it; with an exchange, one rank for each
    # How ranks share a step. none: one process on `device`; independent: ranks side by side.
    exchange: str = "none"
    nodes: int = 1  # over which the ranks are spread evenly
    interconnect: str = ""  # a label for what joins the ranks; the exchange itself is measured
    # A tier of the machine file to which the dataset is copied first; empty: read it in place.
    staging: str = ""
    # A [launches.NAME] of the machine file that starts the worker; empty: the framework's own.
    launch: str = ""
    seed: int = 0
    trial: int = 0  # repeats of the same settings differ only in this

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise unknown(name, getattr(self, name), choices)
        self._check_values()
        if self.exchange != "none" and self.devices % self.nodes:
            raise SteptimeError(
                f"{self.devices} devices cannot be spread evenly over {self.nodes} nodes."
            )
        if self.device == "cuda":
            # The first GPU, as frameworks understand it. The dataclass is frozen.
            object.__setattr__(self, "device", "cuda:0")
        if not re.fullmatch(r"cpu|cuda:[0-9]+", self.device):
            raise SteptimeError(
                f"device must be 'cpu' or 'cuda:0', 'cuda:1', …, found {self.device!r}."
            )

    def _check_values(self) -> None:
        """Every store must be able to hold them, and every page to show them."""
        for name, kind in KINDS.items():
            if problem := kind.problem(getattr(self, name), name):
                raise SteptimeError(f"{problem}.")

    @property
    def key(self) -> str:
        """Only settings that differ from the defaults count, so a later field keeps old keys."""
        # Imported late: help does not need them.
        import hashlib
        import json

        text = json.dumps(self._non_defaults(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _non_defaults(self) -> dict[str, Any]:
        settings = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                settings[field.name] = value
        return settings

    @property
    def label(self) -> str:
        """For people: the settings that usually tell cases apart, and all that are unusual."""
        texts = [str(getattr(self, name)) for name in LABELLED]
        texts.append(f"batch {self.batch_size}")
        shown = {*LABELLED, "batch_size"}
        if self.exchange != "none":
            texts.append(f"{self.devices} × {self.exchange}")
            shown |= {"devices", "exchange"}
        for name, value in self._non_defaults().items():
            if name not in shown:
                texts.append(f"{name}={value}")
        return " ".join(texts)

    @property
    def ranks(self) -> int:
        """Processes that do the case's steps together."""
        return 1 if self.exchange == "none" else self.devices

    @property
    def ranks_per_node(self) -> int:
        return max(1, self.ranks // self.nodes)

    @property
    def shares_gradients(self) -> bool:
        """Only in training, and not between independent ranks."""
        return self.exchange in ALL_REDUCE and self.phase == "training" and self.ranks > 1

    def threads_of(self, cpus: int) -> int:
        """Threads of each rank, if the ranks of a node share this many CPUs."""
        return self.threads or max(1, cpus // self.ranks_per_node)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Case:
        for name in values:
            if name not in SETTINGS:
                raise unknown("case setting", name, SETTINGS)
        if "workload" not in values:
            raise SteptimeError('A case needs a workload, for example workload = "resnet50".')
        return cls(**values)


SETTINGS = tuple(field.name for field in fields(Case))
KINDS: dict[str, Kind] = {
    name: Whole(LEAST[name], MOST[name]) if name in LEAST else Text() for name in SETTINGS
}
