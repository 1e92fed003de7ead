"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

FORMATS = ["parquet", "arrow", "arrows", "csv", "jsonl"]  # colmatch.cli.places.FORMATS, without importing pyarrow
_F = TypeVar("_F", bound=Callable[..., Any])


def format_option(name: str, whose: str) -> Callable[[_F], _F]:
    """Makes an option that names the format of a file."""
    return click.option(
        name, type=click.Choice([*FORMATS, "tsv"]), help=f"Format of {whose}; by default what its extension says."
    )


out_format_option = click.option(
    "--out-format",
    type=click.Choice(["table", *FORMATS]),
    help="Format of OUT; by default what its extension says. Of standard output: table on a terminal, which shows "
    "some rows, else csv, or jsonl for lists.",
)


def _kinds(_: click.Context, option: click.Parameter, begun: str) -> list[str]:
    from colmatch.kinds.registry import KINDS

    return [kind for kind in ("auto", *KINDS) if kind.startswith(begun)]


index_option = click.option(
    "--index",
    "kind",
    default="auto",
    show_default=True,
    metavar="KIND",
    shell_complete=_kinds,
    help="Kind of index, see `colmatch kinds`.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the kind of index, see `colmatch kinds`. Repeatable.",
)
missing_option = click.option(
    "--missing-columns",
    type=click.Choice(["error", "null"]),
    help="What it means that EVENTS lacks a column that expressions use; by default what INDEX was built with. "
    "Of JSON lines it is known behind the last line.",
)
now_option = click.option(
    "--now",
    metavar="TIME",
    help="What time it is for special functions: seconds since 1970, or a time such as 2026-11-23T10:00:00+01:00. "
    "Their clocks need no columns then.",
)
null_option = click.option(
    "--null", "nulls", multiple=True, metavar="TEXT", help="CSV: a text that means NULL, as an empty field does."
)
id_column_option = click.option(
    "--id", "id_column", metavar="NAME", help="The column of rules that has the ids, by default id."
)
expression_option = click.option(
    "--expression", metavar="NAME", help="The column of rules that has the expressions, by default expression."
)
tags_column_option = click.option(
    "--tags", "tags_column", metavar="NAME", help="The column of rules that has the tags, by default tags."
)
ids_option = click.option(
    "--ids", metavar="IDS", help="Only among these subscriptions: 3,7,12, or @FILE for the column id of a file."
)
tag_option = click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="Only among those with any of these. Repeatable."
)
