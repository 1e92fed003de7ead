"""Docstrings with links from the names in them to their entries, and pages that lead there, too."""

import inspect
import re

from docutils import nodes
from public_names import public_names
from sections import reshape
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.inventory import InventoryFile

LITERAL = re.compile(r"(?<![`\w:])``([A-Za-z_][\w.]*)(\([^`]*\))?``(?!`)")
# Code in the text of a page that names something public.
CALL = re.compile(
    r"(?:cm\.|colmatch\.)?((?:Matcher|matcher|Options|spark|betree|rules|columns|duckdb|polars)\.)?(\w+)(\(.*\))?$"
)

ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
SHADOWS = ("colmatch.expr.build.ColumnHandle.str",)

# Arguments of many calls that are also members of ``Matcher``.
ARGUMENTS = ("ids", "tags")

# Where the packages say that their classes live, and where their documents have them.
HOMES = {
    "pyarrow.lib.": "pyarrow.",
    "pa.": "pyarrow.",
    "polars.dataframe.frame.": "polars.",
    "polars.lazyframe.frame.": "polars.",
    "polars.expr.expr.": "polars.",
    "pyspark.sql.dataframe.": "pyspark.sql.",
    "pyspark.sql.session.": "pyspark.sql.",
    "pyspark.sql.observation.": "pyspark.sql.",
    "pyspark.sql.column.": "pyspark.sql.",
    "pandas.core.frame.": "pandas.",
    "pathlib._local.": "pathlib.",
    "DataFrame": "pyspark.sql.DataFrame",  # annotations that only a type checker evaluates
    "DataStreamWriter": "pyspark.sql.streaming.DataStreamWriter",
}


def target_of(spelled: str, home: str, names: frozenset[str]) -> str | None:
    """Returns the full name that a spelling means in the text of a class or module, if any.

    A single plain word may mean many things, so it leads to members of that home alone.
    """
    plain = spelled.islower() and "." not in spelled and "_" not in spelled
    homes = [f"{home}."] if plain else [f"{home}.", "colmatch.", ""]
    found = next((full for place in homes if (full := place + spelled) in names), None)
    return None if spelled in ARGUMENTS else found


def names_of_links(app: Sphinx) -> frozenset[str]:
    """Returns the full names that have an entry here or, but for Python's own, elsewhere."""
    names = set(public_names())
    for project, (_, (url, _)) in app.config.intersphinx_mapping.items():
        if project != "python":
            content = (app.srcdir / "inventories" / f"{project}.inv").read_bytes()
            names.update(*InventoryFile.loads(content, uri=url).data.values())
    return frozenset(names)


def read_docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Gives a docstring the form that numpydoc takes, and links."""
    home = name if inspect.isclass(obj) else name.rpartition(".")[0]
    parameters = getattr(getattr(obj, "__func__", obj), "__code__", None)
    skipped = {*getattr(parameters, "co_varnames", ()), name.rpartition(".")[2]}

    def link(found: re.Match[str]) -> str:
        target = None if found[1] in skipped else target_of(found[1], home, app.env.colmatch_names)  # type: ignore[attr-defined]
        return f":py:obj:`{found[1]}{found[2] or ''} <{target}>`" if target and target != name else found[0]

    lines[:] = [line if line.lstrip().startswith(">>>") else LITERAL.sub(link, line) for line in reshape(lines)]


def name_aliases(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Writes aliases of types as their names, where Sphinx shows a union with their ``repr``."""
    return tuple(text and ALIAS.sub(r"\1", text) for text in (signature, returns))  # type: ignore[return-value]


def forget_shadows(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Forgets members that are called as a type of Python, since its links would lead there."""
    for name in SHADOWS:
        env.get_domain("py").data["objects"].pop(name, None)
    return []


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
        if not found or "->" in literal.astext() or not (found[1] or found[3] or re.search("[A-Z_]", found[2])):
            continue  # a word that may mean another thing
        spelled = f"{found[1] or ''}{found[2]}".replace("matcher.", "Matcher.")
        home = "colmatch.spark" if name.startswith("spark") else "colmatch.Matcher"
        target = target_of(spelled, home, app.env.colmatch_names)  # type: ignore[attr-defined]
        inside = literal.parent
        while inside is not None and not isinstance(inside, pending_xref | nodes.reference | nodes.title | nodes.thead):
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
    app.connect("autodoc-process-signature", name_aliases)
    app.connect("env-updated", forget_shadows)
    app.connect("doctree-read", link_code)
    app.connect("missing-reference", find_public, priority=100)  # before intersphinx
    return {"parallel_read_safe": True, "parallel_write_safe": True}
