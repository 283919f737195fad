"""Rules of the tree: who may import whom, how code reads, how light start-up is."""

from __future__ import annotations

import ast
import os
import re
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steptime import plugins
from steptime.core.case import CHOICES
from steptime.core.protocol import PRESETS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "steptime"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
FILES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in FILES}

LONGEST_FUNCTION = 50
LONGEST_FILE = 400
LONGEST_LINE = 100
MOST_PARAMETERS = 7
DEEPEST_NESTING = 4
DENSEST_STATEMENT = 24
MOST_PARTICIPLES = 0.02
FEWEST_COMMENTS = 0.02
# Names that do not let the reader guess what they hold.
EMPTY_NAMES = "found told one own word words place known part parts said given whole wanted"
IRREGULAR_PARTICIPLES = (
    "told given shown known held found said kept left made sent taken thrown written drawn chosen "
    "begun grown heard met spoken spent built lent lost meant paid sold stood swept hidden broken "
    "frozen torn fed gone bound laid led"
)
# They end like participles but are verbs or nouns.
NOT_PARTICIPLES = "embed exceed feed need ping proceed seed speed string"
SIMPLE_STATEMENTS = (
    ast.AnnAssign,
    ast.Assert,
    ast.Assign,
    ast.AugAssign,
    ast.Expr,
    ast.Raise,
    ast.Return,
)
# The layer builder mirrors the settings of ops, and a network's facts are given by name.
MANY_PARAMETERS = ("graph/net.py:", "graph/network.py:network", "cli/commands/", "cli/main.py:")


def relative(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def folder_of(path: Path) -> str:
    """The folder, or the module, at the top of the package."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


# Who may import whom


def import_table() -> dict[str, set[str]]:
    section = PAGE.split("## Who may import whom")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.M)
    return {name: set(re.findall(r"\w+", allowed)) | {name} for name, allowed in rows}


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Full dotted names of all imports, also of those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "steptime":
            yield from (f"steptime.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def owner_of(name: str) -> str | None:
    """The folder or package that an import belongs to; None for the standard library."""
    first, *rest = name.split(".")
    if first == "steptime":
        return rest[0] if rest and rest[0] != "__version__" else None
    return None if first in sys.stdlib_module_names else first


def packages_of_framework(path: Path) -> set[str]:
    """A framework's folder names the packages that it needs, and may import those."""
    parts = path.relative_to(SOURCE).parts
    if parts[0] != "frameworks" or len(parts) < 3:
        return set()
    packages: set[str] = set()
    for constant in ("REQUIRES", "OPTIONAL"):
        packages |= set(plugins.read_constant("frameworks", parts[1], constant) or ())
    return packages


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_imports_of_a_file_are_those_its_folder_may_have(path: Path) -> None:
    owners = {owner for name in imported_names(TREES[path]) if (owner := owner_of(name))}
    allowed = import_table().get(folder_of(path), {"cli"}) | packages_of_framework(path)
    assert owners <= allowed


def test_imports_table_has_a_row_for_each_folder() -> None:
    folders = {
        folder_of(path) for path in FILES if not path.name.startswith("__") or path.parent != SOURCE
    }
    assert set(import_table()) == folders


@pytest.mark.parametrize(
    "name", ["index", "charts", "report", "formats", "store", "analysis", "run"]
)
def test_imports_of_folders_outside_web_include_no_web_package(name: str) -> None:
    assert import_table()[name].isdisjoint({"web", "fastapi", "starlette", "uvicorn"})


def test_imports_of_frameworks_stay_in_their_folder() -> None:
    for path in (SOURCE / "frameworks").glob("*/**/*.py"):
        folder = path.relative_to(SOURCE / "frameworks").parts[0]
        others = [
            name for name in imported_names(TREES[path]) if name.startswith("steptime.frameworks.")
        ]
        assert {name.split(".")[2] for name in others} <= {folder}, relative(path)


def test_imports_have_no_cycle() -> None:
    modules = {module_name(path): path for path in FILES}
    needs = {name: imported_modules(path, modules) - {name} for name, path in modules.items()}
    done: set[str] = set()
    while ready := {name for name in needs if name not in done and needs[name] <= done}:
        done |= ready
    assert sorted(set(needs) - done) == []


def module_name(path: Path) -> str:
    dotted = ".".join(("steptime", *path.relative_to(SOURCE).with_suffix("").parts))
    return dotted.removesuffix(".__init__")


def imported_modules(path: Path, modules: dict[str, Path]) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= inner & set(modules)
            if inner - set(modules):
                names.add(node.module)
    return names & set(modules)


# The page ARCHITECTURE.md


def tree_lines() -> dict[str, str]:
    block = PAGE.split("## The tree")[1].split("```")[1]
    return dict(re.findall(r"^    (\w+(?:\.py|/))\s+(.*)$", block, re.M))


def test_page_tree_names_every_folder_and_no_other() -> None:
    folders = {
        f"{path.name}/" for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    modules = {path.name for path in SOURCE.glob("*.py") if not path.name.startswith("__")}
    assert set(tree_lines()) == folders | modules


def test_page_tree_marks_plugin_folders() -> None:
    """A plugin folder is one that the code asks `plugins` for."""
    block = PAGE.split("## The tree")[1].split("```")[1]
    marked = {name.strip("/") for name, text in tree_lines().items() if text.startswith("PLUGINS")}
    marked |= {name for name in ("sets", "pages") if f"{name}/ PLUGINS" in block}
    text = " ".join(path.read_text() for path in FILES)
    asked = re.findall(r'plugins\.\w+\(\s*"([\w.]+)"', text)
    asked += re.findall(r'PAGES = "([\w.]+)"', text)
    assert {name.rpartition(".")[2] for name in asked} == marked


def glossary() -> dict[str, str]:
    section = PAGE.split("## Words")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| ([\w /]+) \| (.*) \|$", section, re.M))


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("phase", CHOICES["phase"]),
        ("mode", CHOICES["mode"]),
        ("task", plugins.names("tasks")),
        ("protocol", PRESETS),
    ],
)
def test_page_glossary_lists_the_values_of_the_code(word: str, values: list[str]) -> None:
    listed = set(re.findall(r"`([\w-]+)`", glossary()[word]))
    assert listed == set(values)


