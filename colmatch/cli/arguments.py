"""The objects that arguments name: options, a schema, subscriptions, an index, events.

Commands import this module when they run, since it imports everything heavy.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, cast

import click
import pyarrow as pa

from colmatch import rules
from colmatch.betree.domains import Domains
from colmatch.betree.events import event_batches, nullable
from colmatch.cli.files import Input, read_table, reading
from colmatch.cli.places import File, find_files, name_file_in_errors, open_file
from colmatch.cli.shell import say
from colmatch.errors import ColmatchError, OptionError, SubscriptionError, show_value
from colmatch.events.required import RequiredColumns
from colmatch.events.special.clock import Clock, clock_of
from colmatch.given.declared import parse_schema
from colmatch.given.options import MissingColumns, Options, value_of_text
from colmatch.kinds.plan import AutoSettings, index, settings_of
from colmatch.kinds.registry import KINDS, IndexName
from colmatch.kinds.settings import Settings, describe_allowed
from colmatch.matcher import Matcher
from colmatch.matching.range_worker import RangeNames, check_ranges
from colmatch.matching.subset import Subset
from colmatch.rules.convert import ConvertedRules
from colmatch.subscriptions.table import PredicateTable

Now = dt.datetime | float | Clock | None


def read_options(pairs: Sequence[str]) -> Options:
    """Reads options from ``NAME=VALUE`` pairs."""
    options = {field.name: field for field in fields(Options)}
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in options:
            raise click.BadParameter(
                f"{pair!r} should be NAME=VALUE with a name out of {', '.join(options)}", param_hint="'--option'"
            )
        values[name] = value_of_text(value.strip(), options[name].default)
    return Options(**values)


def read_index(kind: str, pairs: Sequence[str]) -> Settings:
    """Reads a kind of index, with settings from ``NAME=VALUE`` pairs."""
    kind_settings = settings_of(kind)
    texts = dict(map(_setting, pairs))
    try:
        return index(cast(IndexName, kind), **{name: kind_settings.parse(name, text) for name, text in texts.items()})
    except OptionError as error:
        raise click.BadParameter(str(error), param_hint="'--set'") from None


def read_indexes(kinds: Sequence[str], pairs: Sequence[str]) -> list[Settings]:
    """Reads several kinds. A setting applies to each kind that has it."""
    names = [{field.name for field in fields(settings_of(kind))} for kind in kinds]
    for pair in pairs:
        if not any(_setting(pair)[0] in own for own in names):
            read_index(kinds[0], [pair])  # raises an error that lists the settings
    return [
        read_index(kind, [pair for pair in pairs if _setting(pair)[0] in own])
        for kind, own in zip(kinds, names, strict=True)
    ]


def _setting(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise click.BadParameter(f"{pair!r} should be NAME=VALUE, see `colmatch kinds`", param_hint="'--set'")
    return name.strip().replace("-", "_"), value.strip()


def read_event_weights(given: Sequence[str]) -> str | dict[str, str | float] | None:
    """Reads the weights of events: a column, or ``ATTRIBUTE=COLUMN`` and ``ATTRIBUTE=NUMBER``."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    sources: dict[str, str | float] = {}
    for one in given:
        name, equals, source = one.rpartition("=")  # an attribute may contain the sign: attrs['a=b']
        if not equals or not source.strip() or name.strip() in sources:
            raise click.BadParameter(
                f"{one!r} should be ATTRIBUTE=COLUMN or ATTRIBUTE=NUMBER, once for each attribute; or one column of maps",
                param_hint="'--event-weights'",
            )
        number = re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", source)
        sources[name.strip()] = float(source) if number else source.strip()
    return sources


def describe_kinds() -> Iterator[str]:
    """Yields lines that describe each kind of index and its settings."""
    for kind, of in kinds_as_dict().items():
        yield f"{kind}: {of['about']}"
        for name, setting in of["settings"].items():
            yield f"  {name}={setting['default']} ({setting['allowed']}): {setting['meaning']}"


def kinds_as_dict() -> dict[str, Any]:
    """Returns the purpose of each kind of index, and its settings by name."""
    return {
        kind: {
            "about": settings_of(kind).about,
            "settings": {
                field.name: {
                    "default": field.default,
                    "allowed": describe_allowed(field),
                    "meaning": field.metadata["meaning"],
                }
                for field in fields(settings_of(kind))
            },
        }
        for kind in [*KINDS, AutoSettings.kind]
    }


def schema_of(path: str) -> pa.Schema:
    """Returns the columns of a file of rows."""
    with reading(path) as rows:
        return rows.schema


