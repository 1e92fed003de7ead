"""Docstrings with links from the names in them to their entries, and pages that lead there, too."""

import re

from docutils import nodes
from public import public_names
from sections import reshape
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.inventory import InventoryFile

LITERAL = re.compile(r"(?<![`\w:])``([A-Za-z_][\w.]*)(\([^`]*\))?``(?!`)")
# Code in the text of a page that names something public.
CALL = re.compile(r"(?:cm\.|colmatch\.)?((?:Matcher|matcher|Options|spark|betree|rules|workload)\.)?(\w+)(\(.*\))?$")

# Where the packages say that their classes live, and where their documents have them.
HOMES = {
    "pyarrow.lib.": "pyarrow.",
    "pyspark.sql.dataframe.": "pyspark.sql.",
    "pyspark.sql.session.": "pyspark.sql.",
    "pyspark.sql.observation.": "pyspark.sql.",
    "pyspark.sql.column.": "pyspark.sql.",
    "pandas.core.frame.": "pandas.",
    "pathlib._local.": "pathlib.",
    "DataFrame": "pyspark.sql.DataFrame",  # annotations that only a type checker evaluates
    "DataStreamWriter": "pyspark.sql.streaming.DataStreamWriter",
}


def linked(text: str, names: dict[str, str]) -> str:
    """Returns a line in which code that is a public name leads to its entry."""

    def link(found: re.Match[str]) -> str:
        target = names.get(found[1])
        return f":py:obj:`{found[1]}{found[2] or ''} <{target}>`" if target else found[0]

    return LITERAL.sub(link, text)


def names_of_links(app: Sphinx) -> dict[str, str]:
    """Returns the spellings that lead somewhere, each with the full name it means."""
    names: dict[str, str] = {}
    for full in public_names():
        short = full.removeprefix("colmatch.")
        names |= {full: full, short: full}
        if short.startswith("Matcher."):
            names.setdefault(short.removeprefix("Matcher."), full)
    for project, (_, (url, _)) in app.config.intersphinx_mapping.items():
        if project != "python":
            content = (app.srcdir / "inventories" / f"{project}.inv").read_bytes()
            for entries in InventoryFile.loads(content, uri=url).data.values():
                names |= {name: name for name in entries}
    return names


def read_docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    own = name.rpartition(".")[2]
    names = {short: full for short, full in app.env.colmatch_names.items() if full != name and short != own}  # type: ignore[attr-defined]
    parameters = set(getattr(getattr(obj, "__code__", None), "co_varnames", ()))
    names = {short: full for short, full in names.items() if short not in parameters}
    lines[:] = [line if line.lstrip().startswith(">>>") else linked(line, names) for line in reshape(lines)]


def gather_names(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    env.colmatch_names = names_of_links(app)  # type: ignore[attr-defined]


def find_public(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Node) -> nodes.Node | None:
    """Leads from the module that defines a name to the public name."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    public = {
        f"{value.__module__}.{value.__qualname__}": name
        for name, value in public_names().items()
        if hasattr(value, "__qualname__")
    }
    known = public.get(target)
    if known is not None:
        domain = env.get_domain("py")
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", known, node, content)  # type: ignore[arg-type]
    for home, place in HOMES.items():
        if target.startswith(home):
            node["reftarget"] = place + target.removeprefix(home)
    return None


def link_code(app: Sphinx, doctree: nodes.document) -> None:
    """Leads from code in the text of a page to the reference, for each name once a page."""
    name = app.env.docname
    if app.env.doc2path(name).suffix != ".md":
        return
    seen: set[str] = set()
    for literal in list(doctree.findall(nodes.literal)):
        found = CALL.match(literal.astext())
        if not found or not (found[1] or found[3] or re.search("[A-Z_]", found[2])):
            continue  # a word that may mean another thing
        spelled = f"{found[1] or ''}{found[2]}".replace("matcher.", "Matcher.")
        target = app.env.colmatch_names.get(spelled)  # type: ignore[attr-defined]
        inside = literal.parent
        while inside is not None and not isinstance(inside, nodes.reference | nodes.title | nodes.thead):
            inside = inside.parent
        if not target or target in seen or inside is not None or not target.startswith("colmatch."):
            continue
        seen.add(target)
        link = pending_xref("", refdomain="py", reftype="obj", reftarget=target, refdoc=name, refexplicit=True)
        literal.replace_self(link)
        link += literal


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("env-before-read-docs", gather_names)
    app.connect("autodoc-process-docstring", read_docstring, priority=100)  # before numpydoc
    app.connect("doctree-read", link_code)
    app.connect("missing-reference", find_public, priority=100)  # before intersphinx
    return {"parallel_read_safe": True, "parallel_write_safe": True}
