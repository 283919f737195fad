"""Is a lowered network as fast as the same one written by hand in the framework's own idiom? In one process, in turns.

    python benchmarks/lowering.py                                   # PyTorch, everything that this machine can do
    python benchmarks/lowering.py --framework jax tensorflow        # ResNet-50 and an LSTM, one process after the other
    python benchmarks/lowering.py --framework jax --only inference  # rows whose label contains it
    python benchmarks/lowering.py --quick                           # short, to see that it works

Both programs are resident and start from equal weights. Blocks alternate ours, theirs, theirs, ours; a ratio is of one
such quadruple, below 1 where ours is faster, by the wall's clock and by processor time, for machines that others use
too. `results differ by` compares what the first steps give. What is written by hand is in `reference_models_*.py`."""

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
    options = _options()
    if len(options.framework) == 1:
        _conclude(_rows(options.framework[0], options), options.json)
    for name in options.framework if len(options.framework) > 1 else ():
        rest = [word for word in sys.argv[1:] if word not in (*FRAMEWORKS, "--framework")]
        subprocess.run([sys.executable, __file__, "--framework", name, *rest], check=True)


def _options() -> argparse.Namespace:
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
    parser.add_argument("--device", help="cuda:0 where PyTorch has one, else cpu")
    parser.add_argument(
        "--layout",
        choices=("nhwc", "nchw"),
        default="nhwc",
        help="of images, where it can be chosen",
    )
    parser.add_argument("--quick", action="store_true", help="few, short blocks of small batches")
    parser.add_argument("--turns", type=int, default=12, help="quadruples of blocks")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose label contains it")
    parser.add_argument("--reference", help="one of those that a framework has; it tells which")
    parser.add_argument(
        "--json", metavar="FILE", help="write the rows there too; for one framework at a time"
    )
    return parser.parse_args()


def _rows(name: str, options: argparse.Namespace) -> list[Row]:
    framework, written = plugins.load("frameworks", name), import_module(f"lowering_{name}")
    effort = (
        Effort(0.05, 0.2, min(options.turns, 6))
        if options.quick
        else Effort(0.3, 2.0, options.turns)
    )
    print(json.dumps({**framework.versions(), **written.about(options)}))
    rows = []
    for label, case, reference in written.cases(options):
        if options.only not in label:
            continue
        if reason := framework.unsupported(case):
            print(f"{label}: {reason}")
            continue
        rows.append(measure(label, written.pair(case, reference), effort))
        print(rows[-1], flush=True)
        gc.collect()
        written.forget()
    return rows


def _conclude(rows: list[Row], file: str | None) -> None:
    if file:
        with open(file, "w") as target:
            json.dump([asdict(row) for row in rows], target, indent=1)
    if not rows:
        return
    worst = max(rows, key=lambda row: row.wall.value)
    print(
        f"Slowest against the reference: {worst.label}, ratio {worst.wall}, by processor time {worst.processor}."
    )
    closures = [row.closure for row in rows if row.closure is not None]
    if closures:
        print(f"Host and device clocks agree within {100 * max(closures):.2f} % of a block.")


if __name__ == "__main__":
    main()