def schema_from(text: str) -> pa.Schema:
    """Reads a schema from a file, or from the text itself."""
    if not os.path.exists(text):
        if len(text.split()) > 1 or ":" in text:
            return parse_schema(text)
        raise ColmatchError(f"{text}: no such file, and not a schema like 'age bigint, city string' either")
    if os.path.splitext(text)[1].lower() in (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".arrows"):
        return schema_of(text)
    if os.path.splitext(text)[1].lower() in (".csv", ".tsv", ".jsonl", ".ndjson"):
        raise ColmatchError(f"{text}: rows of a text say no types; --like {text} finds them")
    with name_file_in_errors(text), open(text, encoding="utf-8") as file:
        return parse_schema(file.read())


def read_schema(like: str | None, text: str | None, domains: str | None) -> pa.Schema | Domains:
    """Reads a file of domains of the be-tree library, or the columns of a file and of a text.

    A column of the text takes precedence over a column of the file of rows.
    """
    if domains is not None:
        with name_file_in_errors(domains), open(domains, encoding="utf-8") as file:
            return Domains(file.read())
    columns = {} if like is None else {field.name: field for field in schema_of(like)}
    if text is not None:
        columns |= {field.name: field for field in schema_from(text)}
    return pa.schema(columns.values())


def _weights(text: str) -> list[tuple[str, float]] | None:
    weights = json.loads(text)
    return None if weights is None else [(name, float(weight)) for name, weight in weights.items()]


def _tags(text: str) -> Any:
    if not text.lstrip().startswith("["):
        return [text] if text else None
    tags = json.loads(text)
    pa.array([tags], pa.list_(pa.string()))
    return tags


# Columns that may be texts: what they are, a function that reads one, the type, and an example.
_READ: tuple[tuple[str, Callable[[str], Any], pa.DataType, str], ...] = (
    ("weights", _weights, pa.map_(pa.string(), pa.float64()), '{"price": 2, "dest": 0.5}'),
    ("tags", _tags, pa.list_(pa.string()), '["tenant-7", "vip"]'),
)


def _convert_json(path: str, table: pa.Table, tags: str) -> pa.Table:
    """Returns a table with its columns of weights and tags converted, if they are text."""
    for name, (noun, read, type, example) in zip(("weights", tags), _READ, strict=True):
        place = table.schema.get_field_index(name)
        if place < 0 or not pa.types.is_string(table.schema.field(place).type):
            continue
        rows: list[Any] = []
        for number, text in enumerate(table.column(place).to_pylist()):
            try:
                rows.append(None if text is None else read(text))
            except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, pa.ArrowException) as error:
                message = f"{show_value(text)} are no {noun}, write them as JSON: {example}"
                raise ColmatchError(f"{path}, row {number + 1} after the header: {message}") from error
        table = table.set_column(place, name, pa.array(rows, type))
    return table


# Formats of rules, each with the function that reads it, and its argument for what rules refer to
RULES: dict[str, tuple[Callable[..., ConvertedRules], str]] = {
    "json-rules": (rules.from_json_rules, "conditions"),
    "jsonlogic": (rules.from_jsonlogic, ""),
    "growthbook": (rules.from_growthbook, "groups"),
    "flagd": (rules.from_flagd, ""),
}


def read_rules(
    paths: Sequence[str], language: str, schema: pa.Schema | Domains, named: str | None, errors: str
) -> ConvertedRules:
    """Reads a file of rules, or with ``-`` standard input.

    named : path of the named conditions or groups that rules refer to

    Raises
    ------
    OSError : a file cannot be opened
    ColmatchError : there are several files, or a rule is invalid; the message begins with the path
    """
    read, refers = RULES[language]
    files = find_files(paths, "jsonl")
    if len(files) > 1:
        raise SubscriptionError(f"rules come in one file, and {len(files)} are named")
    given: dict[str, Any] = {} if language == "json-rules" else {"schema": schema}
    if named is not None:
        if not refers:
            with_names = " and ".join(name for name, (_, refers) in RULES.items() if refers)
            raise click.UsageError(f"--named goes with --language sql, {with_names}")
        with name_file_in_errors(named), open(named, "rb") as file:
            given[refers] = file.read()
    with name_file_in_errors(files[0].shown), open_file(files[0]) as file:
        converted = read(file, errors=errors, **given)
    if converted.disabled:
        some = ", ".join(map(str, converted.disabled[:10])) + (", ..." if len(converted.disabled) > 10 else "")
        say(f"note: {len(converted.disabled):,} flags are disabled, so they have no rules: {some}")
    return converted


