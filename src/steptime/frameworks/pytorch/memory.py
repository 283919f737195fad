"""What holds memory when a step holds most: for one step every tensor's storage is followed from birth to end.

Storage that a library takes inside an operator is seen by the CUDA allocator alone: it is called workspace."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from steptime.core.inspection import MemoryAccount

TEMPORARY, ACTIVATIONS, GRADIENTS = "temporaries", "activations", "gradients"
ONE_PIECE = "what a {} step holds between its operators is not told apart"


def account(program: Any) -> MemoryAccount:
    if program.case.mode == "eager":
        tracker = Tracker(program.device)
        held = _followed(program, tracker)
        return MemoryAccount(_with_allocator(program, held))
    held = dict.fromkeys((name for name, _ in _lasting(program)), 0)
    for name, tensor in _lasting(program):
        held[name] += tensor.untyped_storage().nbytes()
    if program.optimizer is not None:
        held[GRADIENTS] = held["weights"]
    if program.device.type == "cuda":
        _reset(program)
        held = _with_allocator(program, held, rest="activations, temporaries and workspace")
    return MemoryAccount(held, ONE_PIECE.format(program.case.mode))


def _lasting(program: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """What lives longer than a step."""
    yield from (("weights", value) for value in program.module.parameters())
    yield from (("buffers", value) for value in program.module.buffers())
    states = program.optimizer.state.values() if program.optimizer else ()
    values = (value for state in states for value in state.values())
    yield from (("optimizer state", value) for value in values if isinstance(value, torch.Tensor))
    yield from (("inputs", value) for value in (program.input, program.target))


def _followed(program: Any, tracker: Tracker) -> dict[str, int]:
    for name, tensor in _lasting(program):
        tracker.see(tensor, name)
    weights = [one for one in program.module.parameters() if one.requires_grad]
    for weight in weights:
        if weight.grad is not None:
            tracker.see(weight.grad, GRADIENTS)
    hooks = [
        one.register_post_accumulate_grad_hook(lambda w: tracker.see(w.grad, GRADIENTS))
        for one in weights
    ]
    _reset(program, step=False)
    with tracker, torch.autograd.graph.saved_tensors_hooks(tracker.saved, lambda tensor: tensor):
        output = program.step()
        program.wait()
    del output
    for hook in hooks:
        hook.remove()
    return tracker.at_peak()


def _reset(program: Any, *, step: bool = True) -> None:
    if program.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(program.device)
        if step:
            program.step()
        program.wait()


def _with_allocator(program: Any, held: dict[str, int], rest: str = "workspace") -> dict[str, int]:
    """What the tensors do not explain, by the device's own accounts."""
    if program.device.type != "cuda":
        return held
    allocated, reserved = program.memory().values()
    free, total = torch.cuda.mem_get_info(program.device)
    return {
        **held,
        rest: max(0, allocated - sum(held.values())),
        "allocator slack": max(0, reserved - allocated),
        "context": max(0, total - free - torch.cuda.memory_reserved(program.device)),
    }


class Tracker(TorchDispatchMode):
    """Storages in the order of their births and ends; a category may be known only later."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device.type
        self.names: list[str] = []
        self.changes: list[tuple[int, int]] = []  # which storage, bytes more or fewer
        self.alive: dict[int, int] = {}  # a storage's address -> its number

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor)
        return made

    def saved(self, tensor: torch.Tensor) -> torch.Tensor:
        self.see(tensor, ACTIVATIONS)
        return tensor

    def see(self, tensor: torch.Tensor, name: str = TEMPORARY) -> None:
        """A name that says more replaces one that says nothing."""
        if tensor.device.type != self.device:
            return
        storage = tensor.untyped_storage()
        number = self.alive.get(storage._cdata)
        if number is None:
            number = self.alive[storage._cdata] = len(self.names)
            self.names.append(name)
            self.changes.append((number, storage.nbytes()))
            weakref.finalize(storage, self._end, storage._cdata, storage.nbytes())
        elif self.names[number] == TEMPORARY or name == GRADIENTS:
            self.names[number] = name

    def _end(self, address: int, size: int) -> None:
        if (number := self.alive.pop(address, None)) is not None:
            self.changes.append((number, -size))

    def at_peak(self) -> dict[str, int]:
        total = peak = end = 0
        for place, (_, change) in enumerate(self.changes, 1):
            total += change
            if total > peak:
                peak, end = total, place
        held: dict[str, int] = {}
        for number, change in self.changes[:end]:
            held[self.names[number]] = held.get(self.names[number], 0) + change
        return {name: size for name, size in held.items() if size}
