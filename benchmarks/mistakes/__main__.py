"""`python -m benchmarks.mistakes [--frameworks …] [--only …] [--clean N]`, from the tree's root.

Each framework has a process of its own, because several would disturb each other in one."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from benchmarks.mistakes.clean import THREADS, count_alarms
from benchmarks.mistakes.mistake import Mistake
from benchmarks.mistakes.table import write_table
from benchmarks.mistakes.trial import Certifier, try_mistake

from steptime import plugins

# By framework: the modules that have its mistakes in a list SUITE.
MODULES = {
    "pytorch": (
        "pytorch_steps",
        "pytorch_state",
        "pytorch_ops",
        "pytorch_training",
        "pytorch_low",
    ),
    "jax": ("jax_steps", "jax_ops", "jax_training"),
    "tensorflow": ("tensorflow_steps", "tensorflow_ops", "tensorflow_training"),
    "onnxruntime": ("onnxruntime",),
    "openvino": ("openvino",),
}


def load_mistakes(framework: str) -> list[Mistake]:
    mistakes = []
    # The framework's folder sets the environment before it imports the framework.
    plugins.load("frameworks", framework).versions()
    for name in MODULES[framework]:
        mistakes += import_module(f"benchmarks.mistakes.{name}").SUITE.mistakes
    return mistakes


def try_framework(framework: str, arguments: argparse.Namespace) -> None:
    """One line of JSON for each mistake, written at once: a later run goes on after the last."""
    certifier = Certifier(arguments.references)
    results = arguments.out / f"{framework}.jsonl"
    done = set()
    if results.exists() and not arguments.only:
        done = {json.loads(line)["name"] for line in results.read_text().splitlines()}
    for mistake in load_mistakes(framework):
        if mistake.name in done or (arguments.only and mistake.name not in arguments.only):
            continue
        start = time.monotonic()
        outcome = try_mistake(mistake, certifier)
        with results.open("a") as file:
            file.write(json.dumps(outcome.to_dict()) + "\n")
        seen = f"{outcome.precision} {outcome.item} · {outcome.where}"
        seconds = time.monotonic() - start
        share = "" if outcome.share is None else f"{outcome.share:.3g} × the bound"
        print(
            f"{framework:11} {mistake.number} {mistake.name:36} {mistake.precision} "
            f"{seen if outcome.is_caught else 'NOT SEEN'} {share} "
            f"({outcome.calls} calls, {seconds:.1f} s)",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--frameworks", nargs="+", choices=MODULES, default=list(MODULES))
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--references", type=Path, default=Path("mistakes/references"))
    parser.add_argument("--out", type=Path, default=Path("mistakes"), help="results and table")
    parser.add_argument("--clean", type=int, default=0, metavar="N", help="certify N right cases")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.in_process:
        (framework,) = arguments.frameworks
        if arguments.clean:
            count_alarms(
                framework, arguments.threads, arguments.clean, arguments.out, arguments.references
            )
        else:
            try_framework(framework, arguments)
        return
    thread_counts = THREADS if arguments.clean else THREADS[:1]
    processes = len(arguments.frameworks) * len(thread_counts)
    # Rounded up, so that there are at least as many as asked for.
    clean = -(-arguments.clean // processes)
    for framework in arguments.frameworks:
        # The number of threads cannot change in a process.
        for threads in thread_counts:
            start_process(framework, threads, clean)
    print(write_table(arguments.out))


def start_process(framework: str, threads: int, clean: int) -> None:
    options = ["--in-process", "--frameworks", framework]
    options += ["--threads", str(threads), "--clean", str(clean)]
    # The last flag counts.
    command = [sys.executable, "-m", "benchmarks.mistakes", *sys.argv[1:], *options]
    status = subprocess.run(command).returncode
    if status:
        sys.exit(f"The process of {framework} ended with {status}; start again to go on.")


if __name__ == "__main__":
    main()
