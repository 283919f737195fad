"""The contract of a framework: a program with a step to time, and how to wait for it."""

from __future__ import annotations

from typing import Any, Protocol

from steptime.core.case import Case


class DeviceTimer(Protocol):
    """Timestamps in the device's own queue (CUDA events).

    A device has one if it computes while the host goes on."""

    def record(self) -> Any: ...

    def elapsed_ns(self, first: Any, second: Any) -> int:
        """Only valid after a wait for the device."""


class Program(Protocol):
    """One case, lowered and ready. `core.inspection` has what it may report besides."""

    timer: DeviceTimer | None  # None: the device is done when step() returns

    def step(self) -> Any:
        """One batch. May return before the device is done; its result is kept alive until then.

        training: forward, loss, backward and update, with dropout.
        inference: the outputs, in inference behaviour.
        forward: training's outputs and loss (dropout, batch statistics), without the backward
        pass."""

    def wait(self) -> None:
        """Return when all steps so far are computed."""

    def compilations(self) -> int:
        """How often something was traced or compiled so far.

        If it grows during a measurement, something was recompiled."""

    def memory(self) -> dict[str, int]:
        """Peak bytes as the framework counts them; empty if it does not."""

    def facts(self) -> dict[str, Any]:
        """What was really used, for the record: threads, flags, algorithms."""

    def feed(self, batch: dict[str, Any]) -> None:
        """The batch of the following steps. It has the same shapes, so nothing is recompiled."""

    def kernels(self) -> dict[str, int]:
        """Which routines a step really runs, and how often; empty if unknown.

        Called once, after the measurement."""

    # The following methods prove the lowering and are never called in a timed loop. Arrays are
    # NumPy's, and names are canonical.

    def to_array(self, result: Any) -> Any:
        """What `step` returned, as a copy that later steps do not change; wait first."""

    def weights(self) -> dict[str, Any]: ...

    def load(self, weights: dict[str, Any]) -> None: ...

    def predict(self, batch: dict[str, Any]) -> Any:
        """The network's outputs for this batch, in inference behaviour."""

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """The loss, and the gradient of every trainable weight. Changes no weight.

        In training behaviour with batch statistics, but without dropout: frameworks draw
        different random numbers and could not agree."""


class Framework(Protocol):
    """A plugin of `frameworks`: a package with these names at its top.

    `import_for(case)` is optional: it imports what the framework would import late, by itself,
    where those seconds would count as lowering."""

    INSTALL: str  # the command that installs it
    REQUIRES: tuple[str, ...]  # packages that it imports besides NumPy and safetensors
    OPTIONAL: tuple[str, ...]  # packages that only some cases need
    MODES: tuple[str, ...]  # without `eager`, the first is the default mode

    def versions(self) -> dict[str, str]: ...

    def unsupported(self, case: Case) -> str | None:
        """Why this case cannot run here, or None. Called before anything is built."""

    # `work` is a `workloads.Work`, which core must not import.
    def lower(self, work: Any, case: Case) -> Program:
        """Raise `Unsupported` with the reason that `unsupported` gives, if it gives one."""

    def is_out_of_memory(self, error: BaseException) -> bool: ...
