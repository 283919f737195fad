"""One case, lowered: the step of each phase, and what proves the lowering."""

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
from steptime.frameworks.pytorch.cuda_graph import CudaGraphStep
from steptime.frameworks.pytorch.kernels import kernels_of
from steptime.frameworks.pytorch.lowering import Lowered, lower_graph
from steptime.frameworks.pytorch.memory import account_memory
from steptime.frameworks.pytorch.modes import INDUCTOR_MODES, is_captured, is_compiled
from steptime.frameworks.pytorch.optimizer import optimizer_for
from steptime.frameworks.pytorch.profiler import profile_steps
from steptime.frameworks.pytorch.stages import step_in_stages
from steptime.frameworks.pytorch.timer import CudaTimer
from steptime.graph import Work
from steptime.graph.weights import check

MOST_PROGRAMS = 1000
# Largest first: gradients in fp16 take the largest that leaves all of them finite.
LOSS_SCALES = (2.0**16, 2.0**12, 2.0**8, 2.0**4, 1.0)


class PytorchProgram:
    """Implements `core.program.Program`. The steps, by phase:

    training:  gradients to None, forward, mean loss, backward, optimiser. The host does not read
               the loss.
    forward:   forward pass and loss of training, recording all that a backward pass would need,
               but no backward pass.
    inference: outputs for the batch, no gradients, moving statistics, no dropout.

    In data mode `host` each step first copies the batch to the device.
    """

    def __init__(self, work: Work, case: Case) -> None:
        if reason := _unsupported_by_cpu(work, case):
            raise Unsupported(reason)
        settings.apply(case)
        self.case = case
        self.work = work
        self.device = torch.device(case.device)
        self.cuda = self.device.type == "cuda"
        self.dtype = settings.stored_dtype(case)
        self.memory_format = _memory_format(work, case)
        self.module = self._build_module()
        # What a step calls for the loss: wrapped, if ranks exchange gradients.
        self.wrapped_module = exchange.wrap_module(self.module, case)
        self.network: Any = self.module
        self.loss: Callable[[torch.Tensor, torch.Tensor], Any] = self._loss
        if is_compiled(case):
            # A process may make many programs; beyond the limit they would silently run eagerly.
            torch._dynamo.config.recompile_limit = MOST_PROGRAMS
            torch._dynamo.config.accumulated_recompile_limit = MOST_PROGRAMS
            mode = INDUCTOR_MODES[case.mode]
            self.network = torch.compile(self.module, dynamic=False, mode=mode)
            self.loss = torch.compile(self._loss, dynamic=False, mode=mode)
        self.optimizer: Any = None
        self.scaler: Any = None
        if case.phase == "training":
            self._build_optimizer()
        self.input, self.target = self._to_device(work.batch)
        self.host = self._host_tensors(work.batch) if case.data == "host" else ()
        self.step: Callable[[], Any] = self._build_step()
        self.timer: DeviceTimer | None = CudaTimer(self.device) if self.cuda else None

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize(self.device)

    def compilations(self) -> int:
        if not is_compiled(self.case):
            return 0
        # Slow to import, so only if it is needed.
        from torch._dynamo.utils import counters

        return int(counters["stats"]["unique_graphs"])

    def memory(self) -> dict[str, int]:
        if not self.cuda:
            return {}
        return {
            "peak_allocated_bytes": torch.cuda.max_memory_allocated(self.device),
            "peak_reserved_bytes": torch.cuda.max_memory_reserved(self.device),
        }

    def facts(self) -> dict[str, Any]:
        facts = settings.facts(self.case)
        if self.optimizer:
            facts["optimizer"] = f"{type(self.optimizer).__name__}, fused"
        facts["loss_scaling"] = self.scaler is not None
        facts.update(exchange.facts(self.case))
        return facts

    def feed(self, batch: dict[str, Any]) -> None:
        """Into the memory that the steps read already: a CUDA graph has the addresses."""
        # A step may still be copying the batch before.
        self.wait()
        targets = self.host or (self.input, self.target)
        for target, source in zip(targets, self._tensors(batch), strict=True):
            target.copy_(source)

    def kernels(self) -> dict[str, int]:
        return kernels_of(self.step, self.wait, cuda=self.cuda)

    def step_in_stages(self, mark: Callable[[str], None]) -> Any:
        return step_in_stages(self, mark)

    def profile(self, steps: int) -> StepProfile:
        return profile_steps(self, steps, cuda=self.cuda)

    def memory_account(self) -> MemoryAccount:
        return account_memory(self)

    def exchange(self, *, tiny: bool = False) -> int:
        return exchange.exchange(self.module, self.case, tiny=tiny)

    def to_array(self, result: Any) -> Any:
        return _to_numpy(result)

    def weights(self) -> dict[str, Any]:
        return {name: _to_numpy(value) for name, value in self.module.canonical().items()}

    def load(self, weights: dict[str, Any]) -> None:
        """Copies, so that address and layout of the memory stay as they are."""
        check(weights, self.work.graph)
        with torch.no_grad():
            for name, value in self.module.canonical().items():
                value.copy_(torch.from_numpy(np.ascontiguousarray(weights[name])))

    def predict(self, batch: dict[str, Any]) -> Any:
        values, _ = self._to_device(batch)
        with self._behaviour(training=False), torch.inference_mode(), self.autocast():
            return _to_numpy(self.network(values))

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """Through the timed function, but never through a CUDA graph, whose batch is fixed."""
        tensors = self.module.canonical()
        weights = {name: value for name, value in tensors.items() if value.requires_grad}
        statistics = {name: value.clone() for name, value in self.module.named_buffers()}
        values, target = self._to_device(batch)
        with self._behaviour(training=True):
            loss, gradients = self._finite_gradients(list(weights.values()), values, target)
        with torch.no_grad():
            for name, value in self.module.named_buffers():
                value.copy_(statistics[name])
        return loss, dict(zip(weights, gradients, strict=True))

    def _finite_gradients(
        self, weights: list[torch.Tensor], values: torch.Tensor, target: torch.Tensor
    ) -> tuple[float, list[Any]]:
        """fp16 takes the largest scale with finite gradients, as loss scaling ends up doing."""
        scales = LOSS_SCALES if self.case.precision == "fp16" else (1.0,)
        for scale in scales:
            with self.autocast():
                loss = self.loss(values, target)
            gradients = torch.autograd.grad(loss * scale, weights)
            if all(gradient.isfinite().all() for gradient in gradients):
                break
        return loss.item(), [_to_numpy(gradient) / scale for gradient in gradients]

    def _build_module(self) -> Lowered:
        opaque = torch.compiler.disable if is_compiled(self.case) else None
        module = self._lower(opaque)
        module.to(self.device, self.dtype)
        if self.memory_format is torch.channels_last:
            module.to(memory_format=torch.channels_last)
        module.compact()
        self.module = module
        self.load(self.work.weights)
        return module.train(self.case.phase != "inference")

    def _lower(self, opaque: Callable[[Any], Any] | None) -> Lowered:
        return lower_graph(self.work.graph, opaque=opaque)

    def _build_optimizer(self) -> None:
        optimizer = optimizer_for(
            self.work.optimizer,
            self.module.parameters(),
            capturable=is_captured(self.case),
        )
        self.optimizer = exchange.wrap_optimizer(optimizer, self.module, self.case)
        if self.case.precision == "fp16":
            self.scaler = torch.amp.GradScaler(self.device.type)

    def _loss(self, values: torch.Tensor, target: torch.Tensor) -> Any:
        output = self.wrapped_module(values)
        # Autocast does this on CUDA, but not on every CPU.
        if output.dtype in (torch.float16, torch.bfloat16):
            output = output.float()
        return cross_entropy(output.flatten(0, -2), target.flatten())

    def autocast(self) -> Any:
        if not settings.uses_autocast(self.case):
            return nullcontext()
        return torch.autocast(self.device.type, settings.DTYPES[self.case.precision])

    def _build_step(self) -> Callable[[], Any]:
        steps: dict[str, Callable[[], Any]] = {
            "training": self._train if self.scaler is None else self._train_scaled,
            "forward": self._forward,
            "inference": self._infer,
        }
        step = steps[self.case.phase]
        if is_captured(self.case):
            step = CudaGraphStep(step, self.module, self.optimizer)
        return partial(self._fetch_then, step) if self.host else step

    def _fetch_then(self, step: Callable[[], Any]) -> Any:
        self.fetch()
        return step()

    def fetch(self) -> None:
        self.input.copy_(self.host[0], non_blocking=True)
        self.target.copy_(self.host[1], non_blocking=True)

    def _train(self) -> Any:
        self.optimizer.zero_grad()
        with self.autocast():
            loss = self.loss(self.input, self.target)
        loss.backward()
        self.optimizer.step()
        return loss

    def _train_scaled(self) -> Any:
        self.optimizer.zero_grad()
        with self.autocast():
            loss = self.loss(self.input, self.target)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    def _forward(self) -> Any:
        with self.autocast():
            loss = self.loss(self.input, self.target)
            # Releases the recorded activations within the step.
            return loss.detach()

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
        values = torch.from_numpy(batch["input"])
        target = torch.from_numpy(batch["target"])
        if values.is_floating_point():
            values = values.to(self.dtype)
        return values.contiguous(memory_format=self.memory_format), target

    def _to_device(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """A copy on the CPU too, so that the caller cannot change the batch of a measurement."""
        values, target = self._tensors(batch)
        return values.to(self.device, copy=True), target.to(self.device, copy=True)

    def _host_tensors(self, batch: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        values, target = self._tensors(batch)
        if self.cuda:
            return values.pin_memory(), target.pin_memory()
        # A copy: `feed` writes here, and the array is the caller's.
        return values.clone(memory_format=self.memory_format), target.clone()


def _unsupported_by_cpu(work: Work, case: Case) -> str | None:
    """oneDNN's LSTM in a lower precision needs instructions that not every CPU has."""
    has_lstm = any(layer.op.name == "lstm" for layer in work.graph)
    if case.device != "cpu" or not has_lstm or not settings.uses_autocast(case):
        return None
    is_supported = getattr(torch.ops.mkldnn, f"_is_mkldnn_{case.precision}_supported")
    if is_supported():
        return None
    return f"This CPU has no {case.precision} instructions, which PyTorch's LSTM needs to train."


def _memory_format(work: Work, case: Case) -> torch.memory_format:
    if case.layout == "nchw":
        return torch.contiguous_format
    if len(work.graph.input.shape) != 3:
        raise Unsupported(
            f"{work.graph.name} reads no images, so layout nhwc means nothing; use nchw."
        )
    return torch.channels_last


def _to_numpy(value: torch.Tensor) -> Any:
    """In logical order, whatever the layout; at least fp32, because NumPy has no bf16."""
    wide = value.detach().to("cpu", torch.promote_types(value.dtype, torch.float32))
    return np.array(wide.numpy(), order="C")
