"""A few expressions -> the arrays that indexes are built from, with as few calls as possible.

``lower.py`` does the same for any number, by columns, which costs hundreds of microseconds even for
a few. Here Python reads the literals one by one, and one kernel does the rest, with the same
functions. Rare cases are left to ``lower.py``: programs, weights, values that are solved for their
column, long lists, lists of doubles for whole numbers, and unreadable literals. So ``lower.py``
alone finds and reports errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze_view, seal
from colmatch.arrays.growing import with_room
from colmatch.given.schema import Attributes
from colmatch.given.session import Session
from colmatch.kernels import layout
from colmatch.kernels._jit import entry
from colmatch.kernels.layout import Codes
from colmatch.kernels.lowering.few import FLAGS, HEAD, LEAF, NUMBERS, lower_few
from colmatch.kernels.lowering.operators import EXACT
from colmatch.lowering.floors import Convert, Side, converter
from colmatch.lowering.forms import NO_WEIGHT, PATTERNS, Form, KeyTest, Op, Operand
from colmatch.lowering.groups import group_key, meets_double, pattern_test, sides
from colmatch.lowering.lower import LoweredExpressions
from colmatch.lowering.versions import ORDERS, is_version, look_for_versions
from colmatch.lowering.wide import Encode, encoder
from colmatch.predicates.columns import EMPTY

FEW_EXPRESSIONS = 16  # expressions; more are lowered by columns
MOST_INTERVALS = 4096  # intervals of their predicates, and literals of a list; more are lowered by columns


class _PlannedOperand(NamedTuple):
    slot: int
    value: Any  # of an operand without a slot
    many: bool
    convert: Convert | None  # None: textual, and its label depends on others
    encode: Encode  # of textual operands


class _PlannedTest(NamedTuple):
    op: Op
    attr: int
    operands: tuple[_PlannedOperand, ...]
    leaf_at: int  # place of the leaf's attribute among the words
    op_at: int  # place of its operator


class _FormPlan(NamedTuple):
    """The common part of all expressions of one form."""

    form: Form  # held, so that no other form has its id
    plain: bool  # whether it is small, without programs and weights; else nothing more is planned
    words: NDArray[np.int64]  # as ``lower_few`` reads them
    tests: tuple[_PlannedTest, ...]
    patterns: bool  # whether some words depend on the literals
    most: int  # conjunctions that share a leaf


_NO_OFFSET, _NO_DATA = seal(np.zeros(1, np.int64)), seal(np.empty(0, np.uint8))


class _PendingTexts:
    """String literals, and the places for their labels once all literals are known."""

    def __init__(self) -> None:
        self.found: list[tuple[int, bytes, int]] = []  # attribute, literal, place among the values

    def enter(self, attr: int, texts: Iterable[bytes], values: list[int]) -> None:
        """Enters literals, and makes room for their labels behind ``values``."""
        for text in texts:
            self.found.append((attr, text, len(values)))
            values += (0, EXACT)

    def label(self, values: list[int], attributes: int) -> layout.Literals:
        """Writes the labels of all literals, as ``string_labels`` makes them."""
        if not self.found:
            return layout.Literals(seal(np.zeros(attributes + 1, np.int64)), _NO_OFFSET, _NO_DATA)
        # Number the distinct literals of each attribute in their order.
        counts = [0] * (attributes + 1)
        data: list[bytes] = []
        last, before, rank = -1, b"", 0
        for attr, text, place in sorted(self.found):
            if attr != last or text != before:
                rank = rank + 1 if attr == last else 0
                last, before = attr, text
                counts[attr + 1] += 1
                data.append(text)
            values[place] = 2 * rank + 1
        # Join them.
        ranges = seal(np.array([*accumulate(counts), *accumulate(map(len, data), initial=0)], np.int64))
        first, offset = ranges[: attributes + 1], ranges[attributes + 1 :]
        return layout.Literals(first, offset, np.frombuffer(b"".join(data), np.uint8))


class FewExpressions:
    """A lowering of a few expressions at a time, again and again. Not for several threads at once.

    Parameters
    ----------
    attributes : attributes of the forms; pattern attributes are added to it
    session : for timestamp literals without a zone; its ``literal`` is of the last call
    """

    def __init__(self, attributes: Attributes, session: Session) -> None:
        self.attributes = attributes
        self.session = session
        self._plans: dict[int, _FormPlan] = {}  # by id() of the form
        self._multi = np.empty(0, np.uint8)
        self._make_room(1024)

    def _make_room(self, n: int) -> None:
        self._size, i64, u32 = n, np.int64, np.uint32
        scratch = ((NUMBERS, n), i64), ((FLAGS, n), np.uint8), (n, u32), ((n, 3), u32), (n, np.float64), ((2, n), i64)
        self._scratch = [np.empty(shape, type) for shape, type in scratch]
        self._longs, self._shorts = np.empty(3 * n, i64), np.empty(6 * n, u32)

    def lower(self, expressions: Sequence[tuple[Form, Sequence[Any]]]) -> LoweredExpressions | None:
        """Lowers expressions, each a form and its literals by slot.

        Returns None if they are not for this class; attributes may have been added all the same.
        """
        self.session.literal = None
        words: list[NDArray[np.int64]] = []
        values: list[int] = []
        texts = _PendingTexts()
        most = 0
        try:
            for form, literals in expressions:
                plan = self._plans.get(id(form)) or self._plan(form)
                if not plan.plain:
                    return None
                begin = len(values)
                words.append(self._read(plan, literals, values, texts))
                most += len(plan.words) + plan.most * ((len(values) - begin) // 2 + 2 * len(plan.tests))
                if most > MOST_INTERVALS:
                    return None
        except (ValueError, ArithmeticError):
            return None
        attributes = len(self.attributes)
        literals_of = texts.label(values, attributes)
        if self._size < 4 * (most + attributes) + 8:
            self._make_room(with_room(4 * (most + attributes) + 8))
        if len(self._multi) < attributes:  # attributes never change
            self._multi = np.array(self.attributes.multi, np.uint8)
        all_words = words[0] if len(words) == 1 else np.concatenate(words)
        inputs = all_words, np.array(values, np.int64), self._multi
        left = entry(lower_few)(*inputs, self._longs, self._shorts, *self._scratch)
        return LoweredExpressions(*_copy_results(self._longs, self._shorts, left, self._multi), literals_of, {})

    def _read(
        self, plan: _FormPlan, literals: Sequence[Any], values: list[int], texts: _PendingTexts
    ) -> NDArray[np.int64]:
        """Writes the literals of an expression behind ``values``, and returns its words."""
        words = plan.words.copy() if plan.patterns else plan.words
        for op, attr, operands, leaf_at, op_at in plan.tests:
            begin = len(values)
            if op is Op.IN:
                values.append(0)
            for slot, value, many, convert, encode in operands:
                literal = literals[slot] if slot >= 0 else value
                if op in PATTERNS:
                    test = pattern_test(self.attributes, attr, op, literal)
                    if isinstance(test, str):
                        raise ValueError(test)
                    words[op_at], parts, words[leaf_at] = test
                    texts.enter(attr, map(encode, parts), values)
                elif many and len(literal) > MOST_INTERVALS:
                    raise ValueError
                elif convert is None:
                    if op in ORDERS and isinstance(literal, str) and is_version(literal):
                        look_for_versions([literal.encode()], [attr], self.attributes)
                    texts.enter(attr, map(encode, literal if many else (literal,)), values)
                elif many:
                    for each in literal:
                        values += convert(each)
                else:
                    values += convert(literal)
            if op is Op.IN:
                values[begin] = (len(values) - begin) // 2
        return words

    def _plan(self, form: Form) -> _FormPlan:
        """Makes the plan of a form, with the tests in the order of ``Groups``."""
        large = (
            len(form.leaves) > MOST_INTERVALS
            or sum(len(test.operands) for leaf in form.leaves for test in leaf.tests) > MOST_INTERVALS
        )
        rounded = any(
            test.op is Op.IN and meets_double(self.attributes[leaf.attr].type, test.operands)
            for leaf in form.leaves
            for test in leaf.tests
        )
        weighted = any(leaf.weight != NO_WEIGHT for leaf in form.leaves)
        solved = any(leaf.attr < 0 for leaf in form.leaves)
        if large or rounded or weighted or solved or any(conjunction.jumps for conjunction in form.conjunctions):
            plan = _FormPlan(form, False, np.empty(0, np.int64), (), False, 0)
        else:
            plan = self._plain_plan(form)
        self._plans[id(form)] = plan
        return plan

    def _plain_plan(self, form: Form) -> _FormPlan:
        # Put the tests in the order of ``Groups``.
        groups: dict[Any, list[tuple[int, KeyTest]]] = {}
        for f, leaf in enumerate(form.leaves):
            for test in leaf.tests:
                key = group_key(self.attributes[leaf.attr].type, test.op, test.operands, test.outside)
                groups.setdefault(key, []).append((f, test))
        # Write the words: sizes, leaves, tests, then conjunctions.
        tests: list[_PlannedTest] = []
        refs = [f for conjunction in form.conjunctions for f in conjunction.leaves]
        words = [len(form.leaves), sum(map(len, groups.values())), len(form.conjunctions), len(refs)]
        for leaf in form.leaves:
            words += (leaf.attr, leaf.none)
        for f, test in chain.from_iterable(groups.values()):
            attr = form.leaves[f].attr
            of = [
                (k, side) for k in range(len(test.operands)) for side in sides(self.attributes[attr].type, *test[:2], k)
            ]
            op = Op.BETWEEN if test.op is Op.EQ and len(of) == 2 else test.op
            operands = tuple([self._operand(attr, test.operands[k], side) for k, side in of])
            tests.append(_PlannedTest(op, attr, operands, HEAD + LEAF * f, len(words) + 1))
            words += (f, op, test.outside)
        words += [len(conjunction.leaves) for conjunction in form.conjunctions]
        words += refs
        patterns = any(test.op in PATTERNS for test in tests)
        most = max(Counter(refs).values(), default=1)
        return _FormPlan(form, True, np.array(words, np.int64), tuple(tests), patterns, most)

    def _operand(self, attr: int, operand: Operand, side: Side | None) -> _PlannedOperand:
        type, convert = self.attributes[attr].type, None
        if not type.textual:
            convert = converter(type, operand.kind, operand.negative, self.session, side)
        encode = encoder(type, operand.kind, operand.negative, side)
        return _PlannedOperand(operand.slot, operand.value, operand.many, convert, encode)


def _copy_results(
    longs: layout.I64, shorts: layout.U32, left: tuple[int, int, int, int], multi: layout.U8
) -> tuple[layout.Predicates, Codes]:
    """Copies the results of the kernel out of arrays that the next call overwrites."""
    conjunctions, predicates, intervals, boundaries = left
    codes_at = conjunctions + 1
    bound_at = codes_at + len(multi) + 1
    owner_at = 3 * predicates
    runs_at = owner_at + conjunctions
    ends_at = runs_at + intervals
    longs, shorts = seal(longs[: bound_at + boundaries].copy()), seal(shorts[: ends_at + intervals].copy())
    return layout.Predicates(
        longs[:codes_at],
        shorts[:owner_at].reshape(-1, 3),
        shorts[runs_at:ends_at],
        shorts[ends_at:],
        shorts[owner_at:runs_at],
        *EMPTY[5:],
    ), Codes(longs[codes_at:bound_at], longs[bound_at:], freeze_view(multi))
