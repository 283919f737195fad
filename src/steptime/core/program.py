"""What a framework hands over: a step to time, and how to wait for it. The engine knows nothing else of it."""

from __future__ import annotations

from typing import Any, Protocol

from steptime.core.case import Case


class DeviceTimer(Protocol):
    """Time stamps on the device's own queue (CUDA events). A device that computes while the host goes on has one."""

    def record(self) -> Any: ...

    def elapsed_ns(self, first: Any, second: Any) -> int:
        """Only valid after the device has been waited for."""


class Program(Protocol):
    """One case, lowered and ready. What it may tell of its inside is in `core.inspection`."""

    timer: DeviceTimer | None  # None: the device is done when step() returns

    def step(self) -> Any:
        """One batch. May return before the device is done; what it returns is kept alive until then.

        training: forward, loss, backward and update, with dropout. inference: the outputs, in inference behaviour.
        forward: training's outputs and loss (dropout, the batch's own statistics), without the way back."""

    def wait(self) -> None:
        """Returns when everything asked for so far is computed."""

    def compilations(self) -> int:
        """How often something was traced or compiled so far; moves inside a measurement = recompiled."""

    def memory(self) -> dict[str, int]:
        """Peak bytes by the framework's own account; empty where it keeps none."""

    def facts(self) -> dict[str, Any]:
        """What was really used: threads, flags, algorithms. Goes into the record."""

    def feed(self, batch: dict[str, Any]) -> None:
        """The batch of the steps that follow, of the same shapes; nothing is traced or compiled anew."""

    def kernels(self) -> dict[str, int]:
        """Which routines a step really runs, and how often: asked once, after the measurement. Empty: cannot tell."""

    # The part that proves the lowering, never inside a timed loop. Arrays are NumPy's, names are canonical.

    def weights(self) -> dict[str, Any]: ...

    def load(self, weights: dict[str, Any]) -> None: ...

    def predict(self, batch: dict[str, Any]) -> Any:
        """The network's outputs for this batch, in inference behaviour."""

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """Loss and the gradient of every trainable weight, in training behaviour (normalisation uses the batch's own
        statistics), except that dropout is off: frameworks draw differently and could not agree. Changes no weight."""


class Framework(Protocol):
    """A folder on the shelf `frameworks`: these functions at the top of its package."""

    INSTALL: str  # the line that installs it
    REQUIRES: tuple[str, ...]  # packages that it imports besides NumPy and safetensors
    OPTIONAL: tuple[str, ...]  # packages that only some cases need
    MODES: tuple[
        str, ...
    ]  # that it has; without `eager` the first is the one to use when nobody asks for another

    def versions(self) -> dict[str, str]: ...

    def unsupported(self, case: Case) -> str | None:
        """Why this case cannot run here, or None. Asked before anything is built."""

    def lower(self, work: Any, case: Case) -> Program:
        """Raises `Unsupported` with the same reason where `unsupported` gives one."""

    def is_out_of_memory(self, error: BaseException) -> bool: ...
