"""A real Slurm on one machine: munge, a controller, four virtual nodes with two GPU types.

    python virtual_cluster.py FOLDER      # runs until interrupted
    export SLURM_CONF=FOLDER/slurm.conf

Everything lies in one folder, nothing in /etc. Needs the Debian packages slurmctld, slurmd,
slurm-client and munge; works as root or as a plain user. Every node gives its jobs a shared
$SCRATCH and a $LOCAL that is removed after the job."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

NODES = ("k80-0", "k80-1", "p100-0", "p100-1")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
CONFIGURATION = """\
ClusterName=virtual
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
# The life of a credential is also how long a requeued job has to wait: 5 is the least that is
# taken, else it is 120.
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
{memory}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=500
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=5
MessageTimeout=5
KillWait=3
MinJobAge=600
MaxArraySize=2001
MaxJobCount=20000
JobRequeue=1
PropagateResourceLimits=NONE
AccountingStorageType=accounting_storage/none
Prolog={folder}/prolog
Epilog={folder}/epilog
TaskProlog={folder}/taskprolog
PrologFlags=Alloc
GresTypes=gpu
NodeName=DEFAULT CPUs=4 RealMemory=8000
NodeName=k80-[0-1] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{first}-{second}] Gres=gpu:k80:4
NodeName=p100-[0-1] NodeHostname=localhost NodeAddr=127.0.0.1 \\
 Port=[{third}-{fourth}] Gres=gpu:p100:4
PartitionName=k80 Nodes=k80-[0-1] MaxTime=1:00:00 Default=YES State=UP
PartitionName=p100 Nodes=p100-[0-1] MaxTime=1:00:00 State=UP
"""
POLLED = (
    "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherParams=OverMemoryKill"
)
CONTROL_GROUPS = "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup"
SCRIPTS = {
    "prolog": """mkdir -p "{folder}/nodes/$SLURMD_NODENAME/$SLURM_JOB_ID" "{folder}/scratch"
chown "$SLURM_JOB_UID" "{folder}/nodes/$SLURMD_NODENAME/$SLURM_JOB_ID" """,
    "epilog": 'rm -rf "{folder}/nodes/$SLURMD_NODENAME/$SLURM_JOB_ID"',
    "taskprolog": """echo "export SCRATCH={folder}/scratch"
echo "export LOCAL={folder}/nodes/$SLURMD_NODENAME/$SLURM_JOB_ID" """,
}


def lacking() -> str:
    """Why there can be no cluster here; empty: there can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return (
        f"no {', '.join(missing)} here (Debian: slurmctld slurmd slurm-client munge)"
        if missing
        else ""
    )


def has_control_groups() -> bool:
    """Whether memory can be limited by the kernel here, in the way that this Slurm knows."""
    return os.geteuid() == 0 and os.access("/sys/fs/cgroup/memory/tasks", os.W_OK)


