"""One point of the space: what is computed, by whom, where and how. Equal settings give equal keys."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from steptime.core.errors import SteptimeError, unknown

CHOICES: dict[str, tuple[str, ...]] = {
    "phase": ("training", "inference", "forward"),
    "mode": ("eager", "compiled", "cudagraph", "graph", "session", "xla"),
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
"""Words with a closed list. Workloads and frameworks are open shelves and are checked where they are known."""

ALL_REDUCE = ("allreduce", "horovod")  # by the framework's own means, or by Horovod
LABELLED = ("workload", "phase", "framework", "mode", "device", "precision", "batch_size")
LEAST = {
    "batch_size": 1,
    "devices": 1,
    "nodes": 1,
    "threads": 0,
    "prefetch": 0,
    "seed": 0,
    "trial": 0,
}


@dataclass(frozen=True, kw_only=True)
class Case:
    workload: str  # a network's name, or FILE.py:NAME for your own
    framework: str = "pytorch"
    phase: str = "training"
    mode: str = "eager"
    device: str = "cpu"
    precision: str = "fp32"
    batch_size: int = 32  # of each rank
    layout: str = "nchw"
    data: str = "device"  # where a step's batch lies: drawn on the device, drawn in host memory, real in files
    page_cache: str = "warm"  # real data: read once before, or dropped before and behind every step
    prefetch: int = 0  # real data: batches that a thread keeps ready; 0: the step reads its own
    optimizer: str = "own"  # the optimiser that the network's authors used
    timing: str = "stream"
    threads: int = 0  # 0: every CPU that the process may use
    allocator: str = "pinned"
    wait_policy: str = "default"  # whether OpenMP's threads spin between two parallel regions: the library's own choice
    compile_cache: str = "warm"  # cold: what compilers kept from earlier runs is not used
    weights: str = ""  # a safetensors file; empty: the initial ones of the seed
    node_type: str = (
        ""  # the [slurm.NAME] of the machine file that it is submitted to; elsewhere only a word
    )
    devices: int = 1  # that are allocated for it; with an exchange, one rank for each
    exchange: str = "none"  # how ranks share a step: none = one process, `device` alone; independent = side by side
    nodes: int = 1  # over which the ranks are spread evenly
    interconnect: str = ""  # a word for what joins the ranks; the exchange itself is measured
    staging: str = ""  # a tier of the machine file, to which the data set is copied first; empty: read where it lies
    launch: str = ""  # a [launches.NAME] of the machine file that starts the worker; empty: the framework's own
    seed: int = 0
    trial: int = 0  # repeats of the same settings differ in this alone

    def __post_init__(self) -> None:
        for name, words in CHOICES.items():
            if getattr(self, name) not in words:
                raise unknown(name, getattr(self, name), words)
        for name, least in LEAST.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise SteptimeError(
                    f"{name} must be a whole number of at least {least}, found {value!r}."
                )
        if self.exchange != "none" and self.devices % self.nodes:
            raise SteptimeError(
                f"{self.devices} devices cannot be spread evenly over {self.nodes} nodes."
            )
        if not re.fullmatch(r"cpu|cuda:[0-9]+", self.device):
            raise SteptimeError(
                f"device must be 'cpu' or 'cuda:0', 'cuda:1', …, found {self.device!r}."
            )

    @property
    def key(self) -> str:
        """Only what differs from the defaults counts, so a later field leaves old keys alone."""
        import hashlib
        import json

        return hashlib.sha256(json.dumps(self._changed(), sort_keys=True).encode()).hexdigest()[:12]

    def _changed(self) -> dict[str, Any]:
        return {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if getattr(self, f.name) != f.default
        }

    @property
    def label(self) -> str:
        """For people: the words that usually tell cases apart, and every other one that is not as usual."""
        shared = [f"{self.devices} × {self.exchange}"] if self.exchange != "none" else []
        told = {*LABELLED, *(("devices", "exchange") if shared else ())}
        rest = [f"{name}={value}" for name, value in self._changed().items() if name not in told]
        words = [str(getattr(self, name)) for name in LABELLED[:-1]]
        return " ".join([*words, f"batch {self.batch_size}", *shared, *rest])

    @property
    def ranks(self) -> int:
        """Processes that do the case's steps together."""
        return 1 if self.exchange == "none" else self.devices

    @property
    def ranks_per_node(self) -> int:
        return max(1, self.ranks // self.nodes)

    @property
    def shares_gradients(self) -> bool:
        """Ranks of the other phases, and independent ones, have nothing to tell each other."""
        return self.exchange in ALL_REDUCE and self.phase == "training" and self.ranks > 1

    def threads_of(self, cpus: int) -> int:
        """Of each rank, where those of one node share so many CPUs."""
        return self.threads or max(1, cpus // self.ranks_per_node)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Case:
        names = {f.name for f in fields(cls)}
        for name in values:
            if name not in names:
                raise unknown("case setting", name, names)
        if "workload" not in values:
            raise SteptimeError('A case needs a workload, for example workload = "resnet50".')
        return cls(**values)


SETTINGS = tuple(f.name for f in fields(Case))
