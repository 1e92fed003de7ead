"""Engines that read rules as texts, each in the quickest form that we found.

Each is a system as ``rivals`` describes. ``PEERS`` has all of them, with what they do a batch at a
time and one event at a time. Rules are ANDs and ORs of comparisons, ``BETWEEN`` and ``IN``, and no
value is NULL: whatever else there is raises NotImplementedError.
"""

from __future__ import annotations

import functools
import json
import operator
import re
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, compress, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks import rivals
from benchmarks.conjunctions import Events
from benchmarks.rivals import joined
from benchmarks.systems import Match, Pairs, Part, System
from benchmarks.workloads import Workload

LOOPED = 1.0  # seconds of the processor that a loop over events may take
FEWEST = 4  # events of such a loop
COLUMNS = 100  # rules of a query; with more, each takes longer
LISTED = 1000  # rules of an expression or a function
PROGRAM = 400  # rules of a program of CEL in C++, which has 100,000 characters at most

Find = Callable[[dict[str, Any]], list[int]]
Rules = list[tuple[int, str]]


# What is written otherwise than in SQL


class Dialect(NamedTuple):
    """How a condition is written; ``AND`` and ``OR`` between conditions are words of it."""

    column: str
    between: str  # {0} column, {1} least, {2} greatest value
    member: str  # {0} column, {1} values with commas
    both: str
    either: str
    compared: str = "{0} {1} {2}"  # column, operator, value
    literal: Callable[[str], str] = str


PYTHON = Dialect("{}", "{1} <= {0} <= {2}", "{0} in {{{1}}}", " and ", " or ")
PYTHON_EVENT = PYTHON._replace(column="e['{}']")
RULE_ENGINE = Dialect("{}", "{0} >= {1} and {0} <= {2}", "{0} in [{1}]", " and ", " or ")
ZEN = RULE_ENGINE
ZEN_CELL = ZEN._replace(between="[{1}..{2}]", member="{1}", compared="{1} {2}")  # of a table, below its column
CEL = Dialect("{}", "{0} >= {1} && {0} <= {2}", "{0} in [{1}]", " && ", " || ")
ARRAYS = Dialect("{}", "(({0} >= {1}) & ({0} <= {2}))", "isin({0}, [{1}])", " & ", " | ", "({0} {1} {2})")
NUMPY = ARRAYS._replace(column="f('{}')", between="(((x := {0}) >= {1}) & (x <= {2}))")
CONDITION = re.compile(
    r"(?P<column>[a-z_]\w*) (?:BETWEEN (?P<low>\S+) AND (?P<high>[^\s)]+)|IN \((?P<members>[^)]*)\)"
    r"|(?P<op>=|<>|<=|>=|<|>) (?P<value>'[^'\\]*'|-?[\d.]+))"
)


def condition(found: re.Match[str], dialect: Dialect) -> str:
    column, literal = dialect.column.format(found["column"]), dialect.literal
    if found["low"]:
        return dialect.between.format(column, literal(found["low"]), literal(found["high"]))
    if found["members"]:
        return dialect.member.format(column, ", ".join(map(literal, found["members"].split(", "))))
    op = {"=": "==", "<>": "!="}.get(found["op"], found["op"])
    return dialect.compared.format(column, op, literal(found["value"]))


def clauses(workload: Workload) -> Iterator[tuple[int, list[str]]]:
    """Yields each subscription and the texts whose AND it is.

    Raises
    ------
    NotImplementedError : there is no text, or more in it than conditions, or an event has a NULL
    """
    if isinstance(workload.subscriptions, pa.Table):
        raise NotImplementedError("there are no texts")
    if any(column.null_count for column in workload.events.columns):
        raise NotImplementedError("NULL in the events")
    for sub, text in workload.subscriptions:
        hidden = CONDITION.sub(lambda found: "\0" * len(found[0]), text)
        if not re.fullmatch(r"(\0+|AND|OR|[ ()])*", hidden):
            raise NotImplementedError(f"the text {text}")
        parts, depth, start = [], 0, 0
        for piece in re.finditer(r"[()]| AND ", hidden):
            depth += {"(": 1, ")": -1}.get(piece[0], 0)
            if not depth and piece[0] == " AND ":
                parts.append(text[start : piece.start()])
                start = piece.end()
        # an OR at the top is one clause
        yield sub, [text] if re.search(r" OR (?![^(]*\))", hidden) else [*parts, text[start:]]


