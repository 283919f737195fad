"""Expand a plan into its cases: TOML text in, cases out. Reads no file and no environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import islice, product
from math import prod
from typing import Any

from steptime.core.case import SETTINGS, Case
from steptime.core.errors import SteptimeError, unknown
from steptime.core.protocol import OutOfRange, Protocol, preset
from steptime.plan.parse import Document, Rule, Value, empty_document, line_prefix, parse
from steptime.plan.pattern import match_all
from steptime.plan.references import Outside, Scope, parse_scalar
from steptime.plan.validate import DEFAULTS, Names, check_document, check_value, elements

# Numbers of the protocol that a plan cannot set: the session learns them.
LEARNED = ("preset", "steps", "warmup_start")
# They say how files are read.
REAL_DATA_SETTINGS = ("staging", "page_cache", "prefetch")
# A larger plan is a mistake: its cases would run for months.
MOST_POINTS = 100_000
Point = dict[str, Value]
"""Every name with its value at one point of the space."""


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
    """What a plan is expanded with: names of plugins, the world outside, settings that win."""

    plugin_names: Names = field(default_factory=dict)  # of workloads and frameworks
    modes: Mapping[str, str] = field(default_factory=dict)  # of frameworks that are never eager
    outside: Outside = field(default_factory=Outside)
    settings: Mapping[str, Any] = field(default_factory=dict)  # a list is a sweep
    protocol: Mapping[str, Any] = field(default_factory=dict)
    preset: str = ""


def expand(text: str, request: Request) -> Plan:
    """The plan in this TOML text."""
    return _Expansion(parse(text), request).plan()


def expand_settings(name: str, request: Request) -> Plan:
    """A plan of the request's settings alone, under this name."""
    return _Expansion(empty_document(name), request).plan()


