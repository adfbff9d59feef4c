"""The notebooks, unexecuted: their form, their Python, and the names of the package in them."""

import ast
import re
from pathlib import Path

import pytest

import pymc_rollback as rb

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.md"))

pytestmark = pytest.mark.newest


def cells(notebook):
    """The code of a notebook, without the options of its cells."""
    found = re.findall(r"^```\{code-cell\}\n(.*?)^```$", notebook.read_text(), re.S | re.M)
    return [re.sub(r"^:.*\n", "", cell, flags=re.M) for cell in found]


def names_of_package(code):
    """Names that are taken from the package: ``rb.name``."""
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Attribute)]
    return {n.attr for n in nodes if isinstance(n.value, ast.Name) and n.value.id == "rb"}


def test_there_are_ten():
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{i:02}" for i in range(1, 11)]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(notebook):
    text, code = notebook.read_text(), cells(notebook)
    assert "format_name: myst" in text and "name: python3" in text
    assert len(code) == text.count("```{code-cell}")
    assert len(re.findall(r"^# ", text.split("```{code-cell}")[0], re.M)) == 1
    for cell in code:
        compile(cell, notebook.name, "exec")
    used = names_of_package("\n".join(code))
    assert used and used <= set(rb.__all__)


def test_a_private_name_is_seen():
    assert names_of_package("rb.sample(rb.prepare.read_plan)") - set(rb.__all__) == {"prepare"}
