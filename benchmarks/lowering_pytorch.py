"""PyTorch's side of `lowering.py`: a loop around the network of the model zoo, or a copy of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import reference_models_pytorch
import torch
from quadruples import Pair

from steptime import workloads
from steptime.core.case import Case
from steptime.frameworks import pytorch
from steptime.graph import Work

Step = Callable[[], Any]
# Calls before a CUDA graph is captured, as PyTorch's documentation advises.
CAPTURE_WARM_UP = 3


def describe(options: argparse.Namespace) -> dict[str, Any]:
    reference = reference_models_pytorch.source(options.reference)
    return {"device": _device(options), "reference": reference}


def _device(options: argparse.Namespace) -> str:
    return options.device or ("cuda:0" if torch.cuda.is_available() else "cpu")


def cases(options: argparse.Namespace) -> Iterator[tuple[str, Case, str | None]]:
    device = _device(options)
    reference = options.reference
    on_gpu = device != "cpu"
    modes = ["eager"] if options.quick else ["eager", "compiled"]
    shared: dict[str, Any] = {"workload": "resnet50", "device": device, "layout": options.layout}
    precision = "bf16" if on_gpu else "fp32"
    size = 2
    if on_gpu:
        size = 64 if options.quick else 256
    for mode in modes:
        case = Case(**shared, mode=mode, batch_size=size, precision=precision)
        yield f"resnet50 training {precision} batch {size} {mode}", case, reference
    precision = "fp16" if on_gpu else "fp32"
    inference_modes = [*modes, "cudagraph"] if on_gpu else modes
    sizes = (1, 32, 256) if on_gpu else (1,)
    for size in sizes:
        for mode in inference_modes:
            case = Case(
                **shared, phase="inference", mode=mode, batch_size=size, precision=precision
            )
            yield f"resnet50 inference {precision} batch {size} {mode}", case, reference
    for name in ("cifar10-cnn", "mnist-mlp"):
        case = Case(workload=name, phase="inference", batch_size=1, threads=1)
        yield f"{name} inference fp32 batch 1 cpu", case, reference


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
    images = torch.from_numpy(work.batch["input"]).to(case.device)
    labels = torch.from_numpy(work.batch["target"]).to(case.device)
    memory_format = torch.preserve_format
    if case.layout == "nhwc":
        memory_format = torch.channels_last
        images = images.contiguous(memory_format=memory_format)
    model = model.to(case.device, memory_format=memory_format)
    if case.phase == "training":
        return _training(model, case, images, labels)
    return _inference(model, case, images)


def _training(model: Any, case: Case, images: Any, labels: Any) -> Step:
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    device_type = torch.device(case.device).type
    mixed = case.precision == "bf16"
    if case.mode == "compiled":
        model = torch.compile(model)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type, torch.bfloat16, enabled=mixed):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _inference(model: Any, case: Case, images: Any) -> Step:
    model.eval()
    if case.precision == "fp16":
        model = model.half()
        images = images.half()
    if case.mode == "compiled":
        model = torch.compile(model)

    def step() -> Any:
        with torch.inference_mode():
            return model(images)

    return _capture(step) if case.mode == "cudagraph" else step


def _capture(step: Step) -> Step:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(CAPTURE_WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()

    # The default argument keeps model and images alive: the graph knows only their addresses.
    def replay(kept: Step = step) -> Any:
        graph.replay()
        return result

    return replay


def _copy_weights(model: torch.nn.Module, weights: dict[str, Any]) -> None:
    """Both define their layers in the same order."""
    tensors = []
    for name, tensor in model.state_dict().items():
        # PyTorch's counters of batches are no weights.
        if not name.endswith("num_batches_tracked"):
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
