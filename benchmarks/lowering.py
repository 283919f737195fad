"""Is a lowered network as fast as a hand-written loop around the model zoo's? Both in one process, in turns.

    python benchmarks/lowering.py                 # everything that this machine can do
    python benchmarks/lowering.py --quick         # small, to see that it works
    python benchmarks/lowering.py --only training

Both programs are resident and start from equal weights. Blocks alternate ours, theirs, theirs, ours; a ratio is of one
such quadruple, below 1 where ours is faster. `--reference own` takes the ResNet-50 of `reference_models.py` instead of
torchvision's."""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import reference_models
import torch

from steptime import workloads
from steptime.core.case import Case
from steptime.frameworks import pytorch

Step = Callable[[], Any]
ALPHA = 0.05


@dataclass(frozen=True)
class Row:
    label: str
    ours_ms: float
    theirs_ms: float
    ratio: float
    low: float
    high: float
    quadruples: int
    difference: float  # of the first results, relative: the same work
    first_ours_seconds: float
    first_theirs_seconds: float
    closure: float | None  # median |host / device − 1| of all blocks


@dataclass(frozen=True)
class Effort:
    block_seconds: float
    warm_seconds: float
    quadruples: int


def main() -> None:
    options = _options()
    device = options.device or ("cuda:0" if torch.cuda.is_available() else "cpu")
    effort = Effort(0.05, 0.2, 6) if options.quick else Effort(0.3, 2.0, 12)
    print(json.dumps({**pytorch.versions(), "device": device, "reference": reference_models.source(options.reference)}))
    rows = []
    for label, case in _cases(device, options.quick):
        if options.only not in label:
            continue
        if reason := pytorch.unsupported(case):
            print(f"{label}: {reason}")
            continue
        rows.append(_measure(label, case, effort, options.reference))
        print(_line(rows[-1]), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump([asdict(row) for row in rows], file, indent=1)
    _conclude(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="cuda:0 where there is one, else cpu")
    parser.add_argument("--quick", action="store_true", help="few, short blocks of small batches")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose label contains it")
    parser.add_argument("--reference", choices=("torchvision", "own"), help="torchvision where it is installed")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    return parser.parse_args()


def _cases(device: str, quick: bool) -> Iterator[tuple[str, Case]]:
    gpu = device != "cpu"
    modes = ("eager",) if quick else ("eager", "compiled")
    shared: dict[str, Any] = {"workload": "resnet50", "device": device, "layout": "nhwc"}
    for mode in modes:
        size, precision = (64 if quick else 256, "bf16") if gpu else (2, "fp32")
        case = Case(**shared, mode=mode, batch_size=size, precision=precision)
        yield f"resnet50 training {precision} batch {size} {mode}", case
    for size in (1, 32, 256) if gpu else (1,):
        for mode in (*modes, "cudagraph") if gpu else modes:
            precision = "fp16" if gpu else "fp32"
            case = Case(**shared, phase="inference", mode=mode, batch_size=size, precision=precision)
            yield f"resnet50 inference {precision} batch {size} {mode}", case
    for name in ("cifar10-cnn", "mnist-mlp"):
        yield f"{name} inference fp32 batch 1 cpu", Case(workload=name, phase="inference", batch_size=1, threads=1)


def _measure(label: str, case: Case, effort: Effort, reference: str | None) -> Row:
    work = workloads.load(case.workload).build(case)
    program = pytorch.lower(work, case)
    theirs = hand_written(reference_models.model(case.workload, reference), case, work)
    wait = program.wait
    first_ours, ours_value = _first(program.step, wait)
    first_theirs, theirs_value = _first(theirs, wait)
    blocks = _blocks((program.step, theirs), wait, effort, gpu=case.device != "cpu")
    ours, second, third, last = (np.array(times) for times in zip(*blocks.host, strict=True))
    ratios = np.log((ours + last) / (second + third))
    low, high = _interval(ratios)
    row = Row(
        label=label,
        ours_ms=1e3 * float(np.median([ours, last])),
        theirs_ms=1e3 * float(np.median([second, third])),
        ratio=math.exp(float(np.median(ratios))),
        low=math.exp(low),
        high=math.exp(high),
        quadruples=effort.quadruples,
        difference=float(np.abs(ours_value - theirs_value).max() / np.abs(theirs_value).max()),
        first_ours_seconds=first_ours,
        first_theirs_seconds=first_theirs,
        closure=statistics.median(blocks.closures) if blocks.closures else None,
    )
    del program, theirs, wait
    _forget(case)
    return row


def hand_written(model: torch.nn.Module, case: Case, work: Any) -> Step:
    """What one writes without us: the same optimiser, precision and layout, in PyTorch's own idiom."""
    _copy_weights(model, work.weights)
    channels_last = case.layout == "nhwc"
    model = model.to(case.device, memory_format=torch.channels_last if channels_last else torch.preserve_format)
    images = torch.from_numpy(work.batch["input"]).to(case.device)
    images = images.contiguous(memory_format=torch.channels_last) if channels_last else images
    labels = torch.from_numpy(work.batch["target"]).to(case.device)
    return _training(model, case, images, labels) if case.phase == "training" else _inference(model, case, images)


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

    def replay(kept: Step = step) -> Any:  # the graph knows addresses only: model and images must live as long
        graph.replay()
        return result

    return replay


def _copy_weights(model: torch.nn.Module, weights: dict[str, Any]) -> None:
    """Both define their layers in the same order; PyTorch's batch counters are no weights."""
    own = [value for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")]
    for value, array in zip(own, weights.values(), strict=True):
        value.copy_(torch.from_numpy(array))


def _first(step: Step, wait: Step) -> tuple[float, Any]:
    start = time.perf_counter()
    value = step()
    wait()
    return time.perf_counter() - start, value.detach().float().cpu().numpy()


@dataclass
class Blocks:
    host: list[list[float]]  # seconds per step: ours, theirs, theirs, ours
    closures: list[float]


def _blocks(steps: tuple[Step, Step], wait: Step, effort: Effort, *, gpu: bool) -> Blocks:
    counts = [_count(step, wait, effort) for step in steps]
    found = Blocks([], [])
    for _ in range(effort.quadruples):
        times = []
        for side in (0, 1, 1, 0):
            host, device = (_gpu_block if gpu else _cpu_block)(steps[side], counts[side], wait)
            times.append(host / counts[side])
            found.closures += [abs(host / device - 1)] if gpu else []
        found.host.append(times)
    return found


def _count(step: Step, wait: Step, effort: Effort) -> int:
    """Steps of a block, from the warm-up."""
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < effort.warm_seconds or done < 3:
        step()
        wait()
        done += 1
    return max(1, round(effort.block_seconds * done / (time.perf_counter() - start)))


def _cpu_block(step: Step, count: int, wait: Step) -> tuple[float, float]:
    start = time.perf_counter()
    for _ in range(count):
        step()
    wait()
    return (seconds := time.perf_counter() - start), seconds


def _gpu_block(step: Step, count: int, wait: Step) -> tuple[float, float]:
    """Seconds by the host's clock and by the device's."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    wait()
    start = time.perf_counter()
    first.record()
    for _ in range(count):
        step()
    last.record()
    wait()
    return time.perf_counter() - start, first.elapsed_time(last) / 1e3


def _interval(values: Any) -> tuple[float, float]:
    try:
        from steptime.analysis.intervals import signed_rank
    except ImportError:
        return float(values.min()), float(values.max())
    found = signed_rank(values, ALPHA)
    return (float(values.min()), float(values.max())) if found is None else (found.low, found.high)


def _forget(case: Case) -> None:
    gc.collect()
    if case.mode == "compiled":
        torch._dynamo.reset()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _line(row: Row) -> str:
    closure = "" if row.closure is None else f"  closure {100 * row.closure:.2f} %"
    return (
        f"{row.label:<44} ours {row.ours_ms:9.3f} ms  theirs {row.theirs_ms:9.3f} ms  "
        f"ratio {row.ratio:.4f} [{row.low:.4f}, {row.high:.4f}]  first {row.first_ours_seconds:.1f} s, "
        f"{row.first_theirs_seconds:.1f} s  results differ by {row.difference:.1e}{closure}"
    )


def _conclude(rows: list[Row]) -> None:
    if not rows:
        return
    worst = max(rows, key=lambda row: row.ratio)
    print(f"Slowest against the reference: {worst.label}, ratio {worst.ratio:.4f}.")
    closures = [row.closure for row in rows if row.closure is not None]
    if closures:
        print(f"Host and device clocks agree within {100 * max(closures):.2f} % of a block.")


if __name__ == "__main__":
    main()
