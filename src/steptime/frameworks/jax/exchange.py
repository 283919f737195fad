"""Several ranks of one step: JAX's own processes, one device of each, gradients averaged over all of them.

The step is mapped over the ranks' shards of the batch, not compiled for the batch as a whole: normalisation then uses
each rank's own statistics, as it does elsewhere."""

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
from steptime.core.ranks import here
from steptime.frameworks.jax.program import JaxProgram
from steptime.frameworks.jax.steps import State, Steps

AXIS = "ranks"
WHOLE, SHARE = PartitionSpec(), PartitionSpec(AXIS)
CONNECT_SECONDS = 120


def join(case: Case) -> None:
    """Before anything else is asked of JAX; a second call in a process finds it done."""
    if jax.distributed.is_initialized():
        return
    own = here(os.environ)
    if case.device == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        f"{own.address}:{own.port}", own.size, own.rank,
        local_device_ids=None if case.device == "cpu" else own.local, initialization_timeout=CONNECT_SECONDS,
    )  # fmt: skip


class SharedProgram(JaxProgram):
    """The training step of one of several ranks. What proves the lowering works on this rank's own copy."""

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "exchange_backend": "gloo" if self.case.device == "cpu" else "nccl",
        }

    def exchange(self, *, tiny: bool = False) -> int:
        """The gradients' bytes, or one number's, once over all ranks, and nothing else."""
        if not hasattr(self, "sent"):
            gradients, number = (
                jax.tree.map(jnp.zeros_like, self.state.weights),
                np.zeros(1, np.float32),
            )
            self.sent = {False: gradients, True: self._spread(number, WHOLE)}
            self.alone = jax.jit(
                jax.shard_map(
                    _averaged, mesh=self.mesh, in_specs=WHOLE, out_specs=WHOLE, check_vma=False
                )
            )
        jax.block_until_ready(self.alone(self.sent[tiny]))
        return sum(one.nbytes for one in jax.tree.leaves(self.sent[tiny]))

    def _choose(self) -> tuple[Any, Callable[[], Any]]:
        train = self.steps.train if self.state.scaling is None else self.steps.train_scaled
        shared = jax.shard_map(
            train, mesh=self.mesh, in_specs=(WHOLE, SHARE, SHARE), out_specs=WHOLE, check_vma=False
        )
        return jax.jit(shared, donate_argnums=0), self._launch_training

    def _start(self) -> State:
        devices = {one.process_index: one for one in reversed(jax.devices(self.device.platform))}
        self.mesh = jax.sharding.Mesh([devices[rank] for rank in sorted(devices)], (AXIS,))
        return jax.tree.map(lambda value: self._spread(value, WHOLE), super()._start())

    def _steps(self) -> Steps:
        return replace(super()._steps(), average=_averaged)

    def _share(self, arrays: Any) -> Any:
        return jax.tree.map(lambda value: self._spread(value, SHARE), arrays)

    def _own(self) -> tuple[Any, Any]:
        state = jax.tree.map(lambda value: value.addressable_data(0), self.state)
        return state.weights, state.moving

    def _spread(self, value: Any, spec: PartitionSpec) -> Any:
        return jax.make_array_from_process_local_data(NamedSharding(self.mesh, spec), value)


def _averaged(gradients: Any) -> Any:
    return jax.lax.pmean(gradients, AXIS)