def read_definitions(path: str) -> Any:
    """Reads a file with a JSON object of definitions.

    Raises OSError: the file cannot be opened. Raises ColmatchError: it is no JSON.
    """
    with name_file_in_errors(path), open(path, "rb") as file:
        try:
            return json.load(file)
        except (ValueError, RecursionError) as error:
            raise ColmatchError(f"definitions are a JSON object of texts: {error}") from None


def read_subscriptions(
    paths: Sequence[str],
    format: str | None,
    ids: str | None,
    id: str | None = None,
    expression: str | None = None,
    tags: str | None = None,
) -> pa.Table | PredicateTable:
    """Reads files of expressions, or of predicates, for ``Matcher.build``.

    id, expression, tags : names of these columns in the files, as ``build`` takes them
    """
    id, expression, tags = id or "id", expression or "expression", tags or "tags"
    types = {expression: pa.string()}
    if ids:
        types[id] = pa.type_for_alias(ids)
    tables = []
    for path in paths:  # in CSV all tags are texts, even if they look like numbers
        tables.append(_convert_json(path, read_table(path, format, types=types, texts=[tags]), tags))
    predicates = [{"attribute", "op"} <= set(table.column_names) for table in tables]
    if all(predicates):
        return PredicateTable(
            *(table.drop_columns(["expression"]) if "expression" in table.column_names else table for table in tables)
        )
    for path, table, is_predicates in zip(paths, tables, predicates, strict=True):
        if is_predicates:
            raise ColmatchError(f"{path} has one row a predicate and another file has expressions: build them apart")
        for option, name in (("id", id), ("expression", expression)):
            if name not in table.column_names:
                needed = "id and expression are needed, or id, attribute, op and operands"
                raise ColmatchError(
                    f"{path}: there is no column {name!r} ({needed}) among {', '.join(table.column_names)}; "
                    f"--{option} NAME of `colmatch build` and `colmatch check` takes another column for it"
                )
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")


def read_ranges(texts: Sequence[str]) -> RangeNames | None:
    """Reads attributes that are ranges, each ``NAME=LOW,HIGH``, for ``Matcher.match``."""
    ranges: dict[str, tuple[str, str]] = {}
    for text in texts:
        name, equals, ends = text.partition("=")
        low, comma, high = (end.strip() for end in ends.partition(","))
        if not equals or not comma or not low or not high or "," in high:
            raise click.BadParameter(f"{text!r} should be NAME=LOW,HIGH, two columns", param_hint="'--range'")
        if name.strip() in ranges:
            raise click.BadParameter(f"{name.strip()!r} is there twice", param_hint="'--range'")
        ranges[name.strip()] = low, high
    return ranges or None


def read_subset(matcher: Matcher, ids: str | None, tags: Sequence[str]) -> Subset | None:
    """Reads the subscriptions to match among: ids, or @ and a file with ids; and tags."""
    if ids is None:
        return matcher.subset(tags=tags) if tags else None
    return matcher.subset(read_ids(matcher, ids), list(tags) if tags else None)


def read_ids(matcher: Matcher, ids: str) -> Any:
    """Reads ids of subscriptions: a list, or @ and a file with ids."""
    type = matcher.ids.type
    if ids.startswith("@"):
        table = read_table(ids[1:], types={"id": type})
        if "id" not in table.column_names:
            raise ColmatchError(f"{ids[1:]}: there is no column 'id' among {', '.join(table.column_names)}")
        return table.column("id")
    listed = [text.strip() for text in ids.split(",") if text.strip()]
    if pa.types.is_string(type):
        return listed
    for text in listed:
        if not re.fullmatch(r"[+-]?\d{1,19}", text):
            raise click.BadParameter(f"{text!r} is no id: those of this index are numbers", param_hint="'--ids'")
    return list(map(int, listed))


def read_now(text: str | None) -> dt.datetime | float | None:
    """Reads a time: seconds, or a date and time in ISO 8601."""
    if text is None:
        return None
    for read in (int, float, dt.datetime.fromisoformat):
        try:
            return read(text.strip())
        except ValueError:
            pass
    raise click.BadParameter(
        f"{text!r} should be seconds since 1970, or a time such as 2026-11-23T10:00:00+01:00", param_hint="'--now'"
    )


def open_matcher(path: str, missing_columns: MissingColumns | None = None) -> Matcher:
    """Opens a saved matcher.

    missing_columns : new value of the option of that name, or None to leave it
    """
    if not os.path.exists(path):
        raise FileNotFoundError(2, "no such index", path)
    matcher = Matcher.open(path)
    if missing_columns is not None:
        matcher.options = replace(matcher.options, missing_columns=missing_columns)
    return matcher


