"""Horovod: its optimiser averages the gradients, over gloo on the CPU. Under `horovodrun` the ranks find each other by
themselves; whoever else started them, they meet where rank 0 is."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

import torch

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, SteptimeError
from steptime.core.ranks import Ranks
from steptime.frameworks.pytorch.lowering import Lowered

MISSING = "Horovod is not installed here; `make horovod` in a checkout of steptime builds it for this PyTorch."
MEET_SECONDS = 60
BEHIND = 2  # ports: the first may be torchrun's, at the second one the ranks agree


def backend(case: Case) -> str:
    return "horovod over gloo"


def unsupported(case: Case) -> str | None:
    if case.device != "cpu":
        return "Horovod is driven over gloo on the CPU here; use exchange=allreduce, which is NCCL on CUDA."
    if case.precision == "fp16":
        return "Horovod's optimiser does not know of fp16's loss scaling; use exchange=allreduce."
    if find_spec("horovod") is None:
        raise NotInstalled(MISSING)
    try:
        built: bool = _horovod().gloo_built()
    except ImportError as problem:
        return f"Horovod is installed and cannot be loaded: {problem}"
    return (
        None if built else "This Horovod is built without gloo; build it with HOROVOD_WITH_GLOO=1."
    )


def shared(module: Lowered, case: Case, ranks: Ranks) -> Lowered:
    """The module itself: the optimiser listens to its gradients. Every rank keeps its own moving statistics."""
    hvd = _horovod()
    if not hvd.is_initialized():
        launched = "HOROVOD_GLOO_RENDEZVOUS_ADDR" in os.environ
        with nullcontext() if launched else _meeting(ranks, case):
            hvd.init()
            hvd.barrier()  # all have met
    return module


def stepped(optimizer: torch.optim.Optimizer, module: Lowered) -> torch.optim.Optimizer:
    """An optimiser of the same class that waits for the averages first; with the state that the other one has."""
    state = optimizer.state
    found: torch.optim.Optimizer = _horovod().DistributedOptimizer(
        optimizer, named_parameters=module.named_parameters()
    )
    found.state = state
    return found


def reduce(pieces: list[torch.Tensor]) -> None:
    hvd = _horovod()
    handles = [
        hvd.allreduce_async_(piece, name=f"piece {place}") for place, piece in enumerate(pieces)
    ]
    for handle in handles:
        hvd.synchronize(handle)


def _horovod() -> Any:
    import horovod.torch

    return horovod.torch


@contextmanager
def _meeting(ranks: Ranks, case: Case) -> Iterator[None]:
    """What `horovodrun` would do: say who is who, and keep a list of addresses at rank 0 until all know each other."""
    node, local = divmod(ranks.rank, case.ranks_per_node)
    told = {
        "RANK": ranks.rank, "SIZE": ranks.size, "LOCAL_RANK": local, "LOCAL_SIZE": case.ranks_per_node,
        "CROSS_RANK": node, "CROSS_SIZE": case.nodes, "HOSTNAME": f"node{node}", "CONTROLLER": "gloo",
        "CPU_OPERATIONS": "gloo", "GLOO_IFACE": os.environ.get("GLOO_SOCKET_IFNAME") or _interface(ranks),
        "GLOO_RENDEZVOUS_ADDR": ranks.address, "GLOO_RENDEZVOUS_PORT": ranks.port + BEHIND,
    }  # fmt: skip
    os.environ.update({f"HOROVOD_{name}": str(value) for name, value in told.items()})
    if ranks.rank:
        _wait_for(ranks)
        yield
        return
    server = _server(ranks, case)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _interface(ranks: Ranks) -> str:
    """The network interface by which this rank reaches the first one. Left alone, gloo goes by the host's name."""
    import psutil  # which Horovod itself needs

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((ranks.address, ranks.port))
        own = probe.getsockname()[0]
    return next(
        name
        for name, places in psutil.net_if_addrs().items()
        if own in {place.address for place in places}
    )


def _server(ranks: Ranks, case: Case) -> Any:
    from horovod.runner.common.util.hosts import SlotInfo
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    server = RendezvousHTTPServer((ranks.address, ranks.port + BEHIND), RendezvousHandler, 0)
    each = case.ranks_per_node
    server.init(
        [
            SlotInfo(
                f"node{rank // each}", rank, rank % each, rank // each, ranks.size, each, case.nodes
            )
            for rank in range(ranks.size)
        ]
    )
    return server


def _wait_for(ranks: Ranks) -> None:
    place, until = (ranks.address, ranks.port + BEHIND), time.monotonic() + MEET_SECONDS
    while True:
        try:
            socket.create_connection(place, timeout=1).close()
            return
        except OSError as problem:
            if time.monotonic() > until:
                told = (
                    f"Horovod's rank 0 was not met at {place[0]}:{place[1]} within {MEET_SECONDS} s"
                )
                raise SteptimeError(f"{told}: {problem}.") from None
            time.sleep(0.05)
