"""Several ranks share a step: one JAX process and one device per rank, gradients averaged.

The step is mapped over the ranks' shares of the batch instead of being compiled for the full batch.
So normalisation uses the statistics of each rank's share, as in the other frameworks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from steptime.core.case import Case
from steptime.core.ranks import read_ranks
from steptime.frameworks.jax.program import JaxProgram
from steptime.frameworks.jax.steps import Moving, State, Steps

AXIS = "ranks"
REPLICATED = PartitionSpec()
SPLIT = PartitionSpec(AXIS)
# Ranks do not start at the same time.
CONNECT_SECONDS = 120


def join(case: Case) -> None:
    """Connect the ranks, before anything else asks JAX for a device. A second call does nothing."""
    if jax.distributed.is_initialized():
        return
    ranks = read_ranks(os.environ)
    local_device: int | None = ranks.local
    if case.device == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        local_device = None
    jax.distributed.initialize(
        f"{ranks.address}:{ranks.port}",
        ranks.size,
        ranks.rank,
        local_device_ids=local_device,
        initialization_timeout=CONNECT_SECONDS,
    )


class SharedProgram(JaxProgram):
    """The training step of one of several ranks. `weights`, `predict` and `gradients` use this
    rank's copy of the state."""

    def facts(self) -> dict[str, Any]:
        backend = "gloo" if self.case.device == "cpu" else "nccl"
        return {**super().facts(), "exchange_backend": backend}

    def exchange(self, *, tiny: bool = False) -> int:
        """Average the gradients' bytes, or one number, over all ranks, and do nothing else."""
        # Allocated and compiled once: the exchange alone is what is timed.
        if not hasattr(self, "exchanged"):
            gradients = jax.tree.map(jnp.zeros_like, self.state.weights)
            number = self._distribute(np.zeros(1, np.float32), REPLICATED)
            self.exchanged = {False: gradients, True: number}
            self.exchange_alone = jax.jit(self._map_over_ranks(_average, REPLICATED))
        jax.block_until_ready(self.exchange_alone(self.exchanged[tiny]))
        return sum(array.nbytes for array in jax.tree.leaves(self.exchanged[tiny]))

    def _choose(self) -> tuple[Any, Callable[[], Any]]:
        train = self.steps.train
        if self.state.loss_scaling is not None:
            train = self.steps.train_scaled
        # The batch is split over the ranks; every rank has a full copy of the state.
        shared = self._map_over_ranks(train, (REPLICATED, SPLIT, SPLIT))
        return jax.jit(shared, donate_argnums=0), self._launch_training

    def _map_over_ranks(self, compute: Callable[..., Any], in_specs: Any) -> Callable[..., Any]:
        return jax.shard_map(
            compute, mesh=self.mesh, in_specs=in_specs, out_specs=REPLICATED, check_vma=False
        )

    def _start(self) -> State:
        # The first device of each process: the reversed order lets the first one win.
        devices = {
            device.process_index: device for device in reversed(jax.devices(self.device.platform))
        }
        self.mesh = jax.sharding.Mesh([devices[rank] for rank in sorted(devices)], (AXIS,))
        return jax.tree.map(lambda value: self._distribute(value, REPLICATED), super()._start())

    def _steps(self) -> Steps:
        return replace(super()._steps(), average=_average)

    def _place_batch(self, arrays: Any) -> Any:
        return jax.tree.map(lambda value: self._distribute(value, SPLIT), arrays)

    def _local_state(self) -> tuple[Any, Moving]:
        state = jax.tree.map(lambda value: value.addressable_data(0), self.state)
        return state.weights, state.moving

    def _distribute(self, value: Any, spec: PartitionSpec) -> Any:
        return jax.make_array_from_process_local_data(NamedSharding(self.mesh, spec), value)


def _average(gradients: Any) -> Any:
    return jax.lax.pmean(gradients, AXIS)
