"""One case, lowered: the step of each phase, and the part that proves the lowering."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.inspection import MemoryAccount, StepProfile
from steptime.core.program import DeviceTimer
from steptime.frameworks.pytorch import exchange, settings
from steptime.frameworks.pytorch.kernels import kernels_of
from steptime.frameworks.pytorch.lowering import Lowered, lower_graph
from steptime.frameworks.pytorch.memory import account
from steptime.frameworks.pytorch.optimizer import optimizer_for
from steptime.frameworks.pytorch.profiler import watch
from steptime.frameworks.pytorch.replay import Replay
from steptime.frameworks.pytorch.staged import staged
from steptime.frameworks.pytorch.timer import CudaTimer
from steptime.graph import Work
from steptime.graph.weights import check

SCALES = (2.0**16, 2.0**12, 2.0**8, 2.0**4, 1.0)


class PytorchProgram:
    """Steps, in data mode `host` each with the copy of the batch to the device before it:

    training:  gradients to None, forward, mean loss, backward, optimiser. The loss is not read on the host.
    forward:   training's forward and loss, with all that a backward pass would need recorded, but no backward pass.
    inference: outputs for the batch, no gradients, moving statistics, no dropout.
    """

    def __init__(self, work: Work, case: Case) -> None:
        if reason := _beyond_this_cpu(work, case):
            raise Unsupported(reason)
        settings.apply(case)
        self.case, self.work, self.device = case, work, torch.device(case.device)
        self.dtype = settings.stored_dtype(case)
        self.memory_format = _memory_format(work, case)
        compiled = case.mode == "compiled"
        self.module = self._build(compiled)
        self.network = torch.compile(self.module, dynamic=False) if compiled else self.module
        self.called = exchange.shared(self.module, case)
        self.loss = torch.compile(self._loss, dynamic=False) if compiled else self._loss
        self.optimizer: Any = None
        self.scaler: Any = None
        if case.phase == "training":
            capturable = case.mode == "cudagraph"
            own = optimizer_for(work.optimizer, self.module.parameters(), capturable=capturable)
            self.optimizer = exchange.stepped(own, self.module, case)
            if case.precision == "fp16":
                self.scaler = torch.amp.GradScaler(self.device.type)
        self.input, self.target = self._placed(work.batch)
        self.host = self._pinned(work.batch) if case.data == "host" else ()
        self.step: Callable[[], Any] = self._step()
        self.timer: DeviceTimer | None = (
            CudaTimer(self.device) if self.device.type == "cuda" else None
        )

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def compilations(self) -> int:
        if self.case.mode != "compiled":
            return 0
        from torch._dynamo.utils import counters  # slow to import, so only where it is needed

        return int(counters["stats"]["unique_graphs"])

    def memory(self) -> dict[str, int]:
        if self.device.type == "cpu":
            return {}
        return {
            "peak_allocated_bytes": torch.cuda.max_memory_allocated(self.device),
            "peak_reserved_bytes": torch.cuda.max_memory_reserved(self.device),
        }

    def facts(self) -> dict[str, Any]:
        scaled = self.scaler is not None
        fused = {"optimizer": f"{type(self.optimizer).__name__}, fused"} if self.optimizer else {}
        return {
            **settings.facts(self.case),
            **fused,
            "loss_scaling": scaled,
            **exchange.facts(self.case),
        }

    def feed(self, batch: dict[str, Any]) -> None:
        """Into the memory that the steps read already: a CUDA graph knows addresses."""
        self.wait()  # a step may still be copying the last one
        for own, new in zip(
            self.host or (self.input, self.target), self._tensors(batch), strict=True
        ):
            own.copy_(new)

    def kernels(self) -> dict[str, int]:
        return kernels_of(self.step, self.wait, cuda=self.device.type == "cuda")

    def step_in_stages(self, mark: Callable[[str], None]) -> Any:
        return staged(self, mark)

    def profile(self, steps: int) -> StepProfile:
        return watch(self, steps)

    def memory_account(self) -> MemoryAccount:
        return account(self)

    def exchange(self, *, tiny: bool = False) -> int:
        return exchange.exchange(self.module, self.case, tiny=tiny)

    def weights(self) -> dict[str, Any]:
        return {name: _array(value) for name, value in self.module.canonical().items()}

    def load(self, weights: dict[str, Any]) -> None:
        """Copies, so that the memory's place and layout stay as they are."""
        check(weights, self.work.graph)
        with torch.no_grad():
            for name, value in self.module.canonical().items():
                value.copy_(torch.from_numpy(np.ascontiguousarray(weights[name])))

    def predict(self, batch: dict[str, Any]) -> Any:
        values, _ = self._placed(batch)
        with self._behaviour(training=False), torch.inference_mode(), self._autocast():
            return _array(self.network(values))

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """Through the function that is timed, but never through a CUDA graph, whose batch is fixed."""
        own = {
            name: value for name, value in self.module.canonical().items() if value.requires_grad
        }
        statistics = {name: value.clone() for name, value in self.module.named_buffers()}
        with self._behaviour(training=True):
            loss, found = self._gradients(list(own.values()), *self._placed(batch))
        with torch.no_grad():
            for name, value in self.module.named_buffers():
                value.copy_(statistics[name])
        return loss, dict(zip(own, found, strict=True))

    def _gradients(self, weights: list[Any], values: Any, target: Any) -> tuple[float, list[Any]]:
        """fp16 takes the largest scale that leaves every gradient finite, as loss scaling does in the long run."""
        for scale in SCALES if self.case.precision == "fp16" else (1.0,):
            with self._autocast():
                loss = self.loss(values, target)
            found = torch.autograd.grad(loss * scale, weights)
            if all(value.isfinite().all() for value in found):
                break
        return loss.item(), [_array(value) / scale for value in found]

    def _build(self, compiled: bool) -> Lowered:
        opaque = torch.compiler.disable if compiled else None
        module = self._lowered(opaque)
        module.to(self.device, self.dtype)
        if self.memory_format is torch.channels_last:
            module.to(memory_format=torch.channels_last)
        module.compact()
        self.module = module
        self.load(self.work.weights)
        return module.train(self.case.phase != "inference")

    def _lowered(self, opaque: Any) -> Lowered:
        return lower_graph(self.work.graph, opaque=opaque)

    def _loss(self, values: Any, target: Any) -> Any:
        output = self.called(values)
        if output.dtype in (torch.float16, torch.bfloat16):
            output = output.float()  # what autocast does on CUDA but not on every CPU
        return cross_entropy(output.flatten(0, -2), target.flatten())

    def _autocast(self) -> Any:
        if not settings.mixed(self.case):
            return nullcontext()
        return torch.autocast(self.device.type, settings.DTYPES[self.case.precision])

    def _step(self) -> Callable[[], Any]:
        step = {"training": self._train, "forward": self._forward, "inference": self._infer}[
            self.case.phase
        ]
        if self.scaler is not None:
            step = self._train_scaled
        if self.case.mode == "cudagraph":
            step = Replay(step, self.module, self.optimizer)
        return partial(self._fetch_then, step) if self.host else step

    def _fetch_then(self, step: Callable[[], Any]) -> Any:
        self.fetch()
        return step()

    def fetch(self) -> None:
        self.input.copy_(self.host[0], non_blocking=True)
        self.target.copy_(self.host[1], non_blocking=True)

    def _train(self) -> Any:
        self.optimizer.zero_grad()
        with self._autocast():
            loss = self.loss(self.input, self.target)
        loss.backward()
        self.optimizer.step()
        return loss

    def _train_scaled(self) -> Any:
        self.optimizer.zero_grad()
        with self._autocast():
            loss = self.loss(self.input, self.target)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    def _forward(self) -> Any:
        with self._autocast():
            return self.loss(
                self.input, self.target
            ).detach()  # lets the recorded activations go within the step

    def _infer(self) -> Any:
        with torch.inference_mode():
            return self.network(self.input)

    @contextmanager
    def _behaviour(self, *, training: bool) -> Any:
        before = self.module.training
        self.module.train(training)
        self.module.dropping = False
        try:
            yield
        finally:
            self.module.dropping = True
            self.module.train(before)

    def _tensors(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        values, target = torch.from_numpy(batch["input"]), torch.from_numpy(batch["target"])
        if values.is_floating_point():
            values = values.to(self.dtype)
        return values.contiguous(memory_format=self.memory_format), target

    def _placed(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """A copy on the CPU too: what is measured there must not change under the caller's hands."""
        values, target = self._tensors(batch)
        return values.to(self.device, copy=True), target.to(self.device, copy=True)

    def _pinned(self, batch: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        tensors = self._tensors(batch)
        return tuple(t.pin_memory() for t in tensors) if self.device.type == "cuda" else tensors


def _beyond_this_cpu(work: Work, case: Case) -> str | None:
    """oneDNN's recurrent layers in a lower precision need instructions that not every CPU has."""
    recurrent = any(layer.op.name == "lstm" for layer in work.graph)
    if case.device != "cpu" or not recurrent or not settings.mixed(case):
        return None
    native = getattr(torch.ops.mkldnn, f"_is_mkldnn_{case.precision}_supported")()
    return (
        None
        if native
        else f"This CPU has no {case.precision} instructions, which PyTorch's LSTM needs to train."
    )


def _memory_format(work: Work, case: Case) -> torch.memory_format:
    if case.layout == "nchw":
        return torch.contiguous_format
    if len(work.graph.input.shape) != 3:
        raise Unsupported(
            f"{work.graph.name} reads no images, so layout nhwc means nothing; use nchw."
        )
    return torch.channels_last


def _array(value: torch.Tensor) -> Any:
    """NumPy in logical order, whatever the layout; at least fp32, because NumPy has no bf16."""
    wide = value.detach().to("cpu", torch.promote_types(value.dtype, torch.float32))
    return np.array(wide.numpy(), order="C")
