"""The command that measures a stored run again."""

from __future__ import annotations

import shlex
from dataclasses import fields

from steptime.core.case import Case
from steptime.core.record import Record

# The defaults of these depend on the machine or the version, so a command always names them.
ALWAYS_NAMED = ("framework", "mode", "device", "precision")
# They never start enough processes.
TOO_FEW_FOR_INTERVAL = ("quick", "single")
FLAGS = {"workload": "--workload", "phase": "--phase", "batch_size": "--batch-size"}


def case_flags(case: Case) -> str:
    """The flags of `steptime run` that name this case."""
    flags = [f"{flag} {shlex.quote(str(getattr(case, name)))}" for name, flag in FLAGS.items()]
    for field in fields(case):
        value = getattr(case, field.name)
        if field.name in FLAGS:
            continue
        if field.name in ALWAYS_NAMED or value != field.default:
            setting = f"{field.name}={value}"
            flags.append(f"--set {shlex.quote(setting)}")
    return " ".join(flags)


def rerun_command(record: Record, *, with_interval: bool = False) -> str:
    """`with_interval`: by a preset that starts enough processes for one."""
    protocol = record.last.protocol
    preset = protocol.preset
    changes = protocol.changes()
    if with_interval:
        changes.pop("processes_least", None)
        changes.pop("processes_most", None)
        if preset in TOO_FEW_FOR_INTERVAL:
            preset = "standard"
    command = ["steptime run", case_flags(record.case)]
    for name, value in changes.items():
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        command.append(f"--set {shlex.quote(f'protocol.{name}={text}')}")
    # Without --again, `steptime run` would find the stored result and measure nothing.
    command += [f"--preset {preset}", "--again"]
    return " ".join(command)
