"""What holds for int8 whoever quantises: which networks, and which range of weights."""

from __future__ import annotations

from pathlib import Path

from steptime.graph.work import Work

WEIGHTED, RECURRENT = {"conv", "dense"}, {"lstm", "gru", "rnn"}
PRODUCTS_OF_BYTES = ("avx512_vnni", "avx_vnni", "amx_int8")


def not_quantisable(work: Work, quantiser: str) -> str | None:
    """Why, or None. A network that would stay in fp32 where its work is done is not called int8."""
    ops = {layer.op.name for layer in work.graph}
    if found := sorted(ops & RECURRENT):
        return f"{work.graph.name}: {quantiser} cannot quantise its {', '.join(found)}; use fp32 or bf16."
    if not ops & WEIGHTED:
        return f"{work.graph.name} has no convolution and no dense layer, which is what {quantiser} quantises."
    return (
        None
        if work.calibration
        else "int8 needs batches that show the range of values; the workload gives none."
    )


def reduced_range(description: Path = Path("/proc/cpuinfo")) -> bool:
    """Without VNNI, products of U8 and S8 are added up in 16 bits, which overflow unless weights keep to 7 bits."""
    return not (
        description.exists() and any(word in description.read_text() for word in PRODUCTS_OF_BYTES)
    )
