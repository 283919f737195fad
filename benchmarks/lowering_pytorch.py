"""PyTorch's side of `lowering.py`: a loop around the network of the model zoo, or a copy of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import reference_models_pytorch
import torch
from quadruples import Pair

from steptime import workloads
from steptime.core.case import Case
from steptime.frameworks import pytorch
from steptime.graph import Optimizer, Work

Step = Callable[[], Any]
# Batch of a training step on a GPU.
SEQUENCES = {"gpt2": 8, "transformer-base": 64, "ptb-lstm-medium": 20}
# Calls before a CUDA graph is captured, as PyTorch's documentation advises.
CAPTURE_WARM_UP = 3


def describe(options: argparse.Namespace) -> dict[str, Any]:
    reference = reference_models_pytorch.source(options.reference)
    return {"device": _device(options), "reference": reference}


def _device(options: argparse.Namespace) -> str:
    return options.device or ("cuda:0" if torch.cuda.is_available() else "cpu")


def cases(options: argparse.Namespace) -> Iterator[tuple[str, Case, str | None]]:
    for case in _chosen_cases(options):
        words = (case.workload, case.phase, case.precision, f"batch {case.batch_size}", case.mode)
        yield " ".join(words), case, options.reference


def _chosen_cases(options: argparse.Namespace) -> Iterator[Case]:
    device = _device(options)
    if device == "cpu":
        yield from _cpu_cases(options)
    else:
        yield from _gpu_cases(options, device)
    for name in ("cifar10-cnn", "mnist-mlp"):
        yield Case(workload=name, phase="inference", batch_size=1, threads=1)


def _cpu_cases(options: argparse.Namespace) -> Iterator[Case]:
    modes = ["eager"] if options.quick else ["eager", "compiled"]
    for phase, size in (("training", 2), ("inference", 1)):
        for mode in modes:
            yield Case(
                workload="resnet50",
                phase=phase,
                mode=mode,
                batch_size=size,
                layout=options.layout,
            )
    for name in SEQUENCES:
        for phase in ("training", "inference"):
            yield Case(workload=name, phase=phase, batch_size=1)


def _gpu_cases(options: argparse.Namespace, device: str) -> Iterator[Case]:
    modes = ["eager"] if options.quick else ["eager", "compiled"]
    captured = ["cudagraph"] if options.quick else ["cudagraph", "compiled-cudagraph"]
    image = Case(workload="resnet50", device=device, layout=options.layout)
    for mode in modes:
        size = 64 if options.quick else 256
        yield replace(image, mode=mode, batch_size=size, precision="bf16")
    for size in (1, 32, 256):
        for mode in [*modes, *captured]:
            yield replace(image, phase="inference", mode=mode, batch_size=size, precision="fp16")
    for name, size in SEQUENCES.items():
        sequence = Case(workload=name, device=device)
        # cuDNN's LSTM in bf16 copies its weights in every step under autocast.
        precision = "fp32" if "lstm" in name else "bf16"
        for mode in modes:
            yield replace(sequence, mode=mode, batch_size=size, precision=precision)
        for mode in [*modes, *captured]:
            yield replace(sequence, phase="inference", mode=mode, batch_size=1, precision="fp16")


def make_pair(case: Case, reference: str | None) -> Pair:
    work = workloads.load(case.workload).build(case)
    program = pytorch.lower(work, case)
    model = reference_models_pytorch.model(case.workload, reference)
    return Pair(
        ours=program.step,
        theirs=hand_written(model, case, work),
        wait=program.wait,
        to_array=lambda value: value.detach().float().cpu().numpy(),
        device_block=None if case.device == "cpu" else _device_block,
    )


def clear_caches() -> None:
    torch._dynamo.reset()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def hand_written(model: torch.nn.Module, case: Case, work: Work) -> Step:
    """The usual PyTorch code, with the same optimiser, precision and layout."""
    # Equal weights, so that the results of the first steps can be compared.
    _copy_weights(model, work.weights)
    inputs = torch.from_numpy(work.batch["input"]).to(case.device)
    target = torch.from_numpy(work.batch["target"]).to(case.device)
    memory_format = torch.preserve_format
    if case.layout == "nhwc":
        memory_format = torch.channels_last
        inputs = inputs.contiguous(memory_format=memory_format)
    model = model.to(case.device, memory_format=memory_format)
    if case.phase == "training":
        return _training(model, case, work.optimizer, inputs, target)
    return _inference(model, case, inputs)


def _training(model: Any, case: Case, spec: Optimizer, inputs: Any, target: Any) -> Step:
    model.train()
    optimizer = _optimizer(model, spec)
    device_type = torch.device(case.device).type
    mixed = case.precision == "bf16"
    if case.mode == "compiled":
        model = torch.compile(model)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type, torch.bfloat16, enabled=mixed):
            output = model(inputs)
            loss = torch.nn.functional.cross_entropy(output.flatten(0, -2), target.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return step


def _optimizer(model: torch.nn.Module, spec: Optimizer) -> torch.optim.Optimizer:
    weights = model.parameters()
    if spec.algorithm != "adam":
        momentum = spec.momentum if spec.algorithm == "momentum" else 0.0
        return torch.optim.SGD(weights, lr=spec.rate, momentum=momentum, fused=True)
    optimizer_class = torch.optim.AdamW if spec.decoupled else torch.optim.Adam
    return optimizer_class(
        weights,
        lr=spec.rate,
        betas=spec.betas,
        eps=spec.epsilon,
        weight_decay=spec.weight_decay,
        fused=True,
    )


def _inference(model: Any, case: Case, inputs: Any) -> Step:
    model.eval()
    if case.precision == "fp16":
        model = model.half()
        # Tokens stay whole numbers.
        if inputs.is_floating_point():
            inputs = inputs.half()
    if case.mode.startswith("compiled"):
        model = torch.compile(model)

    def step() -> Any:
        with torch.inference_mode():
            return model(inputs)

    return _capture(step) if case.mode.endswith("cudagraph") else step


def _capture(step: Step) -> Step:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(CAPTURE_WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    # A compiled function may be valid for one stream only.
    with torch.cuda.graph(graph, stream=side):
        result = step()

    # The default argument keeps model and inputs alive: the graph knows only their addresses.
    def replay(kept: Step = step) -> Any:
        graph.replay()
        return result

    return replay


def _copy_weights(model: torch.nn.Module, weights: dict[str, Any]) -> None:
    """Both define their layers in the same order."""
    tensors = []
    for name, tensor in model.state_dict().items():
        if "bias_hh" in name:
            # The second bias of a recurrent layer, which our networks do not have.
            tensor.zero_()
        elif not name.endswith("num_batches_tracked"):
            # PyTorch's counters of batches are no weights.
            tensors.append(tensor)
    for tensor, array in zip(tensors, weights.values(), strict=True):
        tensor.copy_(torch.from_numpy(array))


def _device_block(step: Step, count: int) -> float:
    first = torch.cuda.Event(enable_timing=True)
    last = torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(count):
        step()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / 1e3
