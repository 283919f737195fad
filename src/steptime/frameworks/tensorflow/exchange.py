"""Several ranks of one step: TensorFlow's collective strategy with one replica in each process, over gRPC.

Variables are each rank's own: they start equal, and gradients that are the mean of all ranks' keep them so."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from steptime.core.case import Case
from steptime.core.ranks import here

FIRST_PORT = 2  # behind the one where ranks meet, and the one where they agree


def unsupported(case: Case) -> str | None:
    if case.exchange == "horovod":
        return "Horovod is driven for PyTorch alone here; use exchange=allreduce."
    served = case.exchange == "parameter_server"
    if served and (case.mode, case.phase) != ("session", "training"):
        return "TensorFlow's parameter server is for phase=training with mode=session here."
    if not served and not case.shares_gradients:
        return None
    if not served and case.mode in ("xla", "session"):
        return f"TensorFlow's collectives are no part of mode={case.mode}; use graph or eager."
    if case.nodes > 1 and "TF_CONFIG" not in os.environ:
        return "TensorFlow must be told every rank's address where there are several nodes: set TF_CONFIG."
    return None


def join(case: Case) -> Any:
    """The strategy that all ranks have joined, before anything is computed."""
    own = here(os.environ)
    cluster = {
        "worker": [f"{own.address}:{own.port + FIRST_PORT + rank}" for rank in range(own.size)]
    }
    told = {"cluster": cluster, "task": {"type": "worker", "index": own.rank}}
    os.environ.setdefault("TF_CONFIG", json.dumps(told))
    return tf.distribute.MultiWorkerMirroredStrategy()


def averaged(gradients: Iterable[Any]) -> list[Any]:
    """Inside a replica. The rows of an embedding become a whole gradient first."""
    own = tf.distribute.get_replica_context()
    found: list[Any] = own.all_reduce(
        tf.distribute.ReduceOp.MEAN, [tf.convert_to_tensor(one) for one in gradients]
    )
    return found