def words(clause: str, dialect: Dialect) -> str:
    """A clause in another language."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(condition(found, dialect))
        return "\0"

    rest = CONDITION.sub(keep, clause).replace(" AND ", dialect.both).replace(" OR ", dialect.either)
    return re.sub("\0", lambda _: kept.pop(0), rest)


def texts(workload: Workload, dialect: Dialect) -> Rules:
    """Each subscription and its text in another language."""
    return [(sub, dialect.both.join(words(part, dialect) for part in parts)) for sub, parts in clauses(workload)]


def pieces(some: Rules, size: int) -> Iterator[tuple[list[int], list[str]]]:
    """Subscriptions and their texts, so many at a time."""
    for start in range(0, len(some), size):
        subs, few = zip(*some[start : start + size])
        yield list(subs), list(few)


# One event after the other


def one_by_one(find: Find) -> Callable[[Events], Match]:
    """A loop over events as dicts, of so many as take a second."""

    def ready(events: Events) -> Match:
        dicts = events.table.to_pylist()
        find(dicts[0])
        began = time.process_time()
        find(dicts[-1])
        rows = min(len(dicts), max(FEWEST, int(LOOPED / (time.process_time() - began + 1e-9))))

        def run() -> Pairs:
            found = [find(event) for event in dicts[:rows]]
            sizes = [len(subs) for subs in found]
            return Pairs(np.repeat(np.arange(rows), sizes), np.fromiter(chain.from_iterable(found), np.int64))

        return Part(run, rows)

    return ready


def colmatch_one(workload: Workload) -> Callable[[Events], Match]:
    """``Matcher.match_one`` of each event."""
    return one_by_one(rivals.matcher(workload).match_one)


def python_lambdas(workload: Workload) -> Callable[[Events], Match]:
    """A lambda for each rule, ``lambda e: e["price"] <= 10 and ...``, of which each is called."""
    tests = [(sub, eval(f"lambda e: {text}")) for sub, text in texts(workload, PYTHON_EVENT)]
    return one_by_one(lambda event: [sub for sub, test in tests if test(event)])


def python_function(workload: Workload) -> Callable[[Events], Match]:
    """A function with an ``if`` for each rule, whose arguments are the columns."""
    names = ", ".join(workload.events.column_names)
    made: list[Callable[..., list[int]]] = []
    for some in pieces(texts(workload, PYTHON), LISTED):
        lines = "".join(f"    if {text}: found.append({sub})\n" for sub, text in zip(*some))
        scope: dict[str, Any] = {}
        exec(f"def find({names}):\n    found = []\n{lines}    return found", scope)
        made.append(scope["find"])
    return one_by_one(lambda event: list(chain.from_iterable(find(**event) for find in made)))


def rule_engine_rules(workload: Workload) -> Callable[[Events], Match]:
    """A ``Rule`` for each rule, whose ``matches`` is called; with types it takes longer."""
    from rule_engine import Rule

    tests = [(sub, Rule(text).matches) for sub, text in texts(workload, RULE_ENGINE)]
    return one_by_one(lambda event: [sub for sub, test in tests if test(event)])


def zen_expressions(workload: Workload) -> Callable[[Events], Match]:
    """Compiled expressions, each a list of rules; one for each rule takes twenty times as long."""
    import zen

    lists = [(subs, zen.compile_expression(listed(few))) for subs, few in pieces(texts(workload, ZEN), LISTED)]
    return one_by_one(lambda event: [sub for subs, known in lists for sub in compress(subs, known.evaluate(event))])


def zen_table(workload: Workload) -> Callable[[Events], Match]:
    """A decision table that collects: a row for each rule, a cell for each column, one for ORs."""
    import zen

    names = [*workload.events.column_names, ""]
    rows = []
    for sub, parts in clauses(workload):
        cells: dict[str, list[str]] = {}
        for part in parts:
            found = CONDITION.fullmatch(part)
            cells.setdefault(found["column"] if found else "", []).append(words(part, ZEN_CELL if found else ZEN))
        cell = {f"in {name}": ZEN.both.join(conditions) for name, conditions in cells.items()}
        rows.append({"_id": f"{sub}", "out": f"{sub}", **cell})
    table = {
        "hitPolicy": "collect",
        "inputs": [{"id": f"in {name}", "name": name} | ({"field": name} if name else {}) for name in names],
        "outputs": [{"id": "out", "name": "out", "field": "out"}],
        "rules": rows,
    }
    kinds = ("inputNode", "decisionTableNode", "outputNode")
    nodes = [{"id": kind, "name": kind, "type": kind, "content": table} for kind in kinds]
    edges = [{"id": a, "sourceId": a, "targetId": b, "type": "edge"} for a, b in pairwise(kinds)]
    decision = zen.ZenEngine().create_decision(json.dumps({"nodes": nodes, "edges": edges}))
    return one_by_one(lambda event: [row["out"] for row in decision.evaluate(event)["result"]])


def cel_cpp(workload: Workload) -> Callable[[Events], Match]:
    """Typed programs, each a list of rules, on one ``Activation``; a program a rule is slower."""
    from cel_expr_python import cel

    kinds = {pa.string(): cel.Type.STRING, pa.int64(): cel.Type.INT, pa.float64(): cel.Type.DOUBLE}
    env = cel.NewEnv(variables={field.name: kinds[field.type] for field in workload.events.schema})
    lists = [(subs, env.compile(listed(few))) for subs, few in pieces(texts(workload, CEL), PROGRAM)]

    def find(event: dict[str, Any]) -> list[int]:
        given = env.Activation(event)
        return [sub for subs, program in lists for sub in compress(subs, program.eval(given).plain_value())]

    return one_by_one(find)


def cel_rust(workload: Workload) -> Callable[[Events], Match]:
    """A compiled program for each rule, all on one ``Context``; lists of rules take as long."""
    import cel

    programs = [(sub, cel.compile(text)) for sub, text in texts(workload, CEL)]

    def find(event: dict[str, Any]) -> list[int]:
        given = cel.Context(event)
        return [sub for sub, program in programs if program.execute(given)]

    return one_by_one(find)


def listed(few: list[str]) -> str:
    return f"[{', '.join(few)}]"


# A batch of events at a time


def marked(blocks: Iterable[tuple[list[int], Iterable[Any]]]) -> Pairs:
    """Subscriptions and a Boolean array for each -> pairs."""
    return joined([(sub, np.flatnonzero(mask)) for subs, masks in blocks for sub, mask in zip(subs, masks)])


def arrays(workload: Workload, column: Callable[[str], Any], isin: Callable[..., Any]) -> Iterator[Any]:
    """Subscriptions and their expressions of polars or the like, so many at a time."""
    known = {name: column(name) for name in workload.events.column_names}
    for subs, few in pieces(texts(workload, ARRAYS), COLUMNS):
        yield subs, [eval(text, {"isin": isin}, known) for text in few]


def pyarrow_projection(workload: Workload) -> Callable[[Events], Match]:
    """A scanner of the table, whose columns are a hundred rules."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    blocks = [
        (subs, {str(i): rule for i, rule in enumerate(rules)})
        for subs, rules in arrays(workload, pc.field, lambda column, few: column.isin(few))
    ]

    def ready(events: Events) -> Match:
        source = ds.dataset(events.table)

        def scanned(columns: Any) -> Any:
            return source.scanner(columns=columns, batch_size=len(events), use_threads=False).to_table().columns

        return lambda: marked((subs, scanned(columns)) for subs, columns in blocks)

    return ready


