"""PyTorch, class 5: dropout in the training step, and low precision."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network

from steptime.frameworks.pytorch import program as programs
from steptime.frameworks.pytorch import settings
from steptime.frameworks.pytorch.ops import FUNCTIONS
from steptime.frameworks.pytorch.program import PytorchProgram

SUITE = Suite("pytorch", "eager")
BF16 = {"precision": "bf16"}
Program = Any


def wrong_dropout(name: str, network: str, text: str, wrong: Any) -> None:
    """`wrong` gets x and the rate, and is called only if values are dropped."""

    def patch(patcher: Patcher) -> None:
        def dropout(original: Any, x: Any, rate: float, dropping: bool) -> Any:
            if not dropping or rate == 0:
                return x
            return wrong(x, rate)

        patcher.entry(FUNCTIONS, "dropout", dropout)

    SUITE.add(5, network, patch, text, name=name)


def draw(shape: Any, rate: float, generator: Any = None) -> Any:
    return (torch.rand(shape, generator=generator) >= rate).float()


def fixed_mask(x: Any, rate: float) -> Any:
    return x * draw(x.shape, rate, torch.Generator().manual_seed(0)) / (1 - rate)


def one_mask_for_samples(x: Any, rate: float) -> Any:
    return x * draw(x.shape[1:], rate) / (1 - rate)


def whole_channels(x: Any, rate: float) -> Any:
    """Of features over time; a layer without time drops as it should."""
    shape = (len(x), 1, x.shape[2]) if x.dim() == 3 else x.shape
    return x * draw(shape, rate) / (1 - rate)


def whole_positions(x: Any, rate: float) -> Any:
    shape = (*x.shape[:2], 1) if x.dim() == 3 else x.shape
    return x * draw(shape, rate) / (1 - rate)


def ignored_backward(x: Any, rate: float) -> Any:
    dropped = x * draw(x.shape, rate) / (1 - rate)
    return x + (dropped - x).detach()


def drawn_again_backward(x: Any, rate: float) -> Any:
    dropped = x * draw(x.shape, rate) / (1 - rate)
    again = x * draw(x.shape, rate) / (1 - rate)
    return again + (dropped - again).detach()


def unscaled_backward(x: Any, rate: float) -> Any:
    kept = x * draw(x.shape, rate)
    return kept + (kept * rate / (1 - rate)).detach()


def masks_in_pairs(x: Any, rate: float) -> Any:
    """Half of the features copy the mask of the other half."""
    half = draw((*x.shape[:-1], (x.shape[-1] + 1) // 2), rate)
    mask = torch.cat([half, half], -1)[..., : x.shape[-1]]
    return x * mask / (1 - rate)


class PairedSteps:
    """Every second call draws what the call before has drawn."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: Any, rate: float) -> Any:
        # The probe has two layers in a step.
        step, layer = divmod(self.count, 2)
        self.count += 1
        generator = torch.Generator().manual_seed(2 * (step // 2) + layer)
        return x * draw(x.shape, rate, generator) / (1 - rate)


class MasksInTurn:
    """The first step's mask comes again in the third, the second's in the fourth."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: Any, rate: float) -> Any:
        # The probe has two layers in a step.
        generator = torch.Generator().manual_seed(self.count % 4)
        self.count += 1
        return x * draw(x.shape, rate, generator) / (1 - rate)


def mask_of_half_batch(x: Any, rate: float) -> Any:
    half = draw(((len(x) + 1) // 2, *x.shape[1:]), rate)
    return x * torch.cat([half, half])[: len(x)] / (1 - rate)


class SharedLayers:
    """Both layers of a step draw the same numbers."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: Any, rate: float) -> Any:
        generator = torch.Generator().manual_seed(self.count // 2)
        self.count += 1
        return x * draw(x.shape, rate, generator) / (1 - rate)


MLP = "mnist-mlp"
GATED = own_network("gated")
for name, network, text, wrong in (
    ("dropout_never_drops", MLP, "Dropout never drops", lambda x, rate: x),
    ("dropout_fixed_mask", MLP, "Dropout has the same mask in every step", fixed_mask),
    ("dropout_one_mask_for_samples", MLP, "All samples share one mask", one_mask_for_samples),
    ("dropout_one_mask_for_layers", MLP, "All layers share one mask", SharedLayers()),
    ("dropout_whole_features", GATED, "Features drop over all time", whole_channels),
    ("dropout_whole_positions", GATED, "All of a position drops", whole_positions),
    ("dropout_ignored_backward", MLP, "The backward pass ignores the mask", ignored_backward),
    ("dropout_drawn_again", MLP, "The backward pass draws another mask", drawn_again_backward),
    ("dropout_unscaled_backward", MLP, "The backward pass is not scaled", unscaled_backward),
    (
        "dropout_unscaled",
        MLP,
        "What is kept is not scaled",
        lambda x, rate: x * draw(x.shape, rate),
    ),
    (
        "dropout_rate_for_keep",
        MLP,
        "The rate is taken for the share that is kept",
        lambda x, rate: x * draw(x.shape, 1 - rate) / rate,
    ),
    (
        "dropout_half_rate",
        "deepmnist",
        "Dropout has rate 0.25 for 0.5",
        lambda x, rate: x * draw(x.shape, rate / 2) / (1 - rate / 2),
    ),
    ("dropout_mask_twice", MLP, "Every second step has the mask before", PairedSteps()),
    ("dropout_masks_in_turn", MLP, "Two masks come in turn", MasksInTurn()),
    ("dropout_mask_of_half_batch", MLP, "Halves of the batch share a mask", mask_of_half_batch),
    ("dropout_masks_in_pairs", MLP, "Half of the features copy the others' mask", masks_in_pairs),
    (
        "dropout_adds_noise",
        MLP,
        "Noise of the same variance replaces dropping",
        lambda x, rate: x * (1 + (rate / (1 - rate)) ** 0.5 * torch.randn_like(x)),
    ),
):
    wrong_dropout(name, network, text, wrong)


@SUITE(5, "mnist-mlp")
def dropout_in_inference(patch: Patcher) -> None:
    """Dropout drops in inference too."""
    patch.entry(FUNCTIONS, "dropout", lambda f, x, rate, dropping: torch.dropout(x, rate, True))


@SUITE(5, "mnist-mlp")
def dropout_off_in_training_step(patch: Patcher) -> None:
    """The training step does not drop; the forward phase does."""

    def train(original: Any, self: Program) -> Any:
        self.module.dropping = False
        return original(self)

    patch.function(PytorchProgram, "_train", train)


# Low precision


@SUITE(5, "cifar10-cnn", **BF16)
def weights_without_masters(patch: Patcher) -> None:
    """Training in bf16 keeps its weights in bf16."""
    patch.function(settings, "uses_autocast", lambda original, case: False)


@SUITE(5, "cifar10-cnn", **BF16)
def masters_rounded_after_step(patch: Patcher) -> None:
    """Training in bf16 rounds the fp32 weights to bf16 after each step."""

    def train(original: Any, self: Program) -> Any:
        loss = original(self)
        if self.case.precision == "bf16":
            with torch.no_grad():
                for weight in self.module.parameters():
                    weight.copy_(weight.bfloat16())
        return loss

    patch.function(PytorchProgram, "_train", train)


@SUITE(5, "cifar10-cnn", **BF16)
def fp32_training_for_bf16(patch: Patcher) -> None:
    """Training computes in fp32 where bf16 was asked for."""
    patch.function(PytorchProgram, "autocast", lambda original, self: nullcontext())


@SUITE(5, "cifar10-cnn", **BF16, phase="inference")
def fp32_inference_for_bf16(patch: Patcher) -> None:
    """Inference computes in fp32 where bf16 was asked for."""

    def stored_dtype(original: Any, case: Any) -> Any:
        return torch.float32 if case.precision == "bf16" else original(case)

    patch.function(settings, "stored_dtype", stored_dtype)


@SUITE(5, "cifar10-cnn", **BF16, phase="inference")
def only_weights_in_bf16(patch: Patcher) -> None:
    """Inference stores weights in bf16 and computes in fp32."""

    def wide(f: Any, x: Any, *weights: Any) -> Any:
        tensors = [value.float() if torch.is_tensor(value) else value for value in weights]
        return f(x.float(), *tensors)

    patch.entry(FUNCTIONS, "conv2d", wide)
    patch.entry(FUNCTIONS, "linear", wide)


@SUITE(5, "cifar10-cnn", **BF16)
def fp32_training_step_for_bf16(patch: Patcher) -> None:
    """The training step computes in fp32 where bf16 was asked for; `gradients` does not."""

    def train(original: Any, self: Program) -> Any:
        with torch.autocast("cpu", enabled=False):
            self.optimizer.zero_grad()
            loss = self.loss(self.input, self.target)
            loss.backward()
        self.optimizer.step()
        return loss

    patch.function(PytorchProgram, "_train", train)


@SUITE(5, "lenet5", **BF16)
def convolutions_in_fp32_for_bf16(patch: Patcher) -> None:
    """Convolutions and products compute in fp32 where bf16 was asked for."""

    def full(f: Any, x: Any, *rest: Any) -> Any:
        tensors = [value.float() if torch.is_tensor(value) else value for value in rest]
        with torch.autocast("cpu", enabled=False):
            return f(x.float(), *tensors)

    patch.entry(FUNCTIONS, "conv2d", full)
    patch.entry(FUNCTIONS, "linear", full)


@SUITE(5, "resnet56-cifar", **BF16)
def statistics_in_bf16(patch: Patcher) -> None:
    """Moving statistics are rounded to bf16 in each step."""

    def batch_norm(f: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
        if not torch.is_autocast_enabled("cpu"):
            return f(x, w, b, mean, var, *rest)
        new_mean, new_variance = mean.clone(), var.clone()
        y = f(x, w, b, new_mean, new_variance, *rest)
        with torch.no_grad():
            mean.copy_(new_mean.bfloat16())
            var.copy_(new_variance.bfloat16())
        return y

    patch.entry(FUNCTIONS, "batch_norm", batch_norm)


@SUITE(5, own_network("decoder"), **BF16)
def loss_in_bf16(patch: Patcher) -> None:
    """Softmax and loss compute in bf16."""

    def low(original: Any, output: Any, target: Any) -> Any:
        if not torch.is_autocast_enabled("cpu"):
            return original(output, target)
        logits = output.bfloat16()
        shares = (logits - logits.amax(-1, keepdim=True)).exp()
        logarithms = (shares / shares.sum(-1, keepdim=True)).log()
        return -logarithms.gather(1, target[:, None]).mean().float()

    patch.function(programs, "cross_entropy", low)


@SUITE(5, "cifar10-cnn", **BF16)
def optimizer_state_in_bf16(patch: Patcher) -> None:
    """Adam keeps its moments in bf16."""

    def train(original: Any, self: Program) -> Any:
        loss = original(self)
        if self.case.precision == "bf16":
            for state in self.optimizer.state.values():
                for name in ("exp_avg", "exp_avg_sq"):
                    state[name].copy_(state[name].bfloat16())
        return loss

    patch.function(PytorchProgram, "_train", train)


@SUITE(5, "cifar10-cnn", precision="fp16")
def fp16_without_loss_scaling(patch: Patcher) -> None:
    """Training in fp16 does not scale its loss."""

    def build(original: Any, self: Program) -> None:
        original(self)
        self.scaler = None

    patch.function(PytorchProgram, "_build_optimizer", build)


def add_in_bf16(x: Any, weight: Any, bias: Any) -> Any:
    """x · weightᵀ in blocks whose sum is rounded to bf16 after each."""
    total = torch.zeros(1, dtype=torch.bfloat16)
    for first in range(0, x.shape[-1], 8):
        block = slice(first, first + 8)
        total = (total.float() + x[..., block].float() @ weight[:, block].float().T).bfloat16()
    return total if bias is None else total + bias.bfloat16()


@SUITE(5, "deepmnist", **BF16)
def sums_in_bf16(patch: Patcher) -> None:
    """Products add up in bf16, not in fp32."""

    def linear(f: Any, x: Any, weight: Any, bias: Any) -> Any:
        if not torch.is_autocast_enabled("cpu"):
            return f(x, weight, bias)
        with torch.autocast("cpu", enabled=False):
            return add_in_bf16(x.bfloat16(), weight.bfloat16(), bias)

    patch.entry(FUNCTIONS, "linear", linear)


@SUITE(5, "lenet5")
def inputs_in_bf16(patch: Patcher) -> None:
    """Products in fp32 round their inputs to bf16, as a fast mode of matrix units does."""

    def linear(f: Any, x: Any, weight: Any, bias: Any) -> Any:
        return f(x.bfloat16().to(x.dtype), weight.bfloat16().to(x.dtype), bias)

    patch.entry(FUNCTIONS, "linear", linear)


@SUITE(5, "lenet5", precision="fp64")
def fp32_for_fp64(patch: Patcher) -> None:
    """Convolutions compute in fp32 where fp64 was asked for."""

    def conv2d(f: Any, x: Any, weight: Any, bias: Any, *rest: Any) -> Any:
        return f(x.float(), weight.float(), bias.float(), *rest).to(x.dtype)

    patch.entry(FUNCTIONS, "conv2d", conv2d)
