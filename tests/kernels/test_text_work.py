"""Kernels read a text in time that grows with its length, whatever is in it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from clauses import SCHEMA
from hypothesis import given, settings
from hypothesis import strategies as st
from inside import count_lines
from numba.core import config

import colmatch as cm
from colmatch.events.reader import texts_of
from colmatch.given.schema import Attributes
from colmatch.kinds.settings import Budget
from colmatch.sql.compile import FormCompiler
from colmatch.subscriptions.texts import TextReader

pytestmark = pytest.mark.skipif(not config.DISABLE_JIT, reason="lines of Python are counted")

SHORT, TIMES = 8, 6
PIECES = [
    *("a = 1", "b > 2", "name = 'x'", "name IN ('a', 'it''s')", "a IN (1, 2)", "flag", "a BETWEEN 1 AND 2", "nope = 1"),
    *(" AND ", " OR ", "NOT ", "(", ")", " IS TRUE", " ", "'", '"', "`", ".", "[", "]", ",", "1", "-", "é", "\\", "--"),
    *("a", "IN (", "BETWEEN ", "(a = 1 OR b = 2) AND ", "(a = 1 AND flag) OR ", "NOT (a = 1 OR NOT (b = 2)) AND "),
]
units = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)


def lines(text: str) -> int:
    """How many lines of kernels run while a text is read, its phrases being known."""
    options = cm.Options(max_depth=400)
    reader = TextReader(FormCompiler(cm.Schema(SCHEMA), Attributes(), options, Budget(16, 4)))
    offset, data = texts_of(pa.array([text]))

    def read() -> None:
        found = reader._cut(data, offset, np.zeros(1, np.bool_))
        while reader._book.learn(data, found):
            found = reader._cut(data, offset, np.zeros(1, np.bool_))
        reader._assemble(found)

    read()
    return count_lines(read, "kernels")


@settings(max_examples=30, deadline=None)
@given(units, st.sampled_from(["", "a = 1 AND ", "(", "'", "NOT ("]), st.sampled_from(["", "flag", "a = 1)", "'", ")"]))
def test_time_is_linear(unit: str, begin: str, end: str) -> None:
    short, long = (lines(begin + unit * times + end) for times in (SHORT, SHORT * TIMES))
    assert long <= 1.5 * TIMES * short + 2000


@pytest.mark.parametrize(
    "unit",
    [
        "(",
        "NOT ",
        "a = 1 OR ",
        "a = 1 AND b > 2 OR ",
        "'",
        "name IN ('x', ",
        "a IN (1, 2 ",
        ".",
        "(a = 1 OR b = 2) AND ",
        " ",
        "a.",
    ],
)
@pytest.mark.parametrize("end", ["", "flag"])
def test_hostile_shapes(unit: str, end: str) -> None:
    short, long = (lines(unit * times + end) for times in (SHORT, SHORT * TIMES))
    assert long <= 1.5 * TIMES * short + 2000
