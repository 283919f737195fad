"""Expressions in `${…}`: Python syntax, interpreted by an allow-list, never executed as Python."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from steptime.core.errors import SteptimeError, unknown

# Limits, because a plan may come from anybody and must not use up time or memory.
LONGEST = 1000  # characters of a text, or elements of a list
LARGEST_BITS = 1024  # of a whole number
MOST_DIGITS = 30  # of a rounded number, before or after the point
ALLOWED = (
    "numbers, texts, names, lists, arithmetic, comparisons, `a if b else c` and a few functions"
)
Function = Callable[..., Any]


def _contains(element: Any, container: Any) -> bool:
    return element in container


def _lacks(element: Any, container: Any) -> bool:
    return element not in container


ARITHMETIC: dict[type, tuple[str, Function]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
}
COMPARISONS: dict[type, tuple[str, Function]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", _contains),
    ast.NotIn: ("not in", _lacks),
}


def _round(number: float, digits: int = 0) -> Any:
    """Python computes 10 ** digits of a whole number, however many there are."""
    if not isinstance(digits, int) or abs(digits) > MOST_DIGITS:
        raise ValueError(f"digits must be a whole number from -{MOST_DIGITS} to {MOST_DIGITS}")
    return round(number, digits) if digits else round(number)


# A lambda fixes the number of arguments, and calls the method through `str` to refuse other types.
FUNCTIONS: dict[str, Function] = {
    "min": min,
    "max": max,
    "abs": abs,
    "round": _round,
    "int": int,
    "float": float,
    "str": str,
    "len": len,
    "sum": sum,
    "lower": lambda text: str.lower(text),
    "upper": lambda text: str.upper(text),
    "split": lambda text, separator: str.split(text, separator),
    "replace": lambda text, old, new: str.replace(text, old, new),
}


def evaluate(
    text: str, look_up: Callable[[str], Any], functions: Mapping[str, Function], where: str = ""
) -> Any:
    """`look_up` gives the value of a name; `functions` are known besides the usual ones."""
    interpreter = _Interpreter(text, look_up, {**FUNCTIONS, **functions}, where)
    try:
        return interpreter.value(interpreter.parse())
    except RecursionError:
        raise interpreter.error("it is nested too deeply.") from None


def check(text: str, functions: Collection[str], where: str = "") -> list[str]:
    """The names in the expression. Refuses what would be wrong for all their values."""
    known_functions = dict.fromkeys([*FUNCTIONS, *functions], str)
    interpreter = _Interpreter(text, str, known_functions, where)
    nodes = [node for node in ast.walk(interpreter.parse()) if isinstance(node, ast.expr)]
    try:
        for node in nodes:
            interpreter.check(node)
    except RecursionError:
        raise interpreter.error("it is nested too deeply.") from None
    # The name of a function is a Name node, too.
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return [node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called]


@cache
def _parse(text: str) -> ast.expr | None:
    if len(text) > LONGEST:
        return None
    try:
        # Python warns of a number directly before a word, for example.
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


class _Interpreter:
    def __init__(
        self,
        text: str,
        look_up: Callable[[str], Any],
        functions: Mapping[str, Function],
        where: str,
    ) -> None:
        self.text = text
        self.look_up = look_up
        self.functions = functions
        self.where = where

    def error(self, sentence: str) -> SteptimeError:
        return SteptimeError(f"{self.where}${{{self.text.strip()}}}: {sentence}")

    def parse(self) -> ast.expr:
        tree = _parse(self.text)
        if tree is None:
            raise self.error("this cannot be read as a name or a computation.")
        return tree

    def check(self, node: ast.expr) -> None:
        """Refuse what is wrong whatever the values are."""
        if type(node) not in NODES:
            raise self.error(f"{ast.unparse(node)} is not allowed; there are {ALLOWED}.")
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float, str, bool):
            raise self.error(f"{ast.unparse(node)} is no value of a plan.")
        if isinstance(node, ast.BinOp) and type(node.op) not in ARITHMETIC:
            raise self.error("this operator is not known; there are + - * / // % **.")
        if isinstance(node, ast.Compare):
            for comparison in node.ops:
                if type(comparison) not in COMPARISONS:
                    raise self.error("write == instead of `is`.")
        if isinstance(node, ast.Call):
            self._check_call(node)

    def _check_call(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Name) or node.keywords:
            names = ", ".join(sorted(self.functions))
            raise self.error(f"only plain functions can be called: {names}.")
        if node.func.id not in self.functions:
            raise unknown("function", node.func.id, self.functions, where=self.where)

    def value(self, node: ast.expr) -> Any:
        self.check(node)
        value = NODES[type(node)](self, node)
        self._check_size(value)
        return value

    def constant(self, node: ast.Constant) -> Any:
        return node.value

    def name(self, node: ast.Name) -> Any:
        return self.look_up(node.id)

    def elements(self, node: ast.List | ast.Tuple) -> list[Any]:
        return [self.value(element) for element in node.elts]

    def arithmetic(self, node: ast.BinOp) -> Any:
        left = self.value(node.left)
        right = self.value(node.right)
        symbol, function = ARITHMETIC[type(node.op)]
        concatenates = symbol == "+" and type(left) is type(right) and isinstance(left, str | list)
        if not concatenates and not (_is_number(left) and _is_number(right)):
            raise self._type_error(symbol, left, right)
        # A power is checked before it is computed, which could take forever.
        is_integer_power = symbol == "**" and isinstance(left, int)
        if is_integer_power and abs(right) * left.bit_length() > LARGEST_BITS:
            raise self.error(f"{left} ** {right} is too large.")
        return self._apply(function, left, right, symbol)

    def sign(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        if not _is_number(value) or isinstance(node.op, ast.Invert):
            raise self.error(f"{ast.unparse(node)} needs a number, found {value!r}.")
        return -value if isinstance(node.op, ast.USub) else value

    def comparison(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for comparison, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            symbol, function = COMPARISONS[type(comparison)]
            if not self._apply(function, left, right, symbol):
                return False
            left = right
        return True

    def logic(self, node: ast.BoolOp) -> Any:
        """As in Python, the operand that decides is the value, and later ones are not computed."""
        deciding = isinstance(node.op, ast.Or)
        value: Any = None
        for operand in node.values:
            value = self.value(operand)
            if bool(value) is deciding:
                break
        return value

    def choice(self, node: ast.IfExp) -> Any:
        if self.value(node.test):
            return self.value(node.body)
        return self.value(node.orelse)

    def element(self, node: ast.Subscript) -> Any:
        container = self.value(node.value)
        key = self.value(node.slice)
        if not isinstance(container, dict):
            return self._apply(operator.getitem, container, key, "[]")
        if key not in container:
            raise unknown(f"entry of {ast.unparse(node.value)}", key, container, where=self.where)
        return container[key]

    def call(self, node: ast.Call) -> Any:
        function = self.functions[ast.unparse(node.func)]
        arguments = [self.value(argument) for argument in node.args]
        try:
            return function(*arguments)
        except (TypeError, ValueError, ArithmeticError) as problem:
            raise self.error(f"{ast.unparse(node)} fails: {problem}.") from None

    def _apply(self, function: Function, left: Any, right: Any, symbol: str) -> Any:
        try:
            return function(left, right)
        except ZeroDivisionError:
            raise self.error(f"{left} {symbol} {right} divides by zero.") from None
        except (TypeError, ValueError, LookupError, ArithmeticError):
            raise self._type_error(symbol, left, right) from None

    def _type_error(self, symbol: str, left: Any, right: Any) -> SteptimeError:
        return self.error(f"{symbol} cannot be used with {left!r} and {right!r}.")

    def _check_size(self, value: Any) -> None:
        too_large = isinstance(value, int) and value.bit_length() > LARGEST_BITS
        too_long = isinstance(value, str | list) and _count_elements(value) > LONGEST
        if too_large or too_long or isinstance(value, complex):
            raise self.error("the result is too large, or not a number.")


NODES: dict[type[ast.expr], Callable[[_Interpreter, Any], Any]] = {
    ast.Constant: _Interpreter.constant,
    ast.Name: _Interpreter.name,
    ast.List: _Interpreter.elements,
    ast.Tuple: _Interpreter.elements,
    ast.BinOp: _Interpreter.arithmetic,
    ast.UnaryOp: _Interpreter.sign,
    ast.Compare: _Interpreter.comparison,
    ast.BoolOp: _Interpreter.logic,
    ast.IfExp: _Interpreter.choice,
    ast.Subscript: _Interpreter.element,
    ast.Call: _Interpreter.call,
}


def _count_elements(value: Any) -> int:
    """Also those of lists in lists, because a list may hold another many times."""
    if isinstance(value, list):
        return sum(max(1, _count_elements(element)) for element in value)
    return len(value) if isinstance(value, str) else 1


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
