"""Hosts on one machine: network namespaces on a switch, each with a link of a chosen rate.

    python virtual_hosts.py launch PREFIX python -P -m steptime.worker CASE.json JOURNAL.jsonl

As a launch line of the machine file it starts rank 0, 1, … of the case on host 0, 1, …. It sets
the links to the case's interconnect: `unshaped`, or a rate such as `100mbit`. Needs root and
iproute2; the machine's own network is not touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

LINK, PORT = "eth0", "29500"  # a host has all ports to itself
PAYLOAD = 1448 / (1514 + 66 / 2)
"""The share of data in what the shaper counts: Ethernet frames with headers of IP and TCP.

All ranks send and receive at once, so each link also carries one acknowledgement for two frames."""
LEAST_BURST, BURST_SECONDS = (
    16_384,
    1e-3,
)  # what may pass at once: less than a timer's tick lets a link idle
RATES = {"kbit": 125.0, "mbit": 125e3, "gbit": 125e6}


class VirtualHosts:
    def __init__(self, count: int = 2) -> None:
        self.count, self.prefix = count, f"st{os.getpid():x}"

    def __enter__(self) -> VirtualHosts:
        switch = f"{self.prefix}s"
        _ip("netns", "add", switch)
        try:
            _ip("-n", switch, "link", "add", "name", "switch", "type", "bridge")
            _ip("-n", switch, "link", "set", "switch", "up")
            for number in range(self.count):
                self._connect(number, switch)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in (
            *(host(self.prefix, number) for number in range(self.count)),
            f"{self.prefix}s",
        ):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def _connect(self, number: int, switch: str) -> None:
        name, port = host(self.prefix, number), f"port{number}"
        _ip("netns", "add", name)
        _ip(
            "-n",
            switch,
            "link",
            "add",
            "name",
            port,
            "type",
            "veth",
            "peer",
            "name",
            LINK,
            "netns",
            name,
        )
        _ip("-n", switch, "link", "set", port, "master", "switch", "up")
        _ip("-n", name, "address", "add", f"{address(number)}/24", "dev", LINK)
        _ip("-n", name, "link", "set", LINK, "up")
        _ip("-n", name, "link", "set", "lo", "up")

    def shape(self, rate: str) -> None:
        for number in range(self.count):
            shape(self.prefix, number, rate)

    def machine_file(self, *before: str) -> str:
        """By this file PyTorch's ranks run on these hosts. `before` starts the starter."""
        words = [
            *before,
            sys.executable,
            str(Path(__file__).resolve()),
            "launch",
            self.prefix,
            sys.executable,
        ]
        return f"[frameworks.pytorch]\nlaunch = {json.dumps(words)}\n"


def lacking() -> str:
    """Why there can be no hosts here; empty: there can."""
    if not shutil.which("ip") or not shutil.which("tc"):
        return "ip and tc are not installed (Debian: iproute2)"
    try:
        with VirtualHosts() as hosts:
            hosts.shape("100mbit")
    except subprocess.CalledProcessError as problem:
        return f"`{' '.join(problem.cmd)}` is refused: {problem.stderr.strip()}"
    return ""


def host(prefix: str, number: int) -> str:
    return f"{prefix}h{number}"


def address(number: int) -> str:
    return f"10.99.0.{number + 1}"


def bytes_per_second(rate: str) -> float:
    return float(rate[:-4]) * RATES[rate[-4:]]


def burst(rate: str) -> int:
    return max(LEAST_BURST, round(BURST_SECONDS * bytes_per_second(rate)))


def seconds(payload: int, rate: str) -> float:
    """That so many bytes take over a link that was idle before."""
    return (payload / PAYLOAD - burst(rate)) / bytes_per_second(rate)


def shape(prefix: str, number: int, rate: str) -> None:
    """What a host sends; so the rate holds in each direction."""
    place = ["tc", "-n", host(prefix, number), "qdisc"]
    if rate in ("", "unshaped"):
        subprocess.run([*place, "del", "dev", LINK, "root"], capture_output=True, check=False)
        return
    limits = ["rate", rate, "burst", str(burst(rate)), "latency", "400ms"]
    _run([*place, "replace", "dev", LINK, "root", "tbf", *limits])


def launch(prefix: str, words: list[str]) -> int:
    """Ends when all ranks have; one whose partner is gone ends by itself."""
    case = json.loads(Path(words[-2]).read_text())["case"]
    ranks = case["devices"] if case["exchange"] != "none" else 1
    own = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": address(0), "MASTER_PORT": PORT}
    started = []
    for rank in range(ranks):
        shape(prefix, rank, case["interconnect"])
        told = {**own, "RANK": str(rank), "LOCAL_RANK": "0", "GLOO_SOCKET_IFNAME": LINK}
        started.append(
            subprocess.Popen(["ip", "netns", "exec", host(prefix, rank), *words], env=told)
        )
    codes = [process.wait() for process in started]
    return max(map(abs, codes))


def _ip(*words: str) -> None:
    _run(["ip", *words])


def _run(words: list[str]) -> None:
    subprocess.run(words, capture_output=True, text=True, check=True)


if __name__ == "__main__" and sys.argv[1] == "launch":
    sys.exit(launch(sys.argv[2], sys.argv[3:]))