@contextmanager
def reading_events(
    matcher: Matcher,
    paths: Sequence[str],
    format: str | None,
    kept: Sequence[str],
    nulls: Sequence[str],
    whole: bool = True,
    weights: Mapping[str, pa.DataType] | None = None,
    ranges: RangeNames | None = None,
    now: Now = None,
) -> Iterator[Input]:
    """Opens the needed columns of files of events, in the types that the matcher was built with.

    whole : all columns that the expressions use must be there
    weights : name -> type of further columns
    now : time of the clocks; their columns need not be there
    """
    files = find_files(paths, format) if matcher.language == "betree" else []
    if files and all(file.kind == "jsonl" for file in files):
        columns = nullable(matcher.schema.arrow)
        rows = Input(columns, _betree_batches(files, matcher.schema.arrow), None, columns.names)
        yield _set_clocks(matcher, rows, now)
        return
    used = matcher.columns_with(ranges, now)
    types, needed = _add_range_ends(matcher, ranges)
    clocks = set(matcher.columns_with(ranges)) - set(used)
    needed = [path for path in needed if path[0] not in clocks]
    for name, type in (weights or {}).items():
        types = types if name in types.names else types.append(pa.field(name, type))
    read_names = [*used, *kept, *(weights or {})]
    may_lack = whole and matcher.options.missing_columns == "null"
    required = {} if may_lack else dict.fromkeys(needed, "--missing-columns null takes it to be NULL")
    required |= dict.fromkeys(((name,) for name in weights or {}), "--event-weights names it")
    with reading(
        paths, format, schema=types, columns=read_names, required=required, strict=whole, nulls=["", *nulls]
    ) as rows:
        folded = {name.lower() for name in rows.schema.names}
        absent = [name for name in used if name.lower() not in folded]
        if absent and whole:
            say(
                f"note: {' '.join(paths)} has no column {', '.join(map(repr, absent))}, which the expressions "
                f"{'use' if ranges is None else 'or ranges use'}: NULL throughout"
            )
        yield _set_clocks(matcher, rows, now)


def _betree_batches(files: Sequence[File], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for file in files:
        with name_file_in_errors(file.shown), open_file(file) as source:
            yield from event_batches(source, schema)


def clock_for(matcher: Matcher, now: Now) -> Clock:
    """Returns the clock of a command, one for all of its batches."""
    return clock_of(now, matcher.schema, matcher.options.timezone)


def _set_clocks(matcher: Matcher, rows: Input, now: Now) -> Input:
    """Returns events with clocks that show a time."""
    clock = clock_of(now, matcher.schema, matcher.options.timezone)
    every = matcher.columns_with()
    names = [name for name in every if name not in matcher.columns_with(now=now)]
    if not names:
        return rows
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in rows.schema], schema=rows.schema)
    schema = clock.add_to(nothing, names).schema
    return rows._replace(schema=schema, batches=(clock.add_to(batch, names) for batch in rows.batches))


class Lacking:
    """The number of events that lack a required value, and so match nothing."""

    def __init__(self, matcher: Matcher, ranges: RangeNames | None) -> None:
        self._required = RequiredColumns(matcher.schema, check_ranges(ranges, matcher.schema))
        self._rows = 0
        self._columns: dict[str, int] = {}

    def look(self, batch: pa.RecordBatch) -> None:
        """Counts such events in a batch."""
        lacks = self._required.lacks(batch, lenient=True)
        if lacks is not None:
            self._rows += int(lacks.row.sum())
            for name, rows in lacks.columns.items():
                self._columns[name] = self._columns.get(name, 0) + int(rows.sum())

    def say(self) -> None:
        """Prints the number of such events, if there are any."""
        if self._rows:
            columns = ", ".join(f"{name!r} ({rows:,})" for name, rows in self._columns.items())
            number = "1 event matches" if self._rows == 1 else f"{self._rows:,} events match"
            say(f"note: {number} nothing, lacking what must be defined: {columns}")


def _add_range_ends(matcher: Matcher, ranges: RangeNames | None) -> tuple[pa.Schema, list[tuple[str, ...]]]:
    """Returns the types of events, with the ends of ranges as columns, and the required paths."""
    types, required = matcher.schema.arrow, matcher.paths
    for range in check_ranges(ranges, matcher.schema):
        if range.path not in required:
            continue  # no expression uses it
        required.remove(range.path)
        for name in (range.low, range.high):
            required.append(tuple(name.split(".")))
            if "." not in name and name not in types.names:
                types = types.append(pa.field(name, matcher.schema.column(range.path).arrow))
    return types, required
