"""The house rules, held by machine: who may import whom, how long things may get, how light start-up is."""

from __future__ import annotations

import ast
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steptime import plugins

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "steptime"
FILES = sorted(path for path in SOURCE.rglob("*.py"))

# Besides the standard library. `steptime` alone is the package's version.
MAY_IMPORT: dict[str, set[str]] = {
    "__init__": set(),
    "__main__": {"cli"},
    "core": {"core"},
    "plugins": {"core", "plugins"},
    "plan": {"core", "plan"},
    "graph": {"core", "graph", "numpy", "onnx", "safetensors", "store"},
    "networks": {"core", "graph", "networks", "plugins"},
    "data": {"PIL", "core", "data", "graph", "numpy"},
    "workloads": {"core", "data", "graph", "networks", "numpy", "plugins", "workloads"},
    "frameworks": {"core", "frameworks", "graph", "numpy", "safetensors"},
    "engine": {"core", "engine", "numpy", "psutil", "pynvml"},
    "ranks": {"core", "engine", "machine", "numpy", "ranks"},
    "machine": {"core", "engine", "machine", "plugins"},
    "store": {"core", "duckdb", "psycopg", "store"},
    "tasks": {
        "core",
        "data",
        "engine",
        "graph",
        "numpy",
        "plugins",
        "ranks",
        "store",
        "tasks",
        "workloads",
    },
    "worker": {"core", "machine", "plugins", "ranks", "store", "tasks", "worker", "workloads"},
    "analysis": {"analysis", "core", "graph", "numpy", "scipy"},
    "run": {"analysis", "core", "machine", "plan", "plugins", "run", "store", "workloads"},
    "index": {"analysis", "core", "duckdb", "index", "store"},
    "charts": {"analysis", "charts", "core", "index", "vl_convert"},
    "report": {"analysis", "charts", "core", "index", "jinja2", "report"},
    "formats": {"analysis", "charts", "core", "duckdb", "formats", "index", "plan", "plugins"},
    "web": {
        "analysis",
        "charts",
        "core",
        "fastapi",
        "index",
        "markupsafe",
        "plugins",
        "report",
        "starlette",
        "store",
        "web",
    },
    "cli": {
        "analysis",
        "charts",
        "cli",
        "core",
        "formats",
        "graph",
        "index",
        "networks",
        "plan",
        "plugins",
        "report",
        "rich",
        "run",
        "store",
        "typer",
        "uvicorn",
        "web",
        "workloads",
    },
}

LONGEST_FUNCTION, LONGEST_FILE, MOST_PARAMETERS, DEEPEST_NESTING = 50, 300, 5, 3
# The builder's methods mirror a layer's settings: a table in the shape of signatures.
MANY_PARAMETERS = {
    f"graph/net.py:{kind}"
    for kind in ("conv", "max_pool", "average_pool", "dense", "lrn", "attention")
}
MANY_PARAMETERS.add("graph/network.py:network")  # a network's facts, each by its name


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Full dotted names of all imports, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            own = node.module == "steptime"
            yield from (f"steptime.{alias.name}" for alias in node.names) if own else [node.module]


def declared_packages(framework: str) -> set[str]:
    """The packages that a framework's own folder says it imports."""
    packages: set[str] = set()
    for constant in ("REQUIRES", "OPTIONAL"):
        packages |= set(plugins.read_constant("frameworks", framework, constant) or ())
    return packages


