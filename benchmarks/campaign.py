"""What a campaign costs on top of plain sbatch, and whether a thousand cases all come back.

    python benchmarks/campaign.py                  # starts a virtual cluster; about 20 minutes
    python benchmarks/campaign.py --cases 50 --blocks 1
    python benchmarks/campaign.py --json

Plain: an array in which every task is a worker, `python -m steptime.worker CASE.json
JOURNAL.jsonl`, and nothing supervises it. Campaign: the same cases by `run.slurm.campaign.submit`,
with one process or several in a task. The methods alternate in random order, a block of cases each.
The time of a block runs from the first file written to the end of the last journal. Then all cases
run at once, as one campaign. Before that, without a queue, comes the processor time of a worker,
and of driver and worker. Needs Slurm's packages (tests/run/slurm/virtual_cluster.py)."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.plan.expand import Plan
from steptime.plan.machine_file import parse
from steptime.run.slurm import campaign
from steptime.run.slurm.client import Slurm
from steptime.run.slurm.folder import CampaignFolder
from steptime.store import reader
from steptime.store.folder import FolderStore
from steptime.store.journal import now, uuid7

# Tasks that may run at the same time.
AT_ONCE = 4
REQUEST = ("--partition=k80", "--mem=200M")
TINY = Protocol(
    preset="single",
    processes_least=1,
    processes_most=1,
    block_seconds=0.01,
    least_steps=5,
    least_seconds=0.01,
    warmup_steps=5,
    warmup_seconds=0.01,
    warmup_most_seconds=0.05,
)
MACHINE = """
[slurm.any]
partition = "k80"
memory = "200M"
throttle = {at_once}
bundle = {bundle}
"""
PLAIN = """#!/bin/bash
#SBATCH --array=0-{last}%{at_once}
#SBATCH --output=/dev/null
task={folder}/$SLURM_ARRAY_TASK_ID
exec {python} -P -m steptime.worker $task.json $task.jsonl
"""


# Runs the cases in a folder and returns how many have a measurement.
Method = Callable[[Path, list[Case]], int]


def make_cases(count: int) -> list[Case]:
    """The cheapest case there is, with different seeds."""
    case = Case(
        workload="mnist-mlp",
        framework="numpy",
        precision="fp64",
        phase="inference",
        threads=1,
        batch_size=1,
    )
    return [replace(case, seed=seed) for seed in range(count)]


def run_plain(folder: Path, cases: list[Case]) -> int:
    for number, case in enumerate(cases):
        job = Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=TINY)
        (folder / f"{number}.json").write_text(json.dumps(job.to_dict()))
    script = PLAIN.format(
        last=len(cases) - 1, at_once=AT_ONCE, python=sys.executable, folder=folder
    )
    Slurm().submit(script, *REQUEST)
    journals = [folder / f"{number}.jsonl" for number in range(len(cases))]

    def all_ended() -> bool:
        # The last tasks first: it is cheap to see that they have not begun.
        if not all(journal.exists() for journal in journals[-AT_ONCE:]):
            return False
        return all(reader.has_ended(journal) for journal in journals)

    wait_until(all_ended)
    attempts = [reader.read(journal) for journal in journals]
    return sum(attempt is not None and attempt.measurement is not None for attempt in attempts)


def campaign_method(bundle: int) -> Method:
    """`bundle`: processes in one task."""

    def run(folder: Path, cases: list[Case]) -> int:
        store = FolderStore(folder / "results")
        machine = parse(MACHINE.format(at_once=AT_ONCE, bundle=bundle), "machine.toml", ())
        plan = Plan(name="benchmark", title="", protocol=TINY, cases=tuple(cases))
        campaign.submit(plan, store, machine)
        campaign_folder = campaign.find(store)
        wait_until(lambda: len(campaign_folder.results()) == len(cases))
        return sum(len(record.measurements) for record in campaign.records(campaign_folder))

    return run


def wait_until(reached: Callable[[], bool], seconds: float = 3600.0) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            raise SystemExit("Some cases did not come back.")
        time.sleep(0.2)


@contextlib.contextmanager
def virtual_cluster() -> Iterator[None]:
    path = Path(__file__).parents[1] / "tests" / "run" / "slurm" / "virtual_cluster.py"
    spec = importlib.util.spec_from_file_location("virtual_cluster", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if reason := module.lacking():
        raise SystemExit(f"Slurm cannot run here: {reason}.")
    with tempfile.TemporaryDirectory(prefix="steptime-slurm-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        with module.VirtualCluster(Path(name) / "cluster") as cluster:
            os.environ.update(cluster.variables)
            yield


def compare_methods(blocks: int, block_size: int) -> dict[str, Any]:
    """Seconds per case of each method, and what the campaign adds in the same round."""
    methods: dict[str, Method] = {
        "plain sbatch": run_plain,
        "campaign": campaign_method(1),
        "campaign, 10 in a task": campaign_method(10),
    }
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    # Always the same order, so that runs can be compared.
    rng = random.Random(1)
    for block in range(blocks):
        for name in rng.sample(list(methods), len(methods)):
            seconds[name].append(time_block(name, methods[name], block_size))
            print(f"round {block + 1}: {name}: {seconds[name][-1]:.3f} s a case", file=sys.stderr)
    rows = {}
    for name, times in seconds.items():
        added = [mine - plain for mine, plain in zip(times, seconds["plain sbatch"], strict=True)]
        rows[name] = {
            "seconds_per_case": statistics.median(times),
            "added_seconds_per_case": statistics.median(added),
            "each_added": added,
        }
    return rows


def time_block(name: str, method: Method, block_size: int) -> float:
    """Seconds per case."""
    with tempfile.TemporaryDirectory(prefix="steptime-campaign-") as folder:
        begin = time.monotonic()
        measured = method(Path(folder), make_cases(block_size))
        seconds = (time.monotonic() - begin) / block_size
    assert measured == block_size, f"{name}: {measured} of {block_size} came back"
    return seconds


def measure_processor(runs: int) -> dict[str, float]:
    """Processor seconds of one case by a worker alone, and by the driver that supervises it. There
    is no queue, and no other case runs."""
    worker_seconds = []
    driver_seconds = []
    with tempfile.TemporaryDirectory(prefix="steptime-campaign-") as name:
        folder = Path(name)
        campaign_folder = CampaignFolder(FolderStore(folder / "results"), uuid7())
        campaign_folder.make({"plan": "p", "name": "n", "title": "", "started": now()})
        jobs = []
        for case in make_cases(runs):
            session = campaign_folder.session
            jobs.append(
                Job(id=uuid7(), session=session, plan="p", process=0, case=case, protocol=TINY)
            )
        array = campaign_folder.add_array([[job] for job in jobs], "")
        for number, job in enumerate(jobs):
            (folder / f"{number}.json").write_text(json.dumps(job.to_dict()))
            worker = ["steptime.worker", f"{folder}/{number}.json", f"{folder}/{number}.jsonl"]
            worker_seconds.append(child_seconds(worker, {}))
            task = {"SLURM_ARRAY_JOB_ID": "1", "SLURM_ARRAY_TASK_ID": str(number)}
            driver = ["steptime.run.slurm.driver", str(array)]
            driver_seconds.append(child_seconds(driver, task))
        assert len(campaign_folder.results()) == runs
    return {
        "worker": statistics.median(worker_seconds),
        "driver and worker": statistics.median(driver_seconds),
    }


def child_seconds(module: list[str], variables: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-P", "-m", *module]
    subprocess.run(command, env=os.environ | variables, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_at_once(count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="steptime-campaign-") as folder:
        begin = time.monotonic()
        measured = campaign_method(1)(Path(folder), make_cases(count))
        seconds = time.monotonic() - begin
        campaign_folder = campaign.find(FolderStore(Path(folder) / "results"))
        records = campaign.records(campaign_folder)
        begin = time.monotonic()
        campaign.collect(campaign_folder, Slurm())
        collect_seconds = time.monotonic() - begin
        return {
            "cases": count,
            "results": measured,
            "records": len(records),
            "failures": sum(len(record.failures) for record in records),
            "ghosts": len(campaign_folder.ghosts()),
            "arrays": len(campaign_folder.array_folders()),
            "seconds": seconds,
            "seconds_per_case": seconds / count,
            "collect_seconds": collect_seconds,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000, help="of the large campaign")
    parser.add_argument("--block", type=int, default=40, help="cases of a block")
    parser.add_argument("--blocks", type=int, default=4, help="of each method")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    processor = measure_processor(options.block)
    with virtual_cluster():
        methods = compare_methods(options.blocks, options.block)
        at_once = run_at_once(options.cases)
    if options.json:
        report = {"processor_seconds": processor, "methods": methods, "at_once": at_once}
        print(json.dumps(report, indent=1))
    else:
        show(processor, methods, at_once)


def show(processor: dict[str, float], methods: dict[str, Any], at_once: dict[str, Any]) -> None:
    for name, seconds in processor.items():
        print(f"{name:<24}{seconds:.3f} s of processor time a case")
    for name, row in methods.items():
        added = row["added_seconds_per_case"]
        print(f"{name:<24}{row['seconds_per_case']:.3f} s a case, {added:+.3f} s on top")
    print(
        f"{at_once['results']} of {at_once['cases']} cases came back, "
        f"{at_once['failures']} failures, in {at_once['seconds']:.0f} s "
        f"({at_once['seconds_per_case']:.3f} s a case)"
    )


if __name__ == "__main__":
    main()
