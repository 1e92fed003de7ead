"""``llms.txt`` and ``llms-full.txt``: the site for programs that read text, see llmstxt.org."""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def first_sentence(doctree: nodes.document) -> str:
    """Returns the first sentence of a page's text, without the title."""
    for paragraph in doctree.findall(nodes.paragraph):
        inside = paragraph.parent
        while inside is not None and not isinstance(inside, nodes.table | nodes.admonition):
            inside = inside.parent
        if inside is None and (text := " ".join(paragraph.astext().split())):
            return re.split(r"(?<=[.!?]) ", text)[0].rstrip(":")
    return ""


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes both files beside the pages: titles with first sentences, and all text."""
    if error or app.builder.name != "html":
        return
    env, out = app.env, Path(app.outdir)
    summary = app.config.html_context["summary"]
    short, full = [f"# {app.config.project}\n\n> {summary}\n"], []
    sections: dict[str, list[str]] = {}
    for name in ordered(env.toctree_includes, app.config.root_doc):
        doctree = env.get_doctree(name)
        title, url = env.titles[name].astext(), f"{app.config.html_baseurl}{name}.html"
        sentence = first_sentence(doctree)
        section = (
            "Reference"
            if name.startswith("reference/")
            else "Commands"
            if name.startswith("command-line/")
            else "Pages"
        )
        sections.setdefault(section, []).append(f"- [{title}]({url})" + (f": {sentence}" if sentence else ""))
        source = Path(env.doc2path(name))
        text = source.read_text() if source.suffix == ".md" else doctree.astext()
        full.append(f"<!-- {url} -->\n\n{text.strip()}\n")
    short += [f"## {section}\n\n" + "\n".join(lines) + "\n" for section, lines in sections.items()]
    (out / "llms.txt").write_text("\n".join(short))
    (out / "llms-full.txt").write_text("\n\n".join(full))


def ordered(includes: dict[str, list[str]], root: str) -> list[str]:
    """Returns the pages in the order of the navigation, each once."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in found:
            found[name] = None
            for child in includes.get(name, ()):
                visit(child)

    visit(root)
    return list(found)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