class _Expansion:
    def __init__(self, document: Document, request: Request) -> None:
        self.document = document
        self.request = request
        self.variables = document.tables["variables"]
        self.constants = document.tables["constants"]
        self.pinned = {name: _list_value(value) for name, value in request.settings.items()}
        self.used_rules: set[int] = set()
        # Values of settings that were checked: most points share most of them.
        self.checked: set[tuple[str, type, Any]] = set()
        check_document(document, self.pinned, request.plugin_names)

    def plan(self) -> Plan:
        cases: dict[Case, None] = {}
        excluded: dict[Case, str] = {}
        duplicates: list[Case] = []
        for point in self._points():
            scope = self._scope(point)
            case = self._case(scope)
            reason = self._exclusion(scope)
            if case in cases or case in excluded:
                duplicates.append(case)
            if reason is None:
                _check_data_settings(case, scope)
                cases[case] = None
            else:
                excluded.setdefault(case, reason)
        count = len(cases) + len(excluded) + len(duplicates)
        notes = [*self._duplicate_notes(duplicates, count), *self._sweep_notes()]
        return Plan(
            name=self._text("name", "plan"),
            title=self._text("title", ""),
            protocol=self._protocol(),
            cases=tuple(self._repeat(cases)),
            excluded=tuple(
                Excluded(case=case, reason=reason)
                for case, reason in excluded.items()
                if case not in cases
            ),
            notes=(*notes, *self._unused_rule_notes()),
        )

    def _repeat(self, cases: Iterable[Case]) -> list[Case]:
        repeats = self.document.repeats
        cases = list(cases)
        count = len(cases) * repeats
        if count > MOST_POINTS:
            raise SteptimeError(
                f"repeats makes {count:,} cases, more than {MOST_POINTS:,}: use fewer."
            )
        return [replace(case, trial=trial) for case in cases for trial in range(repeats)]

    def _text(self, name: str, default: str) -> str:
        value = self.document.texts.get(name)
        return value.raw if value else default

    def _duplicate_notes(self, duplicates: list[Case], count: int) -> Iterator[str]:
        if duplicates:
            yield (
                f"{len(duplicates)} of {count} points have the same settings as another "
                f"and run once; the first is {duplicates[0].label}."
            )

    def _sweep_notes(self) -> Iterator[str]:
        for name, value in self.document.tables["sweep"].items():
            counts = Counter(repr(element.raw) for element in elements(value))
            for text, count in counts.items():
                if count > 1:
                    yield f"{line_prefix(value.line)}{name} has {text} more than once."

    def _unused_rule_notes(self) -> Iterator[str]:
        for rules in self.document.rules.values():
            for rule in rules:
                if id(rule) not in self.used_rules:
                    yield f"{line_prefix(rule.line)}this rule applies to no case."

    # points of the space

    def _points(self) -> Iterator[Point]:
        """Defaults, then variables, constants and sweeps, then overrides in file order."""
        # Without the mode: its default depends on the framework, see `_scope`.
        start = {name: Value(value) for name, value in DEFAULTS.items() if name != "mode"}
        start |= self.variables
        start |= self.constants
        sweeps = {**self.document.tables["sweep"], **self.pinned}
        scope = Scope({**self.variables, **self.constants}, self.request.outside)
        count = 0
        for chosen in self._product(sweeps, scope):
            points = [start | chosen]
            # One rule after the other, because nested generators have a limit of depth.
            for rule in self.document.rules["override"]:
                room = MOST_POINTS - count
                points = list(islice(self._override(points, rule), room + 1))
            count += len(points)
            if count > MOST_POINTS:
                raise SteptimeError(f"More than {MOST_POINTS:,} points: split the plan.")
            yield from points

    def _scope(self, point: Point) -> Scope:
        """The names at a point. A framework without an eager mode has a default of its own."""
        scope = Scope(point, self.request.outside)
        if "mode" in point:
            return scope
        # Only now: a sweep or a rule may have chosen the framework.
        framework = str(scope.value("framework"))
        mode = self.request.modes.get(framework, DEFAULTS["mode"])
        return Scope({**point, "mode": Value(mode)}, self.request.outside)

    def _product(self, sweeps: Mapping[str, Value], scope: Scope) -> Iterator[Point]:
        lists = {name: scope.resolve_list(value) for name, value in sweeps.items()}
        for name, value in sweeps.items():
            content = scope.resolve(value)
            if not lists[name] or not isinstance(content, list):
                raise SteptimeError(
                    f"{line_prefix(value.line)}A sweep needs a list that is not empty, "
                    f"found {content!r}."
                )
        count = prod(map(len, lists.values()))
        if count > MOST_POINTS:
            first = next(iter(sweeps.values()))
            raise SteptimeError(
                f"{line_prefix(first.line)}These lists make {count:,} points, "
                f"more than {MOST_POINTS:,}: split the plan."
            )
        return (dict(zip(lists, point, strict=True)) for point in product(*lists.values()))

    def _override(self, points: Iterable[Point], rule: Rule) -> Iterator[Point]:
        """A point to which the rule applies becomes one for each of its cases and sweep points."""
        for point in points:
            scope = self._scope(point)
            groups = self._match_rule(rule, scope)
            if groups is None:
                yield point
                continue
            for case in rule.cases or [{}]:
                for chosen in self._product(rule.sweep, scope):
                    changes = groups | rule.set | case | chosen
                    # Settings of the command line win over rules, too.
                    yield point | {
                        name: value for name, value in changes.items() if name not in self.pinned
                    }

    def _match_rule(self, rule: Rule, scope: Scope) -> Point | None:
        """The named groups of its patterns; None if the rule does not apply."""
        if rule.condition and not self._is_true(rule.condition, scope):
            return None
        groups: Point = {}
        for name, condition in rule.when.items():
            matched_groups = self._match_value(scope, name, condition)
            if matched_groups is None:
                return None
            groups |= matched_groups
        self.used_rules.add(id(rule))
        return groups

    def _is_true(self, condition: Value, scope: Scope) -> bool:
        value = scope.resolve(condition)
        if not isinstance(value, bool):
            raise SteptimeError(
                f"{line_prefix(condition.line)}when must compute true or false, "
                f"found {value!r} from {condition.raw!r}."
            )
        return value

    def _match_value(self, scope: Scope, name: str, condition: Value) -> Point | None:
        value = scope.value(name, line=condition.line)
        for alternative in elements(condition):
            if isinstance(alternative.raw, dict):
                groups = _match_measures(value, alternative)
                if groups is not None:
                    return groups
                continue
            for element in scope.resolve_list(alternative):
                if value == scope.resolve(element):
                    return {}
        return None

    def _exclusion(self, scope: Scope) -> str | None:
        """The reason of the first rule that excludes this point; None if it runs."""
        # All rules are tried, so that each one that applies somewhere counts as used.
        reasons = [
            rule.reason
            for rule in self.document.rules["exclude"]
            if self._match_rule(rule, scope) is not None
        ]
        return reasons[0] if reasons else None

    def _case(self, scope: Scope) -> Case:
        if "workload" not in scope.values:
            raise SteptimeError(
                'A case needs a workload: write workload = "resnet50" in [constants], for example.'
            )
        settings = {}
        for name in SETTINGS:
            if name in scope.values:
                settings[name] = scope.value(name)
                self._check_once(name, Value(settings[name], scope.values[name].line))
        return Case.from_dict(settings)

    def _check_once(self, name: str, value: Value) -> None:
        if not isinstance(value.raw, str | int | float):
            # A list or a table cannot be in a set; it is about to be refused anyway.
            check_value(name, value, self.request.plugin_names)
            return
        key = (name, type(value.raw), value.raw)
        if key not in self.checked:
            check_value(name, value, self.request.plugin_names)
            self.checked.add(key)

    # the protocol

    def _protocol(self) -> Protocol:
        base = self._preset()
        values = dict(self.document.tables["protocol"])
        for name, number in self.request.protocol.items():
            values[name] = Value(number)
        numbers = {name: self._number(base, name, value) for name, value in values.items()}
        try:
            return replace(base, **numbers)
        except OutOfRange as problem:
            line = values[problem.name].line if problem.name in values else 0
            raise SteptimeError(f"{line_prefix(line)}{problem}") from None

    def _preset(self) -> Protocol:
        if self.request.preset:
            return preset(self.request.preset)
        value = self.document.texts.get("preset", Value("standard"))
        try:
            return preset(value.raw)
        except SteptimeError as problem:
            raise SteptimeError(f"{line_prefix(value.line)}{problem}") from None

    def _number(self, base: Protocol, name: str, value: Value) -> Any:
        names = [f.name for f in fields(Protocol) if f.name not in LEARNED]
        if name not in names:
            where = line_prefix(value.line)
            raise unknown("number of the protocol", name, names, where=where)
        scope = Scope(self.variables, self.request.outside)
        default = getattr(base, name)
        if isinstance(default, tuple):
            # A list in TOML. Its elements may be references.
            return tuple(scope.resolve(element) for element in scope.resolve_list(value))
        raw = scope.resolve(value)
        allowed = (int, float) if isinstance(default, float) else (type(default),)
        if type(raw) not in allowed:
            expected = "a whole number" if type(default) is int else "a number"
            raise SteptimeError(
                f"{line_prefix(value.line)}{name} must be {expected} such as {default!r}, "
                f"found {raw!r}."
            )
        return type(default)(raw)


def _check_data_settings(case: Case, scope: Scope) -> None:
    """A setting of files would only be a wrong label on batches that are made in memory."""
    if case.data == "real":
        return
    for name in REAL_DATA_SETTINGS:
        value = getattr(case, name)
        if value != DEFAULTS[name]:
            where = line_prefix(scope.values[name].line)
            raise SteptimeError(
                f"{where}{name}={value} is for files, and data={case.data} is synthetic: "
                f"set data=real, or leave {name} out."
            )


def _match_measures(value: Any, condition: Value) -> Point | None:
    """`{ at_least = …, at_most = …, matches = … }`: the named groups of the pattern, or None."""
    low = condition.raw.get("at_least")
    high = condition.raw.get("at_most")
    pattern = condition.raw.get("matches")
    if (low is not None or high is not None) and not isinstance(value, int):
        return None
    if low is not None and value < low:
        return None
    if high is not None and value > high:
        return None
    match = match_all(pattern or ".*", str(value), line_prefix(condition.line))
    if match is None:
        return None
    return {name: Value(parse_scalar(text or "")) for name, text in match.groupdict().items()}


def _list_value(value: Any) -> Value:
    values = value if isinstance(value, list) else [value]
    return Value([Value(element) for element in values])