# How code reads


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{relative(path)}:{node.name}", node


def function_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def nesting(node: ast.AST, level: int = 0) -> int:
    """How many blocks lie inside each other; an `elif` does not count as inside its `if`."""
    blocks = (ast.If, ast.For, ast.While, ast.With, ast.Try)
    deepest = level
    for child in ast.iter_child_nodes(node):
        is_elif = isinstance(node, ast.If) and child in node.orelse and isinstance(child, ast.If)
        deeper = isinstance(child, blocks) and not is_elif
        deepest = max(deepest, nesting(child, level + deeper))
    return deepest


def quantile(values: list[int], share: float) -> int:
    return sorted(values)[int(share * len(values))]


def test_functions_fit_on_a_screen() -> None:
    assert [name for name, node in functions() if function_length(node) > LONGEST_FUNCTION] == []


def test_functions_are_mostly_short() -> None:
    lengths = [function_length(node) for _, node in functions()]
    assert statistics.median(lengths) <= 10
    assert quantile(lengths, 0.9) <= 25


def test_functions_take_few_parameters() -> None:
    def parameter_count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        names = [
            arg.arg for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        ]
        return len([name for name in names if name not in ("self", "cls")])

    crowded = [name for name, node in functions() if parameter_count(node) > MOST_PARAMETERS]
    assert [name for name in crowded if not name.startswith(MANY_PARAMETERS)] == []


def test_functions_nest_shallowly() -> None:
    assert [name for name, node in functions() if nesting(node) > DEEPEST_NESTING] == []


def test_functions_are_named_by_verbs_or_nouns() -> None:
    names = [node.name.strip("_") for _, node in functions()]
    participles = [name for name in names if is_participle(name)]
    assert len(participles) <= MOST_PARTICIPLES * len(names), sorted(participles)


def is_participle(name: str) -> bool:
    if "_" in name or name in NOT_PARTICIPLES.split():
        return False
    return name.endswith(("ed", "ing")) or name in IRREGULAR_PARTICIPLES.split()


