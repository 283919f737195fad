"""What a slower link costs a step, and what the scaling law of communication predicts.

    python benchmarks/interconnect.py            # cifar10-cnn on two hosts; about 10 minutes
    python benchmarks/interconnect.py --batch-size 64 --preset quick --json

Two ranks use gloo, each in its own network namespace. Links are unshaped, 1 Gbit/s and 100 Mbit/s
wide; all run in one session, in random order. The unshaped series and the independent ranks give
the compute time, the hidden share and, as an interval, the latency. With a rate, the law then
predicts what is exposed. Needs root and iproute2 (tests/run/local/virtual_hosts.py)."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from steptime.analysis.scaling.draws import estimate, holds_zero
from steptime.analysis.scaling.laws import Law, communication
from steptime.analysis.scaling.series import Point, find_series
from steptime.core.case import Case
from steptime.core.protocol import preset
from steptime.run import session
from steptime.store.folder import FolderStore

FAST = "unshaped"
RATES = ("1gbit", "100mbit")


def load_hosts_module() -> ModuleType:
    path = Path(__file__).parents[1] / "tests" / "run" / "local" / "virtual_hosts.py"
    spec = importlib.util.spec_from_file_location("virtual_hosts", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_cases(workload: str, batch_size: int) -> list[Case]:
    alone = Case(workload=workload, batch_size=batch_size, threads=1)
    independent = replace(alone, devices=2, nodes=2, exchange="independent")
    shared = replace(independent, exchange="allreduce")
    linked = [replace(shared, interconnect=link) for link in (FAST, *RATES)]
    return [alone, independent, *linked]


def make_row(link: str, point: Point, law: Law, hosts: ModuleType) -> dict[str, Any]:
    exchanged_bytes = point.exchanged_bytes
    wire_seconds = None
    bandwidth = None
    if link != FAST:
        wire_seconds = hosts.seconds(exchanged_bytes, link)
        bandwidth = exchanged_bytes / wire_seconds
    # The session measured all of these; they are missing only in other series.
    assert point.exchange is not None and point.exposed is not None
    predicted = law.step(2, bandwidth) - point.independent
    difference = point.exposed - predicted
    return {
        "link": link,
        "bytes": exchanged_bytes,
        "wire_seconds": wire_seconds,
        "step": asdict(estimate(point.step)),
        "exchange": asdict(estimate(point.exchange)),
        "exposed": asdict(estimate(point.exposed)),
        "predicted": asdict(estimate(predicted)),
        "off": asdict(estimate(difference)),
        # The law was fitted to the unshaped link, so only the others test it.
        "holds": None if link == FAST else holds_zero(difference),
    }


def measure(options: argparse.Namespace, hosts: ModuleType) -> list[dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory(prefix="steptime-hosts-") as folder,
        hosts.VirtualHosts() as virtual,
    ):
        machine = Path(folder) / "machine.toml"
        machine.write_text(virtual.machine_file(*options.before.split()))
        os.environ["STEPTIME_MACHINE"] = str(machine)
        store = FolderStore(options.store or Path(folder) / "results")
        cases = make_cases(options.workload, options.batch_size)
        records = session.run(cases, preset(options.preset), store)
    for record in records:
        if not record.measurements:
            raise SystemExit(f"{record.case.label}: {record.status}. {record.failures[-1].reason}")
    by_link = {}
    for series in find_series(records):
        # Weak: the batch of each device stays the same.
        if series.kind == "weak":
            by_link[series.case.interconnect] = series
    law = communication(by_link[FAST])
    if not isinstance(law, Law):
        raise SystemExit(law.reason)
    return [make_row(link, by_link[link].points[1], law, hosts) for link in (FAST, *RATES)]


def format_milliseconds(number: dict[str, Any]) -> str:
    value = f"{1e3 * number['value']:.2f}"
    if number["low"] is None:
        return value
    return f"{value} ({1e3 * number['low']:.2f} … {1e3 * number['high']:.2f})"


def show(rows: list[dict[str, Any]]) -> None:
    columns = [
        "link",
        "step, ms",
        "exchange alone, ms",
        "on the wire, ms",
        "exposed, ms",
        "predicted, ms",
        "as predicted",
    ]
    print(f"| {' | '.join(columns)} |")
    print("|---|--:|--:|--:|--:|--:|---|")
    verdicts = {None: "its own series", True: "yes", False: "no"}
    for row in rows:
        wire = "" if row["wire_seconds"] is None else f"{1e3 * row['wire_seconds']:.2f}"
        cells = [
            row["link"],
            format_milliseconds(row["step"]),
            format_milliseconds(row["exchange"]),
            wire,
            format_milliseconds(row["exposed"]),
            format_milliseconds(row["predicted"]),
            verdicts[row["holds"]],
        ]
        print(f"| {' | '.join(cells)} |")
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"\n{rows[0]['bytes']:,} bytes are exchanged in a step.")
    print(f"Load of the machine afterwards (1, 5, 15 min): {load}.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default="cifar10-cnn")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--preset", default="standard")
    parser.add_argument("--store", default="", help="folder that keeps the results")
    parser.add_argument(
        "--before",
        default="",
        help="command that starts the ranks, such as 'chrt --rr 1' on a busy machine",
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    hosts = load_hosts_module()
    if reason := hosts.lacking():
        raise SystemExit(f"Virtual hosts cannot run here: {reason}.")
    rows = measure(options, hosts)
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows)


if __name__ == "__main__":
    main()
