"""Steps of ranks that share their weights by a parameter server, as TensorFlow's first version has it.

Rank 0 also serves: the variables lie in its process, and every rank reads them and moves them in its own time."""

from __future__ import annotations

import os
import time
from typing import Any

import tensorflow as tf

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.ranks import here
from steptime.frameworks.tensorflow.exchange import FIRST_PORT
from steptime.frameworks.tensorflow.session import Session, v1

SERVED = "/job:ps/task:0"
PATIENCE_SECONDS, PAUSE_SECONDS = 120, 0.05


class Served(Session):
    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.own, config = here(os.environ), self.session._config
        self.place, self.batch_place = SERVED, f"/job:worker/task:{self.own.rank}"
        config.device_filters.extend(
            [SERVED, self.batch_place]
        )  # else every rank would wait for all others to begin
        ports = [self.own.port + FIRST_PORT + place for place in range(1 + self.own.size)]
        first, *others = [f"{self.own.address}:{port}" for port in ports]
        cluster = tf.train.ClusterSpec({"ps": [first], "worker": others})
        jobs = [("ps", 0)] * (self.own.rank == 0) + [("worker", self.own.rank)]
        self.servers = [v1.train.Server(cluster, job, task, config=config) for job, task in jobs]
        self.session = v1.Session(self.servers[-1].target, graph=self.graph, config=config)

    def make(self, array: Any, *, trainable: bool = False) -> Any:
        with self.graph.device(self.place):
            return super().make(array, trainable=trainable)

    def _built(self, arrays: tuple[Any, ...]) -> Any:
        """Computed here, and a resident batch lies here too."""
        self.place, self.shared = self.batch_place, list(self.made)
        with self.graph.device(self.batch_place):
            return super()._built(arrays)

    def _start(self) -> None:
        """Rank 0 writes what is shared; the others wait until it has."""
        if self.own.rank:
            self.made = self.made[len(self.shared) :]
        super()._start()
        with self.graph.as_default():
            left = v1.report_uninitialized_variables([variable for variable, _ in self.shared])
        limit = time.monotonic() + PATIENCE_SECONDS
        while self.session.run(left).size:
            if time.monotonic() > limit:
                raise SteptimeError(
                    f"Rank 0 has not written the shared weights after {PATIENCE_SECONDS} s."
                )
            time.sleep(PAUSE_SECONDS)
