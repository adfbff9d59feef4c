"""The layout of the package: which module may import which, and no arrow back."""

import ast
import re
from graphlib import CycleError, TopologicalSorter

import pytest

from docs.map import PACKAGE, PICTURE, draw_map, names_in, read_imports, read_sources

MAY_IMPORT = {
    "graph": "",
    "kernels": "",
    "region": "graph",
    "target": "graph region",
    "target.compile": "graph region kernels",
    "chain": "graph region target kernels",
    "options": "graph",
    "prepare": "graph region target chain options",
    "mass": "graph target",
    "tables": "",
    "describe": "graph region target chain options prepare tables",
    "guard": "graph region",
    "progress": "",
    "entry": "chain guard target",
    "step": (
        "graph region target chain options prepare describe entry guard mass progress kernels.stats"
    ),
    "record": "chain kernels target",
    "runner": "chain entry guard kernels record region step target",
    "stored": "graph target",
    "settled": "record",
    "crew": "progress runner settled",
    "cluster": "guard progress runner step",
    "sampling": "cluster crew graph options progress region runner settled step stored",
    "ranks": "chain graph",
    "replicates": "",
    "store": "replicates",
    "many": (
        "entry graph options progress ranks region replicates runner sampling step store "
        "stored target"
    ),
    "prior": "graph region target chain prepare step",
    "diagnostics": (
        "graph region target chain kernels options prepare tables runner step stored prior"
    ),
    # the package itself: the public names
    "": "region describe step sampling many prior diagnostics",
}
"""What a module, or every module of a folder, may import besides its own folder."""

PLAIN = ("chain", "kernels")
"""Folders that know arrays and functions of arrays, and neither PyMC nor PyTensor."""

SOURCES = read_sources()
ROOT = PACKAGE.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()


def homes(module):
    """A module and the folder that it is in."""
    return [module, module.partition(".")[0]]


def arrows_back(imports):
    """Imports that the table does not allow, and modules that it does not know."""
    wrong = []
    for module, imported in imports.items():
        row = next((home for home in homes(module) if home in MAY_IMPORT), None)
        if row is None:
            wrong.append(f"{module} is not in the table")
            continue
        allowed = {*MAY_IMPORT[row].split(), homes(module)[-1]}
        wrong += [f"{module} -> {x}" for x in imported if allowed.isdisjoint(homes(x))]
    return wrong


def find_cycle(imports):
    """Modules that import each other in a circle, if any."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def frameworks(sources):
    """What plain folders import from PyMC and PyTensor, wherever in their code they do."""
    return [
        f"{module} -> {name}"
        for module, source in sources.items()
        if homes(module)[-1] in PLAIN
        for node in ast.walk(ast.parse(source))
        for name in names_in(node)
        if name.partition(".")[0] in ("pymc", "pytensor")
    ]


def test_no_arrow_back():
    assert arrows_back(read_imports(SOURCES)) == []


def test_no_cycle():
    assert find_cycle(read_imports(SOURCES)) == []


def test_every_row_of_the_table_is_used():
    modules = read_imports(SOURCES)
    assert set(MAY_IMPORT) <= {home for module in modules for home in homes(module)}


def with_line(module, line):
    """Sources in which a module has one more line."""
    return {**SOURCES, module: f"{SOURCES.get(module, '')}\n{line}\n"}


@pytest.mark.parametrize(
    ("module", "line", "seen"),
    [
        ("region.read", "from pymc_rollback.target.plan import Plan", "-> target.plan"),
        ("region.read", "from pymc_rollback.target import plan", "-> target.plan"),
        ("graph.text", "import pymc_rollback.region.support", "-> region.support"),
        ("kernels.run", "from pymc_rollback.graph import forms as f", "-> graph.forms"),
        ("target.plan", "from pymc_rollback.kernels.run import ready", "-> kernels.run"),
        ("step", "def f():\n    import pymc_rollback.kernels.state", "-> kernels.state"),
        ("describe", "from pymc_rollback import RollbackHMC", "-> "),
        ("utils", "import numpy", "is not in the table"),
    ],
)
def test_a_made_up_arrow_back_is_seen(module, line, seen):
    assert arrows_back(read_imports(with_line(module, line))) == [f"{module} {seen}"]


def test_what_runs_in_a_chain_knows_nothing_of_pymc():
    assert frameworks(SOURCES) == []


@pytest.mark.parametrize(
    ("module", "line", "seen"),
    [
        ("chain.chain", "import pymc as pm", "pymc"),
        ("chain.start", "from pymc.util import get_var_name", "pymc.util.get_var_name"),
        ("chain.newcomer", "def f():\n    import pytensor.tensor as pt", "pytensor.tensor"),
        ("kernels.run", "from pytensor import config", "pytensor.config"),
    ],
)
def test_a_made_up_import_of_pymc_is_seen(module, line, seen):
    assert frameworks(with_line(module, line)) == [f"{module} -> {seen}"]


def test_a_made_up_cycle_is_seen():
    line = "from pymc_rollback.region.read import constrain"
    imports = read_imports(with_line("region.conditions", line))
    assert arrows_back(imports) == []
    assert {"region.conditions", "region.read"} <= set(find_cycle(imports))


def test_dots_are_refused():
    with pytest.raises(ValueError, match="written in full"):
        read_imports(with_line("region.read", "from ..target import plan"))


def test_the_map_is_that_of_the_package():
    """If not, ``make map`` draws it."""
    assert PICTURE.read_text() == draw_map(SOURCES)


def test_the_map_shows_a_new_module_and_a_new_arrow():
    picture = draw_map(SOURCES)
    assert "newcomer" in draw_map(with_line("chain.newcomer", ""))
    more = draw_map(with_line("graph.text", "import pymc_rollback.kernels.run"))
    assert more.count('class="arrow"') == picture.count('class="arrow"') + 1


def test_files_in_the_guide_exist():
    files = set(re.findall(r"`([\w/]+\.py)`", GUIDE))
    assert len(files) > 20
    tops = (ROOT, PACKAGE)
    assert [name for name in files if not any((top / name).exists() for top in tops)] == []


def test_classes_in_the_guide_are_where_it_says():
    rows = re.findall(r"^\| `(\w+)` \| `([\w/]+\.py)` \|", GUIDE, re.MULTILINE)
    assert len(rows) == 28
    for name, file in rows:
        nodes = ast.parse((PACKAGE / file).read_text()).body
        assert name in {node.name for node in nodes if isinstance(node, ast.ClassDef)}, file


def test_functions_in_the_guide_exist():
    """Words in backticks that look like our names, with or without a file beside them."""
    sources = "\n".join(SOURCES.values())
    answers = GUIDE[GUIDE.index("### Where do I add a kind") : GUIDE.index("## Rules")]
    names = {name for name in re.findall(r"`(\w+)`", answers) if not name.startswith("test_")}
    assert len(names) > 20
    assert {name for name in names if not re.search(rf"\b{name}\b", sources)} == set()
