"""Steps of ranks that share their weights through a parameter server, as in TensorFlow 1.

Rank 0 also runs the server: the variables are in its process. Every rank reads and moves them
asynchronously."""

from __future__ import annotations

import os
import time
from typing import Any

import tensorflow as tf

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.ranks import read_ranks
from steptime.frameworks.tensorflow.exchange import FIRST_PORT
from steptime.frameworks.tensorflow.session import Session, v1

SERVER = "/job:ps/task:0"
PATIENCE_SECONDS = 120
PAUSE_SECONDS = 0.05


class ParameterServerSession(Session):
    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.ranks = read_ranks(os.environ)
        self.worker = f"/job:worker/task:{self.ranks.rank}"
        # Where `make_variable` puts variables: weights on the server, the batch on the worker.
        self.variable_device = SERVER
        config = self.session._config
        # Without a filter every rank would wait until all others have started.
        config.device_filters.extend([SERVER, self.worker])
        cluster = self._cluster()
        tasks = [("worker", self.ranks.rank)]
        if self.ranks.rank == 0:
            tasks.insert(0, ("ps", 0))
        self.servers = [v1.train.Server(cluster, job, index, config=config) for job, index in tasks]
        self.session = v1.Session(self.servers[-1].target, graph=self.graph, config=config)

    def make_variable(self, array: Any, *, trainable: bool = False) -> Any:
        with self.graph.device(self.variable_device):
            return super().make_variable(array, trainable=trainable)

    def _cluster(self) -> Any:
        """One port for the server and one for each worker."""
        first_port = self.ranks.port + FIRST_PORT
        ports = range(first_port, first_port + 1 + self.ranks.size)
        server, *workers = [f"{self.ranks.address}:{port}" for port in ports]
        return tf.train.ClusterSpec({"ps": [server], "worker": workers})

    def _build(self, arrays: tuple[Any, ...]) -> Any:
        """The worker computes, and keeps a resident batch."""
        self.variable_device = self.worker
        self.shared = list(self.uninitialized)
        with self.graph.device(self.worker):
            return super()._build(arrays)

    def _initialize(self) -> None:
        """Rank 0 writes the shared variables; the other ranks wait for it."""
        if self.ranks.rank:
            self.uninitialized = self.uninitialized[len(self.shared) :]
        super()._initialize()
        with self.graph.as_default():
            missing = v1.report_uninitialized_variables([variable for variable, _ in self.shared])
        limit = time.monotonic() + PATIENCE_SECONDS
        while self.session.run(missing).size:
            if time.monotonic() > limit:
                raise SteptimeError(
                    f"Rank 0 has not written the shared weights after {PATIENCE_SECONDS} s."
                )
            time.sleep(PAUSE_SECONDS)
