"""Pages of the functions in the table of ``colmatch/expr/functions.py``, one for each."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from colmatch.expr.functions import COLUMNS, OURS, TABLE, Function


def page(function: Function) -> str:
    """Returns a page, with an example that runs."""
    schema, expression = {name: COLUMNS[name] for name in function.row}, f"{function.call} {function.test}"
    row = repr(function.row)
    imports = ["import datetime\n"] if "datetime." in row else []
    program = [
        *imports, "import colmatch as cm", "",
        f"matcher = cm.Matcher.build({{1: {expression!r}}}, {schema!r})", f"print(matcher.match_one({row}))",
    ]  # fmt: skip
    names = " and ".join([f"`{name}`" for name in function.synonyms])
    plural = len(function.synonyms) > 1
    synonyms = f"{'Other names are' if plural else 'Another name is'} {names}.\n" if names else ""
    words = f"{function.about}\n{synonyms}"
    if not function.value:
        words += f"\n{function.nulls}"
    if function.ansi:
        words += f"\nIt is refused in ANSI mode, where {function.ansi}."
    if function.fails:
        words += "\nA value that cannot be computed is an error in ANSI mode."
    words += (
        "\nOther dialects have no such function."
        if function.source == OURS
        else f"\nThe meaning is that of {function.source}."
    )
    parts = [
        function.name,
        "=" * len(function.name),
        "",
        f"``{function.signature}``",
        "",
        words.replace("`", "``"),
        "",
        ".. code-block:: python",
        "",
        *[f"   {line}" for line in program],
        "",
        ".. code-block:: text",
        "",
        "   [1]",
        "",
    ]
    return "\n".join(parts)


def write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "reference" / "generated" / "functions"
    folder.mkdir(parents=True, exist_ok=True)
    for name, function in TABLE.items():
        (folder / f"{name}.rst").write_text(page(function))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
