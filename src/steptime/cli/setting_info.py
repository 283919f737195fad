"""What the settings of a case mean, for `steptime list settings`."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from steptime.core.case import CHOICES, LEAST, Case

MEANINGS = {
    "workload": "a network's name, or FILE.py:NAME for your own",
    "framework": "a name of `steptime list frameworks`",
    "phase": "training with the optimizer's step, inference, or the forward pass of training",
    "mode": "how the framework runs the step; one without eager uses its first mode",
    "device": "cpu, cuda (the first GPU), cuda:1, …",
    "precision": "of the computation; lower ones are stored with their accuracy loss",
    "batch_size": "samples per step, of each rank",
    "layout": "of images: channels first or channels last",
    "data": "the batch is on the device, is copied from the host, or is read from real files",
    "page_cache": "real data: read once before, or dropped before and after every step",
    "prefetch": "real data: batches that a thread keeps ready; 0: the step reads its own",
    "optimizer": "own: the one of the network's authors",
    "timing": "steps queued one after the other, or each waited for",
    "threads": "of the CPU; 0: every CPU that the process may use",
    "allocator": "pinned: memory is kept, which steadies steps; stock: as the library does",
    "wait_policy": "how OpenMP's threads wait: spinning, sleeping, or as the library decides",
    "compile_cache": "cold: compilers find nothing from earlier runs",
    "weights": "a safetensors file; empty: initial weights from the seed",
    "node_type": "the [slurm.NAME] of the machine file that `submit` sends it to",
    "devices": "how many are allocated; with an exchange, one rank for each",
    "exchange": "how ranks share a step; none: one process",
    "nodes": "over which the ranks are spread evenly",
    "interconnect": "a label for what joins the ranks",
    "staging": "real data: a tier of the machine file to which it is copied first",
    "launch": "a [launches.NAME] of the machine file that starts the worker",
    "seed": "of weights and data",
    "trial": "tells repeats of the same settings apart",
}


def settings() -> list[dict[str, Any]]:
    entries = []
    for setting in fields(Case):
        default = "" if setting.default is MISSING else setting.default
        values = ", ".join(CHOICES.get(setting.name, ()))
        if setting.name in LEAST:
            values = f"{LEAST[setting.name]} or more"
        meaning = MEANINGS[setting.name]
        entries.append(
            {"name": setting.name, "default": default, "values": values, "meaning": meaning}
        )
    return entries
