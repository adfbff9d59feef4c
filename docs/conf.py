"""How Sphinx builds the site: ``make docs``."""

import hashlib
import re
import shutil
from pathlib import Path

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import pymc_rollback

HERE = Path(__file__).parent
ROOT = HERE.parent
NOTEBOOKS = ROOT / "examples" / "notebooks"


def copy_notebooks():
    """Put the notebooks among the sources, where Sphinx wants all pages to be."""
    shutil.rmtree(HERE / "notebooks", ignore_errors=True)
    if list(NOTEBOOKS.glob("*.md")):
        shutil.copytree(NOTEBOOKS, HERE / "notebooks")


def leave_out_empty_list(_, page, text):
    """Leave out the list of notebooks while there are none: Sphinx warns of an empty one."""
    if page == "gallery" and not (HERE / "notebooks").exists():
        text[0] = text[0].split("```{toctree}")[0]


def version_of_sources():
    """A name for the state of the package, by which outputs of its pages are kept."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "pymc_rollback").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


copy_notebooks()

project = "pymc_rollback"
author = "pymc_rollback developers"
copyright = author
version = release = pymc_rollback.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["**/.ipynb_checkpoints"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

# a page is run again when it or the package has changed
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "outputs" / version_of_sources())
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

autodoc_typehints = "none"
autosummary_generate = False
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_title = "pymc_rollback"
html_show_sourcelink = False
# pages without sections beside them
html_sidebars = {page: [] for page in ("install", "ten_minutes", "api", "when_not")}
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}


def as_mathml(node, display):
    """A formula as MathML, which browsers draw without a script from elsewhere.

    They leave no space about the name of a function.
    """
    space = '<mspace width="0.167em" />'
    formula = convert(node.astext(), display=display)
    return re.sub(r"<mi>[a-z]{2,}</mi>", rf"{space}\g<0>{space}", formula)


def write_inline_formula(writer, node):
    writer.body.append(as_mathml(node, "inline"))
    raise SkipNode


def write_formula(writer, node):
    writer.body.append(f'<div class="formula">{as_mathml(node, "block")}</div>')
    raise SkipNode


def setup(app):
    app.connect("source-read", leave_out_empty_list)
    app.add_html_math_renderer("mathml", (write_inline_formula, None), (write_formula, None))
