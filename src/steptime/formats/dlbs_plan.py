"""HPE DLBS plans (JSON of its experimenter), written as a plan of ours. What has no counterpart is named."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.core.protocol import Protocol
from steptime.formats import Found, Original, Skipped
from steptime.formats._dlbs_file import SECTIONS, DlbsPlan, Extension, Parameters, loaded
from steptime.formats._dlbs_parse import DEFAULTS, PROTOCOL, SETTING, Known, identifier
from steptime.formats._dlbs_values import GROUP, Values, filled, ours
from steptime.formats._parse import whole

TITLE = "HPE DLBS plans (JSON)"
ORDER = "sys.plan_builder.var_order"
NOT_RUN = ("disabled", "simulate")
PREFETCH = "of a framework that is not here; `prefetch` is a setting"
ELSEWHERE = {
    "exp.docker": "containers are named in the machine file", "monitor.": "every process is watched anyway",
    "exp.rerun": "what is stored is not measured twice; --again does", "exp.log_file": "each process has a journal",
    "exp.id": "each process has its own id",
    "exp.data_store": "what data lie on is found out; `staging` copies them to a tier",
    "exp.data_dir": "$STEPTIME_DATA names the folder of the sets",
    "mxnet.prefetch": PREFETCH, "tensorrt.prefetch": PREFETCH, "tensorrt.num_prefetchers": PREFETCH,
    "exp.effective_batch": "it follows from batch_size and devices",
}  # fmt: skip


@dataclass(frozen=True)
class Translation:
    toml: str
    notes: tuple[str, ...]


def recognises(name: str, head: bytes) -> bool:
    sections = [f'"{section}"'.encode() for section in SECTIONS]
    return (
        head.lstrip()[:1] == b"{"
        and b'"exp.' in head
        and any(section in head for section in sections)
    )


def read(file: Original) -> Found:
    advice = "`steptime run FILE --dry-run` lists its cases, `steptime show FILE` writes it as TOML"
    yield Skipped("file", f"a plan and no result: {advice}")


def translated(
    written: str, known: Known, name: str = "plan", given: Collection[str] = ()
) -> Translation:
    """`known` has the workloads and frameworks there are; a setting that is `given` needs no counterpart."""
    plan = _Writing(loaded(written), known, given)
    body = "".join(plan.lines(name))
    notes = tuple(dict.fromkeys(_printable(note) for note in plan.notes))
    return Translation(
        "".join([f"# {note}\n" for note in ("From a plan of HPE DLBS.", *notes)]) + body, notes
    )


class _Writing:
    def __init__(self, plan: DlbsPlan, known: Known, given: Collection[str]) -> None:
        self.plan, self.given = plan, given
        self.values = Values(plan, known)
        self.notes = self.values.notes

    def lines(self, name: str) -> Iterator[str]:
        """The plan as TOML, part by part."""
        if "exp.model" not in self.plan.values:
            raise SteptimeError("The DLBS plan names no exp.model.")
        sweep, constants = self._sweep(), self._constants()
        overrides = [
            lines for extension in self.plan.extensions for lines in self._overrides(extension)
        ]
        yield f"name = {_toml(name)}\n"
        if title := self.plan.parameters.get("exp.proj"):
            yield f"title = {_toml(str(title))}\n"
        yield from _section("protocol", self._protocol())
        yield from _section("variables", self._own() | self.values.tables)
        yield from _section("constants", constants | self._derived())
        yield from _section("sweep", sweep)
        yield from overrides
        if set(map(str, self.plan.values.get("exp.status", []))) & set(NOT_RUN):
            yield f'\n[[exclude]]\nwhen = {{ exp_status = {_toml(list(NOT_RUN))} }}\nreason = "exp.status says so"\n'
        self._note_rest()

    def _note_rest(self) -> None:
        told = {*self.plan.needed, *self.values.entries, *PROTOCOL, "exp.proj", ORDER}
        for name in self.plan.values:
            if name not in told:
                why = next(
                    (f" ({why})" for start, why in ELSEWHERE.items() if name.startswith(start)), ""
                )
                swept = "; it is not swept" if name in self.plan.variables else ""
                self.notes.append(
                    f"no counterpart: {name} = {_said(self.plan.values[name])}{why}{swept}"
                )

    # sections

    def _protocol(self) -> Parameters:
        """Fewer steps than the protocol has would make its results doubtful: then its own number stays."""
        found: Parameters = {}
        for name, number in PROTOCOL.items():
            value, least = whole(self.plan.parameters.get(name)), getattr(Protocol, number)
            if value and value > least:
                found[number] = value
            elif name in self.plan.values:
                self.notes.append(
                    f"left out: {name} = {_said(self.plan.values[name])}, the protocol has {number} = {least}"
                )
        return found

    def _own(self) -> Parameters:
        """Variables: names that are no setting, with what they are at first."""
        names = [name for name in self.plan.needed if name not in SETTING]
        at_first = self.plan.parameters | {
            name: values[0] for name, values in self.plan.variables.items()
        }
        found = {
            identifier(name): self.values.sure(name, at_first[name], "parameters")
            if name in at_first
            else DEFAULTS.get(name, "")
            for name in names
        }
        if any(":" in str(gpus) for gpus in self.plan.values.get("exp.gpus", [])):
            raise SteptimeError(
                "exp.gpus: several GPUs inside a replica (0:1) have no counterpart here."
            )
        return found

    def _constants(self) -> Parameters:
        found: Parameters = {}
        for name in (
            name for name in self.plan.needed if name in SETTING and name in self.plan.parameters
        ):
            if SETTING[name] in found or SETTING[name] in {
                SETTING.get(other) for other in self.plan.variables
            }:
                self.notes.append(f"left out: {name}, another name says {SETTING[name]} already")
            elif (
                SETTING[name] in self.given
                and self.values.value(name, self.plan.parameters[name], "parameters") is None
            ):
                self.notes.append(
                    f"no counterpart: {name} = {self.plan.parameters[name]}, {SETTING[name]} is given"
                )
            else:
                found[SETTING[name]] = self.values.sure(
                    name, self.plan.parameters[name], "parameters"
                )
        return found

    def _sweep(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for name in sorted(
            (name for name in self.plan.variables if name in self.plan.needed), key=self._turn
        ):
            pairs = [
                (value, self.values.value(name, value, "variables"))
                for value in self.plan.variables[name]
            ]
            gone = [str(value) for value, word in pairs if word is None]
            if gone:
                self.notes.append(
                    f"no counterpart: {name} = {', '.join(gone)}; cases with it are left out"
                )
            if len(gone) == len(pairs) and ours(name) not in self.given:
                raise SteptimeError(
                    f"variables: no value of {name} has a counterpart here: {', '.join(gone)}."
                )
            found[ours(name)] = [value for _, value in pairs if value is not None]
        return {name: values for name, values in found.items() if values}

    def _turn(self, name: str) -> int:
        order = re.findall(r"[\w.-]+", str(self.plan.parameters.get(ORDER, "")))
        return order.index(name) if name in order else len(order)

    def _derived(self) -> Parameters:
        """What DLBS knows without being told, where that is not what we know."""
        said, found = self.plan.settings, Parameters()
        if "framework" not in said:
            self.notes.append("the plan names no exp.framework: pytorch")
        if "batch_size" not in said:
            found["batch_size"] = DEFAULTS["exp.replica_batch"]
        gpus = "exp.gpus" in self.plan.values
        if "device" not in said:
            found["device"] = (
                "${'cuda:' + split(exp_gpus, ',')[0] if exp_gpus else 'cpu'}" if gpus else "cuda:0"
            )
        if gpus and "devices" not in said:
            found["devices"] = "${len(split(exp_gpus, ','))" + (
                " * nodes}" if "nodes" in said else "}"
            )
        if gpus or "devices" in {SETTING.get(name) for name in self.plan.values}:
            shared = "'allreduce' if phase == 'training' else 'independent'"
            found["exchange"] = f"${{'none' if devices == 1 else {shared}}}"
        if self.plan.knows_folders:
            found["data"] = "${'real' if exp_data_dir else 'device'}"
            self.notes.append(
                "exp.data_dir says that data are real; $STEPTIME_DATA names the folder of the sets"
            )
        elif self.plan.folders and "exp.data_dir" in {*self.plan.parameters, *self.plan.variables}:
            found["data"] = "real"
        return found | {"mode": "${'eager' if framework == 'pytorch' else 'graph'}"}

    # extensions

    def _overrides(self, extension: Extension) -> Iterator[str]:
        kept = [
            {name: case[name] for name in case if name in self.plan.needed}
            for case in extension.cases
        ]
        if not any(kept):
            self.notes.append(
                f"left out: {extension.place}, it sets nothing that has a counterpart"
            )
            return
        grouped = any(
            GROUP.search(value)
            for case in kept
            for value in case.values()
            if isinstance(value, str)
        )
        for when, groups in self._conditions(extension, grouped=grouped):
            cases = [
                {
                    ours(name): self.values.sure(name, filled(value, groups), extension.place)
                    for name, value in case.items()
                }
                for case in kept
            ]
            yield "\n[[override]]\n"
            if when:
                yield f"when = {_toml(when)}\n"
            yield (
                f"set = {_toml(cases[0])}\n"
                if len(cases) == 1
                else f"cases = {_toml(cases, wide=True)}\n"
            )

    def _conditions(
        self, extension: Extension, *, grouped: bool
    ) -> list[tuple[Parameters, dict[str, str]]]:
        """What must hold, with what patterns took out of the values: one, or one for each value where that is used."""
        found: list[tuple[Parameters, dict[str, str]]] = [({}, {})]
        for name, wanted in extension.condition.items():
            options = self.values.options(extension.place, name, wanted)
            if options is None:
                continue
            if not options:
                self.notes.append(f"left out: {extension.place}, no value of {name} is {wanted}")
                return []
            words = [
                (self.values.value(name, value, extension.place), taken) for value, taken in options
            ]
            known = [(word, taken) for word, taken in words if word is not None]
            if not known:
                self.notes.append(
                    f"left out: {extension.place}, it is for {name} = {wanted}, which has no counterpart"
                )
                return []
            several = [[option] for option in known] if grouped else [known]
            found = [
                (when | {ours(name): _one([word for word, _ in some])}, taken | some[0][1])
                for when, taken in found
                for some in several
            ]
        return found


def _section(name: str, entries: Parameters) -> Iterator[str]:
    if entries:
        yield f"\n[{name}]\n"
        yield from (f"{key} = {_toml(value)}\n" for key, value in entries.items())


def _printable(note: str) -> str:
    """On one line, as a comment has to be."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in note).split())


def _said(values: list[Any]) -> str:
    return ", ".join(str(value)[:60] for value in values[:4])


def _one(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _toml(value: Any, *, wide: bool = False) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_toml(entry)}" for key, entry in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        entries = [_toml(entry) for entry in value]
        return (
            "\n    ".join(["[", *(f"{entry}," for entry in entries)]) + "\n]"
            if wide
            else f"[{', '.join(entries)}]"
        )
    if isinstance(value, float):
        return repr(value)  # TOML has infinities, JSON has not
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(word: str) -> str:
    return word if re.fullmatch(r"[\w-]+", word, re.ASCII) else json.dumps(word)
