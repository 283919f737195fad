"""What `${…}` in a plan may compute: written as in Python, walked by an allow-list, never executed as Python."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from steptime.core.errors import SteptimeError, unknown

LONGEST, LARGEST_BITS = 1000, 1024  # letters of a text or elements of a list; of a whole number
ALLOWED = (
    "numbers, texts, names, lists, arithmetic, comparisons, `a if b else c` and a few functions"
)
Function = Callable[..., Any]

ARITHMETIC: dict[type, tuple[str, Function]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv), ast.FloorDiv: ("//", operator.floordiv), ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
}  # fmt: skip
COMPARISONS: dict[type, tuple[str, Function]] = {
    ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne), ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda part, of: part in of), ast.NotIn: ("not in", lambda part, of: part not in of),
}  # fmt: skip
FUNCTIONS: dict[str, Function] = {
    "min": min, "max": max, "abs": abs, "round": round, "int": int, "float": float, "str": str, "len": len, "sum": sum,
    "lower": lambda text: str.lower(text), "upper": lambda text: str.upper(text),
    "split": lambda text, separator: str.split(text, separator),
    "replace": lambda text, old, new: str.replace(text, old, new),
}  # fmt: skip


def evaluate(
    text: str, names: Callable[[str], Any], functions: Mapping[str, Function], where: str = ""
) -> Any:
    """`names` gives the value of a name; `functions` are known besides the usual ones."""
    walk = _Walk(names, {**FUNCTIONS, **functions}, f"{where}${{{text.strip()}}}: ", where)
    try:
        return walk.value(walk.tree(text))
    except RecursionError:
        raise SteptimeError(f"{walk.place}too many parts lie inside each other.") from None


def check(text: str, functions: Collection[str], where: str = "") -> list[str]:
    """The names that it uses. Refuses what no value of them could make right."""
    walk = _Walk(
        str, dict.fromkeys([*FUNCTIONS, *functions], str), f"{where}${{{text.strip()}}}: ", where
    )
    nodes = [node for node in ast.walk(walk.tree(text)) if isinstance(node, ast.expr)]
    try:
        for node in nodes:
            walk.check(node)
    except RecursionError:
        raise SteptimeError(f"{walk.place}too many parts lie inside each other.") from None
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return [node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called]


@cache
def _parsed(text: str) -> ast.expr | None:
    if len(text) > LONGEST:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of a number before a word, for example
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


class _Walk:
    def __init__(
        self, names: Callable[[str], Any], functions: Mapping[str, Function], place: str, where: str
    ) -> None:
        self.names, self.functions, self.place, self.where = names, functions, place, where

    def tree(self, text: str) -> ast.expr:
        found = _parsed(text)
        if found is None:
            raise SteptimeError(f"{self.place}this cannot be read as a name or a computation.")
        return found

    def check(self, node: ast.expr) -> None:
        """What can be said without any value."""
        if type(node) not in KINDS:
            raise SteptimeError(
                f"{self.place}{ast.unparse(node)} is not allowed; there are {ALLOWED}."
            )
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float, str, bool):
            raise SteptimeError(f"{self.place}{ast.unparse(node)} is no value of a plan.")
        if isinstance(node, ast.BinOp) and type(node.op) not in ARITHMETIC:
            raise SteptimeError(
                f"{self.place}this operator is not known; there are + - * / // % **."
            )
        if isinstance(node, ast.Compare) and not {type(kind) for kind in node.ops} <= set(
            COMPARISONS
        ):
            raise SteptimeError(f"{self.place}write == instead of `is`.")
        if isinstance(node, ast.Call):
            self._check_call(node)

    def _check_call(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise SteptimeError(
                f"{self.place}only plain functions can be called: {', '.join(sorted(self.functions))}."
            )
        if node.func.id not in self.functions:
            raise unknown("function", node.func.id, self.functions, where=self.where)

    def value(self, node: ast.expr) -> Any:
        self.check(node)
        return self._bounded(KINDS[type(node)](self, node))

    def constant(self, node: ast.Constant) -> Any:
        return node.value

    def name(self, node: ast.Name) -> Any:
        return self.names(node.id)

    def listed(self, node: ast.List | ast.Tuple) -> list[Any]:
        return [self.value(element) for element in node.elts]

    def arithmetic(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        symbol, function = ARITHMETIC[type(node.op)]
        joins = symbol == "+" and type(left) is type(right) and isinstance(left, str | list)
        if not joins and not (_is_number(left) and _is_number(right)):
            raise self._wrong(symbol, left, right)
        if (
            symbol == "**"
            and isinstance(left, int)
            and abs(right) * left.bit_length() > LARGEST_BITS
        ):
            raise SteptimeError(f"{self.place}{left} ** {right} is too large.")
        return self._computed(function, left, right, symbol)

    def sign(self, node: ast.UnaryOp) -> Any:
        found = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not found
        if not _is_number(found) or isinstance(node.op, ast.Invert):
            raise SteptimeError(f"{self.place}{ast.unparse(node)} needs a number, found {found!r}.")
        return -found if isinstance(node.op, ast.USub) else found

    def comparison(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for kind, side in zip(node.ops, node.comparators, strict=True):
            right = self.value(side)
            symbol, function = COMPARISONS[type(kind)]
            if not self._computed(function, left, right, symbol):
                return False
            left = right
        return True

    def logic(self, node: ast.BoolOp) -> Any:
        stops = isinstance(node.op, ast.Or)
        found: Any = None
        for part in node.values:
            found = self.value(part)
            if bool(found) is stops:
                break
        return found

    def choice(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def element(self, node: ast.Subscript) -> Any:
        of, key = self.value(node.value), self.value(node.slice)
        if isinstance(of, dict):
            if key not in of:
                raise unknown(f"entry of {ast.unparse(node.value)}", key, of, where=self.where)
            return of[key]
        return self._computed(operator.getitem, of, key, "[]")

    def call(self, node: ast.Call) -> Any:
        function = self.functions[ast.unparse(node.func)]
        arguments = [self.value(argument) for argument in node.args]
        try:
            return function(*arguments)
        except (TypeError, ValueError, ArithmeticError) as problem:
            raise SteptimeError(f"{self.place}{ast.unparse(node)} fails: {problem}.") from None

    def _computed(self, function: Function, left: Any, right: Any, symbol: str) -> Any:
        try:
            return function(left, right)
        except ZeroDivisionError:
            raise SteptimeError(f"{self.place}{left} {symbol} {right} divides by zero.") from None
        except (TypeError, ValueError, LookupError, ArithmeticError):
            raise self._wrong(symbol, left, right) from None

    def _wrong(self, symbol: str, left: Any, right: Any) -> SteptimeError:
        return SteptimeError(f"{self.place}{symbol} cannot be used with {left!r} and {right!r}.")

    def _bounded(self, value: Any) -> Any:
        large = isinstance(value, int) and value.bit_length() > LARGEST_BITS
        if (
            large
            or isinstance(value, complex)
            or (isinstance(value, str | list) and len(value) > LONGEST)
        ):
            raise SteptimeError(f"{self.place}the result is too large, or not a number.")
        return value


KINDS: dict[type[ast.expr], Callable[[_Walk, Any], Any]] = {
    ast.Constant: _Walk.constant, ast.Name: _Walk.name, ast.List: _Walk.listed, ast.Tuple: _Walk.listed,
    ast.BinOp: _Walk.arithmetic, ast.UnaryOp: _Walk.sign, ast.Compare: _Walk.comparison, ast.BoolOp: _Walk.logic,
    ast.IfExp: _Walk.choice, ast.Subscript: _Walk.element, ast.Call: _Walk.call,
}  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
