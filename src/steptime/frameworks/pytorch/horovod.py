"""Horovod: its optimiser averages the gradients, over gloo on the CPU.

Under `horovodrun` the ranks find each other. If another launcher started them, this module does
what `horovodrun` would do, and they meet at rank 0."""

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

MISSING = (
    "Horovod is not installed here; "
    "`make horovod` in a checkout of steptime builds it for this PyTorch."
)
MEET_SECONDS = 60
# The first port may be torchrun's, and the second is that of our own rendezvous.
PORT_OFFSET = 2


def backend(case: Case) -> str:
    return "horovod over gloo"


def unsupported(case: Case) -> str | None:
    if case.device != "cpu":
        return (
            "Horovod is driven over gloo on the CPU here; "
            "use exchange=allreduce, which is NCCL on CUDA."
        )
    if case.precision == "fp16":
        return "Horovod's optimiser does not know of fp16's loss scaling; use exchange=allreduce."
    if find_spec("horovod") is None:
        raise NotInstalled(MISSING)
    try:
        has_gloo: bool = _horovod().gloo_built()
    except ImportError as problem:
        return f"Horovod is installed and cannot be loaded: {problem}"
    if not has_gloo:
        return "This Horovod is built without gloo; build it with HOROVOD_WITH_GLOO=1."
    return None


def wrap_module(module: Lowered, case: Case, ranks: Ranks) -> Lowered:
    """The module itself: the optimiser hooks into its gradients.

    Every rank has its own moving statistics."""
    hvd = _horovod()
    if not hvd.is_initialized():
        by_horovodrun = "HOROVOD_GLOO_RENDEZVOUS_ADDR" in os.environ
        with nullcontext() if by_horovodrun else _rendezvous(ranks, case):
            hvd.init()
            # Rank 0 serves addresses until all ranks have met.
            hvd.barrier()
    return module


def wrap_optimizer(optimizer: torch.optim.Optimizer, module: Lowered) -> torch.optim.Optimizer:
    """An optimiser of the same class and state that waits for the averages first."""
    state = optimizer.state
    wrapped: torch.optim.Optimizer = _horovod().DistributedOptimizer(
        optimizer, named_parameters=module.named_parameters()
    )
    wrapped.state = state
    return wrapped


def all_reduce(pieces: list[torch.Tensor]) -> None:
    hvd = _horovod()
    handles = [
        hvd.allreduce_async_(piece, name=f"piece {index}") for index, piece in enumerate(pieces)
    ]
    for handle in handles:
        hvd.synchronize(handle)


def _horovod() -> Any:
    import horovod.torch

    return horovod.torch


@contextmanager
def _rendezvous(ranks: Ranks, case: Case) -> Iterator[None]:
    """Sets the variables of `horovodrun`; rank 0 serves addresses until all ranks have met."""
    for name, value in _variables(ranks, case).items():
        os.environ[f"HOROVOD_{name}"] = str(value)
    if ranks.rank:
        _wait_for_server(ranks)
        yield
        return
    server = _server(ranks, case)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _variables(ranks: Ranks, case: Case) -> dict[str, Any]:
    node, local_rank = divmod(ranks.rank, case.ranks_per_node)
    return {
        "RANK": ranks.rank,
        "SIZE": ranks.size,
        "LOCAL_RANK": local_rank,
        "LOCAL_SIZE": case.ranks_per_node,
        "CROSS_RANK": node,
        "CROSS_SIZE": case.nodes,
        "HOSTNAME": f"node{node}",
        "CONTROLLER": "gloo",
        "CPU_OPERATIONS": "gloo",
        "GLOO_IFACE": os.environ.get("GLOO_SOCKET_IFNAME") or _interface(ranks),
        "GLOO_RENDEZVOUS_ADDR": ranks.address,
        "GLOO_RENDEZVOUS_PORT": ranks.port + PORT_OFFSET,
    }


def _interface(ranks: Ranks) -> str:
    """The network interface by which this rank reaches rank 0.

    By default gloo would take the one of the host's name."""
    # Horovod itself needs psutil.
    import psutil

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((ranks.address, ranks.port))
        address = probe.getsockname()[0]
    for name, entries in psutil.net_if_addrs().items():
        if any(entry.address == address for entry in entries):
            return str(name)
    raise SteptimeError(f"No network interface has the address {address}; set GLOO_SOCKET_IFNAME.")


def _server(ranks: Ranks, case: Case) -> Any:
    from horovod.runner.common.util.hosts import SlotInfo
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    address = (ranks.address, ranks.port + PORT_OFFSET)
    server = RendezvousHTTPServer(address, RendezvousHandler, 0)
    per_node = case.ranks_per_node
    slots = []
    for rank in range(ranks.size):
        node, local_rank = divmod(rank, per_node)
        host = f"node{node}"
        slots.append(SlotInfo(host, rank, local_rank, node, ranks.size, per_node, case.nodes))
    server.init(slots)
    return server


def _wait_for_server(ranks: Ranks) -> None:
    address = (ranks.address, ranks.port + PORT_OFFSET)
    deadline = time.monotonic() + MEET_SECONDS
    while True:
        try:
            socket.create_connection(address, timeout=1).close()
            return
        except OSError as problem:
            if time.monotonic() > deadline:
                raise SteptimeError(
                    f"Horovod's rank 0 did not answer at {address[0]}:{address[1]} "
                    f"within {MEET_SECONDS} s: {problem}."
                ) from None
            time.sleep(0.05)