def test_files_are_short() -> None:
    assert [
        relative(path) for path in FILES if len(path.read_text().splitlines()) > LONGEST_FILE
    ] == []


def test_lines_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("src", "tests", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert long == []


def test_modules_have_docstrings() -> None:
    assert [relative(path) for path, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_comments_are_not_rare() -> None:
    lines = [line.strip() for path in FILES for line in path.read_text().splitlines()]
    comments = [line for line in lines if line.startswith("#")]
    assert len(comments) >= FEWEST_COMMENTS * len(lines)


def test_statements_are_not_dense() -> None:
    sizes = [
        sum(1 for _ in ast.walk(node))
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, SIMPLE_STATEMENTS) and not is_docstring(node)
    ]
    assert quantile(sizes, 0.9) <= DENSEST_STATEMENT


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_names_say_what_they_hold() -> None:
    empty = [
        f"{relative(path)}:{node.lineno} {name}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        for name in bound_names(node)
        if name in EMPTY_NAMES.split()
    ]
    assert empty == []


def bound_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.arg):
        return [node.arg]
    return []


def test_statements_use_no_conditional_expression_for_control() -> None:
    """`a() if x else b()` as a statement, and `for x in xs if c else ():`, hide an `if`."""
    hidden = [
        f"{relative(path)}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Expr) and isinstance(node.value, ast.IfExp))
        or (isinstance(node, ast.For) and isinstance(node.iter, ast.IfExp))
    ]
    assert hidden == []


def dataclass_names() -> set[str]:
    return {
        node.name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    }


def test_dataclasses_are_made_by_named_fields() -> None:
    """A `**` splat hides which fields are set. Functions that parse checked text may use it."""
    names = dataclass_names()
    splats = []
    for path, tree in TREES.items():
        excused = {id(node) for parser in parsers(tree) for node in ast.walk(parser)}
        for node in ast.walk(tree):
            if id(node) in excused or not isinstance(node, ast.Call):
                continue
            has_splat = any(keyword.arg is None for keyword in node.keywords)
            if has_splat and ast.unparse(node.func) in names:
                splats.append(f"{relative(path)}:{node.lineno}")
    assert splats == []


def parsers(tree: ast.AST) -> list[ast.FunctionDef]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [node for node in nodes if node.name.strip("_").startswith(("from_", "parse_"))]


def test_protocols_are_used_as_types() -> None:
    protocols = {
        node.name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)
    }
    text = " ".join(used_type for tree in TREES.values() for used_type in used_types(tree))
    assert [name for name in sorted(protocols) if not re.search(rf"\b{name}\b", text)] == []


def used_types(tree: ast.AST) -> Iterator[str]:
    """Annotations of arguments, variables and results, and the types of casts."""
    for node in ast.walk(tree):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if annotation is not None:
                yield ast.unparse(annotation)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
            yield ast.unparse(node.args[0])


def test_commands_have_at_most_eight_flags() -> None:
    for path in (SOURCE / "cli" / "commands").glob("*.py"):
        assert path.read_text().count("typer.Option(") <= 8, path.name


# Start-up


def loaded_modules(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_help_loads_nothing_heavy() -> None:
    code = """
import contextlib, io
from steptime.cli.main import main
sys.argv = ['steptime', '--help']
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
"""
    assert loaded_modules(code).isdisjoint({"numpy", "scipy", "torch", "duckdb", "psutil"})


def test_list_of_networks_loads_nothing_heavy() -> None:
    code = "from steptime import networks\nnetworks.catalogue()"
    assert loaded_modules(code).isdisjoint({"numpy", "scipy", "torch", "duckdb"})


def test_help_takes_hardly_longer_than_the_libraries_of_a_command_line() -> None:
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }

    def cpu_seconds(*arguments: str) -> float:
        """CPU time, because other work on the machine is not ours."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *arguments], env=environment, capture_output=True, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    help_seconds = []
    library_seconds = []
    # In turn, because a busy machine makes both slower.
    for _ in range(10):
        help_seconds.append(cpu_seconds("-m", "steptime", "--help"))
        library_seconds.append(cpu_seconds("-c", "import typer.main, rich.console"))
    assert min(help_seconds) < 2.5 * min(library_seconds)
