"""PyTorch, class 3: gradients, moving statistics and optimizer."""

from __future__ import annotations

from typing import Any

import torch
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network
from torch.nn.functional import cross_entropy

from steptime.frameworks.pytorch import optimizer as optimizers
from steptime.frameworks.pytorch import program as programs
from steptime.frameworks.pytorch.ops import FUNCTIONS, OPS
from steptime.frameworks.pytorch.program import PytorchProgram

SUITE = Suite("pytorch", "eager")
RESNET = "resnet56-cifar"
Program = Any


# Moving statistics


def wrong_batch_norm(name: str, wrong: Any, text: str) -> None:
    """`wrong` gets the original function and its arguments, in training only."""

    def patch(patcher: Patcher) -> None:
        def batch_norm(f: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
            if not rest[0]:
                return f(x, w, b, mean, var, *rest)
            return wrong(f, x, w, b, mean, var, *rest)

        patcher.entry(FUNCTIONS, "batch_norm", batch_norm)

    SUITE.add(3, RESNET, patch, text, name=name)


def keep_statistics(f: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
    return f(x, w, b, mean.clone(), var.clone(), *rest)


def keep_variance(f: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
    return f(x, w, b, mean, var.clone(), *rest)


def slow_momentum(f: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
    return f(x, w, b, mean, var, rest[0], 0.01, *rest[2:])


def other_momentum(f: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
    return f(x, w, b, mean, var, rest[0], 1 - rest[1], *rest[2:])


def biased_variance(f: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
    moved = var.clone()
    y = f(x, w, b, mean, moved, *rest)
    count = x.numel() // x.shape[1]
    kept = var * (1 - rest[1])
    with torch.no_grad():
        var.copy_(kept + (moved - kept) * (count - 1) / count)
    return y


def update_twice(f: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
    with torch.no_grad():
        f(x, w, b, mean, var, *rest)
    return f(x, w, b, mean, var, *rest)


def constant_statistics(f: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
    """The backward pass takes mean and variance of the batch for constants."""
    with torch.no_grad():
        f(x, w, b, mean, var, *rest)
        axes = [axis for axis in range(x.dim()) if axis != 1]
        batch_mean = x.mean(axes)
        batch_variance = x.var(axes, unbiased=False)
    return f(x, w, b, batch_mean, batch_variance, False, *rest[1:])


wrong_batch_norm("statistics_never_move", keep_statistics, "Moving statistics are never updated")
wrong_batch_norm("variance_never_moves", keep_variance, "The moving variance is never updated")
wrong_batch_norm("statistics_momentum_0.01", slow_momentum, "Statistics move by 0.01 for 0.1")
wrong_batch_norm("statistics_momentum_0.9", other_momentum, "Statistics move by 1 − momentum")
wrong_batch_norm("biased_moving_variance", biased_variance, "The moving variance is the biased one")
wrong_batch_norm("statistics_move_twice", update_twice, "Statistics move twice in each step")
wrong_batch_norm(
    "statistics_constant_backward",
    constant_statistics,
    "The backward pass takes the batch's statistics for constants",
)


# Gradients


class RoundGradient(torch.autograd.Function):
    """The identity, but gradients go back in bf16."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient.bfloat16().to(gradient.dtype)


@SUITE(3, RESNET)
def backward_in_bf16(patch: Patcher) -> None:
    """The backward pass of every convolution is in bf16."""
    patch.entry(FUNCTIONS, "conv2d", lambda f, *arguments: RoundGradient.apply(f(*arguments)))


def wrong_line(op: str, old: str, new: str) -> Any:
    def patch(patcher: Patcher) -> None:
        patcher.entry(OPS, op, lambda original, site: original(site).replace(old, new))

    return patch


SUITE.add(
    3,
    "lenet5",
    wrong_line("conv", 'p["conv1__bias"]', 'p["conv1__bias"].detach() + 0 * p["conv1__bias"]'),
    "The bias of the first convolution gets no gradient",
    name="one_bias_without_gradient",
)
SUITE.add(
    3,
    "cifar10-cnn",
    wrong_line(
        "conv", 'p["conv2__weight"]', '(p["conv2__weight"] + p["conv2__weight"].detach()) / 2'
    ),
    "The gradient of one convolution is halved",
    name="one_gradient_halved",
)
SUITE.add(
    3,
    "transformer-base",
    wrong_line("tied_dense", 'p["embedding1__weight"]', 'p["embedding1__weight"].detach()'),
    "The tied weight gets no gradient from the output layer",
    name="tied_weight_without_gradient",
)


@SUITE(3, "ptb-lstm-small")
def duplicate_tokens_overwrite(patch: Patcher) -> None:
    """The embedding's gradient keeps the last of equal tokens instead of their sum."""

    def embedding(f: Any, weight: Any, tokens: Any) -> Any:
        flat = tokens.flatten()
        last = torch.zeros(len(weight), dtype=torch.long)
        last[flat] = torch.arange(len(flat))
        counts = (last[flat] == torch.arange(len(flat))).view(*tokens.shape, 1)
        rows = f(weight, tokens)
        return torch.where(counts, rows, rows.detach())

    patch.entry(FUNCTIONS, "embedding", embedding)


class LeakyGradient(torch.autograd.Function):
    """ReLU whose gradient at negative values is 0.01."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, gradient, 0.01 * gradient)


@SUITE(3, "cifar10-cnn")
def relu_gradient_leaks(patch: Patcher) -> None:
    """The gradient of ReLU at negative values is 0.01 for 0."""
    for name in ("relu", "relu_"):
        patch.entry(FUNCTIONS, name, lambda f, x: LeakyGradient.apply(x))


@SUITE(3, "cifar10-cnn")
def pool_gradient_spread(patch: Patcher) -> None:
    """The gradient of max pools goes to all cells of a window."""

    def max_pool(f: Any, x: Any, window: Any, stride: Any, *rest: Any) -> Any:
        mean = FUNCTIONS["average_pool"](x, window, stride)
        return mean + (f(x, window, stride, *rest) - mean).detach()

    patch.entry(FUNCTIONS, "max_pool", max_pool)


@SUITE(3, "cifar10-cnn")
def pool_gradient_to_first_cell(patch: Patcher) -> None:
    """The gradient of max pools goes to the first cell of a window."""

    def max_pool(f: Any, x: Any, window: Any, stride: Any, *rest: Any) -> Any:
        y = f(x, window, stride, *rest)
        first = x[:, :, :: stride[0], :: stride[1]][:, :, : y.shape[2], : y.shape[3]]
        return first + (y - first).detach()

    patch.entry(FUNCTIONS, "max_pool", max_pool)


@SUITE(3, "lenet5")
def gradient_clipped(patch: Patcher) -> None:
    """The training step clips the norm of the gradient at 1."""

    def step(original: Any, self: Any) -> Any:
        torch.nn.utils.clip_grad_norm_(self.param_groups[0]["params"], 1.0)
        return original(self)

    patch.function(torch.optim.SGD, "step", step)


@SUITE(3, "lenet5")
def gradient_halved(patch: Patcher) -> None:
    """The training step halves all gradients, as if two ranks shared it."""

    def train(original: Any, self: Program) -> Any:
        self.optimizer.zero_grad()
        loss = self.loss(self.input, self.target)
        (loss / 2).backward()
        self.optimizer.step()
        return loss

    patch.function(PytorchProgram, "_train", train)


@SUITE(3, RESNET)
def micro_batches(patch: Patcher) -> None:
    """The training step adds up the gradients of two halves, each with its own statistics."""

    def train(original: Any, self: Program) -> Any:
        self.optimizer.zero_grad()
        losses = []
        for values, target in zip(self.input.chunk(2), self.target.chunk(2), strict=True):
            loss = self.loss(values, target) / 2
            loss.backward()
            losses.append(loss)
        self.optimizer.step()
        return sum(losses)

    patch.function(PytorchProgram, "_train", train)


def wrong_loss(name: str, network: str, text: str, **settings: Any) -> None:
    def patch(patcher: Patcher) -> None:
        patcher.function(
            programs,
            "cross_entropy",
            lambda original, output, target: original(output, target, **settings),
        )

    SUITE.add(3, network, patch, text, name=name)


wrong_loss("label_smoothing", "lenet5", "Labels are smoothed by 0.1", label_smoothing=0.1)
wrong_loss("target_0_ignored", "ptb-lstm-small", "Target 0 is padding to the loss", ignore_index=0)


@SUITE(3, "ptb-lstm-small")
def loss_summed_over_positions(patch: Patcher) -> None:
    """The loss is the mean over the batch of the sum over positions; it is shown as the mean."""

    def loss(original: Any, self: Program, values: Any, target: Any) -> Any:
        output = self.wrapped_module(values)
        mean = cross_entropy(output.flatten(0, -2), target.flatten())
        total = mean * target.shape[-1]
        return total + (mean - total).detach()

    patch.function(PytorchProgram, "_loss", loss)


# Optimizer


def wrong_sgd(name: str, text: str, **wrong: Any) -> None:
    def patch(patcher: Patcher) -> None:
        def make(original: Any, spec: Any, weights: Any) -> Any:
            optimizer = original(spec, weights)
            for group in optimizer.param_groups:
                group.update(wrong)
            return optimizer

        patcher.function(optimizers, "_sgd", make)

    SUITE.add(3, RESNET, patch, text, name=name)


wrong_sgd("decay_missing", "There is no weight decay", weight_decay=0.0)
wrong_sgd("decay_tenfold", "Weight decay is ten times too large", weight_decay=1e-3)
wrong_sgd("nesterov", "Momentum is Nesterov's", nesterov=True)
wrong_sgd("momentum_dampened", "The gradient enters momentum by a tenth", dampening=0.9)
wrong_sgd("momentum_0.99", "Momentum is 0.99 for 0.9", momentum=0.99)


@SUITE(3, RESNET)
def decay_not_on_biases(patch: Patcher) -> None:
    """Scales and biases have no weight decay."""

    def make(original: Any, spec: Any, weights: Any) -> Any:
        weights = list(weights)
        optimizer = original(spec, [weight for weight in weights if weight.dim() > 1])
        small = [weight for weight in weights if weight.dim() == 1]
        optimizer.add_param_group({"params": small, "weight_decay": 0.0})
        for weight in small:
            optimizer.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
        return optimizer

    patch.function(optimizers, "_sgd", make)


def wrong_adam(name: str, text: str, network: str = "cifar10-cnn", **wrong: Any) -> None:
    def patch(patcher: Patcher) -> None:
        def make(original: Any, spec: Any, weights: Any, **settings: Any) -> Any:
            optimizer = original(spec, weights, **settings)
            for group in optimizer.param_groups:
                group.update(wrong)
            return optimizer

        patcher.function(programs, "optimizer_for", make)

    SUITE.add(3, network, patch, text, name=name)


wrong_adam("adam_epsilon_1e-7", "Adam has epsilon 1e-7 for 1e-8", eps=1e-7)
wrong_adam("adam_beta_0.99", "Adam's second beta is 0.99 for 0.999", betas=(0.9, 0.99))
wrong_adam("adam_rate_10_percent_off", "The learning rate is 1.1e-3 for 1e-3", lr=1.1e-3)
wrong_adam(
    "adamw_without_decay", "AdamW has no weight decay", own_network("decoder"), weight_decay=0.0
)


def adam_by_hand(name: str, text: str, direction: Any) -> None:
    """`direction` of the moments, their corrections and epsilon."""

    def patch(patcher: Patcher) -> None:
        def step(original: Any, self: Any) -> None:
            for group in self.param_groups:
                move_group(self, group, direction)

        patcher.function(torch.optim.Adam, "step", step)

    SUITE.add(3, "cifar10-cnn", patch, text, name=name)


@torch.no_grad()
def move_group(optimizer: Any, group: dict[str, Any], direction: Any) -> None:
    first, second = group["betas"]
    for weight in group["params"]:
        state = optimizer.state[weight]
        state["time"] = state.get("time", 0) + 1
        state["m"] = first * state.get("m", 0) + (1 - first) * weight.grad
        state["s"] = second * state.get("s", 0) + (1 - second) * weight.grad**2
        left = (1 - first ** state["time"], 1 - second ** state["time"])
        weight -= group["lr"] * direction(state["m"], state["s"], left, group["eps"])


adam_by_hand(
    "adam_uncorrected",
    "Adam does not correct the bias of its moments",
    lambda m, s, left, epsilon: m / (s.sqrt() + epsilon),
)
adam_by_hand(
    "adam_epsilon_inside_root",
    "Adam adds epsilon inside the root",
    lambda m, s, left, epsilon: m / left[0] / (s / left[1] + epsilon).sqrt(),
)
adam_by_hand(
    "adam_epsilon_before_correction",
    "Adam adds epsilon before it corrects the second moment",
    lambda m, s, left, epsilon: m / left[0] * left[1] ** 0.5 / (s.sqrt() + epsilon),
)
