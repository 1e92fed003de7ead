"""Trees of ``ast.py`` from texts.

sqlglot's Spark parser parses a text. Its tree may have only the node types on a whitelist.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError

from colmatch.expr.ast import (
    AT_LEAST,
    SIGNS,
    And,
    AtLeast,
    Constant,
    Expr,
    Not,
    Or,
    Predicate,
    Refusal,
    Subject,
    Verb,
    conjoin,
    find_least_fault,
    truth,
)  # fmt: skip
from colmatch.expr.bind_casts import value_literals
from colmatch.expr.computed import PATTERN_FUNCTIONS, ComputedValue, comparison
from colmatch.expr.computed_rules import PAIRS
from colmatch.expr.functions import SYNONYMS, TABLE
from colmatch.expr.shared import SharedNodes
from colmatch.given.special import SPECIAL
from colmatch.lowering.forms import Kind, Operand
from colmatch.sql import elements
from colmatch.sql.checks import check_no_column, check_pattern, check_weekday, strip_parentheses
from colmatch.sql.computed import (
    ComputedReader,
    choice_of,
    function_of,
    is_computed,
    is_condition,
    is_value,
    rewrite_choice,
)
from colmatch.sql.elements import ElementParser, filter_of
from colmatch.sql.elsewhere import express
from colmatch.sql.literals import ALLOWED, NumberedText
from colmatch.sql.nots import RANGES, count_nots, double_nots
from colmatch.sql.quotes import Quotes
from colmatch.sql.refused import LITERALS, begin_of, describe_node, syntax_refusal
from colmatch.sql.special import parse_call
from colmatch.sql.stack import room
from colmatch.sql.tokens import SPARK, read_text

_COMPARISONS = {
    exp.EQ: Verb.EQ, exp.NEQ: Verb.NE, exp.LT: Verb.LT, exp.LTE: Verb.LE, exp.GT: Verb.GT, exp.GTE: Verb.GE,
    exp.NullSafeEQ: Verb.SAME, exp.NullSafeNEQ: Verb.SAME,
}  # fmt: skip
_FLIPPED = {Verb.LT: Verb.GT, Verb.LE: Verb.GE, Verb.GT: Verb.LT, Verb.GE: Verb.LE}
_PATTERNS = {
    exp.Like: Verb.LIKE, exp.ILike: Verb.ILIKE, exp.RegexpLike: Verb.RLIKE,
    exp.StartsWith: Verb.STARTSWITH, exp.EndsWith: Verb.ENDSWITH, exp.Contains: Verb.CONTAINS,
}  # fmt: skip

Parsed = TypeVar("Parsed", Expr, ComputedValue)
MOST_CHOICES = 50_000  # conditions of CASE, if and coalesce that are written out, beyond a few for each word
SHALLOW = 8  # levels of nesting that any stack has room for
FRAMES = 60  # of the stack for each level; the interpreted sqlglot takes some 20


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "<=>": operator.eq,
}  # fmt: skip


def _make_at_least(least: int, parts: list[Expr]) -> Expr:
    return AtLeast(least, tuple(parts))


def _of_literals(verb: Verb, left: exp.Expr, right: exp.Expr, node: exp.Expr, reading: NumberedText) -> Constant | None:
    """Evaluates a comparison of two numbers or texts, such as 1 = 1 in generated texts."""
    values, slots = list[Any](), list[int]()
    check_no_column(left, reading)
    check_no_column(right, reading)
    for side in (left, right):
        slot = int(side.args["this"]) if type(side) is exp.Literal else -1
        kind, many, negative = reading.operands[slot] if slot >= 0 else (Kind.BINARY, False, False)
        if kind in (Kind.INT, Kind.DECIMAL) and not many:
            values.append(Decimal(reading.literals[slot]) * (-1 if negative else 1))
        elif kind is Kind.STRING and not many:
            values.append(reading.literals[slot].encode())
        else:
            return None
        slots.append(slot)
    if type(values[0]) is not type(values[1]):
        raise Refusal("a number is compared with a string: write TRUE, FALSE or NULL", begin_of(node, reading))
    reading.baked.update(dict.fromkeys(slots))
    return Constant(_COMPARED[SIGNS[verb]](*values))


class Parser:
    """A parser of texts to trees.

    Equal predicates of all its texts are one object, from ``nodes``.

    Parameters
    ----------
    max_depth : deepest nesting that is accepted
    two_valued : the NOT of ``a NOT IN (1)`` and the like is a part of the predicate. An absent
        value makes such a predicate false. Otherwise ``a NOT IN (1)`` is ``NOT a IN (1)``
    quotes : the meaning of double quotes
    casts : texts are cast where they meet numbers, and the values of an IN get one type
    """

    def __init__(
        self, max_depth: int, two_valued: bool = False, quotes: Quotes | None = None, casts: bool = False
    ) -> None:
        self.max_depth = max_depth
        self.quotes = quotes or Quotes()
        self._two_valued = two_valued
        self._casts = casts
        self._sqlglot = SPARK.parser(error_level=ErrorLevel.IMMEDIATE, error_message_context=0)
        self.nodes = SharedNodes()

    def read(self, text: str) -> NumberedText:
        """Reads a text by ``tokens.read_text``."""
        return read_text(text, self.max_depth, self.quotes)

    def parse(self, reading: NumberedText) -> Expr:
        """Makes the tree of a reading, with slots for operands. A reading is parsed once.

        Raises Refusal: the text is not in the language.
        """
        return self._checked(self._convert, reading)

    def value(self, reading: NumberedText) -> ComputedValue:
        """Makes a computed value of a reading of a condition. A reading is parsed once.

        Raises Refusal: the text is not in the language, or is no condition within values.
        """
        return self._checked(self._condition, reading)

    def _condition(self, root: exp.Expr, reading: NumberedText) -> ComputedValue:
        value = self._computed(root, reading).computed
        assert value is not None
        return value

    def _checked(self, convert: Callable[[exp.Expr, NumberedText], Parsed], reading: NumberedText) -> Parsed:
        root = self._skeleton(reading)
        try:
            return convert(root, reading)
        # a node of sqlglot lacks a part that the grammar promises
        except (KeyError, AttributeError, TypeError) as error:
            raise Refusal(f"this is not a condition; {ALLOWED}", begin_of(root, reading)) from error

    # sqlglot

    def _skeleton(self, reading: NumberedText) -> exp.Expr:
        tokens, depth = reading.tokens, reading.depth
        if self._is_doubled(reading):
            tokens, depth = double_nots(tokens), 2 * depth
        try:
            if depth <= SHALLOW:
                trees = self._sqlglot.parse_into(exp.Condition, tokens, reading.text)
            else:
                with room(FRAMES * depth):
                    trees = self._sqlglot.parse_into(exp.Condition, tokens, reading.text)
        except ParseError as error:
            raise syntax_refusal(error, reading) from None
        except RecursionError:
            raise Refusal("the expression nests too deep for the parser: flatten it") from None
        # raised by sqlglot on nonsense such as: OR ( (1, 2)
        except (TypeError, ValueError, AttributeError, LookupError, AssertionError):
            raise Refusal(f"this is not a condition; {ALLOWED}", reading.tokens[0].start) from None
        if len(trees) != 1 or trees[0] is None:
            raise Refusal(f"this is not a condition; {ALLOWED}", 0)
        return trees[0]

    def _is_doubled(self, reading: NumberedText) -> bool:
        """Returns whether a text's tree has each NOT before an operand twice."""
        return self._two_valued and reading.negated

    # sqlglot's tree to ours

    def _convert(self, root: exp.Expr, reading: NumberedText) -> Expr:
        done: list[Expr] = []
        stack: list[Any] = [root]
        room_left = MOST_CHOICES + 4 * len(reading.tokens)
        while stack:
            node = stack.pop()
            kind = type(node)
            room_left -= 1
            if room_left < 0:  # each condition of a choice occurs twice
                text = "conditions in CASE, if or coalesce within each other make this too large: split the expression"
                raise Refusal(text, begin_of(root, reading))
            if kind is exp.And or kind is exp.Or:
                parts = []
                while type(node) is kind:  # a chain leans to the left and may be 60,000 long
                    parts.append(node.args["expression"])
                    node = node.args["this"]
                parts.append(node)
                stack.append((partial(conjoin, And if kind is exp.And else Or), len(parts)))
                stack.extend(parts)
            elif kind is tuple:
                what, count = node
                if what is Not or what == self._negate:
                    done.append(what(done.pop()))
                elif what is None:
                    done.append(truth(done.pop(), count))
                else:
                    last = done[-count:]
                    del done[-count:]
                    done.append(what(last))
            elif kind is exp.Paren:
                stack.append(node.args["this"])
            elif kind is exp.Not:
                before, behind, part = count_nots(node, self._is_doubled(reading))
                stack.extend([(Not, 1)] * before)
                if behind:
                    stack.append((self._negate if type(part) in RANGES else Not, 1))
                stack.append(part)
            elif kind is exp.Is:
                part, value = strip_parentheses(node.args["this"]), node.args["expression"]
                subject = self._computed(part, reading) if type(part) is exp.Literal else self._subject(part, reading)
                if type(value) is exp.Null and subject is not None:
                    done.append(self.nodes.predicate(Verb.NULL, subject, ()))
                elif type(value) is exp.Null or type(value) is exp.Boolean:
                    stack.append((None, None if type(value) is exp.Null else bool(value.args["this"])))
                    stack.append(part)
                else:
                    choices = "NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM"
                    others = "write = or <> for other values, name = '' or size(tags) = 0 for IS EMPTY"
                    raise Refusal(f"IS is followed by {choices}: {others}", begin_of(node, reading))
            elif kind is exp.Anonymous and node.args["this"] == AT_LEAST:
                number, *conditions = node.args["expressions"]
                least = self._least(number, len(conditions), reading)
                stack.append((partial(_make_at_least, least), len(conditions)))
                stack.extend(reversed(conditions))
            elif kind is exp.Anonymous and choice_of(node):
                stack.append(rewrite_choice(node, begin_of(node, reading)))
            elif kind is exp.Boolean:
                done.append(Constant(bool(node.args["this"])))
            elif kind is exp.Null:
                done.append(Constant(None))
            else:
                other = None if is_computed(node) else express(node, lambda part: begin_of(part, reading))
                if other is None:
                    done.append(self._predicate(node, kind, reading))
                else:
                    stack.append(other)
        return done[0]

    def _least(self, node: exp.Expr, count: int, reading: NumberedText) -> int:
        """Returns the number of ``at_least`` with so many conditions. It distinguishes forms."""
        slot = int(node.args["this"]) if type(node) is exp.Literal else -1
        kind, many, negative = reading.operands[slot] if slot >= 0 else (Kind.BINARY, False, False)
        least = int(reading.literals[slot]) * (-1 if negative else 1) if kind is Kind.INT and not many else None
        fault = find_least_fault(least, count)
        if least is None or fault:
            raise Refusal(fault, begin_of(node, reading))
        reading.baked[slot] = None
        return least

    def _subject(self, node: exp.Expr, reading: NumberedText) -> Subject | None:
        kind = type(node)
        if kind is exp.Column:
            name = node.args["this"].args["this"]
            if not name.isdigit():  # a keyword that sqlglot takes for a column
                raise Refusal(f"{name!r} is not expected here; {ALLOWED}", begin_of(node, reading))
            return reading.subjects[int(name)]
        if kind is exp.ArraySize:
            inner = self._subject(strip_parentheses(node.args["this"]), reading)
            if inner is None or inner.size or inner.computed is not None or node.args.get("expression") is not None:
                raise Refusal(
                    "size(...) takes the name of one list or map column, as in size(tags)", begin_of(node, reading)
                )
            return inner._replace(size=True)
        return self._computed(node, reading) if is_computed(node) else None

    def _computed(self, node: exp.Expr, reading: NumberedText) -> Subject:
        reader = self._reader(reading)
        value = reader.read(node)
        reader.check_columns()
        return Subject((), computed=value)

    def literals_of(self, reading: NumberedText) -> Callable[[Operand], list[ComputedValue]]:
        """Returns what finds the literals of an operand. They distinguish forms from then on."""
        reader = self._reader(reading)
        return lambda operand: reader.literals(operand.slot) if operand.slot >= 0 else value_literals(operand)

    def _reader(self, reading: NumberedText) -> ComputedReader:
        return ComputedReader(
            reading, lambda part: begin_of(part, reading), self._two_valued, self._is_doubled(reading), self._casts
        )

    def _operand(self, node: exp.Expr, reading: NumberedText) -> Operand | None:
        kind = type(node)
        if kind is exp.Literal:
            slot = int(node.args["this"])
            literal_kind, many, negative = reading.operands[slot]
            return self.nodes.operand(literal_kind, slot, many, negative)
        return self.nodes.operand(Kind.BOOL, value=bool(node.args["this"])) if kind is exp.Boolean else None

    def _predicate(self, node: Any, kind: Any, reading: NumberedText) -> Expr:
        args = node.args
        verb = _COMPARISONS.get(kind)
        if verb is not None:
            return self._comparison(verb, args, kind is exp.NullSafeNEQ, node, reading)
        if kind is exp.Column or is_computed(node):
            return self.nodes.predicate(Verb.BARE, self._find_subject(node, reading), ())
        if kind is exp.Between:
            ends = [(args["low"], args["high"])]
            if args.get("symmetric"):
                ends.append((args["high"], args["low"]))
            return conjoin(Or, [self._between(args["this"], low, high, node, reading) for low, high in ends])
        if kind is exp.In:
            members = args.get("expressions")
            if type(args.get("field")) is exp.Literal:
                raise Refusal("IN takes a list in parentheses, as in a IN (5)", begin_of(node, reading))
            if args.get("field") is not None:
                raise Refusal("IN takes a list or the name of a list column", begin_of(node, reading))
            if not members:
                example = "city IN ('Nice', 'Lyon')"
                raise Refusal(f"IN needs a list of literals in parentheses, as in {example}", begin_of(node, reading))
            if not self._literals(members) or filter_of(strip_parentheses(args["this"])):
                if self._casts and not filter_of(strip_parentheses(args["this"])):
                    subject = Subject((), computed=self._reader(reading).read_in(node))
                    return self.nodes.predicate(Verb.BARE, subject, ())
                return conjoin(Or, [self._compare(Verb.EQ, args["this"], one, node, reading) for one in members])
            return self._test(Verb.IN, args["this"], members, reading)
        verb = _PATTERNS.get(kind)
        if verb is not None:
            pattern = args["expression"]
            if args.get("flag") is not None:
                text = "a regular expression has its flags in it: write '(?i)...' for the flag 'i'"
                raise Refusal(text, begin_of(args["flag"], reading))
            if type(pattern) is exp.Any or type(pattern) is exp.All:
                return self._convert_quantified(verb, node, reading)
            if verb.name.lower() in PAIRS and is_value(strip_parentheses(pattern)):
                predicate = self._values(verb.name.lower(), args["this"], pattern, reading)
            else:
                operand = self._operand(strip_parentheses(pattern), reading)
                if operand is not None and operand.kind is Kind.BINARY:
                    return self.nodes.predicate(Verb.BARE, self._computed(node, reading), ())
                predicate = self._test(verb, args["this"], [pattern], reading)
            return self._negate(predicate) if args.get("negate") else predicate
        if kind is exp.ArrayContains and is_value(strip_parentheses(args["expression"])):
            value = self._computed(args["expression"], reading).computed
            assert value is not None
            return self._elements(reading).contains(args["this"], value)
        if kind is exp.ArrayContains:
            return self._test(Verb.ARRAY_CONTAINS, args["this"], [args["expression"]], reading)
        if kind is exp.Anonymous or kind is exp.ArrayOverlaps:
            return self._function(node, reading)
        if kind is exp.Literal:
            check_no_column(node, reading)
            raise Refusal("a literal is not a condition by itself: compare a column with it", begin_of(node, reading))
        raise Refusal(f"{describe_node(node)} is not a condition; {ALLOWED}", begin_of(node, reading))

    def _literals(self, nodes: list[exp.Expr]) -> bool:
        """Returns whether no node is a column or a computed value."""
        return not any(type(one) is exp.Array or is_value(one) for one in map(strip_parentheses, nodes))

    def _between(self, value: exp.Expr, low: exp.Expr, high: exp.Expr, node: exp.Expr, reading: NumberedText) -> Expr:
        value = strip_parentheses(value)
        if self._literals([low, high]) and type(value) not in LITERALS and not filter_of(value):
            return self._test(Verb.BETWEEN, value, [low, high], reading)
        ends = ((Verb.GE, low), (Verb.LE, high))
        return conjoin(And, [self._compare(verb, value, end, node, reading) for verb, end in ends])

    def _compare(self, verb: Verb, left: exp.Expr, right: exp.Expr, node: exp.Expr, reading: NumberedText) -> Expr:
        return self._comparison(verb, {"this": left, "expression": right}, False, node, reading)

    def _comparison(self, verb: Verb, args: Any, negated: bool, node: exp.Expr, reading: NumberedText) -> Expr:
        left, right = strip_parentheses(args["this"]), strip_parentheses(args["expression"])
        if filter_of(right) and not filter_of(left):
            left, right, verb = right, left, _FLIPPED.get(verb, verb)
        if filtered := filter_of(left):
            comparison = self._elements(reading).comparison(verb, filtered, right)
            return Not(comparison) if negated else comparison
        if type(left) in LITERALS and type(right) not in LITERALS:
            left, right, verb = right, left, _FLIPPED.get(verb, verb)
        if type(left) in LITERALS and (constant := _of_literals(verb, left, right, node, reading)) is not None:
            return Not(constant) if negated else constant
        if type(left) in LITERALS or type(right) not in LITERALS:
            return self._compare_two(verb, left, right, negated, reading)
        if verb not in (Verb.GT, Verb.GE):
            check_weekday(left, [right], reading)
        subject, operand = self._find_subject(left, reading), self._single(right, reading)
        if operand is not None and subject.computed is not None:
            operand = self._bake(subject.computed, operand, reading)
        predicate = self.nodes.predicate(verb, subject, (operand,))
        return Not(predicate) if negated else predicate

    def _bake(self, value: ComputedValue, operand: Operand, reading: NumberedText) -> Operand:
        """Returns a literal with its value, if the value decides how the comparison is answered."""
        name = SYNONYMS.get(value.function, value.function)
        if name not in PATTERN_FUNCTIONS or operand.kind not in (Kind.INT, Kind.STRING) or operand.negative:
            return operand
        reading.baked[operand.slot] = None
        return self.nodes.operand(operand.kind, value=reading.literals[operand.slot])

    def _compare_two(self, verb: Verb, left: exp.Expr, right: exp.Expr, negated: bool, reading: NumberedText) -> Expr:
        """Makes the comparison of two columns or computed values."""
        predicate = self._values(SIGNS[verb], left, right, reading)
        return Not(predicate) if negated else predicate

    def _values(self, name: str, left: exp.Expr, right: exp.Expr, reading: NumberedText) -> Predicate:
        """Makes the condition of a sign or a function between two values."""
        reader = self._reader(reading)
        value, negated = comparison(name, reader.read(left), reader.read(right))
        reader.check_columns()
        return self.nodes.predicate(Verb.BARE, Subject((), computed=value), (), negated=negated)

    def _negate(self, found: Expr) -> Expr:
        """Negates a predicate as NOT IN does."""
        if not self._two_valued or not isinstance(found, (Predicate, And, Or)):
            return Not(found)
        if isinstance(found, (And, Or)):
            return conjoin(Or if isinstance(found, And) else And, [self._negate(part) for part in found.parts])
        return self.nodes.predicate(found.verb, found.subject, found.operands, found.weighs, negated=not found.negated)

    def _single(self, node: exp.Expr, reading: NumberedText) -> Operand | None:
        node = strip_parentheses(node)
        if type(node) not in LITERALS:
            other = "; two columns are compared with = and < and the like" if type(node) is exp.Column else ""
            raise Refusal(f"a literal is needed here, not {describe_node(node)}{other}", begin_of(node, reading))
        return self._operand(node, reading)

    def _find_subject(self, node: exp.Expr, reading: NumberedText) -> Subject:
        """Returns the subject that a node names.

        Raises Refusal: the node names none.
        """
        node = strip_parentheses(node)
        subject = self._subject(node, reading)
        check_no_column(node, reading)
        if subject is None and (is_condition(node) or choice_of(node) or type(node) in LITERALS):
            subject = self._computed(node, reading)
        if subject is None:
            raise Refusal(f"a column is needed here, not {describe_node(node)}", begin_of(node, reading))
        return subject

    def _test(self, verb: Verb, subject: exp.Expr, operands: list[exp.Expr], reading: NumberedText) -> Predicate:
        if verb is Verb.RLIKE:
            check_pattern(operands[0], reading)
        if verb in (Verb.IN, Verb.BETWEEN):
            check_weekday(subject, operands, reading)
        return self.nodes.predicate(
            verb, self._find_subject(subject, reading), tuple([self._single(o, reading) for o in operands])
        )

    def _convert_quantified(self, verb: Verb, node: exp.Expr, reading: NumberedText) -> Expr:
        """Converts LIKE ANY (...) and LIKE ALL (...)."""
        quantifier = node.args["expression"]
        inner = quantifier.args["this"]
        kind = type(inner)
        members = (inner.args.get("expressions") or []) if kind is exp.Tuple else [inner] if kind is exp.Paren else []
        if not members:
            raise Refusal("LIKE ANY and LIKE ALL need patterns in parentheses", begin_of(node, reading))
        parts: list[Expr] = [self._test(verb, node.args["this"], [member], reading) for member in members]
        if node.args.get("negate"):
            parts = [self._negate(part) for part in parts]
        return conjoin(Or if type(quantifier) is exp.Any else And, parts)

    def _elements(self, reading: NumberedText) -> ElementParser:
        return ElementParser(reading, self.nodes, self._convert, lambda part: begin_of(part, reading))

    def _function(self, node: exp.Expr, reading: NumberedText) -> Expr:
        if elements.function_of(node):
            return self._elements(reading).condition(node)
        name = function_of(node).lower() or "arrays_overlap"
        args, at = node.args, begin_of(node, reading)
        arguments = list(args["expressions"] if type(node) is exp.Anonymous else (args["this"], args["expression"]))
        if name in SPECIAL:
            return parse_call(name, arguments, self.nodes, reading, lambda part: begin_of(part, reading), at)
        if name == "arrays_overlap":
            if type(strip_parentheses(arguments[0])) is exp.Array:
                arguments.reverse()
            array = strip_parentheses(arguments[1])
            if type(array) is exp.Array:
                return self._test(Verb.ARRAYS_OVERLAP, arguments[0], array.args.get("expressions") or [], reading)
            raise Refusal(f"arrays_overlap needs a list column and literals, as in {TABLE[name].call}", at)
        if name == "contains_all":
            array = strip_parentheses(arguments[1])
            if type(array) is exp.Array and len(arguments) == 2:
                arguments[1:] = array.args.get("expressions") or []
            return self._test(Verb.CONTAINS_ALL, arguments[0], arguments[1:], reading)
        raise Refusal(f"{describe_node(node)} is not a condition; {ALLOWED}", at)
