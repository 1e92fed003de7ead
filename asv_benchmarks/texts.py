"""Processor time to read large texts, by shape and size.

    python asv_benchmarks/texts.py --bytes 1048576

Each shape is built at the given size and at half of it, in turns. The ratio of both says how time
grows: 2 where it grows as the text does, 4 where it grows as the square.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import count

import pyarrow as pa
from benchmarks.measure import machine, versions

import colmatch as cm

SCHEMA = {"a": "int64", "f": "float64", "s": "string", "tags": pa.list_(pa.int64())} | {
    f"a{i}": "int64" for i in range(100)
}
SCHEMA["m"] = pa.map_(pa.string(), pa.int64())
DOMAINS = [
    "a|integer|true",
    "f|float|true",
    "s|string|true",
    "tags|integer list|true",
    *(f"a{i}|integer|true" for i in range(100)),
]


def joined(piece: Callable[[int], str], size: int, between: str) -> str:
    """Joins as many pieces as fit into so many bytes."""
    pieces: list[str] = []
    for i in count():
        some = piece(i)
        size -= len(some) + len(between)
        if size < 0:
            break
        pieces.append(some)
    return between.join(pieces or [piece(0)])


def quoted(size: int, text: str = "x{}") -> str:
    """Returns strings with numbers in them, with commas between."""
    return joined(lambda i: f"'{text.format(i)}'", size, ", ")


SQL: dict[str, Callable[[int], str]] = {
    "AND of one condition": lambda size: joined(lambda _: "a = 1", size, " AND "),
    "OR of conditions": lambda size: joined(lambda i: f"a{i % 100} = {i}", size, " OR "),
    "AND of ORs": lambda size: joined(lambda i: f"(a{i % 100} = {i} OR a{(i + 1) % 100} > {i})", size, " AND "),
    "OR of ANDs": lambda size: joined(lambda i: f"a{i % 100} = {i} AND a{(i + 1) % 100} > {i}", size, " OR "),
    "one in parentheses": lambda size: f"({joined(lambda _: 'a = 1', size - 2, ' AND ')})",
    "NOT of conditions": lambda size: joined(lambda i: f"NOT (a{i % 100} = {i})", size, " AND "),
    "BETWEEN": lambda size: joined(lambda i: f"a BETWEEN {i} AND {i + 9}", size, " OR "),
    "IS TRUE": lambda size: joined(lambda i: f"(a = {i}) IS TRUE", size, " OR "),
    "list of numbers": lambda size: f"a IN ({joined(str, size - 8, ', ')})",
    "list with NULL": lambda size: f"a IN (NULL, {joined(str, size - 14, ', ')})",
    "list of strings": lambda size: f"s IN ({quoted(size - 8)})",
    "list of escapes": lambda size: "s IN (" + quoted(size - 8, "\\'{}") + ")",
    "list of kinds": lambda size: f"f IN (1.5, {joined(str, size - 13, ', ')})",
    "contains_all": lambda size: f"contains_all(tags, {joined(str, size - 20, ', ')})",
    "arrays_overlap": lambda size: f"arrays_overlap(tags, array({joined(str, size - 29, ', ')}))",
    "concat": lambda size: f"concat({joined(lambda _: 's', size - 14, ', ')}) = 'x'",
    "concat of texts": lambda size: f"concat(s, {quoted(size - 17)}) = 'x'",
    "sum": lambda size: f"{joined(lambda _: 'a', size - 4, ' + ')} > 1",
    "sum of numbers": lambda size: f"a + {joined(str, size - 8, ' + ')} > 1",
    "computed values": lambda size: joined(lambda i: f"a + {i % 100} > {i}", size, " OR "),
    "coalesce": lambda size: f"coalesce({joined(lambda i: f'a > {i}', size - 17, ', ')}, false)",
    "LIKE ANY": lambda size: f"s LIKE ANY ({quoted(size - 13, 'x{}%')})",
    "LIKE ALL": lambda size: f"s LIKE ALL ({quoted(size - 13, '%x{}%')})",
    "NOT LIKE ANY": lambda size: f"s NOT LIKE ANY ({quoted(size - 17, 'x{}%')})",
    "RLIKE": lambda size: f"s RLIKE '{joined(lambda i: f'x{i}', size - 10, '|')}'",
    "one string": lambda size: f"s = '{'x' * (size - 6)}'",
    "quotes": lambda size: "'" * size,
    "backticks": lambda size: "`" * size,
    "names in backticks": lambda size: joined(lambda _: "`a` = 1", size, " AND "),
    "opening brackets": lambda size: "a" + "[" * (size - 1),
    "brackets": lambda size: joined(lambda i: f"m['k{i}'] = {i}", size, " OR "),
    "dots": lambda size: "a" + "." * (size - 1),
    "parts of a name": lambda size: joined(lambda _: "a", size, "."),
    "backslashes": lambda size: "s = '" + "\\\\" * ((size - 6) // 2) + "'",
    "minus signs": lambda size: f"a = {'- ' * ((size - 5) // 2)}1",
    "NOTs": lambda size: "NOT " * ((size - 5) // 4) + "a = 1",
    "open parentheses": lambda size: "(" * size,
    "commas": lambda size: "a IN (1" + "," * (size - 7),
    "names": lambda size: joined(lambda _: "a", size, " "),
    "numbers": lambda size: joined(str, size, " "),
    "digits": lambda size: f"a = {'1' * (size - 4)}",
    "blanks": lambda size: f"a = 1{' ' * (size - 5)}",
    "comments": lambda size: "/* x */ " * ((size - 5) // 8) + "a = 1",
    "wrong at the end": lambda size: f"{joined(lambda _: 'a = 1', size - 10, ' AND ')} AND b = 1",
}
BETREE: dict[str, Callable[[int], str]] = {
    "be-tree, and": lambda size: joined(lambda _: "a = 1", size, " and "),
    "be-tree, or": lambda size: joined(lambda i: f"a{i % 100} = {i}", size, " or "),
    "be-tree, and of ors": lambda size: joined(
        lambda i: f"(a{i % 100} = {i} or a{(i + 1) % 100} > {i})", size, " and "
    ),
    "be-tree, not": lambda size: joined(lambda i: f"not (a = {i})", size, " and "),
    "be-tree, in": lambda size: f"a in ({joined(str, size - 8, ',')})",
    "be-tree, in, strings": lambda size: f"s in ({quoted(size - 8)})",
    "be-tree, one of": lambda size: f"tags one of ({joined(str, size - 14, ',')})",
    "be-tree, none of": lambda size: f"tags none of ({joined(str, size - 15, ',')})",
    "be-tree, all of": lambda size: f"tags all of ({joined(str, size - 14, ',')})",
    "be-tree, contains": lambda size: joined(lambda i: f'contains(s, "x{i}")', size, " or "),
    "be-tree, floats": lambda size: joined(lambda i: f"f = {i}.5", size, " or "),
    "be-tree, quotes": lambda size: '"' * size,
    "be-tree, escapes": lambda size: 's = "' + "\\\\" * ((size - 6) // 2) + '"',
    "be-tree, nots": lambda size: "not " * ((size - 5) // 4) + "a = 1",
    "be-tree, parentheses": lambda size: "(" * size,
    "be-tree, signs": lambda size: "<" * size,
}


def seconds(text: str, language: str) -> float:
    """Measures the processor time to build a matcher of a text, or to refuse it."""
    schema = SCHEMA if language == "sql" else cm.betree.Domains(DOMAINS)
    options = cm.Options(max_text_bytes=1 << 30)
    began = time.process_time()
    cm.Matcher.build({1: text}, schema, "scan", options, errors="collect", language=language)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--turns", type=int, default=3)
    size = parser.parse_args()
    print(machine(), versions())
    for language, shapes in (("sql", SQL), ("betree", BETREE)):
        seconds("a = 1", language)
        for name, make in shapes.items():
            half, whole = (
                sorted(times)[size.turns // 2]
                for times in zip(
                    *(
                        [seconds(make(size.bytes // 2), language), seconds(make(size.bytes), language)]
                        for _ in range(size.turns)
                    ),
                    strict=True,
                )
            )
            print(f"{name:22} {whole:7.2f} s   {whole / half:4.1f} times that of half the text", flush=True)


if __name__ == "__main__":
    main()
