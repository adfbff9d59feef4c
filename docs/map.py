"""The import graph of the package."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "pymc_rollback"


def read_sources(package: Path = PACKAGE) -> dict[str, str]:
    """Sources of a package by module: ``chain.start``, ``step``, and "" for the package itself."""
    sources = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        sources[".".join(parts).removesuffix("__init__").removesuffix(".")] = path.read_text()
    return sources


def read_imports(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Modules, each with those that it imports, wherever in its code it does."""
    return {
        module: {_module_of(name, sources) for name in _imported_names(source)}
        for module, source in sources.items()
    }


@cache
def _imported_names(source: str) -> set[str]:
    """Names in the package of what a source imports: modules, or things in them."""
    return {
        name.partition(".")[2]
        for node in ast.walk(ast.parse(source))
        for name in _names(node)
        if name.partition(".")[0] == PACKAGE.name
    }


def _names(node: ast.AST) -> Iterator[str]:
    """Full names of what a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if node.level:
            raise ValueError(f"line {node.lineno}: imports are written in full, without dots")
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _module_of(name: str, modules: Mapping[str, str]) -> str:
    """The module that a name is, or that what it names is in."""
    while name not in modules:
        name = name.rpartition(".")[0]
    return name
