"""A plan: TOML text in, cases out. Reads no file; the environment and what is known are handed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from math import prod
from typing import Any

from steptime.core.case import SETTINGS, Case
from steptime.core.errors import SteptimeError, unknown
from steptime.core.protocol import OutOfRange, Protocol, preset
from steptime.plan.parse import Document, Rule, Value, at, parse
from steptime.plan.pattern import matched
from steptime.plan.references import Outside, Scope, typed
from steptime.plan.validate import DEFAULTS, Known, check_value, check_words, elements

LEARNED = (
    "preset",
    "steps",
    "warmup_start",
)  # numbers of the protocol that are not the plan's to set
MOST_POINTS = 100_000
Point = dict[str, Value]
"""Every name with its value at one place of the space."""


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
    modes: Mapping[str, str] = field(
        default_factory=dict
    )  # of frameworks that lack the usual mode: theirs
    outside: Outside = field(default_factory=Outside)
    settings: Mapping[str, Any] = field(default_factory=dict)  # a list is a sweep
    protocol: Mapping[str, Any] = field(default_factory=dict)
    preset: str = ""


def expand(text: str, request: Request) -> Plan:
    return _Expansion(parse(text), request).plan()


class _Expansion:
    def __init__(self, document: Document, request: Request) -> None:
        self.document, self.request = document, request
        self.variables, self.constants = document.tables["variables"], document.tables["constants"]
        self.pinned = {name: Value(_listed(value)) for name, value in request.settings.items()}
        self.used: set[int] = set()
        self.checked: set[tuple[str, type, Any]] = (
            set()
        )  # values of settings: most points share most of them
        check_words(document, self.pinned, request.known)

    def plan(self) -> Plan:
        cases: dict[Case, None] = {}
        excluded: dict[Case, str] = {}
        doubles: list[Case] = []
        for scope in (Scope(point, self.request.outside) for point in self._points()):
            case, reason = self._case(scope), self._reason(scope)
            if case in cases or case in excluded:
                doubles.append(case)
            if reason is None:
                cases[case] = None
            else:
                excluded.setdefault(case, reason)
        if (count := len(cases) * self.document.repeats) > MOST_POINTS:
            raise SteptimeError(
                f"repeats makes {count:,} cases, more than {MOST_POINTS:,}: use fewer."
            )
        trials = [
            replace(case, trial=trial) for case in cases for trial in range(self.document.repeats)
        ]
        return Plan(
            name=self._text("name", "plan"),
            title=self._text("title", ""),
            protocol=self._protocol(),
            cases=tuple(trials),
            excluded=tuple(
                Excluded(case=case, reason=reason)
                for case, reason in excluded.items()
                if case not in cases
            ),
            notes=tuple(self._notes(doubles, len(cases) + len(excluded) + len(doubles))),
        )

    def _text(self, name: str, default: str) -> str:
        value = self.document.texts.get(name)
        return value.raw if value else default

    def _notes(self, doubles: Sequence[Case], points: int) -> Iterator[str]:
        if doubles:
            first = f"the first is {doubles[0].label}"
            yield f"{len(doubles)} of {points} points have the same settings as another and run once; {first}."
        for name, value in self.document.tables["sweep"].items():
            written = Counter(repr(element.raw) for element in elements(value))
            yield from (
                f"{at(value.line)}{name} has {found} more than once."
                for found, count in written.items()
                if count > 1
            )
        for rule in (rule for rules in self.document.rules.values() for rule in rules):
            if id(rule) not in self.used:
                yield f"{at(rule.line)}this rule applies to no case."

    # points of the space

    def _points(self) -> Iterator[Point]:
        """Defaults, then variables, constants and sweeps, then overrides in file order."""
        usual = {**DEFAULTS, "mode": _usual_mode(self.request.modes)}
        start = (
            {name: Value(value) for name, value in usual.items()} | self.variables | self.constants
        )
        sweeps = {**self.document.tables["sweep"], **self.pinned}
        chosen = self._product(
            sweeps, Scope({**self.variables, **self.constants}, self.request.outside)
        )
        points: Iterable[Point] = (start | point for point in chosen)
        for rule in self.document.rules["override"]:
            points = self._overridden(points, rule)
        for count, point in enumerate(points):
            if count >= MOST_POINTS:
                raise SteptimeError(f"More than {MOST_POINTS:,} points: split the plan.")
            yield point

    def _product(self, sweeps: Mapping[str, Value], scope: Scope) -> Iterator[Point]:
        lists = {name: scope.listed(value) for name, value in sweeps.items()}
        for name, found in lists.items():
            if not found or not isinstance(scope.resolve(sweeps[name]), list):
                where, given = at(sweeps[name].line), scope.resolve(sweeps[name])
                raise SteptimeError(
                    f"{where}A sweep needs a list that is not empty, found {given!r}."
                )
        if (count := prod(map(len, lists.values()))) > MOST_POINTS:
            line = next((value.line for value in sweeps.values()), 0)
            raise SteptimeError(
                f"{at(line)}These lists make {count:,} points, more than {MOST_POINTS:,}: split the plan."
            )
        return (dict(zip(lists, point, strict=True)) for point in product(*lists.values()))

    def _overridden(self, points: Iterable[Point], rule: Rule) -> Iterator[Point]:
        """Each as it was, changed, or several: one for each case of the rule and each point of its sweep."""
        for point in points:
            scope = Scope(point, self.request.outside)
            groups = self._applies(rule, scope)
            if groups is None:
                yield point
                continue
            changes = (groups | rule.set | case for case in rule.cases or [{}])
            for change, chosen in (
                (change, chosen)
                for change in changes
                for chosen in self._product(rule.sweep, scope)
            ):
                yield point | {
                    name: value
                    for name, value in (change | chosen).items()
                    if name not in self.pinned
                }

    def _applies(self, rule: Rule, scope: Scope) -> Point | None:
        """What its patterns took out of the values; None where it does not apply."""
        if rule.computed and not self._is_true(rule.computed, scope):
            return None
        groups: Point = {}
        for name, wanted in rule.when.items():
            found = self._meets(scope, name, wanted)
            if found is None:
                return None
            groups |= found
        self.used.add(id(rule))
        return groups

    def _is_true(self, condition: Value, scope: Scope) -> bool:
        found = scope.resolve(condition)
        if not isinstance(found, bool):
            where = at(condition.line)
            raise SteptimeError(
                f"{where}when must compute true or false, found {found!r} from {condition.raw!r}."
            )
        return found

    def _meets(self, scope: Scope, name: str, wanted: Value) -> Point | None:
        found = scope.value(name, line=wanted.line)
        for answer in elements(wanted):
            if isinstance(answer.raw, dict):
                groups = _measured(found, answer)
                if groups is not None:
                    return groups
            elif any(found == scope.resolve(one) for one in scope.listed(answer)):
                return {}
        return None

    def _reason(self, scope: Scope) -> str | None:
        matching = [
            rule.reason
            for rule in self.document.rules["exclude"]
            if self._applies(rule, scope) is not None
        ]
        return matching[0] if matching else None

    def _case(self, scope: Scope) -> Case:
        if "workload" not in scope.values:
            raise SteptimeError(
                'A case needs a workload: write workload = "resnet50" in [constants], for example.'
            )
        settings = {name: scope.value(name) for name in SETTINGS if name in scope.values}
        for name, value in settings.items():
            known = (
                isinstance(value, str | int | float) and (name, type(value), value) in self.checked
            )
            if not known:
                check_value(name, Value(value, scope.values[name].line), self.request.known)
                self.checked.add((name, type(value), value))
        return Case(**settings)

    # the protocol

    def _protocol(self) -> Protocol:
        named = self.document.texts.get("preset", Value("standard"))
        try:
            own = preset(self.request.preset or named.raw)
        except SteptimeError as problem:
            raise SteptimeError(
                f"{'' if self.request.preset else at(named.line)}{problem}"
            ) from None
        wanted = {name: Value(value) for name, value in self.request.protocol.items()}
        numbers = {**self.document.tables["protocol"], **wanted}
        changes = {name: self._number(own, name, value) for name, value in numbers.items()}
        try:
            return replace(own, **changes)
        except OutOfRange as problem:
            raise SteptimeError(
                f"{at(numbers.get(problem.name, Value(None)).line)}{problem}"
            ) from None

    def _number(self, own: Protocol, name: str, value: Value) -> Any:
        names = [f.name for f in fields(Protocol) if f.name not in LEARNED]
        if name not in names:
            raise unknown("number of the protocol", name, names, where=at(value.line))
        scope = Scope(self.variables, self.request.outside)
        raw, default = scope.resolve(value), getattr(own, name)
        if isinstance(default, tuple):
            return tuple(
                scope.resolve(element)
                for element in (raw if isinstance(raw, list) else [Value(raw)])
            )
        wanted = (int, float) if isinstance(default, float) else (type(default),)
        if type(raw) not in wanted:
            kind = "a whole number" if type(default) is int else "a number"
            raise SteptimeError(
                f"{at(value.line)}{name} must be {kind} such as {default!r}, found {raw!r}."
            )
        return type(default)(raw)


def _measured(found: Any, wanted: Value) -> Point | None:
    """`{ at_least = …, at_most = …, matches = … }`: with the named groups of the pattern, as values."""
    low, high, pattern = (wanted.raw.get(word) for word in ("at_least", "at_most", "matches"))
    if (low is not None or high is not None) and not isinstance(found, int):
        return None
    if (low is not None and found < low) or (high is not None and found > high):
        return None
    match = matched(pattern or ".*", str(found), at(wanted.line))
    return (
        None
        if match is None
        else {name: Value(typed(text or "")) for name, text in match.groupdict().items()}
    )


def _usual_mode(modes: Mapping[str, str]) -> str:
    """Computed at every point, because a sweep or a rule may say which framework it is."""
    usual = str(DEFAULTS["mode"])
    ladder = "".join(f"{mode!r} if framework == {name!r} else " for name, mode in modes.items())
    return f"${{{ladder}{usual!r}}}" if ladder else usual


def _listed(value: Any) -> list[Value]:
    return [Value(element) for element in (value if isinstance(value, list) else [value])]
