"""What a campaign costs on top of plain sbatch, and whether a thousand cases all come back.

    python benchmarks/campaign.py                  # starts a virtual cluster on this machine; about 20 minutes
    python benchmarks/campaign.py --cases 50 --blocks 1
    python benchmarks/campaign.py --json

Plain: an array of which every task is a worker, `python -m steptime.worker CASE.json JOURNAL.jsonl`, and nothing looks
after it. Campaign: the same cases by `session.campaign.submit`, one process or several in a task. The ways take turns
in random order, a block of cases each; a block's time runs from the first file written to the last journal with its
end. Then all cases at once, as one campaign. Before that, without a queue, the processor time of a worker and of driver
and worker. Needs Slurm's packages (tests/executors/slurm/virtual_cluster.py)."""

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

AT_ONCE = 4
REQUEST = ("--partition=k80", "--mem=200M")
TINY = Protocol(
    preset="single", processes_least=1, processes_most=1, block_seconds=0.01, least_steps=5, least_seconds=0.01,
    warmup_steps=5, warmup_seconds=0.01, warmup_most_seconds=0.05,
)  # fmt: skip
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
exec {python} -P -m steptime.worker {folder}/$SLURM_ARRAY_TASK_ID.json {folder}/$SLURM_ARRAY_TASK_ID.jsonl
"""


def cases(count: int) -> list[Case]:
    settings = {
        "workload": "mnist-mlp",
        "framework": "numpy",
        "precision": "fp64",
        "phase": "inference",
        "threads": 1,
    }
    return [Case(batch_size=1, seed=seed, **settings) for seed in range(count)]


def plain(folder: Path, chosen: list[Case]) -> int:
    """Returns how many journals have a measurement."""
    for number, case in enumerate(chosen):
        job = Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=TINY)
        (folder / f"{number}.json").write_text(json.dumps(job.to_dict()))
    text = PLAIN.format(last=len(chosen) - 1, at_once=AT_ONCE, python=sys.executable, folder=folder)
    Slurm().submit(text, *REQUEST)
    paths = [folder / f"{number}.jsonl" for number in range(len(chosen))]
    wait(
        lambda: (
            all(path.exists() for path in paths[-AT_ONCE:]) and all(map(reader.has_ended, paths))
        )
    )
    return sum(
        attempt is not None and attempt.measurement is not None
        for attempt in map(reader.read, paths)
    )


def by_campaign(bundle: int) -> Callable[[Path, list[Case]], int]:
    def run(folder: Path, chosen: list[Case]) -> int:
        store = FolderStore(folder / "results")
        machine = parse(MACHINE.format(at_once=AT_ONCE, bundle=bundle), "machine.toml", ())
        plan = Plan(name="benchmark", title="", protocol=TINY, cases=tuple(chosen))
        campaign.submit(plan, store, machine)
        mine = campaign.find(store)
        wait(lambda: len(mine.results()) == len(chosen))
        return sum(len(record.measurements) for record in campaign.records(mine))

    return run


def wait(reached: Callable[[], bool], seconds: float = 3600.0) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            raise SystemExit("some cases did not come back")
        time.sleep(0.2)


@contextlib.contextmanager
def virtual_cluster() -> Iterator[None]:
    path = Path(__file__).parents[1] / "tests" / "run" / "slurm" / "virtual_cluster.py"
    spec = importlib.util.spec_from_file_location("virtual_cluster", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if reason := module.lacking():
        raise SystemExit(f"There can be no Slurm here: {reason}.")
    with tempfile.TemporaryDirectory(prefix="steptime-slurm-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        with module.VirtualCluster(Path(name) / "cluster") as cluster:
            os.environ.update(cluster.variables)
            yield


def compared(blocks: int, block: int) -> dict[str, Any]:
    """Seconds per case of each way, and what the campaign adds in the same round."""
    ways = {
        "plain sbatch": plain,
        "campaign": by_campaign(1),
        "campaign, 10 in a task": by_campaign(10),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    rng = random.Random(1)
    for turn in range(blocks):
        for name in rng.sample(list(ways), len(ways)):
            with tempfile.TemporaryDirectory(prefix="steptime-campaign-") as folder:
                begin = time.monotonic()
                found = ways[name](Path(folder), cases(block))
                seconds[name].append((time.monotonic() - begin) / block)
            assert found == block, f"{name}: {found} of {block} came back"
            print(f"round {turn + 1}: {name}: {seconds[name][-1]:.3f} s a case", file=sys.stderr)
    base = seconds["plain sbatch"]
    added = {
        name: [one - other for one, other in zip(times, base, strict=True)]
        for name, times in seconds.items()
    }
    return {
        name: {
            "seconds_per_case": statistics.median(times),
            "added_seconds_per_case": statistics.median(added[name]),
            "each_added": added[name],
        }
        for name, times in seconds.items()
    }


def processor_seconds(runs: int) -> dict[str, float]:
    """Of one case by a worker alone, and by the driver that looks after it: no queue, no other case beside it."""
    with tempfile.TemporaryDirectory(prefix="steptime-campaign-") as name:
        folder, store = Path(name), FolderStore(Path(name) / "results")
        mine = CampaignFolder(store, uuid7())
        mine.make({"plan": "p", "name": "n", "title": "", "started": now()})
        jobs = [
            Job(id=uuid7(), session=mine.session, plan="p", process=0, case=c, protocol=TINY)
            for c in cases(runs)
        ]
        array = mine.add_array([[job] for job in jobs], "")
        seconds: dict[str, list[float]] = {"worker": [], "driver and worker": []}
        for number, job in enumerate(jobs):
            (folder / f"{number}.json").write_text(json.dumps(job.to_dict()))
            worker = ["steptime.worker", f"{folder}/{number}.json", f"{folder}/{number}.jsonl"]
            seconds["worker"].append(spent(worker, {}))
            place = {"SLURM_ARRAY_JOB_ID": "1", "SLURM_ARRAY_TASK_ID": str(number)}
            seconds["driver and worker"].append(
                spent(["steptime.run.slurm.driver", str(array)], place)
            )
        assert len(mine.results()) == runs
    return {name: statistics.median(values) for name, values in seconds.items()}


def spent(words: list[str], variables: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-P", "-m", *words], env={**os.environ, **variables}, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def at_once(count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="steptime-campaign-") as folder:
        begin = time.monotonic()
        found = by_campaign(1)(Path(folder), cases(count))
        seconds = time.monotonic() - begin
        mine = campaign.find(FolderStore(Path(folder) / "results"))
        records = campaign.records(mine)
        begin = time.monotonic()
        campaign.collect(mine, Slurm())
        return {
            "cases": count,
            "results": found,
            "records": len(records),
            "failures": sum(len(record.failures) for record in records),
            "ghosts": len(mine.ghosts()),
            "arrays": len(mine.array_folders()),
            "seconds": seconds,
            "seconds_per_case": seconds / count,
            "collect_seconds": time.monotonic() - begin,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--block", type=int, default=40)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    processor = processor_seconds(arguments.block)
    with virtual_cluster():
        ways = compared(arguments.blocks, arguments.block)
        whole = at_once(arguments.cases)
    if arguments.json:
        print(json.dumps({"processor_seconds": processor, "ways": ways, "whole": whole}, indent=1))
        return
    for name, seconds in processor.items():
        print(f"{name:<24}{seconds:.3f} s of processor time a case")
    for name, found in ways.items():
        print(
            f"{name:<24}{found['seconds_per_case']:.3f} s a case, {found['added_seconds_per_case']:+.3f} s on top"
        )
    print(
        f"{whole['results']} of {whole['cases']} cases came back, {whole['failures']} failures, ",
        end="",
    )
    print(f"in {whole['seconds']:.0f} s ({whole['seconds_per_case']:.3f} s a case)")


if __name__ == "__main__":
    main()
