"""Several ranks share a step: TensorFlow's collective strategy, one replica per process, over gRPC.

Every rank has its own variables. They start equal, and stay equal because every rank applies the
mean of all ranks' gradients."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from steptime.core.case import Case
from steptime.core.ranks import read_ranks

# The two ports before it are for the rendezvous and for agreement between the ranks.
FIRST_PORT = 2


def unsupported(case: Case) -> str | None:
    # What TensorFlow has, not what it lacks: another library must not pass for its collectives.
    if case.exchange not in ("none", "independent", "allreduce", "parameter_server"):
        return f"TensorFlow has no exchange={case.exchange} here; use exchange=allreduce."
    if case.exchange == "parameter_server":
        if case.mode != "session" or case.phase != "training":
            return "TensorFlow's parameter server is for phase=training with mode=session."
    elif not case.shares_gradients:
        return None
    elif case.mode in ("xla", "session"):
        return f"TensorFlow's collectives do not work in mode={case.mode}; use graph or eager."
    if case.nodes > 1 and "TF_CONFIG" not in os.environ:
        return "TensorFlow needs the address of every rank on several nodes: set TF_CONFIG."
    return None


def join(case: Case) -> Any:
    """The strategy of all ranks. They must join before anything is computed."""
    ranks = read_ranks(os.environ)
    first_port = ranks.port + FIRST_PORT
    workers = [f"{ranks.address}:{first_port + rank}" for rank in range(ranks.size)]
    config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": ranks.rank}}
    os.environ.setdefault("TF_CONFIG", json.dumps(config))
    return tf.distribute.MultiWorkerMirroredStrategy()


def average(gradients: Iterable[Any]) -> list[Any]:
    """The mean over all ranks, called inside a replica."""
    # The gradient of an embedding has only the used rows; this makes it a full tensor.
    tensors = [tf.convert_to_tensor(gradient) for gradient in gradients]
    replica = tf.distribute.get_replica_context()
    averages: list[Any] = replica.all_reduce(tf.distribute.ReduceOp.MEAN, tensors)
    return averages
