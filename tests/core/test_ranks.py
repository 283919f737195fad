from __future__ import annotations

import pytest

from steptime.core.errors import SteptimeError
from steptime.core.ranks import Ranks, read_ranks

TORCHRUN = {
    "RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "MASTER_ADDR": "node7",
    "MASTER_PORT": "4000",
}
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
}
SRUN = {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0", "SLURM_STEP_ID": "0"}


def test_read_ranks_is_single_without_variables() -> None:
    assert read_ranks({}) == Ranks() == Ranks(rank=0, size=1)


def test_read_ranks_of_torchrun_has_the_address() -> None:
    assert read_ranks(TORCHRUN) == Ranks(rank=1, size=4, local=1, address="node7", port=4000)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [(MPIRUN, Ranks(3, 4, 1)), (SRUN, Ranks(2, 4, 0))],
    ids=["mpirun", "srun"],
)
def test_read_ranks_knows_other_starters(variables: dict[str, str], expected: Ranks) -> None:
    assert read_ranks(variables) == expected


def test_read_ranks_of_srun_meets_at_the_launch_node() -> None:
    assert read_ranks({**SRUN, "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.7"}).address == "10.0.0.7"
    assert (
        read_ranks({**SRUN, "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.7", "MASTER_ADDR": "node7"}).address
        == "node7"
    )


def test_read_ranks_ignores_the_script_of_a_batch_job() -> None:
    batch = {name: value for name, value in SRUN.items() if name != "SLURM_STEP_ID"}
    assert read_ranks(batch).size == 1


def test_read_ranks_of_one_srun_task_finds_the_ranks_inside() -> None:
    assert read_ranks({**SRUN, "SLURM_NTASKS": "1", **TORCHRUN}) == read_ranks(TORCHRUN)


def test_read_ranks_refuses_text_with_its_variable() -> None:
    with pytest.raises(SteptimeError, match="RANK='first'"):
        read_ranks({**TORCHRUN, "RANK": "first"})