def polars_columns(workload: Workload) -> Callable[[Events], Match]:
    """``select`` with a hundred rules as columns; a filter for each takes twice as long."""
    import polars as pl

    blocks = [
        (subs, [rule.alias(str(i)) for i, rule in enumerate(rules)])
        for subs, rules in arrays(workload, pl.col, lambda column, few: column.is_in(few))
    ]

    def ready(events: Events) -> Match:
        frame: Any = pl.from_arrow(events.table)
        return lambda: marked((subs, frame.select(rules).iter_columns()) for subs, rules in blocks)

    return ready


def datafusion_columns(workload: Workload) -> Callable[[Events], Match]:
    """``select`` with a hundred rules as columns; SQL and UNION ALL take longer."""
    from datafusion import SessionConfig, SessionContext, col, functions, lit

    context = SessionContext(SessionConfig().with_target_partitions(1))
    blocks = [
        (subs, [rule.alias(f"c{i}") for i, rule in enumerate(rules)])
        for subs, rules in arrays(
            workload, col, lambda column, few: functions.in_list(column, [lit(one) for one in few])
        )
    ]

    def ready(events: Events) -> Match:
        def run() -> Pairs:
            frame = context.from_arrow(events.table)
            return marked((subs, frame.select(*rules).to_arrow_table().columns) for subs, rules in blocks)

        return run

    return ready


