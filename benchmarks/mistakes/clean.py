"""Certify lowerings as they are: each certificate that fails is a false alarm."""

from __future__ import annotations

import json
import time
from itertools import islice, product
from pathlib import Path
from random import Random

from benchmarks.mistakes.networks import own_network
from benchmarks.mistakes.trial import BATCH_SIZE, HAVE_FP64, Certifier

from steptime import plugins
from steptime.core.case import Case
from steptime.core.errors import Unsupported

SEEDS = range(8)
THREADS = (1, 2)
NETWORKS = (
    "lenet5",
    "cifar10-cnn",
    "mnist-mlp",
    "deepmnist",
    "ptb-lstm-small",
    "resnet56-cifar",
    own_network("normal"),
    own_network("gated"),
    own_network("bell"),
    own_network("grouped"),
    own_network("strided"),
)
PHASES = {"onnxruntime": "inference", "openvino": "inference"}


def clean_cases(framework: str, threads: int) -> list[Case]:
    """All of them in a random order that is always the same, so that the first N are mixed."""
    module = plugins.load("frameworks", framework)
    precisions = ["fp32", "bf16"]
    if framework in HAVE_FP64:
        precisions.insert(0, "fp64")
    cases = []
    # Compiling for each program would take most of the time.
    modes = [mode for mode in module.MODES if mode not in ("cudagraph", "xla")]
    if framework == "pytorch":
        modes.remove("compiled")
    for network, precision, mode, seed in product(NETWORKS, precisions, modes, SEEDS):
        case = Case(
            workload=network,
            framework=framework,
            phase=PHASES.get(framework, "training"),
            mode=mode,
            precision=precision,
            batch_size=BATCH_SIZE,
            threads=threads,
            seed=seed,
        )
        if module.unsupported(case) is None:
            cases.append(case)
    Random(0).shuffle(cases)
    return cases


def count_alarms(framework: str, threads: int, count: int, out: Path, references: Path) -> None:
    """Goes on with the cases that have no line in the file of results yet."""
    certifier = Certifier(references)
    results = out / f"clean-{framework}.jsonl"
    lines = results.read_text().splitlines() if results.exists() else []
    done = {json.loads(line)["key"] for line in lines}
    remaining = [case for case in clean_cases(framework, threads) if case.key not in done]
    for case in islice(remaining, count):
        start = time.monotonic()
        try:
            alarms = certify_clean(case, certifier)
        except Unsupported as problem:
            print(f"{case.label}: {problem}", flush=True)
            continue
        facts = {"key": case.key, "label": case.label, "framework": framework, "alarms": alarms}
        with results.open("a") as file:
            file.write(json.dumps(facts) + "\n")
        verdict = f"FALSE ALARM {alarms}" if alarms else "passes"
        print(f"{case.label} {verdict} ({time.monotonic() - start:.1f} s)", flush=True)


def certify_clean(case: Case, certifier: Certifier) -> list[str]:
    """What fails, in words."""
    alarms = []
    for items in certifier.certify(case):
        for item in items:
            if not item["passed"]:
                alarms.append(f"{item['network']} {item['item']} {item['where']} {item['share']}")
    return alarms