def outside(name: str) -> str | None:
    """The part or package that an import belongs to; None for the standard library."""
    words = name.split(".")
    if words[0] == "steptime":
        return words[1] if len(words) > 1 else None
    return None if words[0] in sys.stdlib_module_names else words[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_what_its_part_may(path: Path) -> None:
    allowed = set(MAY_IMPORT[part(path)])
    if part(path) == "frameworks" and len(path.relative_to(SOURCE).parts) > 2:
        allowed |= declared_packages(path.relative_to(SOURCE).parts[1])
    found = {word for name in imported(path) if (word := outside(name)) and word != "__version__"}
    assert found <= allowed


@pytest.mark.parametrize(
    "path", sorted((SOURCE / "frameworks").glob("*/*.py")), ids=lambda path: path.parent.name
)
def test_frameworks_do_not_know_each_other(path: Path) -> None:
    others = [name for name in imported(path) if name.startswith("steptime.frameworks.")]
    assert all(name.split(".")[2] == path.parent.name for name in others)


def test_no_module_imports_itself_through_others() -> None:
    modules = {
        ".".join(("steptime", *path.relative_to(SOURCE).with_suffix("").parts)): path
        for path in FILES
    }
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    graph = {
        name: {found for found in imported_modules(path, modules)} - {name}
        for name, path in modules.items()
    }
    done: set[str] = set()
    while ready := {name for name, needs in graph.items() if name not in done and needs <= done}:
        done |= ready
    assert sorted(set(graph) - done) == []


def imported_modules(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & set(modules)
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from inner
            if names - inner:
                yield node.module


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.relative_to(SOURCE)}:{node.name}", node


def length(node: ast.FunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def depth(node: ast.AST, level: int = 0) -> int:
    """How many blocks lie inside each other; an `elif` lies beside its `if`."""
    nests = (ast.If, ast.For, ast.While, ast.With, ast.Try)
    beside = node.orelse if isinstance(node, ast.If) else []
    deeper = [
        depth(
            child,
            level
            + (isinstance(child, nests) and not (isinstance(child, ast.If) and child in beside)),
        )
        for child in ast.iter_child_nodes(node)
    ]
    return max([level, *deeper])


def test_functions_fit_on_a_screen() -> None:
    assert [name for name, node in functions() if length(node) > LONGEST_FUNCTION] == []


def test_most_functions_are_short() -> None:
    lengths = sorted(length(node) for _, node in functions())
    assert statistics.median(lengths) <= 10
    assert lengths[int(0.9 * len(lengths))] <= 25


def test_files_fit_in_a_head() -> None:
    assert [str(path) for path in FILES if path.read_text().count("\n") > LONGEST_FILE] == []


def test_functions_take_few_parameters() -> None:
    def many(node: ast.FunctionDef) -> bool:
        names = [
            arg.arg for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        ]
        return len([name for name in names if name not in ("self", "cls")]) > MOST_PARAMETERS

    commands = {
        f"cli/commands/{path.name}:{path.stem}_command"
        for path in (SOURCE / "cli" / "commands").glob("*.py")
    }  # flags, at most 8
    assert {name for name, node in functions() if many(node)} - MANY_PARAMETERS - commands == set()


def test_nesting_stays_shallow() -> None:

    assert [name for name, node in functions() if depth(node) > DEEPEST_NESTING] == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(path) for path in FILES if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []


def test_the_package_has_few_names() -> None:
    assert len([path for path in SOURCE.iterdir() if not path.name.startswith("_")]) <= 24


def test_a_command_has_at_most_eight_flags() -> None:
    for path in (SOURCE / "cli" / "commands").glob("*.py"):
        assert path.read_text().count("typer.Option(") <= 8, path.name


def loaded(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_asking_for_help_loads_nothing_heavy() -> None:
    code = "import contextlib, io\nfrom steptime.cli.main import main\nsys.argv = ['steptime', '--help']\n"
    code += (
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main()"
    )
    assert loaded(code).isdisjoint({"numpy", "scipy", "torch", "duckdb", "psutil"})


def test_listing_networks_loads_nothing_heavy() -> None:
    code = "from steptime import networks\nnetworks.catalogue()"
    assert loaded(code).isdisjoint({"numpy", "scipy", "torch", "duckdb"})


def test_help_answers_within_a_fifth_of_a_second_of_a_bare_interpreter() -> None:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def seconds(*arguments: str) -> float:
        """Processor time, because other work on the machine is not ours, of compiled modules, as users have."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], env=kept, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    help_seconds, bare_seconds = (
        min(seconds(*words) for _ in range(10))
        for words in (("-m", "steptime", "--help"), ("-c", "pass"))
    )
    assert help_seconds - bare_seconds < 0.2


def test_the_page_holds_the_same_import_table() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rows = [
        row.strip("| ").split(" | ")
        for row in page.split("## Who may import whom")[1].split("\n")
        if "`" in row
    ]
    table = {
        row[0].strip("`"): set(row[1].replace("–", "").split(", ")) - {""}
        for row in rows
        if len(row) == 2
    }
    assert table == {
        name: words - {name} for name, words in MAY_IMPORT.items() if not name.startswith("_")
    }
