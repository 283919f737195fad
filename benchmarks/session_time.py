"""Where does the time of a session go?

    python benchmarks/session_time.py                        # the GPU if there is one
    python benchmarks/session_time.py --device cpu --only mnist-mlp
    python benchmarks/session_time.py --source OLD/src       # the same with another version

Each row is one `steptime run` into an empty store. Stages are seconds of one process, the mean of
all. *Overhead* is what neither imports, nor runs the first step, nor warms up or measures."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
# Settings of each row, by device.
ROWS: dict[str, list[dict[str, str]]] = {
    "cpu": [
        {"workload": "mnist-mlp"},
        {"workload": "cifar10-cnn"},
        {"workload": "resnet50", "batch_size": "2"},
        {"workload": "gpt2", "batch_size": "1"},
    ],
    "cuda": [
        {"workload": "mnist-mlp", "batch_size": "256"},
        {"workload": "cifar10-cnn", "batch_size": "256"},
        {"workload": "resnet50", "batch_size": "256", "precision": "bf16", "layout": "nhwc"},
        {"workload": "gpt2", "batch_size": "8", "precision": "bf16", "mode": "compiled"},
    ],
}
STAGES = ("import", "data and weights", "lowering", "first step", "warm-up", "steps", "accuracy")
NO_OVERHEAD = ("import", "first step", "warm-up", "steps")


def main() -> None:
    options = _parse_options()
    print("| case | processes | total | interval | " + " | ".join(STAGES) + " | overhead |")
    print("|---|--:|--:|--:|" + "--:|" * (len(STAGES) + 1))
    for settings in ROWS["cpu" if options.device == "cpu" else "cuda"]:
        if options.only in settings["workload"]:
            settings = {**settings, "device": options.device}
            document = _run(settings, options)
            print(_row(settings, document), flush=True)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default=_default_device())
    parser.add_argument("--preset", default="standard")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads that contain it")
    parser.add_argument("--source", type=Path, default=SOURCE, help="the package's src folder")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    return parser.parse_args()


def _default_device() -> str:
    import torch

    return "cuda:0" if torch.cuda.is_available() else "cpu"


def _run(settings: dict[str, str], options: argparse.Namespace) -> dict[str, Any]:
    pairs = [f"{key}={value}" for key, value in settings.items() if key != "workload"]
    words = ["run", "--workload", settings["workload"], "--preset", options.preset, "--json"]
    for pair in [*pairs, *options.set]:
        words += ["--set", pair]
    environment = {**os.environ, "PYTHONPATH": str(options.source.resolve())}
    with tempfile.TemporaryDirectory() as store:
        done = subprocess.run(
            [sys.executable, "-m", "steptime", "--store", store, *words],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _row(settings: dict[str, str], document: dict[str, Any]) -> str:
    result = document["records"][0]["result"]
    processes = result["processes"]
    total = document["seconds"]["total"]
    stages = document["seconds"]["stages"]
    cells = [" ".join(settings.values()), str(processes), f"{total:.1f}", _interval(result)]
    cells += [f"{stages.get(name, 0.0) / processes:.1f}" for name in STAGES]
    outside = sum(stages.get(name, 0.0) for name in NO_OVERHEAD)
    cells.append(f"{(total - outside) / processes:.1f}")
    return "| " + " | ".join(cells) + " |"


def _interval(result: dict[str, Any]) -> str:
    """The farther end, in percent of the value."""
    time = result["typical_time_seconds"]
    if time["low"] is None:
        return "none"
    reach = max(time["high"] - time["value"], time["value"] - time["low"])
    return f"± {100 * reach / time['value']:.2f} %"


if __name__ == "__main__":
    main()
