"""The examples of Spark's own documentation, as conditions on an event.

``DESCRIBE FUNCTION EXTENDED`` shows examples such as ``> SELECT pmod(10, 3);`` with the answer
``1``. Literals of an example become columns of an event, and its answer is compared with the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from test_differential_computed import numbered

import colmatch as cm

ZONE = "America/Los_Angeles"  # in which Spark checks its documentation
# Functions of many rows, or that make rows
OF_ROWS = ("agg_funcs", "window_funcs", "generator_funcs", "table_funcs")
CHANGING = [
    "random",
    "randn",
    "rand",
    "uniform",
    "randstr",
    "uuid",
    "monotonically_increasing_id",
    "spark_partition_id",
]
OUTSIDE = [
    "reflect",
    "java_method",
    "try_reflect",
    "input_file_name",
    "input_file_block_start",
    "input_file_block_length",
]
TYPES = re.compile(
    r"tinyint|smallint|int|bigint|float|double|decimal\(.*|string|boolean|date|timestamp|timestamp_ntz|binary"
)
_LITERAL = re.compile(
    r"""(?P<kept>\bTIME\s*'[^']*' | \bINTERVAL\s+-?'[^']*'(\s+\w+(\s+TO\s+\w+)?)? | \bINTERVAL(\s+-?\d+\s+[a-z]+)+
      | \bAS\s+\w+(\([\d, ]+\))?)
    | (?P<nested>\b(array|map|named_struct)\s*\()
    | (?P<null>\bNULL\b)
    | (?P<literal>(\b(DATE|TIMESTAMP|TIMESTAMP_NTZ|TIMESTAMP_LTZ|X)\s*)?r?('(?:''|\\.|[^'\\])*' | "(?:\\.|[^"\\])*")
      | (?<![\w.])\d+(\.\d+)?([eE]-?\d+)?(L|S|Y|F|D|BD)?\b | \b(true|false)\b)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)  # fmt: skip


class Example(NamedTuple):
    """An example that Spark answers as it is written.

    Attributes
    ----------
    value : the answer
    type : its type
    """

    text: str
    value: Any
    type: str


def documented(spark: Any) -> dict[str, list[tuple[str, str]]]:
    """The examples of all functions of a row, each with its answer as a text."""
    infos = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    return {
        info.getName(): list(_examples(info.getExamples()))
        for info in infos
        if info.getGroup() not in OF_ROWS and info.getName() not in (*CHANGING, *OUTSIDE)
    }


