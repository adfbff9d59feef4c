"""The map of the package, made from its import graph: ``python docs/map.py`` writes ``map.svg``."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "pymc_rollback"
PICTURE = Path(__file__).with_name("map.svg")

TOP = PACKAGE.name
"""The box of the modules that are in no folder."""

BOXES = {
    "graph": (0, 0),
    "region": (0, 1),
    "target": (0, 2),
    "kernels": (1, 2),
    "chain": (0, 3),
    TOP: (0, 4),
    "diagnostics": (0, 5),
}
"""Column and row of each folder, in the order in which data pass through."""

LEFT, WIDTHS, COLUMN_GAP, ROW_GAP = 80, (500, 240), 50, 44
LINE, PADDING = 18, 12
STYLE = """
text { font: 13px monospace; fill: #1f2328 }
.name { font-weight: bold }
.caption { font: italic 12px sans-serif; fill: #57606a }
.paper { fill: white }
.box { fill: #f6f8fa; stroke: #8c959f }
.arrow { fill: none; stroke: #0969da; stroke-width: 1.5; marker-end: url(#head) }
"""


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
        for name in names_in(node)
        if name.partition(".")[0] == PACKAGE.name
    }


def names_in(node: ast.AST) -> Iterator[str]:
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


def folder_of(module: str) -> str:
    """The folder that a module is in."""
    return module.partition(".")[0] if "." in module else TOP


def modules_by_folder(imports: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """Names of the modules in each folder, each after those that it imports."""
    folders: dict[str, list[str]] = {name: [] for name in BOXES}
    sorter = TopologicalSorter(imports)
    sorter.prepare()
    while sorter.is_active():
        ready = sorter.get_ready()
        for module in sorted(set(ready) - {"", *BOXES}):
            folders[folder_of(module)].append(module.rpartition(".")[2])
        sorter.done(*ready)
    return folders


def find_arrows(imports: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Pairs of folders: one that is imported, and one that imports it."""
    pairs = {
        (folder_of(used), folder_of(user)) for user in imports if user for used in imports[user]
    }
    return sorted((used, user) for used, user in pairs if used != user)


class Box(NamedTuple):
    """A folder in the picture: a rectangle, and lines of text with their style."""

    x: float
    y: float
    width: float
    height: float
    lines: list[tuple[str, str]]


def place_boxes(sources: Mapping[str, str]) -> dict[str, Box]:
    """Where each folder is in the picture, and what it says."""
    modules = modules_by_folder(read_imports(sources))
    boxes: dict[str, Box] = {}
    for name, (column, row) in BOXES.items():
        above = [box for other, box in boxes.items() if BOXES[other][1] < row]
        source = sources["" if name == TOP else name]
        summary = ast.get_docstring(ast.parse(source)).partition("\n")[0].replace("``", "")
        characters = (WIDTHS[column] - 2 * PADDING) // 8
        lines = [
            ("name", f"{name}/"),
            *(("caption", line) for line in wrap(summary, 1.2 * characters)),
            *(("modules", line) for line in wrap("  ".join(modules[name]), characters)),
        ]
        boxes[name] = Box(
            LEFT + column * (WIDTHS[0] + COLUMN_GAP),
            max((box.y + box.height + ROW_GAP for box in above), default=PADDING),
            WIDTHS[column],
            LINE * len(lines) + 2 * PADDING,
            lines,
        )
    return boxes


def draw_box(box: Box) -> Iterator[str]:
    """SVG of a folder."""
    x, y, width, height, lines = box
    yield f'<rect class="box" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
    for k, (style, line) in enumerate(lines):
        baseline = y + PADDING + LINE * k + 13
        yield (
            f'<text class="{style}" xml:space="preserve" x="{x + PADDING}" y="{baseline}">'
            f"{escape(line)}</text>"
        )


def draw_arrow(used: str, user: str, boxes: Mapping[str, Box]) -> str:
    """SVG of an arrow: down to the next row, from column to column, or around what is between."""
    start, end = boxes[used], boxes[user]
    rows = BOXES[user][1] - BOXES[used][1]
    if BOXES[used][0] != BOXES[user][0]:
        x, y = end.x + end.width, end.y + end.height / 2
        if rows == 0:
            path = f"M{start.x} {y} H{x}"
        else:
            middle = start.x + start.width / 2
            path = f"M{middle} {start.y + start.height} Q{middle} {y} {x} {y}"
    elif rows == 1:
        path = f"M{start.x + start.width / 2} {start.y + start.height} V{end.y}"
    else:
        # the farther it leads, the wider, so that those to one box lie within each other
        leaves, arrives = start.y + start.height / 2 - 6 * rows, end.y + 12 * rows
        away = start.x - 25 * rows
        path = f"M{start.x} {leaves} C{away} {leaves} {away} {arrives} {end.x} {arrives}"
    return f'<path class="arrow" d="{path}"/>'


def draw_map(sources: Mapping[str, str]) -> str:
    """SVG of the folders, the modules in them, and arrows from each folder to its users."""
    boxes = place_boxes(sources)
    width = max(box.x + box.width for box in boxes.values()) + PADDING
    height = max(box.y + box.height for box in boxes.values()) + PADDING
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
        f"<style>{STYLE}</style>",
        '<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#0969da"/></marker>',
        f'<rect class="paper" width="{width}" height="{height}"/>',
        *(line for box in boxes.values() for line in draw_box(box)),
        *(draw_arrow(*pair, boxes) for pair in find_arrows(read_imports(sources))),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw_map(read_sources()))