class VirtualCluster:
    """Slurm watches memory once a second, or the kernel does with `control_groups`."""

    def __init__(self, folder: Path, *, control_groups: bool = False) -> None:
        self.folder, self.control_groups = folder.resolve(), control_groups
        self.configuration = self.folder / "slurm.conf"
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> VirtualCluster:
        try:
            self._write()
            self._start_munge()
            self._daemon("slurmctld", "slurmctld", "-D", "-f", str(self.configuration))
            for node in NODES:
                self.start_node(node)
            self.wait_for_nodes()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the nodes with all their jobs, then the controller, then munge, each by its pid."""
        for node in NODES:
            self.kill_node(node)
        for daemon in reversed(list(self.daemons.values())):
            daemon.kill()
            daemon.wait()

    @property
    def variables(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.configuration), "PATH": PATH}

    def call(self, *words: str, seconds: float = 20) -> str:
        environment = {**os.environ, **self.variables}
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=seconds, check=True
        )
        return done.stdout.strip()

    def start_node(self, node: str) -> None:
        (self.folder / "spool" / node).mkdir(parents=True, exist_ok=True)
        self._daemon(
            node,
            "slurmd",
            "-D",
            "-N",
            node,
            "-f",
            str(self.configuration),
            "-L",
            str(self._log(node)),
        )

    def kill_slurmd(self, node: str) -> None:
        """The daemon alone: its jobs run on, unknown to the controller."""
        daemon = self.daemons.pop(node)
        daemon.kill()
        daemon.wait()

    def kill_node(self, node: str) -> None:
        """The daemon, those that look after its jobs, and the jobs."""
        if node in self.daemons:
            self.kill_slurmd(node)
        for belongs in (self._holds_log, self._is_job):
            for process in _processes():
                with contextlib.suppress(OSError):  # it ended meanwhile
                    if belongs(process, node):
                        os.kill(process, signal.SIGKILL)

    def wait_for_nodes(self, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        states = ""
        while time.monotonic() < deadline:
            try:
                states = self.call("sinfo", "--noheader", "--Node", "--format=%T", seconds=2)
            except (subprocess.SubprocessError, OSError):
                states = "no answer"
            if set(states.split()) <= {"idle", "mixed", "allocated"} and states:
                return
            time.sleep(0.1)
        said = (self.folder / "log" / "slurmctld.out").read_text()[-500:]
        raise RuntimeError(
            f"Slurm's nodes are {states!r} after {seconds} s. The controller said: {said}"
        )

    def _write(self) -> None:
        for name in ("log", "state", "munge", "spool", "dev", "scratch"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            (self.folder / name).chmod(0o755)  # munge refuses a folder that others can write to
        port = _free_ports(5)
        memory = CONTROL_GROUPS if self.control_groups else POLLED
        values = {"folder": self.folder, "user": getpass.getuser(), "port": port, "memory": memory}
        values |= {
            name: port + number
            for number, name in enumerate(("first", "second", "third", "fourth"), 1)
        }
        self.configuration.write_text(CONFIGURATION.format(**values))
        limit = "ConstrainRAMSpace=yes\n" if self.control_groups else ""
        # Left to itself slurmd looks for a hierarchy even where none is used, and fails where
        # none is mounted.
        (self.folder / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/v1\n{limit}")
        devices = self._devices()
        kinds = [
            f"NodeName={kind}-[0-1] Name=gpu Type={kind} File={devices}\n"
            for kind in ("k80", "p100")
        ]
        (self.folder / "gres.conf").write_text("".join(kinds))
        for name, text in SCRIPTS.items():
            (self.folder / name).write_text(
                "#!/bin/sh\n" + text.replace("{folder}", str(self.folder)) + "\n"
            )
            (self.folder / name).chmod(0o755)

    def _devices(self) -> str:
        """A GPU must be a device: /dev/null under other names, or, for a plain user, consoles."""
        for number in range(4):
            try:
                os.mknod(self.folder / f"dev/gpu{number}", 0o020666, os.makedev(1, 3))
            except PermissionError:
                return "/dev/tty[0-3]"
        return f"{self.folder}/dev/gpu[0-3]"

    def _start_munge(self) -> None:
        place = self.folder / "munge"
        (place / "key").write_bytes(os.urandom(1024))
        (place / "key").chmod(0o600)
        names = {
            "key-file": "key",
            "socket": "socket",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        flags = [f"--{flag}={place}/{name}" for flag, name in names.items()]
        self._daemon("munged", "munged", "--foreground", "--num-threads=2", *flags)
        deadline = time.monotonic() + 10
        while not (place / "socket").exists():
            if time.monotonic() > deadline:
                raise RuntimeError(f"munged did not start: see {self.folder}/log")
            time.sleep(0.05)

    def _daemon(self, name: str, program: str, *arguments: str) -> None:
        environment = {**os.environ, **self.variables}
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self.daemons[name] = subprocess.Popen(
                [shutil.which(program, path=PATH) or program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def _log(self, node: str) -> Path:
        return self.folder / "log" / f"slurmd-{node}.log"

    def _holds_log(self, process: int, node: str) -> bool:
        links = Path(f"/proc/{process}/fd").iterdir()
        name = Path(f"/proc/{process}/comm").read_text()
        return name.startswith("slurm") and any(
            os.readlink(link) == str(self._log(node)) for link in links
        )

    def _is_job(self, process: int, node: str) -> bool:
        environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        wanted = (f"SLURMD_NODENAME={node}", f"SLURM_CONF={self.configuration}")
        return all(word.encode() in environment for word in wanted)


def _processes() -> list[int]:
    return [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and int(path.name) != os.getpid()
    ]


def _free_ports(count: int) -> int:
    """The first of so many in a row that nobody listens on."""
    for first in range(26_800, 32_000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise RuntimeError("no free ports")


def main() -> None:
    with VirtualCluster(Path(sys.argv[1])) as cluster:
        print(f"export SLURM_CONF={cluster.configuration}", flush=True)
        signal.pause()


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    main()