def _examples(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\s*> ", text, flags=re.MULTILINE)[1:]:
        query, end, answer = re.match(r"(.*?)(;[ \t]*(?:\n|\Z)|\Z)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        select = re.match(r"SELECT\s+(.*)", query.strip(), re.DOTALL | re.IGNORECASE)
        if select and end and not re.search(r"\bFROM\s+(\(?VALUES|range)\b|\bLATERAL\b", select[1], re.IGNORECASE):
            yield " ".join(select[1].split("\n")), answer.strip()


def answered(spark: Any, functions: dict[str, list[tuple[str, str]]]) -> dict[str, list[Example]]:
    """The functions with examples that Spark answers as documented, by a value of a simple type."""
    texts = list(dict.fromkeys(text for examples in functions.values() for text, _ in examples))
    found: dict[str, tuple[str, Example]] = {}

    def ask(some: list[str]) -> None:
        try:
            frame = spark.sql("SELECT " + ", ".join(f"({text}) AS v{i}" for i, text in enumerate(some)))
            types = [field.dataType.simpleString() for field in frame.schema.fields]
            plain = [i for i, type in enumerate(types) if TYPES.fullmatch(type)]
            shown = frame.selectExpr(
                *(f"CAST(v{i} AS STRING) AS s{i}" for i in plain), *(f"v{i}" for i in plain)
            ).toArrow()
        except (PySparkException, Py4JError):
            if len(some) > 1:
                ask(some[: len(some) // 2])
                ask(some[len(some) // 2 :])
            return
        for i in plain:
            example = Example(some[i], shown[f"v{i}"][0].as_py(), types[i])
            found[some[i]] = str(shown[f"s{i}"][0].as_py() or ("NULL" if example.value is None else "")), example

    for at in range(0, len(texts), 40):
        ask(texts[at : at + 40])
    usable = {
        name: [found[text][1] for text, answer in examples if text in found and found[text][0].strip() == answer]
        for name, examples in functions.items()
    }
    return {name: examples for name, examples in usable.items() if examples}


def literals(spark: Any, examples: dict[str, list[Example]]) -> dict[str, pa.Array]:
    """The values of all literals of examples and of their answers, as Spark types them."""
    some = {
        one for each in examples.values() for example in each for part in pieces(example.text)[1::2] for one in part
    }
    some |= {literal(e.value, e.type) for each in examples.values() for e in each if e.value is not None}
    found: dict[str, pa.Array] = {}

    def ask(texts: list[str]) -> None:
        try:
            table = spark.sql("SELECT " + ", ".join(f"{text} AS v{i}" for i, text in enumerate(texts))).toArrow()
        except (PySparkException, Py4JError):
            if len(texts) > 1:
                ask(texts[: len(texts) // 2])
                ask(texts[len(texts) // 2 :])
            return
        columns = table.combine_chunks().columns
        found.update((text, column) for text, column in zip(texts, columns) if not pa.types.is_null(column.type))

    texts = sorted(some)
    for at in range(0, len(texts), 100):
        ask(texts[at : at + 100])
    return found


def pieces(text: str) -> list[str | list[str]]:
    """An expression in pieces, each of which is a text, or what may stand in a column: in turn."""
    found: list[str | list[str]] = [""]
    at = 0
    while match := _LITERAL.search(text, at):
        end = match.end()
        if match["nested"]:
            end = _closing(text, end)
            if end is None or "->" in text[match.start() : end]:
                end, match = match.end(), None
        if match is None or match["kept"]:
            found[-1] += text[at:end]
        else:
            piece = text[match.start() : end]
            casts = [f"CAST(NULL AS {type})" for type in ("STRING", "INT", "BOOLEAN")]
            found[-1] += text[at : match.start()]
            found += [[piece, *(casts if match["null"] else [piece])], ""]
        at = end
    found[-1] += text[at:]
    return found


def _closing(text: str, at: int) -> Any:
    depth = 1
    for match in re.compile(r"'(?:\\.|[^'\\])*'|[()]").finditer(text, at):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if not depth:
            return match.end()
    return None


def literal(value: Any, type: str) -> str:
    """A value as a literal of Spark SQL."""
    if type in ("double", "float"):
        return (
            f"CAST('{value}' AS {type})"
            if value != value or abs(value) == float("inf")
            else f"{value!r}{type[0].upper()}"
        )
    if type == "bigint":
        return f"{value}L"
    if type in ("date", "timestamp", "timestamp_ntz"):
        return f"{type.upper()} '{value.replace(tzinfo=None) if type == 'timestamp' else value}'"
    if type == "binary":
        return f"X'{value.hex()}'"
    if type.startswith("decimal"):
        return f"{value:f}" + "BD" * ("." not in f"{value:f}")
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" if type == "string" else str(value).lower()


def conditions(text: str, example: Example) -> list[str]:
    """What is asked about an expression."""
    if example.type == "boolean":
        return [f"({text})", f"NOT ({text})", f"({text}) IS NULL"]
    if example.value is None:
        return [f"({text}) IS NULL", f"({text}) IS NOT NULL"]
    answer = literal(example.value, example.type)
    return [f"({text}) IS NULL", f"({text}) = {answer}", f"({text}) <=> {answer}", f"({text}) <> {answer}"]


class Question(NamedTuple):
    """An example whose literals stand in columns, where colmatch takes columns.

    Attributes
    ----------
    columns : of an event, by name, each a literal
    texts : conditions on them; empty if colmatch refuses the example
    refusal : why it does
    """

    example: Example
    columns: dict[str, str]
    texts: list[str]
    refusal: str


def question(example: Example, types: dict[str, pa.DataType], options: cm.Options) -> Question:
    """Puts as many literals of an example into columns as colmatch takes there.

    types : of the literals
    """
    names = {literal: f"c{i}" for i, literal in enumerate(types)}
    parts = pieces(example.text)
    answer = literal(example.value, example.type) if example.value is not None else ""
    written = [part if isinstance(part, str) else part[0] for part in parts]
    refusal = ""

    def taken(texts: list[str], columns: list[str]) -> bool:
        nonlocal refusal
        schema = pa.schema([(names[literal], types[literal]) for literal in columns])
        try:
            for text in texts:
                cm.Matcher.build({0: text}, schema, options=options)
        except cm.ColmatchError as error:
            refusal = str(error)
            return False
        return True

    columns: dict[int, str] = {}
    for at in range(1, len(parts), 2):
        for one in dict.fromkeys(parts[at]):
            if one not in types:
                continue
            trial = [names[one] if i == at else text for i, text in enumerate(written)]
            if taken(conditions("".join(trial), example)[:1], [*columns.values(), one]):
                written, columns[at] = trial, one
                break
    text = "".join(written)
    texts = conditions(text, example)
    if not columns and answer in types:  # a constant: its answer stands in a column
        columns[0] = answer
        texts = [f"({text}) = {names[answer]}", f"({text}) <=> {names[answer]}"]
    is_taken = taken(texts, list(columns.values()))
    return Question(
        example, {names[one]: one for one in columns.values()}, texts if is_taken else [], "" if is_taken else refusal
    )


def truths(spark: Any, events: pa.Table, conditions: list[str]) -> dict[str, list[bool]]:
    """Whether each condition is true for each event, as Spark says."""
    frame = numbered(spark, events)
    found: dict[str, list[bool]] = {}
    for at in range(0, len(conditions), 120):
        some = conditions[at : at + 120]
        answer = frame.selectExpr("nr", *(f"{text} AS a{i}" for i, text in enumerate(some))).toArrow().sort_by("nr")
        found |= {text: [value is True for value in answer[f"a{i}"].to_pylist()] for i, text in enumerate(some)}
    return found
