"""PyTorch's side of `lowering.py`: a loop around the model zoo's network, or around one of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import reference_models_pytorch
import torch
from quadruples import Pair

from steptime import workloads
from steptime.core.case import Case
from steptime.frameworks import pytorch

Step = Callable[[], Any]


def about(options: Any) -> dict[str, Any]:
    return {
        "device": _device(options),
        "reference": reference_models_pytorch.source(options.reference),
    }


def _device(options: Any) -> str:
    return options.device or ("cuda:0" if torch.cuda.is_available() else "cpu")


def cases(options: Any) -> Iterator[tuple[str, Case, str | None]]:
    device, quick, reference = _device(options), options.quick, options.reference
    gpu = device != "cpu"
    modes = ("eager",) if quick else ("eager", "compiled")
    shared: dict[str, Any] = {"workload": "resnet50", "device": device, "layout": options.layout}
    for mode in modes:
        size, precision = (64 if quick else 256, "bf16") if gpu else (2, "fp32")
        case = Case(**shared, mode=mode, batch_size=size, precision=precision)
        yield f"resnet50 training {precision} batch {size} {mode}", case, reference
    for size in (1, 32, 256) if gpu else (1,):
        for mode in (*modes, "cudagraph") if gpu else modes:
            precision = "fp16" if gpu else "fp32"
            case = Case(
                **shared, phase="inference", mode=mode, batch_size=size, precision=precision
            )
            yield f"resnet50 inference {precision} batch {size} {mode}", case, reference
    for name in ("cifar10-cnn", "mnist-mlp"):
        case = Case(workload=name, phase="inference", batch_size=1, threads=1)
        yield f"{name} inference fp32 batch 1 cpu", case, reference


def pair(case: Case, reference: str | None) -> Pair:
    work = workloads.load(case.workload).build(case)
    program = pytorch.lower(work, case)
    theirs = hand_written(reference_models_pytorch.model(case.workload, reference), case, work)
    block = None if case.device == "cpu" else _device_block
    return Pair(
        program.step,
        theirs,
        program.wait,
        lambda value: value.detach().float().cpu().numpy(),
        block,
    )


def forget() -> None:
    torch._dynamo.reset()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def hand_written(model: torch.nn.Module, case: Case, work: Any) -> Step:
    """What one writes without us: the same optimiser, precision and layout, in PyTorch's own idiom."""
    _copy_weights(model, work.weights)
    channels_last = case.layout == "nhwc"
    model = model.to(
        case.device, memory_format=torch.channels_last if channels_last else torch.preserve_format
    )
    images = torch.from_numpy(work.batch["input"]).to(case.device)
    images = images.contiguous(memory_format=torch.channels_last) if channels_last else images
    labels = torch.from_numpy(work.batch["target"]).to(case.device)
    return (
        _training(model, case, images, labels)
        if case.phase == "training"
        else _inference(model, case, images)
    )


def _training(model: Any, case: Case, images: Any, labels: Any) -> Step:
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    device_type, mixed = torch.device(case.device).type, case.precision == "bf16"
    model = torch.compile(model) if case.mode == "compiled" else model

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
        model, images = model.half(), images.half()
    model = torch.compile(model) if case.mode == "compiled" else model

    def step() -> Any:
        with torch.inference_mode():
            return model(images)

    return _captured(step) if case.mode == "cudagraph" else step


def _captured(step: Step) -> Step:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()

    def replay(
        kept: Step = step,
    ) -> Any:  # the graph knows addresses only: model and images must live as long
        graph.replay()
        return result

    return replay


def _copy_weights(model: torch.nn.Module, weights: dict[str, Any]) -> None:
    """Both define their layers in the same order; PyTorch's batch counters are no weights."""
    own = [
        value
        for name, value in model.state_dict().items()
        if not name.endswith("num_batches_tracked")
    ]
    for value, array in zip(own, weights.values(), strict=True):
        value.copy_(torch.from_numpy(array))


def _device_block(step: Step, count: int) -> float:
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(count):
        step()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / 1e3
