"""JAX, class 1: the timed step is not the function that the certificate should prove."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network

from steptime.frameworks.jax.program import JaxProgram
from steptime.frameworks.jax.steps import Steps

SUITE = Suite("jax", "compiled")
NORMAL = own_network("normal")
BELL = own_network("bell")
Program = Any


@SUITE(1, BELL)
def quarter_of_batch(patch: Patcher) -> None:
    """The inference step computes a quarter of the batch and repeats it; `predict` does not."""

    def launch(original: Any, self: Program) -> Any:
        values = self._batch()[0]
        quarter = values[: max(1, len(values) // 4)]
        output = self.run(self.state.weights, self.state.moving, quarter)
        self.pending = jnp.tile(output, (len(values) // len(quarter), 1))
        return self.pending

    patch.function(JaxProgram, "_launch_inference", launch)


@SUITE(1, BELL)
def first_output_for_ever(patch: Patcher) -> None:
    """The inference step returns its first output for ever."""

    def launch(original: Any, self: Program) -> Any:
        if not hasattr(self, "kept"):
            self.kept = original(self)
        return self.kept

    patch.function(JaxProgram, "_launch_inference", launch)


@SUITE(1, BELL)
def batch_is_a_constant(patch: Patcher) -> None:
    """The jitted inference step takes the first batch for a constant."""

    def launch(original: Any, self: Program) -> Any:
        if not hasattr(self, "kept"):
            self.kept = self._batch()[0]
        self.pending = self.run(self.state.weights, self.state.moving, self.kept)
        return self.pending

    patch.function(JaxProgram, "_launch_inference", launch)


@SUITE(1, BELL)
def outputs_computed_in_feed(patch: Patcher) -> None:
    """`feed` computes the outputs, and the inference step only returns them."""

    def launch(original: Any, self: Program) -> Any:
        if not hasattr(self, "kept"):
            self.kept = original(self)
        return self.kept

    def feed(original: Any, self: Program, batch: Any) -> None:
        original(self, batch)
        if hasattr(self, "kept"):
            self.kept = jnp.asarray(self.predict(batch))

    patch.function(JaxProgram, "_launch_inference", launch)
    patch.function(JaxProgram, "feed", feed)


@SUITE(1, BELL)
def feed_keeps_resident_batch(patch: Patcher) -> None:
    """`feed` prepares the new batch, but the device keeps the first one."""

    def feed(original: Any, self: Program, batch: Any) -> None:
        before = getattr(self, "resident", None)
        original(self, batch)
        if before:
            self.resident = before

    patch.function(JaxProgram, "feed", feed)


@SUITE(1, BELL)
def host_batch_cached(patch: Patcher) -> None:
    """With data on the host the step copies the batch once and then keeps it."""

    def batch(original: Any, self: Program) -> Any:
        if not self.host:
            return original(self)
        if not hasattr(self, "copied"):
            self.copied = original(self)
        return self.copied

    patch.function(JaxProgram, "_batch", batch)


@SUITE(1, BELL)
def new_state_dropped(patch: Patcher) -> None:
    """The training step computes the new weights and throws them away."""

    def launch(original: Any, self: Program) -> Any:
        kept = jax.tree.map(jnp.copy, self.state)
        loss = original(self)
        self.state = kept
        return loss

    patch.function(JaxProgram, "_launch_training", launch)


@SUITE(1, BELL)
def every_second_update_skipped(patch: Patcher) -> None:
    """The training step keeps its new weights in every second step only."""

    def launch(original: Any, self: Program) -> Any:
        self.number = getattr(self, "number", 0) + 1
        kept = jax.tree.map(jnp.copy, self.state)
        loss = original(self)
        if self.number % 2 == 0:
            self.state = kept
        return loss

    patch.function(JaxProgram, "_launch_training", launch)


@SUITE(1, BELL)
def training_step_in_bf16(patch: Patcher) -> None:
    """The training step rounds its weights and batch to bf16; `gradients` does not."""

    def train(original: Any, self: Steps, state: Any, values: Any, target: Any) -> Any:
        low = {name: weight.astype(jnp.bfloat16) for name, weight in state.weights.items()}
        wide = {name: weight.astype(state.weights[name].dtype) for name, weight in low.items()}
        new, loss = original(self, state._replace(weights=wide), values, target)
        return new, loss

    patch.function(Steps, "train", train)


@SUITE(1, BELL)
def quarter_of_batch_trained(patch: Patcher) -> None:
    """The training step trains on a quarter of the batch."""

    def train(original: Any, self: Steps, state: Any, values: Any, target: Any) -> Any:
        quarter = max(1, len(values) // 4)
        return original(self, state, values[:quarter], target[:quarter])

    patch.function(Steps, "train", train)


@SUITE(1, NORMAL)
def forward_drops_statistics(patch: Patcher) -> None:
    """The forward phase does not keep the moving statistics that it has computed."""

    def launch(original: Any, self: Program) -> Any:
        moving = jax.tree.map(jnp.copy, self.state.moving)
        loss = original(self)
        self.state = self.state._replace(moving=moving)
        return loss

    patch.function(JaxProgram, "_launch_forward", launch)


@SUITE(1, NORMAL)
def forward_by_inference(patch: Patcher) -> None:
    """The forward phase takes its loss from the outputs of inference."""

    def forward(original: Any, self: Steps, weights: Any, moving: Any, *batch: Any) -> Any:
        values, target = batch
        output = self.infer(weights, moving, values)
        chosen = jnp.take_along_axis(output, target[..., None], axis=-1)[..., 0]
        return moving, (jax.nn.logsumexp(output, axis=-1) - chosen).mean(), []

    patch.function(Steps, "forward", forward)


@SUITE(1, BELL)
def first_target_for_ever(patch: Patcher) -> None:
    """`feed` passes on the inputs and keeps the targets of the first batch."""

    def feed(original: Any, self: Program, batch: Any) -> None:
        original(self, {**batch, "target": self.work.batch["target"]})

    patch.function(JaxProgram, "feed", feed)
