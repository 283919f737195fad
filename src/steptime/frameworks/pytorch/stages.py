"""A step in stages: the same calls in the same order as the step that is timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from steptime.core.errors import Unsupported
from steptime.frameworks.pytorch.interface import TorchProgram
from steptime.frameworks.pytorch.modes import is_captured, is_compiled

Mark = Callable[[str], None]


def step_in_stages(program: TorchProgram, mark: Mark) -> Any:
    """Calls `mark` with the name of each stage at its end."""
    if is_captured(program.case):
        raise Unsupported("A CUDA graph is replayed in one piece; mode=eager shows the stages.")
    if program.host:
        program.fetch()
        mark("data")
    if program.case.phase == "inference":
        with torch.inference_mode():
            output = program.network(program.input)
        mark("forward")
        return output
    if program.case.phase == "training":
        return _train(program, mark)
    return _loss(program, mark).detach()


def _train(program: TorchProgram, mark: Mark) -> Any:
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


def _loss(program: TorchProgram, mark: Mark) -> Any:
    with program.autocast():
        # A compiled loss is one piece with the network before it.
        if is_compiled(program.case):
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
