"""What the memory is used for at the peak of a step.

For one step, every tensor's storage is tracked from allocation to release. Storage that a library
takes inside an operator is visible to the CUDA allocator alone: it is called workspace."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from steptime.core.inspection import MemoryAccount
from steptime.frameworks.pytorch.interface import TorchProgram

TEMPORARY = "temporaries"
ACTIVATIONS = "activations"
GRADIENTS = "gradients"
ONE_PIECE = "the memory of a {} step between its operators is not broken down"


def account_memory(program: TorchProgram) -> MemoryAccount:
    if program.case.mode == "eager":
        held = _track_step(program, Tracker(program.device))
        return MemoryAccount(_with_allocator(program, held, rest="workspace"))
    held = {}
    for name, tensor in _lasting_tensors(program):
        held[name] = held.get(name, 0) + tensor.untyped_storage().nbytes()
    if program.optimizer is not None:
        held[GRADIENTS] = held["weights"]
    if program.device.type == "cuda":
        _reset_peak(program)
        program.step()
        program.wait()
        held = _with_allocator(program, held, rest="activations, temporaries and workspace")
    return MemoryAccount(held, ONE_PIECE.format(program.case.mode))


def _lasting_tensors(program: TorchProgram) -> Iterator[tuple[str, torch.Tensor]]:
    """Those that live longer than a step, by category."""
    for value in program.module.parameters():
        yield "weights", value
    for value in program.module.buffers():
        yield "buffers", value
    if program.optimizer is not None:
        for state in program.optimizer.state.values():
            for value in state.values():
                if isinstance(value, torch.Tensor):
                    yield "optimizer state", value
    yield "inputs", program.input
    yield "inputs", program.target


def _track_step(program: TorchProgram, tracker: Tracker) -> dict[str, int]:
    for name, tensor in _lasting_tensors(program):
        tracker.record(tensor, name)
    hooks = []
    for weight in program.module.parameters():
        if not weight.requires_grad:
            continue
        if weight.grad is not None:
            tracker.record(weight.grad, GRADIENTS)
        hooks.append(weight.register_post_accumulate_grad_hook(tracker.record_gradient))
    _reset_peak(program)
    saving = torch.autograd.graph.saved_tensors_hooks(
        tracker.record_activation, lambda tensor: tensor
    )
    with tracker, saving:
        output = program.step()
        program.wait()
    del output
    for hook in hooks:
        hook.remove()
    return tracker.held_at_peak()


def _reset_peak(program: TorchProgram) -> None:
    if program.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(program.device)
        program.wait()


def _with_allocator(program: TorchProgram, held: dict[str, int], rest: str) -> dict[str, int]:
    """With what the tensors do not explain, by the accounts of allocator and device."""
    if program.device.type != "cuda":
        return held
    allocated, reserved = program.memory().values()
    free, total = torch.cuda.mem_get_info(program.device)
    context = total - free - torch.cuda.memory_reserved(program.device)
    complete = dict(held)
    complete[rest] = max(0, allocated - sum(held.values()))
    complete["allocator slack"] = max(0, reserved - allocated)
    complete["context"] = max(0, context)
    return complete


class Tracker(TorchDispatchMode):
    """Allocations and releases of storages, in order; a category may become known only later."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device.type
        # The category of each storage.
        self.names: list[str] = []
        # The number of a storage, and bytes more or fewer.
        self.changes: list[tuple[int, int]] = []
        # The address of a storage -> its number.
        self.alive: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        outputs = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(outputs):
            if isinstance(tensor, torch.Tensor):
                self.record(tensor)
        return outputs

    def record_activation(self, tensor: torch.Tensor) -> torch.Tensor:
        self.record(tensor, ACTIVATIONS)
        return tensor

    def record_gradient(self, weight: torch.Tensor) -> None:
        assert weight.grad is not None
        self.record(weight.grad, GRADIENTS)

    def record(self, tensor: torch.Tensor, name: str = TEMPORARY) -> None:
        """Counts a new storage; a specific category replaces `temporaries`."""
        if tensor.device.type != self.device:
            return
        storage = tensor.untyped_storage()
        number = self.alive.get(storage._cdata)
        if number is None:
            number = len(self.names)
            self.alive[storage._cdata] = number
            self.names.append(name)
            self.changes.append((number, storage.nbytes()))
            weakref.finalize(storage, self._release, storage._cdata, storage.nbytes())
        elif self.names[number] == TEMPORARY or name == GRADIENTS:
            self.names[number] = name

    def _release(self, address: int, size: int) -> None:
        number = self.alive.pop(address, None)
        if number is not None:
            self.changes.append((number, -size))

    def held_at_peak(self) -> dict[str, int]:
        total = 0
        peak = 0
        end = 0
        for count, (_, change) in enumerate(self.changes, 1):
            total += change
            if total > peak:
                peak = total
                end = count
        held: dict[str, int] = {}
        for number, change in self.changes[:end]:
            name = self.names[number]
            held[name] = held.get(name, 0) + change
        return {name: size for name, size in held.items() if size}
