"""Markdown pages as GitHub shows them become pages of the site: links, children, commands.

The pages have no directives, so that they can be read anywhere. Everything that the site needs
beside their text is added here, when Sphinx reads them.
"""

import json
from pathlib import Path

from docutils import nodes
from navigation import DOCUMENTS, LISTS, children, site_links
from sphinx.application import Sphinx

COMMANDS = "command-line"


def write_commands(app: Sphinx) -> None:
    """Writes a page for each command that the command line has."""
    from colmatch.cli.commands import cli

    folder = Path(app.srcdir) / COMMANDS
    folder.mkdir(exist_ok=True)
    wanted = {}
    for name in cli.commands:
        title = f"colmatch {name}"
        wanted[f"{name}.rst"] = f".. click:: colmatch.cli.commands:{name}\n   :prog: {title}\n   :nested: full\n"
    for path in folder.glob("*.rst"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def read_page(app: Sphinx, name: str, content: list[str]) -> None:
    """Rewrites the links of a Markdown page, and adds the children of any page."""
    docs = Path(app.srcdir)
    page = Path(app.env.doc2path(name))
    below = children(docs, name)
    if page.suffix == ".rst":
        if name in LISTS:
            lines = "".join(f"   /{page}\n" for _, pages in below for page in pages)
            content[0] += f"\n\n.. toctree::\n   :maxdepth: 1\n\n{lines}"
        return
    source = next((docs.parent / document for document, at in DOCUMENTS.items() if at == name), page)
    if page.suffix == ".markdown":
        content[0] = source.read_text()
        app.env.note_dependency(str(source), docname=name)
    text = site_links(content[0], source, page, docs.parent, app.config.html_theme_options["github_url"])
    for caption, pages in below:
        lines = [":hidden:", *([f":caption: {caption.capitalize()}"] if caption else []), ""]
        text += "\n\n```{toctree}\n" + "\n".join([*lines, *(f"/{page}" for page in pages)]) + "\n```\n"
    content[0] = text


def show_examples(app: Sphinx, context: object, lines: list[str]) -> None:
    """Makes code of the examples in a command's help."""
    shaped: list[str] = []
    for line in lines:
        if line.startswith("| "):
            if not shaped or not shaped[-1].startswith("   "):
                shaped += [".. code-block:: bash", ""]
            shaped.append(f"   {line[2:]}")
        else:
            shaped.append(line)
    lines[:] = shaped


def escape_bars(app: Sphinx, context: object, lines: list[str]) -> None:
    """Keeps docutils from taking bars in the help of an option for its own."""
    lines[:] = [line.replace("|", "\\|") for line in lines]


def mark_answers(app: Sphinx, doctree: nodes.document) -> None:
    """Marks the blocks that show what the block above them prints."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") == "none":
            block["classes"].append("answer")


def name_columns(app: Sphinx, doctree: nodes.document) -> None:
    """Gives the columns that have no heading one for screen readers."""
    for head in doctree.findall(nodes.thead):
        for i, cell in enumerate(head.findall(nodes.entry)):
            if not cell.astext().strip():
                cell.children = []
                cell += nodes.paragraph(
                    "", "", nodes.inline("", "meaning" if i else "name", classes=["visually-hidden"])
                )


def hide_edit_link(app: Sphinx, name: str, template: str, context: dict[str, object], doctree: object) -> None:
    """Takes the link to the source from pages that have none in this folder."""
    page = Path(app.srcdir) / f"{name}.md"
    if not page.exists():
        context["theme_use_edit_page_button"] = False


def write_versions(app: Sphinx, error: Exception | None) -> None:
    """Writes the list of versions that readers can switch to."""
    if not error and app.builder.name == "html":
        versions = [{"version": app.config.version, "url": app.config.html_baseurl, "preferred": True}]
        (Path(app.outdir) / "_static" / "versions.json").write_text(json.dumps(versions))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_commands, priority=100)
    app.connect("source-read", read_page)
    app.connect("build-finished", write_versions)
    app.connect("doctree-read", mark_answers)
    app.connect("doctree-read", name_columns)
    app.connect("html-page-context", hide_edit_link)
    app.connect("sphinx-click-process-description", show_examples)
    app.connect("sphinx-click-process-options", escape_bars)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
