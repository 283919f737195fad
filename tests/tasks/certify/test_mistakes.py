"""Mistakes in PyTorch's lowering, one of each kind: the certificate must name the item that fails.

`benchmarks/mistakes` has many more, in all frameworks and on networks of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from steptime import plugins
from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.frameworks.pytorch import optimizer, settings
from steptime.frameworks.pytorch.ops import FUNCTIONS, OPS
from steptime.frameworks.pytorch.program import PytorchProgram
from steptime.graph import Net, Optimizer, Tensor, Work, adam, momentum
from steptime.graph.weights import initial_weights
from steptime.tasks.certify import examine, write_reference
from steptime.tasks.certify.evidence import Lowering
from steptime.tasks.certify.reference import ReferenceFiles
from steptime.tasks.certify.studies import Effort, make_studies

Patch = pytest.MonkeyPatch
Items = dict[str, dict[str, Any]]
# Times the bound.
WIDE_MARGIN = 3.0
EXACT = Case(workload="tiny", framework="numpy", precision="fp64", batch_size=4, threads=1)


def images(net: Net) -> Tensor:
    x = net.batch_norm(net.conv(net.input(2, 8, 8), 4, 3, bias=False))
    x = net.max_pool(net.relu(x), 2)
    return net.dense(net.dropout(net.flatten(x), 0.5), 5)


def tokens(net: Net) -> Tensor:
    x = net.dropout(net.embedding(net.tokens(6, 9), 9, 8), 0.25)
    return net.dense(net.tanh(net.dense(x, 8)), 9)


NETWORKS = {
    "images": (images, momentum(0.1, weight_decay=1e-2)),
    "tokens": (tokens, adam(1e-3)),
}


def build(network: Callable[[Net], Tensor], rule: Optimizer) -> Work:
    net = Net("tiny")
    # The studies choose weights and batches.
    graph = net.graph(network(net))
    return Work(graph, initial_weights(graph, 0), {}, rule)


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("references")


@pytest.fixture(scope="module")
def certify(references: Path) -> Callable[[str, str], Items]:
    studies = {}
    for name, (network, rule) in NETWORKS.items():
        (study,) = make_studies(build(network, rule), EXACT)
        studies[name] = replace(study, effort=Effort(steps=6, draws=3, trajectories=3))

    def run(network: str, precision: str) -> Items:
        files = ReferenceFiles(references, studies[network], "numpy", 0)
        write_reference(Lowering(reference, EXACT), files, precision)
        case = replace(EXACT, framework="pytorch", precision=precision)
        framework = plugins.load("frameworks", "pytorch")
        options = {"reference": "numpy", "precision": precision}
        return {item["item"]: item for item in examine(Lowering(framework, case), files, options)}

    return run


def wrap(patch: Patch, table: dict[str, Any], key: str, wrong: Callable[..., Any]) -> None:
    original = table[key]
    patch.setitem(table, key, lambda *arguments: wrong(original, *arguments))


def wrap_method(patch: Patch, name: str, wrong: Callable[..., Any]) -> None:
    original = getattr(PytorchProgram, name)
    patch.setattr(PytorchProgram, name, lambda *arguments: wrong(original, *arguments))


# The timed step is not the certified function


def quarter_of_batch(patch: Patch) -> None:
    def infer(original: Any, self: Any) -> Any:
        quarter = self.network(self.input[:1])
        return quarter.detach().expand(len(self.input), -1)

    wrap_method(patch, "_infer", infer)


def first_output_for_ever(patch: Patch) -> None:
    def infer(original: Any, self: Any) -> Any:
        self.kept = getattr(self, "kept", None)
        if self.kept is None:
            self.kept = original(self)
        return self.kept

    wrap_method(patch, "_infer", infer)


def inference_in_bf16(patch: Patch) -> None:
    def infer(original: Any, self: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return original(self).float()

    wrap_method(patch, "_infer", infer)


def host_batch_never_copied(patch: Patch) -> None:
    wrap_method(patch, "fetch", lambda original, self: None)


def single_sample_in_training_behaviour(patch: Patch) -> None:
    def infer(original: Any, self: Any) -> Any:
        self.module.train(len(self.input) == 1)
        self.module.dropping = False
        return original(self)

    wrap_method(patch, "_infer", infer)


def first_target_for_ever(patch: Patch) -> None:
    def feed(original: Any, self: Any, batch: Any) -> None:
        original(self, {**batch, "target": self.work.batch["target"]})

    wrap_method(patch, "feed", feed)


def every_second_update_skipped(patch: Patch) -> None:
    def train(original: Any, self: Any) -> Any:
        self.count = getattr(self, "count", 0) + 1
        return original(self) if self.count % 2 else self.loss(self.input, self.target)

    wrap_method(patch, "_train", train)


def forward_without_statistics(patch: Patch) -> None:
    def forward(original: Any, self: Any) -> Any:
        self.module.eval()
        return original(self)

    wrap_method(patch, "_forward", forward)


# State at rest


def statistics_swapped(patch: Patch) -> None:
    def batch_norm(f: Any, x: Any, w: Any, b: Any, mean: Any, variance: Any, *rest: Any) -> Any:
        if not rest[0]:
            mean, variance = variance, mean.abs()
        return f(x, w, b, mean, variance, *rest)

    wrap(patch, FUNCTIONS, "batch_norm", batch_norm)


def scale_ignored(patch: Patch) -> None:
    wrap(patch, FUNCTIONS, "batch_norm", lambda f, x, w, *rest: f(x, 0 * w + 1, *rest))


def bias_ignored(patch: Patch) -> None:
    wrap(patch, FUNCTIONS, "linear", lambda f, x, w, b: f(x, w, 0 * b))


def token_0_is_padding(patch: Patch) -> None:
    wrap(patch, FUNCTIONS, "embedding", lambda f, w, x: f(w, x) * (x != 0)[..., None])


# Bounds that prove something


def statistics_never_move(patch: Patch) -> None:
    def batch_norm(f: Any, x: Any, w: Any, b: Any, mean: Any, variance: Any, *rest: Any) -> Any:
        return f(x, w, b, mean.clone(), variance.clone(), *rest)

    wrap(patch, FUNCTIONS, "batch_norm", batch_norm)


def slow_statistics(patch: Patch) -> None:
    wrap(patch, FUNCTIONS, "batch_norm", lambda f, *a: f(*a[:6], 0.01, *a[7:]))


class RoundGradient(torch.autograd.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient.bfloat16().to(gradient.dtype)


def backward_in_bf16(patch: Patch) -> None:
    wrap(patch, FUNCTIONS, "conv2d", lambda f, *arguments: RoundGradient.apply(f(*arguments)))


def duplicate_tokens_overwrite(patch: Patch) -> None:
    def embedding(f: Any, weight: Any, x: Any) -> Any:
        last = torch.zeros(len(weight), dtype=torch.long)
        order = torch.arange(x.numel())
        last[x.flatten()] = order
        rows = f(weight, x)
        counts = (last[x.flatten()] == order).view(*x.shape, 1)
        return torch.where(counts, rows, rows.detach())

    wrap(patch, FUNCTIONS, "embedding", embedding)


def decay_missing(patch: Patch) -> None:
    original = optimizer._sgd

    def sgd(spec: Any, weights: Any) -> Any:
        return original(replace(spec, weight_decay=0.0), weights)

    patch.setattr(optimizer, "_sgd", sgd)


# Another op


def flatten_with_channels_last(patch: Patch) -> None:
    def flatten(original: Any, site: Any) -> Any:
        if len(site.layer.input_shapes[0]) != 3:
            return original(site)
        return f"{site.inputs[0]}.permute(0, 2, 3, 1).flatten(1)"

    wrap(patch, OPS, "flatten", flatten)


# Dropout


def draw(x: Any, rate: float, shape: Any = None) -> Any:
    kept = torch.rand(shape or x.shape) >= rate
    return x * kept / (1 - rate)


def wrong_dropout(patch: Patch, wrong: Callable[[Any, float], Any]) -> None:
    def dropout(f: Any, x: Any, rate: float, dropping: bool) -> Any:
        return wrong(x, rate) if dropping and rate else x

    wrap(patch, FUNCTIONS, "dropout", dropout)


def never_drops(patch: Patch) -> None:
    wrong_dropout(patch, lambda x, rate: x)


def one_mask_for_samples(patch: Patch) -> None:
    wrong_dropout(patch, lambda x, rate: draw(x, rate, x.shape[1:]))


def one_mask_for_time(patch: Patch) -> None:
    wrong_dropout(patch, lambda x, rate: draw(x, rate, (len(x), 1, *x.shape[2:])))


def mask_ignored_backward(patch: Patch) -> None:
    wrong_dropout(patch, lambda x, rate: x + (draw(x, rate) - x).detach())


def fixed_mask(patch: Patch) -> None:
    def fixed(x: Any, rate: float) -> Any:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return draw(x, rate)

    wrong_dropout(patch, fixed)


# Low precision


def weights_without_masters(patch: Patch) -> None:
    patch.setattr(settings, "uses_autocast", lambda case: False)


def fp32_where_bf16_was_asked(patch: Patch) -> None:
    wrap_method(patch, "autocast", lambda original, self: nullcontext())
    patch.setitem(settings.DTYPES, "bf16", torch.float32)


@dataclass(frozen=True)
class Mistake:
    patch: Callable[[Patch], None]
    item: str  # that must fail
    where: str  # what it names
    network: str = "images"
    precision: str = "fp32"


MISTAKES = (
    Mistake(quarter_of_batch, "outputs", "["),
    Mistake(first_output_for_ever, "outputs", "["),
    Mistake(inference_in_bf16, "outputs", "["),
    Mistake(host_batch_never_copied, "outputs", "second batch from host"),
    Mistake(single_sample_in_training_behaviour, "outputs", "one sample"),
    Mistake(first_target_for_ever, "forward", ""),
    Mistake(every_second_update_skipped, "trajectory", "step"),
    Mistake(forward_without_statistics, "statistics", "after forward"),
    Mistake(statistics_swapped, "outputs", "["),
    Mistake(scale_ignored, "outputs", "["),
    Mistake(bias_ignored, "gradients", "bias", network="tokens"),
    Mistake(token_0_is_padding, "gradients", "embedding1.weight[0", network="tokens"),
    Mistake(statistics_never_move, "statistics", "running"),
    Mistake(slow_statistics, "statistics", "running", precision="fp64"),
    Mistake(backward_in_bf16, "gradients", "conv1", precision="fp64"),
    Mistake(duplicate_tokens_overwrite, "gradients", "embedding1", network="tokens"),
    Mistake(decay_missing, "optimizer rule", "dense1"),
    Mistake(flatten_with_channels_last, "outputs", "["),
    Mistake(never_drops, "dropout", "rate 0.5"),
    Mistake(one_mask_for_samples, "dropout masks", "sample to sample"),
    Mistake(one_mask_for_time, "dropout masks", "time to time", network="tokens"),
    Mistake(mask_ignored_backward, "dropout masks", "same masks"),
    Mistake(fixed_mask, "dropout masks", "to"),
    Mistake(weights_without_masters, "stored weights", "", precision="bf16"),
    Mistake(fp32_where_bf16_was_asked, "precision", "more exact", precision="bf16"),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.patch.__name__)
def test_certificate_sees_mistake(
    mistake: Mistake, certify: Callable[[str, str], Items], monkeypatch: Patch
) -> None:
    mistake.patch(monkeypatch)
    item = certify(mistake.network, mistake.precision)[mistake.item]
    assert not item["passed"]
    # None: infinite.
    assert item["share"] is None or item["share"] > WIDE_MARGIN
    assert mistake.where in item["where"]


@pytest.mark.parametrize("precision", ["fp64", "fp32", "bf16"])
@pytest.mark.parametrize("network", NETWORKS)
def test_certificate_passes_right_lowering(
    network: str, precision: str, certify: Callable[[str, str], Items]
) -> None:
    failed = [item for item in certify(network, precision).values() if not item["passed"]]
    assert failed == []
