"""A step in its parts, each marked at its end: the same calls in the same order as the step that is timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from steptime.core.errors import Unsupported

Mark = Callable[[str], None]


def staged(program: Any, mark: Mark) -> Any:
    if program.case.mode == "cudagraph":
        raise Unsupported("A CUDA graph is replayed in one piece; mode=eager shows the parts.")
    if program.host:
        program.fetch()
        mark("data")
    if program.case.phase == "inference":
        with torch.inference_mode():
            output = program.network(program.input)
        mark("forward")
        return output
    return (
        _trained(program, mark)
        if program.case.phase == "training"
        else _loss(program, mark).detach()
    )


def _trained(program: Any, mark: Mark) -> Any:
    program.optimizer.zero_grad()
    mark("optimizer")
    loss = _loss(program, mark)
    if program.scaler is None:
        loss.backward()
        mark("backward")
        program.optimizer.step()
    else:
        program.scaler.scale(loss).backward()
        mark("backward")
        program.scaler.step(program.optimizer)
        program.scaler.update()
    mark("optimizer")
    return loss


def _loss(program: Any, mark: Mark) -> Any:
    """A compiled loss is one piece with the network before it."""
    with program._autocast():
        if program.case.mode == "compiled":
            loss = program.loss(program.input, program.target)
            mark("forward and loss")
            return loss
        output = program.module(program.input)
        mark("forward")
        if output.dtype in (torch.float16, torch.bfloat16):
            output = output.float()
        loss = cross_entropy(output.flatten(0, -2), program.target.flatten())
    mark("loss")
    return loss
