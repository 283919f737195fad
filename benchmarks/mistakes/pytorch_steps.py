"""PyTorch, class 1: the timed step is not the function that the certificate should prove."""

from __future__ import annotations

from typing import Any

import torch
from benchmarks.mistakes.mistake import Patcher, Suite

from steptime.frameworks.pytorch.program import PytorchProgram

SUITE = Suite("pytorch", "eager")
COMPILED = {"mode": "compiled"}
Program = Any


@SUITE(1, "lenet5")
def quarter_of_batch(patch: Patcher) -> None:
    """The inference step computes a quarter of the batch and repeats it."""

    def infer(original: Any, self: Program) -> Any:
        with torch.inference_mode():
            quarter = self.network(self.input[: max(1, len(self.input) // 4)])
        return quarter.repeat(len(self.input) // len(quarter), 1)

    patch.function(PytorchProgram, "_infer", infer)


@SUITE(1, "lenet5")
def first_output_for_ever(patch: Patcher) -> None:
    """The inference step computes once and then returns its first output."""

    def infer(original: Any, self: Program) -> Any:
        if not hasattr(self, "kept"):
            self.kept = original(self)
        return self.kept

    patch.function(PytorchProgram, "_infer", infer)


@SUITE(1, "cifar10-cnn")
def outputs_computed_in_feed(patch: Patcher) -> None:
    """`feed` computes the outputs, and the inference step only returns them."""

    def infer(original: Any, self: Program) -> Any:
        # The first step stands for the one that building the program would have made.
        if not hasattr(self, "kept"):
            self.kept = original(self)
        return self.kept

    def feed(original: Any, self: Program, batch: Any) -> None:
        original(self, batch)
        if self.case.phase == "inference":
            self.kept = torch.from_numpy(self.predict(batch))

    patch.function(PytorchProgram, "_infer", infer)
    patch.function(PytorchProgram, "feed", feed)


@SUITE(1, "lenet5")
def output_kept_until_next_batch(patch: Patcher) -> None:
    """The inference step computes once for each batch that is fed, and then returns that output."""

    def infer(original: Any, self: Program) -> Any:
        if getattr(self, "kept", None) is None:
            self.kept = original(self)
        return self.kept

    def feed(original: Any, self: Program, batch: Any) -> None:
        original(self, batch)
        self.kept = None

    patch.function(PytorchProgram, "_infer", infer)
    patch.function(PytorchProgram, "feed", feed)


@SUITE(1, "resnet56-cifar")
def forward_once_for_each_batch(patch: Patcher) -> None:
    """The forward phase computes once for each batch that is fed."""

    def forward(original: Any, self: Program) -> Any:
        if getattr(self, "kept", None) is None:
            self.kept = original(self)
        return self.kept

    def feed(original: Any, self: Program, batch: Any) -> None:
        original(self, batch)
        self.kept = None

    patch.function(PytorchProgram, "_forward", forward)
    patch.function(PytorchProgram, "feed", feed)


@SUITE(1, "lenet5")
def inference_in_bf16(patch: Patcher) -> None:
    """The inference step computes in bf16 where fp32 was asked for; `predict` does not."""

    def infer(original: Any, self: Program) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return original(self).float()

    patch.function(PytorchProgram, "_infer", infer)


@SUITE(1, "lenet5")
def feed_ignored(patch: Patcher) -> None:
    """`feed` does nothing: all steps see the first batch."""
    patch.function(PytorchProgram, "feed", lambda original, self, batch: None)


@SUITE(1, "lenet5")
def host_batch_never_copied(patch: Patcher) -> None:
    """With data on the host the step never fetches a batch."""
    patch.function(PytorchProgram, "fetch", lambda original, self: None)


@SUITE(1, "lenet5")
def host_batch_one_step_late(patch: Patcher) -> None:
    """With data on the host the step fetches after it has computed."""

    def fetch_then(original: Any, self: Program, step: Any) -> Any:
        result = step()
        self.fetch()
        return result

    patch.function(PytorchProgram, "_fetch_then", fetch_then)


@SUITE(1, "lenet5")
def host_target_never_copied(patch: Patcher) -> None:
    """With data on the host only the inputs are fetched, not the targets."""

    def fetch(original: Any, self: Program) -> None:
        self.input.copy_(self.host[0])

    patch.function(PytorchProgram, "fetch", fetch)


@SUITE(1, "lenet5")
def first_target_for_ever(patch: Patcher) -> None:
    """`feed` passes on the inputs and keeps the targets of the first batch."""

    def feed(original: Any, self: Program, batch: Any) -> None:
        original(self, {**batch, "target": self.work.batch["target"]})

    patch.function(PytorchProgram, "feed", feed)


@SUITE(1, "resnet56-cifar")
def forward_without_statistics(patch: Patcher) -> None:
    """The forward phase normalises with moving statistics and does not update them."""

    def forward(original: Any, self: Program) -> Any:
        self.module.eval()
        return original(self)

    patch.function(PytorchProgram, "_forward", forward)


@SUITE(1, "resnet56-cifar")
def forward_keeps_statistics(patch: Patcher) -> None:
    """The forward phase has the right loss, but puts the moving statistics back."""

    def forward(original: Any, self: Program) -> Any:
        kept = {name: value.clone() for name, value in self.module.named_buffers()}
        loss = original(self)
        for name, value in self.module.named_buffers():
            value.copy_(kept[name])
        return loss

    patch.function(PytorchProgram, "_forward", forward)


@SUITE(1, "lenet5")
def forward_keeps_first_loss(patch: Patcher) -> None:
    """The forward phase returns its first loss for ever."""

    def forward(original: Any, self: Program) -> Any:
        if not hasattr(self, "kept"):
            self.kept = original(self)
        return self.kept

    patch.function(PytorchProgram, "_forward", forward)


@SUITE(1, "lenet5")
def every_second_update_skipped(patch: Patcher) -> None:
    """The training step moves the weights in every second step only."""

    def train(original: Any, self: Program) -> Any:
        self.step_number = getattr(self, "step_number", 0) + 1
        if self.step_number % 2:
            return original(self)
        return self.loss(self.input, self.target)

    patch.function(PytorchProgram, "_train", train)


@SUITE(1, "cifar10-cnn")
def update_skipped_after_some_steps(patch: Patcher) -> None:
    """The training step stops to update after five steps."""

    def train(original: Any, self: Program) -> Any:
        self.step_number = getattr(self, "step_number", 0) + 1
        if self.step_number <= 5:
            return original(self)
        return self.loss(self.input, self.target)

    patch.function(PytorchProgram, "_train", train)


@SUITE(1, "lenet5")
def gradients_accumulate(patch: Patcher) -> None:
    """The training step never clears the gradients of the step before."""

    def train(original: Any, self: Program) -> Any:
        loss = self.loss(self.input, self.target)
        loss.backward()
        self.optimizer.step()
        return loss

    patch.function(PytorchProgram, "_train", train)


@SUITE(1, "lenet5")
def half_of_batch_trained(patch: Patcher) -> None:
    """The training step learns from half of the batch; its loss is that of all."""

    def train(original: Any, self: Program) -> Any:
        half = len(self.input) // 2
        self.optimizer.zero_grad()
        self.loss(self.input[:half], self.target[:half]).backward()
        with torch.no_grad():
            loss = self.loss(self.input, self.target)
        self.optimizer.step()
        return loss

    patch.function(PytorchProgram, "_train", train)


@SUITE(1, "lenet5")
def training_in_bf16(patch: Patcher) -> None:
    """The training step runs under autocast where fp32 was asked for; `gradients` does not."""

    def train(original: Any, self: Program) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return original(self)

    patch.function(PytorchProgram, "_train", train)


@SUITE(1, "lenet5")
def loss_of_previous_step(patch: Patcher) -> None:
    """The training step returns the loss of the step before, so as not to wait."""

    def train(original: Any, self: Program) -> Any:
        before = getattr(self, "previous", None)
        self.previous = original(self)
        return self.previous if before is None else before

    patch.function(PytorchProgram, "_train", train)


@SUITE(1, "resnet56-cifar")
def single_sample_by_batch_statistics(patch: Patcher) -> None:
    """The inference step of one sample normalises with that sample's own statistics."""

    def infer(original: Any, self: Program) -> Any:
        if len(self.input) == 1:
            self.module.train()
        return original(self)

    patch.function(PytorchProgram, "_infer", infer)


@SUITE(1, "lenet5")
def predict_returns_last_step(patch: Patcher) -> None:
    """`predict` returns what the last step has left instead of computing."""

    def infer(original: Any, self: Program) -> Any:
        self.kept = original(self)
        return self.kept

    def predict(original: Any, self: Program, batch: Any) -> Any:
        kept = getattr(self, "kept", None)
        return original(self, batch) if kept is None else kept.float().numpy()

    patch.function(PytorchProgram, "_infer", infer)
    patch.function(PytorchProgram, "predict", predict)


@SUITE(1, "lenet5", **COMPILED)
def compiled_without_last_layer(patch: Patcher) -> None:
    """The compiled network is that of a graph whose last bias is left out."""

    def infer(original: Any, self: Program) -> Any:
        return original(self) - self.module.canonical()["dense3.bias"]

    patch.function(PytorchProgram, "_infer", infer)


@SUITE(1, "mnist-mlp", **COMPILED)
def compiled_step_keeps_first_output(patch: Patcher) -> None:
    """The compiled inference step returns the buffer that its first call filled."""

    def infer(original: Any, self: Program) -> Any:
        if not hasattr(self, "kept"):
            self.kept = original(self).clone()
        return self.kept

    patch.function(PytorchProgram, "_infer", infer)
