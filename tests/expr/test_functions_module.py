"""Functions of SQL as names of ``colmatch.functions``, and the names of polars in the builder."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from typing import Any

import pytest

import colmatch as cm
from colmatch import functions as F
from colmatch.expr.functions import BOOLEAN, NAMES, TABLE, VALUE


def test_each_function_is_a_name() -> None:
    assert {name.removesuffix("_") for name in dir(F)} >= {name for name, row in NAMES.items() if row.kind == VALUE}
    assert "if_" in dir(cm.functions) and cm.functions is F
    for name in dir(F):
        made = getattr(F, name)
        assert made is getattr(F, name) and made.__doc__ and made.__name__ == name.removesuffix("_")
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        F.frobnicate(cm.col("a"))


@pytest.mark.parametrize("name", dir(F))
def test_functions_of_the_table_have_signatures(name: str) -> None:
    made, row = getattr(F, name), NAMES[name.removesuffix("_")]
    assert len(inspect.signature(made).parameters) == len(row.arguments) + row.repeats
    assert row.signature in made.__doc__


def test_conditions_are_declared_for_type_checkers() -> None:
    block = inspect.getsource(F).partition("if TYPE_CHECKING:")[2].partition("\n#")[0]
    declared = set(re.findall(r"^    (\w+): Condition|import \w+ as (\w+)$", block, re.MULTILINE))
    conditions = {
        name for name in TABLE.keys() & set(dir(F)) if TABLE[name].result == BOOLEAN and TABLE[name].kind != VALUE
    }
    assert {one or other for one, other in declared} == conditions


def test_import_does_not_load_the_table() -> None:
    program = "import sys, colmatch as cm; dir(cm); assert 'colmatch.functions' not in sys.modules; cm.functions.lower"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: F.lower(),
            r"lower has too few or too many arguments here: it is written lower\(string\), as in lower\(name\)",
        ),
        (lambda: F.startswith("name", "a"), r"startswith takes a column first, as in .*: col\('name'\) is one"),
        (lambda: cm.function("lowr", cm.col("a")), "there is no function 'lowr': did you mean 'lower'"),
        (lambda: cm.function("filter", cm.col("a")), "there is no function 'filter'"),
    ],
)
def test_wrong_calls(make: Any, said: str) -> None:
    with pytest.raises(cm.ExpressionError, match=said):
        make()


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (F.lower(cm.col("s")) == "x", "lower(s) = 'x'"),
        (F.split_part(cm.col("s"), "/", 1) == "a", "split_part(s, '/', 1) = 'a'"),
        (F.if_(cm.col("b"), 1, 2) > 1, "if(b, 1, 2) > 1"),
        (F.contains(cm.col("s"), "x"), "contains(s, 'x')"),
        (F.regexp_like(cm.col("s"), "^x"), "s RLIKE '^x'"),
        (F.isnull(cm.col("s")) & cm.col("b"), "s IS NULL AND b"),
        (F.coalesce(cm.col("a"), 0).is_in([1, 2]), "coalesce(a, 0) IN (1, 2)"),
        (cm.col("a").is_between(1, 5), "a BETWEEN 1 AND 5"),
        (cm.col("s").str.starts_with("x"), "startswith(s, 'x')"),
        (cm.col("s").str.ends_with("x"), "endswith(s, 'x')"),
        (cm.col("s").str.contains("^x"), "s RLIKE '^x'"),
        (cm.col("s").str.contains("x.", literal=True), "contains(s, 'x.')"),
        (cm.col("s").str.to_lowercase() == "x", "lower(s) = 'x'"),
        (cm.col("s").str.to_uppercase() != "X", "upper(s) <> 'X'"),
        (cm.col("s").str.len_chars() > 3, "length(s) > 3"),
        (cm.col("s").str.len_bytes() > 3, "octet_length(s) > 3"),
        (cm.col("s").str.slice(0, 2) == "ab", "substring(s, 1, 2) = 'ab'"),
    ],
)
def test_what_the_builder_makes(condition: Any, text: str) -> None:
    assert str(condition) == text
    schema = {"a": "int", "s": "string", "b": "boolean"}
    events = [{"a": 1, "s": "x.", "b": True}, {"a": 5, "s": "abXx", "b": False}, {}]
    matcher = cm.Matcher.build({1: condition, 2: text}, schema)
    assert all(matcher.match_one(event) in ([], [1, 2]) for event in events)


@pytest.mark.parametrize(("offset", "length"), [(-1, 2), (0, -1), ("x", 2), (0, None)])
def test_slices_that_are_none(offset: Any, length: Any) -> None:
    with pytest.raises(cm.ExpressionError, match="two whole numbers from 0 on"):
        cm.col("s").str.slice(offset, length)
