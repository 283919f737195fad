"""A plan: TOML text in, cases out. Reads no file; the environment and what is known are handed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any

from steptime.core.case import CHOICES, SETTINGS, Case
from steptime.core.errors import SteptimeError, unknown
from steptime.core.plan_text import Document, Rule, Value, at, parse
from steptime.core.protocol import Protocol, profile
from steptime.core.reference import Outside, Scope

DEFAULTS = {f.name: f.default for f in fields(Case) if f.name != "workload"}
MEASURES = ("at_least", "at_most")
LEARNED = ("profile", "steps", "warmup_start")  # numbers of the protocol that are not the plan's to set
Known = Mapping[str, Iterable[str]]


@dataclass(frozen=True, kw_only=True)
class Excluded:
    case: Case
    reason: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    name: str
    title: str
    protocol: Protocol
    cases: tuple[Case, ...]
    excluded: tuple[Excluded, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a plan is read with: the words of the shelves, the world outside, and settings that win over the file."""

    known: Known = field(default_factory=dict)  # workload and framework names
    outside: Outside = field(default_factory=Outside)
    settings: Mapping[str, Any] = field(default_factory=dict)  # a list is a sweep
    protocol: Mapping[str, Any] = field(default_factory=dict)
    profile: str = ""


def expand(text: str, request: Request) -> Plan:
    return _Expansion(parse(text), request).plan()


