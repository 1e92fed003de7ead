"""Subscriptions of the documents that are not conjunctions of numbers: CNF and DNF (OpIndex,
figure 13), prefixes (figure 14).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import colmatch as cm

Rng = np.random.Generator
FORMS = 1000  # expressions that differ in more than their literals; the parser reads each once
LETTERS = np.array(list("etaoinsrhldcumfpgwybvkxjqz"))
WORDS = 20_000


class Made(NamedTuple):
    """What one point of a sweep is measured on. ``settings`` are for ``cm.index``."""

    subscriptions: Any
    schema: Any
    events: pa.Table
    settings: dict[str, Any]


def clauses(count: int, most: int, form: str, rows: int, attributes: int = 100, cardinality: int = 100) -> Made:
    """``count`` expressions of 1 to ``most`` clauses of 1 to 3 predicates; form : ``"cnf"`` or
    ``"dnf"``.

    Predicates are ``=``, ``<=`` and ``>=`` in equal shares, attributes of an expression all differ,
    and events have 30 pairs.
    """
    rng = np.random.default_rng((count, most, form == "cnf"))
    sizes = [rng.integers(1, 4, rng.integers(1, most + 1)) for _ in range(min(FORMS, count))]
    settings = {"dnf_budget": 1} if form == "cnf" else {"dnf_budget": 2 * most}
    return _made(rng, count, sizes, form, rows, attributes, cardinality, settings)


def products(
    count: int, size: int, alternatives: int, rows: int, attributes: int = 100, cardinality: int = 100
) -> Made:
    """``count`` expressions of ``size`` clauses of so many alternatives each, as ``clauses`` has
    them.
    """
    rng = np.random.default_rng((count, size, alternatives))
    sizes = [np.full(size, alternatives)] * min(FORMS, count)
    return _made(rng, count, sizes, "cnf", rows, attributes, cardinality, {})


def _made(
    rng: Rng, count: int, sizes: list[Any], form: str, rows: int, attributes: int, cardinality: int, settings: Any
) -> Made:
    forms = [_form(rng, size, form, attributes) for size in sizes]
    texts = []
    for i in range(count):
        text, literals = forms[i % len(forms)]
        texts.append((i, text.format(*rng.integers(0, cardinality, literals))))
    columns = {f"a{i}": rng.integers(0, cardinality, rows) for i in range(attributes)}
    return Made(texts, dict.fromkeys(columns, "int64"), _present(rng, columns, 30, pa.int64()), settings)


def _form(rng: Rng, sizes: Any, form: str, attributes: int) -> tuple[str, int]:
    """An expression with ``{}`` for literals, and how many there are."""
    names = iter(rng.permutation(attributes)[: sizes.sum()])
    inner, outer = (" OR ", " AND ") if form == "cnf" else (" AND ", " OR ")
    parts = [inner.join(f"a{next(names)} {rng.choice(['=', '<=', '>='])} {{}}" for _ in range(size)) for size in sizes]
    return outer.join(f"({part})" for part in parts), int(sizes.sum())


def prefixes(count: int, share: float, length: int, rows: int, attributes: int = 100) -> Made:
    """``count`` conjunctions of 1 to 3 predicates on words.

    A share of these are prefixes of so many letters, the others equalities.
    """
    rng = np.random.default_rng((count, int(1000 * share), length))
    weight = 1 / np.arange(2, len(LETTERS) + 2)
    drawn = rng.choice(LETTERS, (WORDS, 9), p=weight / weight.sum())
    words = np.array(["".join(letters[: rng.integers(3, 10)]) for letters in drawn])
    sizes = rng.integers(1, 4, count)
    ids = np.repeat(np.arange(count), sizes)
    attribute = np.concatenate([rng.permutation(attributes)[:size] for size in sizes])
    prefix = rng.random(len(ids)) < share
    operand = words[rng.integers(0, WORDS, len(ids))]
    operand = np.where(prefix, operand.astype(f"<U{length}"), operand)
    table = pa.table({
        "id": ids,
        "attribute": pa.DictionaryArray.from_arrays(attribute.astype(np.int32), [f"a{i}" for i in range(attributes)]),
        "op": pa.DictionaryArray.from_arrays(prefix.astype(np.int32), ["=", "startswith"]),
        "operands": pa.ListArray.from_arrays(np.arange(len(ids) + 1, dtype=np.int32), pa.array(operand, pa.string())),
    })  # fmt: skip
    columns = {f"a{i}": words[rng.integers(0, WORDS, rows)] for i in range(attributes)}
    return Made(cm.PredicateTable(table), dict.fromkeys(columns, "string"), _present(rng, columns, 30, pa.string()), {})


def _present(rng: Rng, columns: dict[str, Any], pairs: int, kind: pa.DataType) -> pa.Table:
    """Events that have so many of the columns each."""
    rows = len(next(iter(columns.values())))
    absent = np.argsort(rng.random((rows, len(columns))), axis=1) >= pairs
    return pa.table(
        {name: pa.array(column, kind, mask=absent[:, i]) for i, (name, column) in enumerate(columns.items())}
    )