def numpy_texts(workload: Workload) -> Callable[[Events], Match]:
    """The first condition of a rule on all rows, the others on those left; texts are numbers."""
    codes: dict[str, int] = {}

    def literal(text: str) -> str:
        return str(codes.setdefault(text, len(codes))) if text[0] == "'" else text

    dialect = NUMPY._replace(literal=literal)
    rules = [
        (sub, [eval(f"lambda f: {words(part, dialect)}", {"isin": isin}) for part in parts])
        for sub, parts in clauses(workload)
    ]

    def ready(events: Events) -> Match:
        columns = {
            name: np.array([codes.get(f"'{text}'", -1) for text in column.to_pylist()])
            if pa.types.is_string(column.type)
            else column.to_numpy()
            for name, column in zip(events.table.column_names, events.table.columns)
        }

        def rows_of(first: Any, rest: Any) -> Any:
            rows = np.flatnonzero(first(columns.get))
            for test in rest:
                if not len(rows):
                    break
                rows = rows[test(lambda name, rows=rows: columns[name][rows])]
            return rows

        return lambda: joined([(sub, rows_of(first, rest)) for sub, (first, *rest) in rules])

    return ready


def isin(column: Any, few: list[Any]) -> Any:
    """``np.isin``, which takes longer for so few."""
    return functools.reduce(operator.or_, [column == one for one in few])


class Peer(NamedTuple):
    title: str
    package: str  # on the index of packages, whose version is told
    batch: System | None
    single: System | None  # the same as ``batch`` where that is a loop


def loop(title: str, package: str, system: System) -> Peer:
    return Peer(title, package, system, system)


PEERS = {
    "colmatch": Peer("colmatch", "colmatch", rivals.colmatch, colmatch_one),
    "numpy": Peer("NumPy, first conditions first", "numpy", numpy_texts, None),
    "polars": Peer("polars, rules as columns", "polars", polars_columns, None),
    "pyarrow": Peer("pyarrow, rules as columns", "pyarrow", pyarrow_projection, None),
    "duckdb": Peer("DuckDB, prepared queries", "duckdb", rivals.duckdb_queries, None),
    "datafusion": Peer("DataFusion, rules as columns", "datafusion", datafusion_columns, None),
    "function": loop("Python, one function of ifs", "", python_function),
    "lambdas": loop("Python, a lambda a rule", "", python_lambdas),
    "zen": loop("ZEN, lists of rules", "zen-engine", zen_expressions),
    "zen-table": loop("ZEN, a decision table", "zen-engine", zen_table),
    "cel-cpp": loop("CEL in C++, lists of rules", "cel-expr-python", cel_cpp),
    "cel-rust": loop("CEL in Rust, a program a rule", "common-expression-language", cel_rust),
    "rule-engine": loop("rule-engine, a Rule a rule", "rule-engine", rule_engine_rules),
}
