"""The site: Sphinx builds it from the pages in this folder and from docstrings."""

import sys
import tomllib
from pathlib import Path
from urllib.parse import urlparse

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS / "_ext")]

from colmatch import __version__  # noqa: E402  # of this checkout

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
URLS = PROJECT.get("urls", {})
REPOSITORY = URLS.get("Repository", "https://github.com/colmatch/colmatch")

project = "colmatch"
author = "the colmatch developers"
copyright = author
version = release = __version__
html_baseurl = URLS.get("Documentation", "https://colmatch.readthedocs.io").rstrip("/") + "/en/latest/"

extensions = [
    "myst_parser",
    "numpydoc",
    "notfound.extension",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_sitemap",
    "pages",
    "docstrings",
    "llms",
    "values",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown", ".markdown": "markdown"}
exclude_patterns = ["_*"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    # Types that annotations name and users do not: a signature shows them without a link.
    (r"py:.*", r"colmatch\.(?!(betree|columns|duckdb|polars|rules|spark)\.)\w+\..*"),
    (r"py:.*", r"colmatch\.\w+\.\w+\..*"),
    # Aliases that only type checkers evaluate, and classes of libraries without an inventory.
    (r"py:.*", r"Sink|MatchArguments|Events|RangeNames|Among|ColumnMode|Score|Chart|SomeIds|SomeTags|Time"),
    (r"py:.*", r"Axes|DuckDBPyConnection|colmatch\.(columns\.Best|polars\.Frame)"),
    (r"py:.*", r"numpy\._typing\..*"),  # the inside of NDArray
]

# Pages

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

smartquotes = False  # two dashes before an option are two dashes
highlight_language = "none"
copybutton_selector = "div:not(.answer) > div.highlight > pre"

# Reference

autosummary_generate = True
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# The inventory in this folder stands in where the real one cannot be fetched: it has the names that
# our docstrings use, in Sphinx's first format, which is plain text.
intersphinx_timeout = 10
intersphinx_mapping = {
    name: (url, (None, f"inventories/{name}.inv"))
    for name, url in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "pyarrow": "https://arrow.apache.org/docs/",
        "pandas": "https://pandas.pydata.org/docs/",
        "polars": "https://docs.pola.rs/api/python/stable/",
        "pyspark": "https://spark.apache.org/docs/latest/api/python/",
    }.items()
}

linkcheck_timeout = 10
linkcheck_workers = 4
linkcheck_anchors_ignore_for_url = [r"https://github\.com/.*"]
# Files of the repository are looked for by tests/test_documents.py, and pages by the build.
linkcheck_ignore = [f"{REPOSITORY}/.*", f"{html_baseurl}.*"]

# Looks

html_theme = "pydata_sphinx_theme"
html_title = "colmatch"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["colmatch.css"]
html_copy_source = False
html_context = {
    "summary": PROJECT["description"] + ".",
    "github_user": REPOSITORY.rstrip("/").split("/")[-2],
    "github_repo": REPOSITORY.rstrip("/").split("/")[-1],
    "github_version": "main",
    "doc_path": "docs",
}
html_theme_options = {
    "logo": {"text": "colmatch", "alt_text": "colmatch"},
    "github_url": REPOSITORY,
    "header_links_before_dropdown": 6,
    "use_edit_page_button": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "switcher": {"json_url": f"{html_baseurl}_static/versions.json", "version_match": version},
    "check_switcher": False,  # the list is that of the site as it stands on the net
    "footer_start": ["copyright", "version-switcher"],
    "footer_end": ["sphinx-version", "theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": {"**": ["page-toc", "edit-this-page"], "index": []},
}
html_sidebars = {"index": [], "start": [], "changelog": []}
sitemap_url_scheme = "{link}"
sitemap_excludes = ["404.html", "genindex.html", "search.html"]
notfound_urls_prefix = urlparse(html_baseurl).path


def setup(app: Sphinx) -> None:
    for name in ("csv", "tsv", "jsonl"):  # files that pages show, in languages that Pygments has not
        app.add_lexer(name, TextLexer)
