"""What a slower link costs a step, against what the law of communication says from the fast link and the rate alone.

    python benchmarks/interconnect.py                     # cifar10-cnn on two hosts; about 10 minutes
    python benchmarks/interconnect.py --batch-size 64 --preset quick --json

Two ranks by gloo, each in a network namespace of its own, with links that are unshaped, 1 Gbit/s and 100 Mbit/s wide;
all in one session, in random order. The unshaped series and the ranks side by side give computing, what is hidden and,
as an interval, latency; a rate then says what is exposed. Needs root and iproute2
(tests/executors/local/virtual_hosts.py)."""

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

FAST, RATES = "unshaped", ("1gbit", "100mbit")


def hosts_module() -> ModuleType:
    path = Path(__file__).parents[1] / "tests" / "run" / "local" / "virtual_hosts.py"
    spec = importlib.util.spec_from_file_location("virtual_hosts", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases(workload: str, batch_size: int) -> list[Case]:
    alone = Case(workload=workload, batch_size=batch_size, threads=1)
    two = replace(alone, devices=2, nodes=2, exchange="independent")
    return [
        alone,
        two,
        *(replace(two, exchange="allreduce", interconnect=word) for word in (FAST, *RATES)),
    ]


def line(link: str, point: Point, law: Law, hosts: ModuleType) -> dict[str, Any]:
    moved = point.exchanged_bytes
    wire = None if link == FAST else hosts.seconds(moved, link)
    said = law.step(2, None if wire is None else moved / wire) - point.independent
    off = point.exposed - said
    return {
        "link": link,
        "bytes": moved,
        "wire_seconds": wire,
        "step": asdict(estimate(point.step)),
        "exchange": asdict(estimate(point.exchange)),
        "exposed": asdict(estimate(point.exposed)),
        "predicted": asdict(estimate(said)),
        "off": asdict(estimate(off)),
        "holds": None if link == FAST else holds_zero(off),
    }


def measured(arguments: argparse.Namespace, hosts: ModuleType) -> list[dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory(prefix="steptime-hosts-") as folder,
        hosts.VirtualHosts() as virtual,
    ):
        machine = Path(folder) / "machine.toml"
        machine.write_text(virtual.machine_file(*arguments.before.split()))
        os.environ["STEPTIME_MACHINE"] = str(machine)
        store = FolderStore(arguments.store or Path(folder) / "results")
        chosen = cases(arguments.workload, arguments.batch_size)
        records = session.run(chosen, preset(arguments.profile), store)
    for record in records:
        if not record.measurements:
            raise SystemExit(f"{record.case.label}: {record.status}. {record.failures[-1].reason}")
    series = {one.case.interconnect: one for one in find_series(records) if one.kind == "weak"}
    law = communication(series[FAST])
    if not isinstance(law, Law):
        raise SystemExit(law.reason)
    return [line(link, series[link].points[1], law, hosts) for link in (FAST, *RATES)]


def show(lines: list[dict[str, Any]]) -> None:
    def told(number: dict[str, Any]) -> str:
        ends = (
            ""
            if number["low"] is None
            else f" ({1e3 * number['low']:.2f} … {1e3 * number['high']:.2f})"
        )
        return f"{1e3 * number['value']:.2f}{ends}"

    print(
        "| link | step, ms | exchange alone, ms | on the wire, ms | exposed, ms | predicted, ms | as predicted |"
    )
    print("|---|--:|--:|--:|--:|--:|---|")
    for one in lines:
        wire = "" if one["wire_seconds"] is None else f"{1e3 * one['wire_seconds']:.2f}"
        verdict = {None: "its own series", True: "yes", False: "no"}[one["holds"]]
        cells = [
            one["link"],
            told(one["step"]),
            told(one["exchange"]),
            wire,
            told(one["exposed"]),
            told(one["predicted"]),
        ]
        print(f"| {' | '.join([*cells, verdict])} |")
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(
        f"\n{lines[0]['bytes']:,} bytes are exchanged in a step. Load of the machine behind it (1, 5, 15 min): {load}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default="cifar10-cnn")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--preset", default="standard")
    parser.add_argument("--store", default="", help="where to keep the results")
    parser.add_argument(
        "--before",
        default="",
        help="words before what starts the ranks: 'chrt --rr 1' on a busy machine",
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    hosts = hosts_module()
    if reason := hosts.lacking():
        raise SystemExit(f"There can be no hosts here: {reason}.")
    lines = measured(arguments, hosts)
    print(json.dumps(lines, indent=2)) if arguments.json else show(lines)


if __name__ == "__main__":
    main()
