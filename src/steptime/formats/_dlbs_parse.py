"""DLBS's names, words and computations as ours. Knows values, but no plan."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from steptime.core.case import CHOICES, SETTINGS
from steptime.core.errors import SteptimeError
from steptime.formats._parse import precision, whole
from steptime.plan import expression

Known = Mapping[str, Collection[str]]
NUMBERS = {
    "exp.replica_batch": "batch_size", "exp.device_batch": "batch_size", "exp.num_gpus": "devices",
    "exp.num_local_gpus": "devices", "exp.num_replicas": "devices", "exp.num_local_replicas": "devices",
    "exp.num_nodes": "nodes", "tensorflow.num_intra_threads": "threads",
}  # fmt: skip
WORDS = {
    "exp.framework": "framework", "exp.model": "workload", "exp.phase": "phase", "exp.dtype": "precision",
    "exp.device_type": "device", "exp.data": "data",
}  # fmt: skip
SETTING = {**WORDS, **NUMBERS}
PROTOCOL = {"exp.num_batches": "least_steps", "exp.num_warmup_batches": "warmup_steps"}
# What a plan that leaves them out gets from DLBS's own configuration.
DEFAULTS: dict[str, Any] = {
    "exp.phase": "training", "exp.dtype": "float32", "exp.replica_batch": 16, "exp.gpus": "0", "exp.device_type": "gpu",
    "exp.num_gpus": 1, "exp.num_local_gpus": 1, "exp.num_replicas": 1, "exp.num_local_replicas": 1, "exp.num_nodes": 1,
    "exp.status": "ok", "exp.data_dir": "", "exp.docker": True, "tensorflow.num_intra_threads": 0,
}  # fmt: skip
FRAMEWORKS = {"nvtfcnn": "tensorflow", "nvcnn": "tensorflow"}
MODELS = {"inception3": "inception-v3", "inception4": "inception-v4"}
NESTED = re.compile(r"\$\{\$\{([\w.-]+)\}\.([\w.-]+)\}")
REFERENCE = re.compile(r"\$\{([\w.-]+)\}")
COMPUTATION = re.compile(r"\$\((.*?)\)\$", re.DOTALL)
METHODS = ("lower", "upper", "split", "replace")
Names = Callable[[str], str]
"""What a DLBS name is called here, in a computation."""


def convert(name: str, value: Any, known: Known) -> Any:
    """The literal value of a DLBS name as ours; None where there is no counterpart."""
    setting = SETTING.get(name)
    if name in NUMBERS:
        return whole(value)
    if setting == "workload":
        word = MODELS.get(value, str(value).replace("_", "-"))
        return word if word in known["workload"] else None
    if setting == "framework":
        return word if (word := FRAMEWORKS.get(value, value)) in known["framework"] else None
    if setting == "precision":
        return word if (word := precision(value)) in CHOICES["precision"] else None
    if setting == "phase":
        return value if value in CHOICES["phase"] else None
    if setting == "data":
        return {"synthetic": "device", "real": "real"}.get(value)
    if setting == "device":
        return {"gpu": "cuda:0", "cpu": "cpu"}.get(value)
    return value


def identifier(name: str) -> str:
    """A variable of ours for a DLBS name that is no setting."""
    word = re.sub(r"\W", "_", name)
    return (
        f"{word}_"
        if word in SETTINGS or keyword.iskeyword(word) or not word.isidentifier()
        else word
    )


def is_literal(value: Any) -> bool:
    return not isinstance(value, str) or ("${" not in value and "$(" not in value)


def referenced(value: Any) -> list[str]:
    return REFERENCE.findall(value) if isinstance(value, str) else []


def text(value: str, names: Names, place: str, *, as_whole: bool = False) -> str:
    """A text with references and computations in our way of writing them."""
    if "${${" in value:
        raise SteptimeError(
            f"{place}: a name that is put together, {value!r}, cannot be translated: write it out."
        )

    def computed(found: re.Match[str]) -> str:
        words = _computation(found[1], names, place)
        return "\0{" + (f"int({words})" if as_whole and "/" in words else words) + "}"

    marked = COMPUTATION.sub(computed, value)
    if "$(" in marked:
        raise SteptimeError(f"{place}: {value!r} has a $( without its )$.")
    return REFERENCE.sub(lambda found: "${" + _unquoted(names(found[1])) + "}", marked).replace(
        "\0{", "${"
    )


def _unquoted(words: str) -> str:
    """env('X') alone is written ${env:X}."""
    found = re.fullmatch(r"env\('([^']+)'\)", words)
    return f"env:{found[1]}" if found else words


def _computation(words: str, names: Names, place: str) -> str:
    found: list[str] = []

    def mark(reference: re.Match[str]) -> str:
        found.append(names(reference[1]))
        return f"__reference_{len(found) - 1}__"

    marked = REFERENCE.sub(mark, words).strip()
    try:
        tree = ast.parse(marked, mode="eval")
        written = ast.unparse(_Rewriting(found).visit(tree))
        expression.check(written, ("env", "machine"))
    except (SyntaxError, ValueError, RecursionError, SteptimeError) as problem:
        known = isinstance(problem, SteptimeError)
        reason = re.sub(r"^\$\{.*?\}: ", "", str(problem)) if known else "it is no expression."
        raise SteptimeError(f"{place}: $({words})$ cannot be translated: {reason}") from None
    return written


class _Rewriting(ast.NodeTransformer):
    """References in and outside of quotes, methods of texts, and the environment."""

    def __init__(self, references: list[str]) -> None:
        self.references = references

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = re.fullmatch(r"__reference_(\d+)__", node.id)
        return self._reference(found[1]) if found else node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """DLBS puts values into the text before it computes: what stands in quotes is a text then."""
        if not isinstance(node.value, str):
            return node
        parts = re.split(r"__reference_(\d+)__", node.value)
        pieces: list[ast.expr] = []
        for i, part in enumerate(parts):
            if i % 2:
                pieces.append(ast.Call(ast.Name("str"), [self._reference(part)], []))
            elif part or len(parts) == 1:
                pieces.append(ast.Constant(part))
        joined = pieces[0]
        for piece in pieces[1:]:
            joined = ast.BinOp(joined, ast.Add(), piece)
        return joined

    def visit_Call(self, node: ast.Call) -> ast.expr:
        called = ast.unparse(node.func)
        arguments = [self.visit(argument) for argument in node.args]
        if called in ("os.environ.get", "os.getenv"):
            return ast.Call(ast.Name("env"), arguments, [])
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            return ast.Call(ast.Name(node.func.attr), [self.visit(node.func.value), *arguments], [])
        return ast.Call(node.func, arguments, node.keywords)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if ast.unparse(node.value) == "os.environ":
            return ast.Call(ast.Name("env"), [self.visit(node.slice)], [])
        return ast.Subscript(self.visit(node.value), self.visit(node.slice))

    def _reference(self, number: str) -> ast.expr:
        return ast.parse(self.references[int(number)], mode="eval").body
