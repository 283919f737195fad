"""What holds for int8 with every quantiser: which networks, and which range of weights."""

from __future__ import annotations

from pathlib import Path

from steptime.graph.work import Work

# Ops that quantisers replace by int8 kernels.
WEIGHTED = {"conv", "dense"}
RECURRENT = {"lstm", "gru", "rnn"}
# CPU flags of instructions that sum products of bytes in 32 bits.
BYTE_PRODUCT_FLAGS = ("avx512_vnni", "avx_vnni", "amx_int8")


def not_quantisable(work: Work, quantiser: str) -> str | None:
    """The reason, or None.

    A network whose main work would stay in fp32 must not be called int8."""
    network = work.graph.name
    ops = {layer.op.name for layer in work.graph}
    if recurrent := sorted(ops & RECURRENT):
        names = ", ".join(recurrent)
        return f"{network}: {quantiser} cannot quantise its {names}; use fp32 or bf16."
    if not ops & WEIGHTED:
        return (
            f"{network} has no convolution and no dense layer, which is what {quantiser} quantises."
        )
    if not work.calibration:
        return "int8 needs batches that show the range of values; the workload gives none."
    return None


def reduced_range(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether weights must keep to 7 bits.

    Without VNNI, products of U8 and S8 are summed in 16 bits, which overflow otherwise."""
    # An unknown CPU gets the safe choice.
    if not cpuinfo.exists():
        return True
    text = cpuinfo.read_text()
    return not any(flag in text for flag in BYTE_PRODUCT_FLAGS)
