"""``colmatch build``: an index of the expressions in a file, saved."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from colmatch.cli.options import (
    expression_option,
    format_option,
    id_column_option,
    index_option,
    set_option,
    tags_column_option,
)
from colmatch.cli.shell import say
from colmatch.errors import ColmatchError

if TYPE_CHECKING:
    from colmatch.errors import Rejected
    from colmatch.given.language import LanguageName, Missing
    from colmatch.subscriptions.intake import Errors


@click.command()
@click.argument("subs", nargs=-1, required=True)
@click.option("-o", "--output", "index_path", required=True, metavar="INDEX", help="Where to save the index.")
@click.option(
    "--schema",
    "schema_text",
    metavar="SCHEMA",
    help='Columns of the events: "age:int64, city:string", or a file that says so.',
)
@click.option(
    "--like",
    metavar="EVENTS",
    help="Take the columns of the events from this file; those of --schema are added, or count before.",
)
@click.option(
    "--language",
    type=click.Choice(["sql", "betree", "json-rules", "jsonlogic", "growthbook", "flagd"]),
    default="sql",
    show_default=True,
    help="The language of the expressions: the WHERE of Spark SQL, that of the be-tree library, or rules of "
    "json-rules-engine, JSONLogic, GrowthBook or flagd.",
)
@click.option(
    "--named",
    metavar="FILE",
    help="JSON that rules refer to by name: definitions {name: condition}, with --language json-rules conditions, "
    "with growthbook saved groups.",
)
@click.option(
    "--domains",
    metavar="FILE",
    help="With --language betree: the columns of the events, one a line, name|type|allow_undefined[|min|max].",
)
@click.option(
    "--missing",
    type=click.Choice(["unknown", "false"]),
    help="What is said of a missing value; by default unknown, with --language betree false.",
)
@index_option
@set_option
@click.option(
    "--errors", type=click.Choice(["raise", "collect"]), help="Stop at a bad expression, or leave it out and go on."
)
@click.option(
    "--rejected", "rejected_path", metavar="FILE", help="Write bad expressions here; implies --errors collect."
)
@click.option(
    "--max-rejected",
    metavar="N",
    help="With bad expressions left out: how many may be, or which share (0.01). By default all but one.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A tunable, as in --option batch_rows=4096. Repeatable.",
)
@click.option(
    "--ids", type=click.Choice(["int64", "string"]), help="CSV: type of the ids; by default what they look like."
)
@id_column_option
@expression_option
@tags_column_option
@format_option("--format", "SUBS")
def build(
    subs: tuple[str, ...],
    index_path: str,
    schema_text: str | None,
    like: str | None,
    kind: str,
    settings: tuple[str, ...],
    errors: str | None,
    rejected_path: str | None,
    max_rejected: str | None,
    options: tuple[str, ...],
    ids: str | None,
    id_column: str | None,
    expression: str | None,
    tags_column: str | None,
    format: str | None,
    language: LanguageName | Literal["json-rules", "jsonlogic", "growthbook", "flagd"],
    named: str | None,
    domains: str | None,
    missing: Missing | None,
) -> None:
    """Build an index of the expressions in SUBS and save it.

    SUBS has the columns id and expression, or those of --id and --expression. Or it has one row a
    predicate, in the columns id, attribute, op and operands. Several such files may be given, one
    for each type of operands. The columns weights and priority are for --top. Weights are a map, in
    CSV a JSON object such as {"price": 2}. With --language json-rules, jsonlogic or growthbook,
    SUBS is JSON: a list of rules, or one rule a line; with flagd it is an object with flags.

    \b
    colmatch build alerts.csv --schema "dest:string, dep_delay:double" -o alerts.cm
    colmatch build rules.tsv --language betree --domains domains.txt -o rules.cm
    colmatch build rules.json --language json-rules --like events.jsonl -o rules.cm
    """
    from colmatch import Matcher
    from colmatch.cli.arguments import (
        RULES,
        read_definitions,
        read_index,
        read_options,
        read_rules,
        read_schema,
        read_subscriptions,
    )
    from colmatch.subscriptions.intake import read_errors

    if domains is not None and language != "betree":
        raise click.UsageError("--domains goes with --language betree")
    if (domains is None) == (schema_text is None and like is None):
        more = "; or --domains, without them" if language == "betree" else ""
        raise click.UsageError(f"say what columns the events have: --schema or --like, or both{more}")
    if rejected_path and errors == "raise":
        raise click.UsageError("--rejected needs --errors collect")
    error_mode: Errors = "collect" if rejected_path or errors == "collect" else "raise"
    limit = read_errors(error_mode, None if max_rejected is None else _number(max_rejected), is_whole=True)
    bad: list[Rejected] = []
    define = None
    chosen, index = read_options(options), read_index(kind, settings)
    schema = read_schema(like, schema_text, domains)
    if rejected_path:
        from colmatch.cli.places import format_of

        format_of(rejected_path)  # an unknown extension is an error before the work, not after it
    if named and language == "betree":
        raise click.UsageError("--named goes with --language sql, json-rules and growthbook")
    if language in RULES:
        if ids or format or id_column or expression or tags_column:
            raise click.UsageError(
                f"--id, --expression, --tags, --ids and --format do not go with --language {language}"
            )
        expressions: Any = read_rules(subs, language, schema, named, error_mode)
        bad = expressions.rejected
    else:
        expressions = read_subscriptions(subs, format, ids, id_column, expression, tags_column)
        define = read_definitions(named) if named else None
    matcher = Matcher.build(
        expressions,
        schema,
        index=index,
        options=chosen,
        errors=error_mode,
        language="betree" if language == "betree" else "sql",  # as conditions of rules are
        missing=missing,
        define=define,
        id=id_column,
        expression=expression,
        tags=tags_column,
        progress=sys.stderr.isatty(),
        max_rejected=None if limit == "raise" else 1.0,  # the limit counts rules that are no conditions, too
    )
    bad = [*bad, *matcher.rejected]
    is_good = limit == "raise" or limit.allows(len(bad), len(matcher) + len(bad))
    if is_good:
        matcher.save(index_path)
    if rejected_path:
        _write_rejected(rejected_path, bad)
    else:
        for one in bad[:10]:
            place = f" (line {one.position[0]}, column {one.position[1]})" if one.position else ""
            say(f"rejected {one.id!r}: {' '.join(one.message.split())}{place}")
        if len(bad) > 10:
            say(f"and {len(bad) - 10:,} more; --rejected FILE keeps them all")
    if not is_good and not len(matcher):
        raise ColmatchError(f"no subscription is left: all {len(bad):,} were rejected, and nothing is saved")
    if not is_good:
        raise ColmatchError(
            f"{len(bad):,} were rejected, more than --max-rejected {max_rejected}, and nothing is saved"
        )
    left_out = f", {len(bad):,} rejected" if bad else ""
    say(f"{len(matcher):,} subscriptions{left_out}, index {matcher.index}, saved as {index_path}")


def _number(text: str) -> int | float:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a number nor a share", param_hint="'--max-rejected'") from None


def _write_rejected(path: str, bad: Sequence[Rejected]) -> None:
    import pyarrow as pa

    from colmatch.cli.writing import writing

    ids = [one.id for one in bad]
    if not all(isinstance(id, int) for id in ids):
        ids = list(map(str, ids))  # ids of rules may be numbers and texts together
    batch = pa.record_batch(
        {
            "id": pa.array(ids) if ids else pa.array([], pa.int64()),
            "line": pa.array([one.position[0] if one.position else None for one in bad], pa.int64()),
            "column": pa.array([one.position[1] if one.position else None for one in bad], pa.int64()),
            "message": pa.array([one.message for one in bad], pa.string()),
        }
    )
    with writing(path, batch.schema) as writer:
        writer.write_batch(batch)