class _Expansion:
    def __init__(self, document: Document, request: Request) -> None:
        self.document, self.request = document, request
        self.variables, self.constants = document.tables["variables"], document.tables["constants"]
        self.pinned = {name: Value(_listed(value)) for name, value in request.settings.items()}
        self.used: set[int] = set()
        self._check_names()

    def plan(self) -> Plan:
        cases: dict[Case, None] = {}
        excluded: dict[Case, str] = {}
        points = doubles = 0
        for scope in self._scopes():
            case, reason = self._case(scope), self._reason(scope)
            points += 1
            doubles += case in cases or case in excluded
            if reason is None:
                cases[case] = None
            else:
                excluded.setdefault(case, reason)
        trials = [replace(case, trial=trial) for case in cases for trial in range(self.document.repeats)]
        return Plan(
            name=self._text("name", "plan"),
            title=self._text("title", ""),
            protocol=self._protocol(),
            cases=tuple(trials),
            excluded=tuple(Excluded(case=case, reason=reason) for case, reason in excluded.items()),
            notes=tuple(self._notes(points, doubles)),
        )

    def _text(self, name: str, default: str) -> str:
        value = self.document.texts.get(name)
        return value.raw if value else default

    def _notes(self, points: int, doubles: int) -> list[str]:
        notes = [f"{doubles} of {points} points have the same settings as another and run once."] if doubles else []
        unused = [rule for rules in self.document.rules.values() for rule in rules if rule.line not in self.used]
        return notes + [f"{at(rule.line)}this rule applies to no case." for rule in unused]

    # every word is checked where it stands, also in rules that apply to nothing

    def _check_names(self) -> None:
        names = (*SETTINGS, *self.variables)
        for name in SETTINGS:
            if name in self.variables:
                line = self.variables[name].line
                raise SteptimeError(f"{at(line)}{name!r} is a setting: write it in [constants] or [sweep].")
        for name in self.constants:
            if name in self.document.tables["sweep"]:
                line = self.document.tables["sweep"][name].line
                raise SteptimeError(f"{at(line)}{name!r} is in [constants] and in [sweep]: remove it from one of them.")
        rules = [rule for rules in self.document.rules.values() for rule in rules]
        single = [self.constants, *(rule.set for rule in rules)]
        several = [self.document.tables["sweep"], self.pinned]
        for part in [*single, *several, *(rule.when for rule in rules)]:
            for name, value in part.items():
                self._check_name(name, value, names)
        for name, value in (entry for part in single for entry in part.items()):
            self._check(name, value)
        for name, value in (entry for part in several for entry in part.items()):
            for element in _elements(value):
                self._check(name, element)
        for name, value in (entry for rule in rules for entry in rule.when.items()):
            for element in _elements(value):
                self._check_condition(name, element)

    def _check_name(self, name: str, value: Value, names: tuple[str, ...]) -> None:
        if name not in names:
            raise unknown("setting", name, names, where=at(value.line))
        if name == "trial":
            raise SteptimeError(f"{at(value.line)}trial counts the repeats: write repeats = N at the top instead.")

    def _check_condition(self, name: str, value: Value) -> None:
        if not isinstance(value.raw, dict):
            self._check(name, value)
            return
        for word, bound in value.raw.items():
            if word not in MEASURES:
                raise unknown("measure", word, MEASURES, where=at(value.line))
            if type(bound) is not int or (name in DEFAULTS and type(DEFAULTS[name]) is not int):
                raise SteptimeError(f"{at(value.line)}{word} is for whole numbers, found {name} {word} {bound!r}.")

    def _check(self, name: str, value: Value) -> None:
        """References are checked when they are resolved."""
        found = value.raw
        if name not in SETTINGS or (isinstance(found, str) and "${" in found):
            return
        if isinstance(found, list):
            raise SteptimeError(
                f"{at(value.line)}{name} takes one value here, found a list: a list belongs into [sweep]."
            )
        if isinstance(found, dict):
            raise SteptimeError(f"{at(value.line)}{name} must be one value, found a table ({', '.join(found)}).")
        if name == "workload" and str(found).endswith(".py"):
            raise SteptimeError(f"{at(value.line)}{found} is a file: name the network in it too, {found}:NAME.")
        own_file = name == "workload" and ".py:" in str(found)
        words = CHOICES.get(name) or self.request.known.get(name)
        if words is not None and found not in words and not own_file:
            raise unknown(name, found, words, where=at(value.line))
        kind = type(DEFAULTS.get(name, ""))
        if type(found) is not kind:
            wanted = "a whole number" if kind is int else "a text in quotes"
            raise SteptimeError(f"{at(value.line)}{name} must be {wanted}, found {found!r}.")
        try:
            Case.from_dict({"workload": "any", name: found})
        except SteptimeError as problem:
            raise SteptimeError(f"{at(value.line)}{problem}") from None

    # points of the space

    def _sweeps(self) -> dict[str, list[Value]]:
        sweeps = {**self.document.tables["sweep"], **self.pinned}
        scope = Scope({**self.variables, **self.constants}, self.request.outside)
        found = {}
        for name, value in sweeps.items():
            found[name] = scope.resolve(value)
            if not isinstance(found[name], list) or not found[name]:
                raise SteptimeError(f"{at(value.line)}A sweep needs a list that is not empty, found {found[name]!r}.")
        return found

    def _scopes(self) -> Iterable[Scope]:
        """One scope for each point: defaults, then constants and sweeps, then overrides in file order."""
        defaults = {name: Value(value) for name, value in DEFAULTS.items()}
        sweeps = self._sweeps()
        for point in product(*sweeps.values()):
            chosen = dict(zip(sweeps, point, strict=True))
            values = {**defaults, **self.variables, **self.constants, **chosen}
            for rule in self.document.rules["override"]:
                if self._applies(rule, Scope(values, self.request.outside)):
                    values |= {name: value for name, value in rule.set.items() if name not in self.pinned}
            yield Scope(values, self.request.outside)

    def _applies(self, rule: Rule, scope: Scope) -> bool:
        applies = all(self._meets(scope, name, wanted) for name, wanted in rule.when.items())
        if applies:
            self.used.add(rule.line)
        return applies

    def _meets(self, scope: Scope, name: str, wanted: Value) -> bool:
        found = scope.value(name, line=wanted.line)
        if isinstance(wanted.raw, dict):
            low, high = (wanted.raw.get(word) for word in MEASURES)
            return isinstance(found, int) and (low is None or found >= low) and (high is None or found <= high)
        return any(found == scope.resolve(answer) for answer in _elements(wanted))

    def _reason(self, scope: Scope) -> str | None:
        matching = [rule.reason for rule in self.document.rules["exclude"] if self._applies(rule, scope)]
        return matching[0] if matching else None

    def _case(self, scope: Scope) -> Case:
        if "workload" not in scope.values:
            raise SteptimeError('A case needs a workload: write workload = "resnet50" in [constants], for example.')
        settings = {name: scope.value(name) for name in SETTINGS if name in scope.values}
        for name, value in settings.items():
            self._check(name, Value(value, scope.values[name].line))
        return Case(**settings)

    # the protocol

    def _protocol(self) -> Protocol:
        named = self.document.texts.get("profile", Value("standard"))
        try:
            own = profile(self.request.profile or named.raw)
        except SteptimeError as problem:
            raise SteptimeError(f"{'' if self.request.profile else at(named.line)}{problem}") from None
        wanted = {name: Value(value) for name, value in self.request.protocol.items()}
        numbers = {**self.document.tables["protocol"], **wanted}
        changes = {name: self._number(own, name, value) for name, value in numbers.items()}
        return replace(own, **changes)

    def _number(self, own: Protocol, name: str, value: Value) -> Any:
        names = [f.name for f in fields(Protocol) if f.name not in LEARNED]
        if name not in names:
            raise unknown("number of the protocol", name, names, where=at(value.line))
        scope = Scope(self.variables, self.request.outside)
        raw, default = scope.resolve(value), getattr(own, name)
        if isinstance(default, tuple):
            return tuple(scope.resolve(element) for element in (raw if isinstance(raw, list) else [Value(raw)]))
        wanted = (int, float) if isinstance(default, float) else (type(default),)
        if type(raw) not in wanted:
            kind = "a whole number" if type(default) is int else "a number"
            raise SteptimeError(f"{at(value.line)}{name} must be {kind} such as {default!r}, found {raw!r}.")
        return type(default)(raw)


def _elements(value: Value) -> list[Value]:
    return value.raw if isinstance(value.raw, list) else [value]


def _listed(value: Any) -> list[Value]:
    return [Value(element) for element in (value if isinstance(value, list) else [value])]
