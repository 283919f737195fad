"""Kill parts of a campaign at random moments, then check that nothing is missing or double.

    python faults.py FOLDER KILLS CASES SECONDS SEED    # with SLURM_CONF set; prints JSON

SECONDS is how long each case measures: long enough that something runs until the last kill.

Victims: the command that submits, the one that collects, the driver of a task, a worker."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from steptime.run.slurm import campaign
from steptime.run.slurm.client import Slurm
from steptime.run.slurm.progress import read_progress
from steptime.store.folder import FolderStore

PLAN = """
name = "faults"
preset = "single"
[protocol]
block_seconds = 0.01
least_steps = 5
least_seconds = {seconds}
warmup_steps = 10
warmup_seconds = 0.02
warmup_most_seconds = 0.1
[constants]
workload = "mnist-mlp"
framework = "calm"
[sweep]
batch_size = {sizes}
"""
MACHINE = """
[slurm.any]
partition = "k80"
memory = "200M"
throttle = 3
bundle = 2
"""
VICTIMS = ("submit", "collect", "driver", "worker")


class Faults:
    def __init__(self, folder: Path, cases: int, seconds: float, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.safe: set[str] = set()  # results that somebody has seen
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.toml").write_text(
            PLAN.format(sizes=list(range(1, cases + 1)), seconds=seconds)
        )
        (folder / "machine.toml").write_text(MACHINE)

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.folder / "results")

    def command(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "steptime", *words, "--json"],
            cwd=self.folder,
            env={**os.environ, "STEPTIME_MACHINE": str(self.folder / "machine.toml")},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def strike(self) -> None:
        """Something on a node is killed, or a command that was started a moment ago."""
        word = self.rng.choices(VICTIMS, weights=(1, 1, 2, 2))[0]
        time.sleep(self.rng.uniform(0.0, 0.6))
        if word in ("driver", "worker"):
            self.strike_node(word)
            return
        running = (
            self.command("collect") if word == "collect" else self.command("submit", "plan.toml")
        )
        time.sleep(self.rng.uniform(0.1, 1.5))
        if running.poll() is None:
            running.kill()
            self.kills[word] += 1
        running.communicate()
        self.look()

    def strike_node(self, word: str) -> None:
        found = self.processes(word)
        if not found:  # all that was submitted is over
            self.command("submit", "plan.toml").communicate()
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.rng.choice(found), signal.SIGKILL)
            self.kills[word] += 1

    def look(self) -> None:
        now = {attempt.id for attempt in self.store.attempts() if attempt.measurement}
        assert self.safe <= now, f"lost: {self.safe - now}"
        self.safe = now

    def processes(self, word: str) -> list[int]:
        """Of this campaign alone: its folder is among their words."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes()
            except OSError:
                continue
            if b"steptime" in line and word.encode() in line and str(self.folder).encode() in line:
                found.append(int(path.parent.name))
        return sorted(found)

    def finish(self, most_rounds: int = 20) -> int:
        """Submits until there is nothing to submit; returns how often that took."""
        for rounds in range(most_rounds):
            done = self.command("submit", "plan.toml")
            told, said = done.communicate()
            assert done.returncode == 0, said
            if not json.loads(told)["submitted"] and not json.loads(told)["queued_or_running"]:
                return rounds
            while not read_progress(campaign.find(self.store), Slurm()).is_over:
                time.sleep(0.3)
            self.look()
        raise AssertionError("there is always something to submit")

    def report(self) -> dict[str, object]:
        folder = campaign.find(self.store)
        records = campaign.records(folder)
        return {
            "kills": dict(self.kills),
            "cases": len(records),
            "results_per_case": sorted({len(record.measurements) for record in records}),
            "attempts": sum(len(record.attempts) for record in records),
            "causes": Counter(failure.cause for record in records for failure in record.failures),
            "seen_early": len(self.safe),
            "ghosts": len(folder.ghosts()),
            "arrays": len(folder.array_folders()),
            "campaigns": len(list(folder.path.parent.iterdir())),
        }


def main() -> None:
    kills, cases, seed = (int(sys.argv[place]) for place in (2, 3, 5))
    faults = Faults(Path(sys.argv[1]).resolve(), cases, float(sys.argv[4]), seed)
    assert faults.command("submit", "plan.toml").wait() == 0
    while faults.kills.total() < kills:
        faults.strike()
    rounds = faults.finish()
    print(json.dumps({**faults.report(), "rounds_to_finish": rounds}))


if __name__ == "__main__":
    main()
