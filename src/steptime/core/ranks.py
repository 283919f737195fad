"""Which of several processes this one is. Whoever starts them (torchrun, mpirun, horovodrun, srun, the worker itself)
says so by variables."""

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
"""Of torchrun and our own, Open MPI, horovodrun, srun: rank, number of ranks, rank among those of the same host."""


@dataclass(frozen=True)
class Ranks:
    """Rank 0 of `size` is at `address`, and everybody meets there at `port` and the few ports behind it."""

    rank: int = 0
    size: int = 1
    local: int = 0
    address: str = "127.0.0.1"
    port: int = 29500


def here(variables: Mapping[str, str]) -> Ranks:
    """The first starter that knows of more than one process: a batch job sets srun's variables for a single one too."""
    # Where srun was called: by us, on rank 0's node.
    launched = variables.get("SLURM_LAUNCH_NODE_IPADDR", Ranks.address)
    address, port = (
        variables.get("MASTER_ADDR", launched),
        variables.get("MASTER_PORT", str(Ranks.port)),
    )
    for names in STARTERS:
        values = [variables.get(name, "") for name in names]
        in_batch = (
            names[0] == "SLURM_PROCID" and "SLURM_STEP_ID" not in variables
        )  # the job's script, no rank of it
        if values[1] in ("", "1") or in_batch:
            continue
        try:
            rank, size, local = (int(value) for value in values)
            return Ranks(rank, size, local, address, int(port))
        except ValueError:
            found = ", ".join(
                f"{name}={value!r}" for name, value in zip(names, values, strict=True)
            )
            raise SteptimeError(
                f"Ranks are told by whole numbers, found {found}, MASTER_PORT={port!r}."
            ) from None
    return Ranks(address=address)
