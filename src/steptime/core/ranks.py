"""Which of several ranks this process is.

The program that starts the ranks (torchrun, mpirun, horovodrun, srun, or a worker) sets variables
that say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from steptime.core.errors import SteptimeError

STARTERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)
"""Variables of torchrun and our own launcher, Open MPI, horovodrun, srun.

They hold the rank, the number of ranks, and the rank among those of the same host."""


@dataclass(frozen=True)
class Ranks:
    """Rank 0 of `size` is at `address`. All ranks meet there at `port` and the next few ports."""

    rank: int = 0
    size: int = 1
    local: int = 0
    address: str = "127.0.0.1"
    port: int = 29500


def read_ranks(variables: Mapping[str, str]) -> Ranks:
    """By the first starter that has started more than one process.

    A batch job sets srun's variables for a single process, too."""
    # The node on which srun was called: we call it on rank 0's node.
    launch_node = variables.get("SLURM_LAUNCH_NODE_IPADDR", Ranks.address)
    address = variables.get("MASTER_ADDR", launch_node)
    for names in STARTERS:
        if "SLURM_PROCID" in names and "SLURM_STEP_ID" not in variables:
            # This is the script of a batch job, not a rank that srun started.
            continue
        values = {name: variables.get(name, "") for name in names}
        if values[names[1]] in ("", "1"):
            continue
        return _parse_ranks(values, address, variables.get("MASTER_PORT", str(Ranks.port)))
    return Ranks(address=address)


def _parse_ranks(values: Mapping[str, str], address: str, port: str) -> Ranks:
    try:
        rank, size, local = map(int, values.values())
        return Ranks(rank, size, local, address, int(port))
    except ValueError:
        settings = ", ".join(f"{name}={value!r}" for name, value in values.items())
        raise SteptimeError(
            f"Ranks must be whole numbers, found {settings}, MASTER_PORT={port!r}."
        ) from None
