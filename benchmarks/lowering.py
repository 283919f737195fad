"""Is a lowered network as fast as the same network written by hand for the framework?

    python benchmarks/lowering.py                                   # PyTorch, all that runs here
    python benchmarks/lowering.py --framework jax tensorflow        # ResNet-50 and an LSTM
    python benchmarks/lowering.py --framework jax --only inference  # rows whose label contains it
    python benchmarks/lowering.py --quick                           # short, to see that it works

Both programs run in one process and start from equal weights. Blocks alternate ours, theirs,
theirs, ours; each such quadruple gives a ratio, below 1 if ours is faster. There is one ratio by
wall time and one by processor time, for machines that others use too. `results differ by` compares
the results of the first steps. The networks written by hand are in `reference_models_*.py`."""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from dataclasses import asdict
from importlib import import_module

from quadruples import Effort, Row, measure

from steptime import plugins

FRAMEWORKS = ("pytorch", "jax", "tensorflow")


def main() -> None:
    options = _parse_options()
    if len(options.framework) == 1:
        rows = _measure_framework(options.framework[0], options)
        _conclude(rows, options.json)
        return
    # Each framework in a process of its own: their threads would disturb each other.
    not_passed = (*FRAMEWORKS, "--framework")
    arguments = [argument for argument in sys.argv[1:] if argument not in not_passed]
    for name in options.framework:
        subprocess.run([sys.executable, __file__, "--framework", name, *arguments], check=True)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--framework",
        choices=FRAMEWORKS,
        nargs="+",
        default=["pytorch"],
        help="one process for each",
    )
    parser.add_argument("--device", help="default: cuda:0 if PyTorch sees one, else cpu")
    parser.add_argument(
        "--layout",
        choices=("nhwc", "nchw"),
        default="nhwc",
        help="of images, if it can be chosen",
    )
    parser.add_argument("--quick", action="store_true", help="few, short blocks of small batches")
    parser.add_argument("--quadruples", type=int, default=12, help="how many to measure")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose label contains it")
    parser.add_argument(
        "--reference", help="one of the references of the framework, which it prints"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="also write the rows there; one framework only"
    )
    return parser.parse_args()


def _measure_framework(name: str, options: argparse.Namespace) -> list[Row]:
    framework = plugins.load("frameworks", name)
    side = import_module(f"lowering_{name}")
    effort = Effort(0.3, 2.0, options.quadruples)
    # Too short for a claim.
    if options.quick:
        effort = Effort(0.05, 0.2, min(options.quadruples, 6))
    print(json.dumps(framework.versions() | side.describe(options)))
    rows = []
    for label, case, reference in side.cases(options):
        if options.only not in label:
            continue
        if reason := framework.unsupported(case):
            print(f"{label}: {reason}")
            continue
        rows.append(measure(label, side.make_pair(case, reference), effort))
        print(rows[-1], flush=True)
        # The next pair needs the memory of this one.
        gc.collect()
        side.clear_caches()
    return rows


def _conclude(rows: list[Row], file: str | None) -> None:
    if file:
        with open(file, "w") as target:
            json.dump([asdict(row) for row in rows], target, indent=1)
    if not rows:
        return
    worst = max(rows, key=lambda row: row.wall.value)
    print(
        f"Slowest against the reference: {worst.label}, ratio {worst.wall}, "
        f"by processor time {worst.processor}."
    )
    closures = [row.closure for row in rows if row.closure is not None]
    if closures:
        print(f"Host and device clocks agree within {100 * max(closures):.2f} % of a block.")


if __name__ == "__main__":
    main()
