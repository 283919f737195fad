"""HPE DLBS plans (JSON of its experimenter) as a plan of ours.

Notes name what has no counterpart."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.core.protocol import Protocol
from steptime.formats import Original, Rows, Skipped
from steptime.formats._dlbs_file import SECTIONS, DlbsPlan, Extension, Parameters, parse_plan
from steptime.formats._dlbs_parse import DEFAULTS, PROTOCOL, SETTING, Choices, identifier
from steptime.formats._dlbs_values import GROUP, Values, fill_groups, our_name_of
from steptime.formats._parse import integer

TITLE = "HPE DLBS plans (JSON)"
# The parameter that orders the sweep.
ORDER = "sys.plan_builder.var_order"
# Values of exp.status of cases that DLBS does not run.
NOT_RUN = ("disabled", "simulate")
PREFETCH = "of a framework that is not here; `prefetch` is a setting"
# Why a name needs no counterpart, by its beginning.
ELSEWHERE = {
    "exp.docker": "containers are named in the machine file",
    "monitor.": "every process is watched anyway",
    "exp.rerun": "what is stored is not measured twice; --again does",
    "exp.log_file": "each process has a journal",
    "exp.id": "each process has its own id",
    "exp.data_store": "what data lie on is detected; `staging` copies them to a tier",
    "exp.data_dir": "$STEPTIME_DATA names the folder of the sets",
    "mxnet.prefetch": PREFETCH,
    "tensorrt.prefetch": PREFETCH,
    "tensorrt.num_prefetchers": PREFETCH,
    "exp.effective_batch": "it follows from batch_size and devices",
}
EXCLUDE = """
[[exclude]]
when = {{ exp_status = {} }}
reason = "exp.status says so"
"""


@dataclass(frozen=True)
class Translation:
    toml: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Condition:
    """What must hold, and what the groups of its patterns matched."""

    when: Parameters
    groups: dict[str, str]


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] != b"{" or b'"exp.' not in head:
        return False
    return any(f'"{section}"'.encode() in head for section in SECTIONS)


def read(file: Original) -> Rows:
    advice = "`steptime run FILE --dry-run` lists its cases, `steptime show FILE` writes it as TOML"
    yield Skipped("file", f"a plan and no result: {advice}")


def translate_plan(
    text: str, choices: Choices, name: str = "plan", overridden: Collection[str] = ()
) -> Translation:
    """A setting that is overridden needs no counterpart of its value in the plan."""
    plan = _PlanWriter(parse_plan(text), choices, overridden)
    body = "".join(plan.lines(name))
    notes = tuple(dict.fromkeys(_printable(note) for note in plan.notes))
    comments = [f"# {note}\n" for note in ("From a plan of HPE DLBS.", *notes)]
    return Translation("".join(comments) + body, notes)


class _PlanWriter:
    def __init__(self, plan: DlbsPlan, choices: Choices, overridden: Collection[str]) -> None:
        self.plan = plan
        self.overridden = overridden
        self.values = Values(plan, choices)
        self.notes = self.values.notes

    def lines(self, name: str) -> Iterator[str]:
        """The plan as TOML, section by section."""
        if "exp.model" not in self.plan.values:
            raise SteptimeError("The DLBS plan names no exp.model.")
        # Overrides before the variables: they may add tables to these.
        sweep = self._sweep()
        constants = self._constants()
        overrides: list[str] = []
        for extension in self.plan.extensions:
            overrides += self._overrides(extension)
        yield f"name = {_toml(name)}\n"
        if title := self.plan.parameters.get("exp.proj"):
            yield f"title = {_toml(str(title))}\n"
        yield from _section("protocol", self._protocol())
        yield from _section("variables", self._variables() | self.values.tables)
        yield from _section("constants", constants | self._derived_settings())
        yield from _section("sweep", sweep)
        yield from overrides
        statuses = {str(status) for status in self.plan.values.get("exp.status", [])}
        if statuses & set(NOT_RUN):
            yield EXCLUDE.format(_toml(list(NOT_RUN)))
        self._note_rest()

    def _note_rest(self) -> None:
        """Name what is neither translated nor part of another section."""
        used = {*self.plan.needed_names, *self.values.entries, *PROTOCOL, "exp.proj", ORDER}
        for name, values in self.plan.values.items():
            if name in used:
                continue
            note = f"no counterpart: {name} = {_list_values(values)}"
            reasons = [why for start, why in ELSEWHERE.items() if name.startswith(start)]
            if reasons:
                note += f" ({reasons[0]})"
            if name in self.plan.variables:
                note += "; it is not swept"
            self.notes.append(note)

    def _protocol(self) -> Parameters:
        """Fewer steps than the protocol has would get flags: then its own number stays."""
        settings: Parameters = {}
        for name, setting in PROTOCOL.items():
            value = integer(self.plan.parameters.get(name))
            least = getattr(Protocol, setting)
            if value and value > least:
                settings[setting] = value
            elif name in self.plan.values:
                values = _list_values(self.plan.values[name])
                self.notes.append(
                    f"left out: {name} = {values}, the protocol has {setting} = {least}"
                )
        return settings

    def _variables(self) -> Parameters:
        """Names that are no setting, with their first value."""
        first_values = dict(self.plan.parameters)
        for name, values in self.plan.variables.items():
            first_values[name] = values[0]
        variables: Parameters = {}
        for name in self.plan.needed_names:
            if name in SETTING:
                continue
            if name in first_values:
                value = self.values.translate_required(name, first_values[name], "parameters")
            else:
                value = DEFAULTS.get(name, "")
            variables[identifier(name)] = value
        if any(":" in str(gpus) for gpus in self.plan.values.get("exp.gpus", [])):
            raise SteptimeError(
                "exp.gpus: several GPUs inside a replica (0:1) have no counterpart here."
            )
        return variables

    def _constants(self) -> Parameters:
        constants: Parameters = {}
        swept = {SETTING.get(name) for name in self.plan.variables}
        for name in self.plan.needed_names:
            if name not in SETTING or name not in self.plan.parameters:
                continue
            setting = SETTING[name]
            value = self.plan.parameters[name]
            if setting in constants or setting in swept:
                self.notes.append(f"left out: {name}, another name says {setting} already")
            elif self._is_overridden(name, value):
                self.notes.append(f"no counterpart: {name} = {value}, {setting} is given")
            else:
                constants[setting] = self.values.translate_required(name, value, "parameters")
        return constants

    def _is_overridden(self, name: str, value: Any) -> bool:
        if SETTING[name] not in self.overridden:
            return False
        return self.values.translate(name, value, "parameters") is None

    def _sweep(self) -> dict[str, list[Any]]:
        sweep: dict[str, list[Any]] = {}
        names = [name for name in self.plan.variables if name in self.plan.needed_names]
        for name in sorted(names, key=self._sweep_position):
            values = []
            missing = []
            for value in self.plan.variables[name]:
                translated = self.values.translate(name, value, "variables")
                if translated is None:
                    missing.append(str(value))
                else:
                    values.append(translated)
            if missing:
                self.notes.append(
                    f"no counterpart: {name} = {', '.join(missing)}; cases with it are left out"
                )
            if not values and our_name_of(name) not in self.overridden:
                raise SteptimeError(
                    f"variables: no value of {name} has a counterpart here: {', '.join(missing)}."
                )
            if values:
                sweep[our_name_of(name)] = values
        return sweep

    def _sweep_position(self, name: str) -> int:
        """In the order that the plan asks for; other names come last."""
        order = re.findall(r"[\w.-]+", str(self.plan.parameters.get(ORDER, "")))
        return order.index(name) if name in order else len(order)

    def _derived_settings(self) -> Parameters:
        """DLBS's defaults and rules, if they differ from ours."""
        settings = self.plan.settings
        derived: Parameters = {}
        if "framework" not in settings:
            self.notes.append("the plan names no exp.framework: pytorch")
        if "batch_size" not in settings:
            derived["batch_size"] = DEFAULTS["exp.replica_batch"]
        derived |= self._derived_devices()
        if self.plan.knows_folders:
            derived["data"] = "${'real' if exp_data_dir else 'device'}"
            self.notes.append(
                "exp.data_dir says that data are real; $STEPTIME_DATA names the folder of the sets"
            )
        elif self.plan.folders and "exp.data_dir" in {*self.plan.parameters, *self.plan.variables}:
            derived["data"] = "real"
        derived["mode"] = "${'eager' if framework == 'pytorch' else 'graph'}"
        return derived

    def _derived_devices(self) -> Parameters:
        """The device, how many, and their exchange, from the list of GPUs."""
        settings = self.plan.settings
        has_gpus = "exp.gpus" in self.plan.values
        derived: Parameters = {}
        if "device" not in settings:
            derived["device"] = "cuda:0"
            if has_gpus:
                first = "'cuda:' + split(exp_gpus, ',')[0]"
                derived["device"] = f"${{{first} if exp_gpus else 'cpu'}}"
        if has_gpus and "devices" not in settings:
            times_nodes = " * nodes" if "nodes" in settings else ""
            derived["devices"] = f"${{len(split(exp_gpus, ',')){times_nodes}}}"
        if has_gpus or "devices" in {SETTING.get(name) for name in self.plan.values}:
            exchange = "'allreduce' if phase == 'training' else 'independent'"
            derived["exchange"] = f"${{'none' if devices == 1 else {exchange}}}"
        return derived

    def _overrides(self, extension: Extension) -> Iterator[str]:
        cases = []
        for case in extension.cases:
            cases.append({name: case[name] for name in case if name in self.plan.needed_names})
        if not any(cases):
            self.notes.append(f"left out: {extension.name}, it sets nothing that has a counterpart")
            return
        for condition in self._conditions(extension, grouped=_use_groups(cases)):
            ours = [self._translate_case(case, condition, extension) for case in cases]
            yield "\n[[override]]\n"
            if condition.when:
                yield f"when = {_toml(condition.when)}\n"
            if len(ours) == 1:
                yield f"set = {_toml(ours[0])}\n"
            else:
                yield f"cases = {_toml_lines(ours)}\n"

    def _translate_case(
        self, case: Parameters, condition: Condition, extension: Extension
    ) -> Parameters:
        translated = {}
        for name, value in case.items():
            filled = fill_groups(value, condition.groups)
            ours = self.values.translate_required(name, filled, extension.name)
            translated[our_name_of(name)] = ours
        return translated

    def _conditions(self, extension: Extension, *, grouped: bool) -> list[Condition]:
        """One condition, or one for each value if cases use the groups of a pattern."""
        conditions = [Condition({}, {})]
        for name, answer in extension.condition.items():
            alternatives = self._alternatives(extension.name, name, answer)
            if alternatives is None:
                continue
            if not alternatives:
                return []
            if grouped:
                conditions = [
                    Condition(
                        before.when | {our_name_of(name): after.when[name]},
                        before.groups | after.groups,
                    )
                    for before in conditions
                    for after in alternatives
                ]
            else:
                values = [alternative.when[name] for alternative in alternatives]
                value = values[0] if len(values) == 1 else values
                groups = alternatives[0].groups
                conditions = [
                    Condition(before.when | {our_name_of(name): value}, before.groups | groups)
                    for before in conditions
                ]
        return conditions

    def _alternatives(self, location: str, name: str, answer: Any) -> list[Condition] | None:
        """Each value of the name that meets the condition, by the DLBS name. None: all do."""
        options = self.values.options(location, name, answer)
        if options is None:
            return None
        if not options:
            self.notes.append(f"left out: {location}, no value of {name} is {answer}")
            return []
        alternatives = []
        for option in options:
            value = self.values.translate(name, option.value, location)
            if value is not None:
                alternatives.append(Condition({name: value}, option.groups))
        if not alternatives:
            self.notes.append(
                f"left out: {location}, it is for {name} = {answer}, which has no counterpart"
            )
        return alternatives


def _use_groups(cases: list[Parameters]) -> bool:
    texts = [value for case in cases for value in case.values() if isinstance(value, str)]
    return any(GROUP.search(text) for text in texts)


def _section(name: str, entries: Parameters) -> Iterator[str]:
    if entries:
        yield f"\n[{name}]\n"
        for key, value in entries.items():
            yield f"{key} = {_toml(value)}\n"


def _printable(note: str) -> str:
    """On one line, as a comment has to be."""
    letters = [letter if letter.isprintable() else " " for letter in note]
    return " ".join("".join(letters).split())


def _list_values(values: list[Any]) -> str:
    return ", ".join(str(value)[:60] for value in values[:4])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        entries = [f"{_toml_key(key)} = {_toml(entry)}" for key, entry in value.items()]
        return f"{{ {', '.join(entries)} }}" if entries else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(entry) for entry in value)}]"
    if isinstance(value, float):
        # TOML has infinities, JSON has not.
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_lines(values: list[Any]) -> str:
    """An array with one entry per line."""
    entries = [f"    {_toml(value)},\n" for value in values]
    return "[\n" + "".join(entries) + "]"


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)
