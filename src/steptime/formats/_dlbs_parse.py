"""DLBS's names, values and computations as ours. Knows no plan."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from steptime.core.case import CHOICES, SETTINGS
from steptime.core.errors import SteptimeError
from steptime.formats._parse import integer, precision
from steptime.plan import expression

# The workloads and frameworks there are, by the name of their setting.
Choices = Mapping[str, Collection[str]]
# Our name, in a computation, for a DLBS name.
Names = Callable[[str], str]

NUMBERS = {
    "exp.replica_batch": "batch_size",
    "exp.device_batch": "batch_size",
    "exp.num_gpus": "devices",
    "exp.num_local_gpus": "devices",
    "exp.num_replicas": "devices",
    "exp.num_local_replicas": "devices",
    "exp.num_nodes": "nodes",
    "tensorflow.num_intra_threads": "threads",
}
TEXTS = {
    "exp.framework": "framework",
    "exp.model": "workload",
    "exp.phase": "phase",
    "exp.dtype": "precision",
    "exp.device_type": "device",
    "exp.data": "data",
}
SETTING = {**TEXTS, **NUMBERS}
PROTOCOL = {"exp.num_batches": "least_steps", "exp.num_warmup_batches": "warmup_steps"}
# What a plan that leaves them out gets from DLBS's own configuration.
DEFAULTS: dict[str, Any] = {
    "exp.phase": "training",
    "exp.dtype": "float32",
    "exp.replica_batch": 16,
    "exp.gpus": "0",
    "exp.device_type": "gpu",
    "exp.num_gpus": 1,
    "exp.num_local_gpus": 1,
    "exp.num_replicas": 1,
    "exp.num_local_replicas": 1,
    "exp.num_nodes": 1,
    "exp.status": "ok",
    "exp.data_dir": "",
    "exp.docker": True,
    "tensorflow.num_intra_threads": 0,
}
# DLBS's names for benchmarks of a framework.
FRAMEWORKS = {"nvtfcnn": "tensorflow", "nvcnn": "tensorflow"}
MODELS = {"inception3": "inception-v3", "inception4": "inception-v4"}
DATA = {"synthetic": "device", "real": "real"}
DEVICES = {"gpu": "cuda:0", "cpu": "cpu"}
# ${${exp.model}.batch}
NESTED = re.compile(r"\$\{\$\{([\w.-]+)\}\.([\w.-]+)\}")
REFERENCE = re.compile(r"\$\{([\w.-]+)\}")
# $(${exp.replica_batch} * 2)$
COMPUTATION = re.compile(r"\$\((.*?)\)\$", re.DOTALL)
# Methods of texts that are functions in our plans.
METHODS = ("lower", "upper", "split", "replace")
PLACEHOLDER = re.compile(r"__reference_(\d+)__")


def convert(name: str, value: Any, choices: Choices) -> Any:
    """The literal value of a DLBS name as ours; None if there is no counterpart."""
    if name in NUMBERS:
        return integer(value)
    setting = SETTING.get(name)
    if setting == "data":
        return DATA.get(value)
    if setting == "device":
        return DEVICES.get(value)
    if setting == "workload":
        return _choose(MODELS.get(value, str(value).replace("_", "-")), choices["workload"])
    if setting == "framework":
        return _choose(FRAMEWORKS.get(value, value), choices["framework"])
    if setting == "precision":
        return _choose(precision(value), CHOICES["precision"])
    if setting == "phase":
        return _choose(value, CHOICES["phase"])
    return value


def _choose(value: Any, choices: Collection[str]) -> Any:
    return value if value in choices else None


def identifier(name: str) -> str:
    """A variable of ours for a DLBS name that is no setting."""
    variable = re.sub(r"\W", "_", name)
    is_free = variable not in SETTINGS and not keyword.iskeyword(variable)
    return variable if is_free and variable.isidentifier() else f"{variable}_"


def is_literal(value: Any) -> bool:
    return not isinstance(value, str) or ("${" not in value and "$(" not in value)


def references(value: Any) -> list[str]:
    return REFERENCE.findall(value) if isinstance(value, str) else []


def translate(value: str, names: Names, location: str, *, is_integer: bool = False) -> str:
    """A text with references and computations as our plans write them."""
    if "${${" in value:
        raise SteptimeError(
            f"{location}: a name that is put together, {value!r}, cannot be translated: "
            "write it out."
        )

    def translate_computation(match: re.Match[str]) -> str:
        computation = _translate_computation(match[1], names, location)
        if is_integer and "/" in computation:
            computation = f"int({computation})"
        # Marked, so that it is not taken for a reference below.
        return "\0{" + computation + "}"

    def translate_reference(match: re.Match[str]) -> str:
        return "${" + _unquote(names(match[1])) + "}"

    marked = COMPUTATION.sub(translate_computation, value)
    if "$(" in marked:
        raise SteptimeError(f"{location}: {value!r} has a $( without its )$.")
    return REFERENCE.sub(translate_reference, marked).replace("\0{", "${")


def _unquote(name: str) -> str:
    """env('X') alone is written ${env:X}."""
    match = re.fullmatch(r"env\('([^']+)'\)", name)
    return f"env:{match[1]}" if match else name


def _translate_computation(text: str, names: Names, location: str) -> str:
    our_names: list[str] = []

    def mark(reference: re.Match[str]) -> str:
        our_names.append(names(reference[1]))
        return f"__reference_{len(our_names) - 1}__"

    marked = REFERENCE.sub(mark, text).strip()
    try:
        tree = ast.parse(marked, mode="eval")
        computation = ast.unparse(_Rewriter(our_names).visit(tree))
        expression.check(computation, ("env", "machine"))
    except SteptimeError as problem:
        reason = re.sub(r"^\$\{.*?\}: ", "", str(problem))
        raise SteptimeError(f"{location}: $({text})$ cannot be translated: {reason}") from None
    except (SyntaxError, ValueError, RecursionError):
        raise SteptimeError(
            f"{location}: $({text})$ cannot be translated: it is no expression."
        ) from None
    return computation


class _Rewriter(ast.NodeTransformer):
    """Translates references in and outside of quotes, methods of texts, and the environment."""

    def __init__(self, our_names: list[str]) -> None:
        self.our_names = our_names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        match = PLACEHOLDER.fullmatch(node.id)
        return self._reference(match[1]) if match else node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """DLBS inserts values before it computes, so a reference in quotes is a text."""
        if not isinstance(node.value, str):
            return node
        pieces = PLACEHOLDER.split(node.value)
        operands: list[ast.expr] = []
        # Texts and the numbers of references alternate.
        for position, piece in enumerate(pieces):
            if position % 2:
                operands.append(ast.Call(ast.Name("str"), [self._reference(piece)], []))
            elif piece or len(pieces) == 1:
                operands.append(ast.Constant(piece))
        joined = operands[0]
        for operand in operands[1:]:
            joined = ast.BinOp(joined, ast.Add(), operand)
        return joined

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = ast.unparse(node.func)
        arguments = [self.visit(argument) for argument in node.args]
        if function in ("os.environ.get", "os.getenv"):
            return ast.Call(ast.Name("env"), arguments, [])
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            subject = self.visit(node.func.value)
            return ast.Call(ast.Name(node.func.attr), [subject, *arguments], [])
        return ast.Call(node.func, arguments, node.keywords)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if ast.unparse(node.value) == "os.environ":
            return ast.Call(ast.Name("env"), [self.visit(node.slice)], [])
        return ast.Subscript(self.visit(node.value), self.visit(node.slice))

    def _reference(self, position: str) -> ast.expr:
        return ast.parse(self.our_names[int(position)], mode="eval").body
