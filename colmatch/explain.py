"""An explanation says why a subscription is true for an event, or is not.

It is the normalised expression as a tree, with values and truth.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from colmatch.betree.events import event_batches
from colmatch.errors import EventError, SubscriptionError, show_value
from colmatch.events.binding import require
from colmatch.events.computed.derived import DerivedColumns
from colmatch.events.gather import batches
from colmatch.events.reader import Reader
from colmatch.events.required import RequiredColumns
from colmatch.events.single.mapping import as_mapping, is_object, rename_fields
from colmatch.events.single.row import RowMaker
from colmatch.events.special.clock import Clock
from colmatch.events.special.elements import judge
from colmatch.given.elements import EXISTS, ElementCall, ElementTest
from colmatch.given.schema import Attribute, Attributes, Role
from colmatch.given.special import UNKNOWN, Call
from colmatch.kernels import layout
from colmatch.lowering.written import LiteralTexts, asks_presence, element_text, key_runs, predicate_text
from colmatch.show.notebook import cell, fold_body
from colmatch.text.addresses import address_of
from colmatch.text.versions import version_of
from colmatch.updates.literals import whole

if TYPE_CHECKING:
    from colmatch.updates.segments import Segment
    from colmatch.updates.versions import Parts

TruthValue = bool | None  # None: Unknown
_WORDS = {True: "True", False: "False", None: "Unknown"}


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """A predicate with the event's value, or an AND / OR of nodes."""

    text: str
    truth: TruthValue
    value: Any = None
    children: tuple[ExplainedNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The truth of each part of a subscription for one event. It prints as a tree.

    ``matched`` is True if the subscription matches. ``tree`` is the evaluated expression.
    ``missing`` is the truth of a predicate on a missing value: unknown or false. ``lacking`` lists
    the non-nullable columns without a value in the event.
    """

    id: int | str
    matched: bool
    tree: ExplainedNode
    event: dict[str, Any] = field(repr=False)
    missing: str = "unknown"
    lacking: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Returns the explanation as nested dicts, for JSON. Unknown is None there."""

        def told(node: ExplainedNode) -> dict[str, Any]:
            value = {} if node.children or node.value is _NOTHING else {"value": node.value}
            children = {"children": [told(child) for child in node.children]} if node.children else {}
            return {"text": node.text, "truth": node.truth, **value, **children}

        return {
            "id": self.id,
            "matched": self.matched,
            "missing": self.missing,
            "lacking": list(self.lacking),
            "tree": told(self.tree),
        }

    def _head(self) -> list[str]:
        """Returns the lines before the tree."""
        mode = "" if self.missing == "unknown" else f" (what is missing is {self.missing})"
        lines = [f"subscription {self.id!r}: {'matches' if self.matched else 'does not match'}{mode}"]
        if self.lacking:
            must = "which must be defined, so that the event matches nothing"
            lines.append(f"   the event lacks {', '.join(map(repr, self.lacking))}, {must}")
        return lines

    def __str__(self) -> str:
        lines = self._head()

        def show(node: ExplainedNode, indent: str, last: bool) -> None:
            lines.append(f"{indent}{'└─' if last else '├─'} {_line(node, 7)}")
            for i, child in enumerate(node.children):
                show(child, indent + ("   " if last else "│  "), i == len(node.children) - 1)

        show(self.tree, "", True)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Returns a tree that folds. Nodes with the truth of the whole are open."""

        def shown(node: ExplainedNode) -> str:
            if not node.children:
                return f"<div>{cell(_line(node))}</div>"
            body = f'<div style="margin-left:1.5em">{"".join(map(shown, node.children))}</div>'
            return fold_body(_line(node), body, node.truth is self.tree.truth)

        head = "".join(f"<div>{cell(line)}</div>" for line in self._head())
        return f'<div style="font-family:monospace">{head}{shown(self.tree)}</div>'


_NOTHING = object()


def _line(node: ExplainedNode, width: int = 0) -> str:
    """Returns the truth of a node, padded to ``width`` columns, its text and its value."""
    value = "" if node.children or node.value is _NOTHING else f"   [{_show_value(node.value)}]"
    return f"{_WORDS[node.truth]:{width}} {node.text}{value}"


def _show_value(value: Any) -> str:
    text = "NULL" if value is None else repr(value) if isinstance(value, (str, bytes, list, dict)) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def explain(parts: Parts, event: Any, id: int | str, clock: Clock | None = None) -> Explanation:
    """Returns the explanation of ``Matcher.explain``."""
    # Find the subscription's conjunctions
    version = parts.version
    number = version.find(id)
    if number is None:
        raise SubscriptionError(f"there is no subscription {show_value(id)}")
    single = isinstance(event, Mapping) or is_object(event)
    row = _row(parts, event)
    holder = version.holder(number)
    segment = version.segments[holder]
    preds = segment.predicates
    mine = np.flatnonzero(preds.owner == number - version.bases[holder]).tolist()
    used = {int(preds.pred[p, 0]) & layout.ATTR_MASK for c in mine for p in range(preds.first[c], preds.first[c + 1])}
    attributes = version.attributes.only(used)
    if clock is not None:
        row = clock.add_to(row, clock.names(version.attributes))
    # Columns of other expressions may be missing; a single event may lack all columns
    if parts.options.missing_columns == "error" and not single:
        require(row.schema, chain.from_iterable(attribute.paths for attribute in attributes))
    # Read the values that the expression needs
    entries = Reader(attributes, version.literals).read(row)
    keys = {id: entries.key[entries.col[id] : entries.col[id + 1]].tolist() for id in used}
    values = {name: _read_value(column) for name, column in zip(row.schema.names, row.columns, strict=True)}
    computed, failed = DerivedColumns(attributes, lenient=True).add_to(row)
    computed_values = {
        name: _read_value(column) for name, column in zip(computed.schema.names, computed.columns, strict=True)
    }
    failures = {name: f"cannot be computed: {of.message_of(0)}" for name, of in failed.items()}
    facts = _SegmentEvent(
        version.attributes,
        whole(version.literals),
        segment,
        keys,
        computed_values,
        failures,
        parts.language.two_valued,
        row,
    )
    # Build the tree
    nodes = _join_programs([_conjunction(facts, c) for c in mine])
    if not nodes:
        tree = ExplainedNode("FALSE: contradicts itself", False, _NOTHING)
    elif len(nodes) == 1:
        tree = nodes[0]
    else:
        tree = _group(nodes, True)
    # Check the required columns
    lacks = RequiredColumns(parts.schema).lacks(row, lenient=True)
    lacking = () if lacks is None else tuple(lacks.columns)
    matched = tree.truth is True and not lacking
    return Explanation(id, matched, tree, values, parts.language.missing, lacking)


def _read_value(column: pa.Array) -> Any:
    """Returns the only value of a column.

    A value that Python cannot have, such as a date after the year 9999, becomes Arrow's text.
    """
    try:
        return column.to_pylist()[0]
    except (ValueError, OverflowError, LookupError):  # beyond the year 9999, or a zone that is unknown
        return " ".join(column.to_string(skip_new_lines=True).removeprefix("[").removesuffix("]").split())


def _row(parts: Parts, event: Any) -> pa.RecordBatch:
    if isinstance(event, Mapping) or is_object(event):
        values = as_mapping(event)
        if parts.language.is_betree:
            return next(event_batches([values], parts.schema.arrow))
        values = rename_fields(values, parts.schema.arrow.names, "the schema", ignored=None)
        if not values:
            return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
        return RowMaker(parts.schema).row_of(values, list(values), ignored=None)
    pieces = list(batches(event, 2))
    if sum(batch.num_rows for batch in pieces) != 1:
        raise EventError(f"explain takes one event, not {sum(batch.num_rows for batch in pieces)}: slice the row out")
    return next(batch for batch in pieces if batch.num_rows)


def _group(nodes: list[ExplainedNode], either: bool) -> ExplainedNode:
    """Returns the OR of nodes, or their AND unless ``either``."""
    truths = [node.truth for node in nodes]
    truth = either if either in truths else None if None in truths else not either
    return ExplainedNode("any of" if either else "all of", truth, _NOTHING, tuple(nodes))


class _SegmentEvent(NamedTuple):
    """A segment and an event: the keys by attribute, and the values by column."""

    attributes: Attributes
    literals: layout.Literals
    segment: Segment
    keys: dict[int, list[int]]
    values: dict[str, Any]
    failed: dict[str, str]  # computed value that failed -> reason
    two_valued: bool
    row: pa.RecordBatch


def _conjunction(told: _SegmentEvent, c: int) -> ExplainedNode:
    preds = told.segment.predicates
    leaves = [_leaf(told, p) for p in range(preds.first[c], preds.first[c + 1])]
    if len(preds.jump_first) and preds.jump_first[c] >= 0:
        stack: list[_ExplainedLeaf] = []
        for token in preds.tree[preds.tree_first[c] : preds.tree_first[c + 1]].tolist():
            if token >= 0:
                stack.append(leaves[token])
                continue
            size, either = (-token) // 2, token % 2 == 1
            operands = stack[-size:]
            stack[-size:] = [
                _ExplainedLeaf(_group([leaf.node for leaf in operands], True) if either else _all_of(operands))
            ]
        return stack[0].node
    return _all_of(leaves) if leaves else ExplainedNode("TRUE", True, _NOTHING)


class _ExplainedLeaf(NamedTuple):
    """A node, and for a predicate its subject and its role for NULLs of the subject.

    Attributes
    ----------
    guards : ``"value"`` for ``s IS NOT NULL``, ``"list"`` for ``l IS NOT NULL``, ``"elements"`` for
        "l has no NULL element"
    negated : the node of the predicate together with guards of its subject: a NOT. Without guards,
        the predicate is an IS NOT TRUE
    """

    node: ExplainedNode
    subject: tuple[Any, ...] = ()
    guards: str = ""
    negated: ExplainedNode | None = None


def _all_of(leaves: list[_ExplainedLeaf]) -> ExplainedNode:
    """Returns the AND of nodes, with each NOT and its guards joined to one node again.

    ``NOT s LIKE '%a%'`` is kept as ``s IS NOT NULL`` and ``(s LIKE '%a%') IS NOT TRUE``. The NOT of
    a condition on a list has one more guard, "l has no NULL element".
    """
    guarded = {leaf.subject for leaf in leaves if leaf.guards in ("value", "elements")}
    guarded &= {leaf.subject for leaf in leaves if leaf.negated}
    nodes = [
        leaf.negated if leaf.negated and leaf.subject in guarded else leaf.node
        for leaf in leaves
        if not (leaf.guards and leaf.subject in guarded)
    ]
    return nodes[0] if len(nodes) == 1 else _group(nodes, False)


def _join_programs(nodes: list[ExplainedNode]) -> list[ExplainedNode]:
    """Joins the programs into which an expression was divided (``expr/assemble.py``).

    Each program is an AND: one operand of an OR, then the conditions that all programs share.
    """
    groups: dict[Any, list[ExplainedNode]] = {}
    for i, node in enumerate(nodes):
        rest = node.children[1:]
        is_program = node.text == "all of" and any(child.children for child in rest)
        groups.setdefault(_texts(rest) if is_program else i, []).append(node)
    return [group[0] if len(group) == 1 else _factor_programs(group) for group in groups.values()]


def _texts(nodes: tuple[ExplainedNode, ...]) -> Any:
    return tuple((node.text, _texts(node.children)) for node in nodes)


def _factor_programs(nodes: list[ExplainedNode]) -> ExplainedNode:
    """Returns the AND of an OR, made of the first children, and the other, shared children."""
    return _group([_group([node.children[0] for node in nodes], True), *nodes[0].children[1:]], False)


def _leaf(told: _SegmentEvent, p: int) -> _ExplainedLeaf:
    predicates, keys = told.segment.predicates, told.keys
    word = int(predicates.pred[p, 0])
    attr, none = word & layout.ATTR_MASK, bool(word & layout.FLAG_NONE)
    attribute = told.attributes[attr]
    runs = key_runs(predicates, told.segment.codes, p)
    matches = any(lo <= key <= hi for key in keys[attr] for lo, hi in runs)
    value = _value(attribute, told.values)
    texts = LiteralTexts(told.literals, attr)
    text = predicate_text(attribute, texts, runs, none)
    if attribute.role is Role.COMPUTED and attribute.path[0] in told.failed:
        return _ExplainedLeaf(ExplainedNode(f"{text} ({told.failed[attribute.path[0]]})", None, _NOTHING))
    if attribute.role is Role.CALL and Call.of(str(attribute.key)).function == EXISTS:
        return _ExplainedLeaf(_explain_elements(told, attribute, [texts[key] for key, _ in texts.dense(runs)], none))
    if attribute.role is Role.CALL:
        asks_unknown = any(texts[key] == UNKNOWN for key, _ in texts.dense(runs))
        is_unknown = any(part is None or part != part for part in value.values())
        if Call.of(str(attribute.key)).marks_false and [] in value.values():
            is_unknown = False  # no struct can make the function false, whatever the time is
        return _ExplainedLeaf(_explain_call(told, text, asks_unknown, is_unknown, value, matches, none))
    subject = attribute.path, attribute.key if attribute.role is Role.ENTRY else None
    lacks = not matches and _lacks(attribute, value)
    if asks_presence(attribute, runs):
        of = {Role.HAS_NULL: "elements", Role.SIZE: "list"}.get(attribute.role, "value")
        guards = of if none is (of == "elements") else ""
        return _ExplainedLeaf(ExplainedNode(text, matches is not none, value), subject, guards)
    if not none or told.two_valued:
        truth = None if lacks and not told.two_valued else matches is not none
        return _ExplainedLeaf(ExplainedNode(text, truth, value))
    plain = predicate_text(attribute, texts, runs, False)
    negated = ExplainedNode(f"NOT {plain}", None if lacks else not matches, value)
    return _ExplainedLeaf(ExplainedNode(text, not matches, value), subject, negated=negated)


def _explain_elements(told: _SegmentEvent, attribute: Attribute, literals: list[bytes], none: bool) -> ExplainedNode:
    """Returns the node of a condition on elements, with the elements that pass as its value."""
    call = ElementCall.of(Call.of(str(attribute.key)))
    test = next(test for literal in literals if (test := ElementTest.of(literal)) is not None)
    truth, passing, failure = judge(call, test, told.row)
    values, name = _value(attribute, told.values), ".".join(call.column)
    if passing:
        values = {f"{name}[{i}]": values[name][i] for i in passing} | {k: v for k, v in values.items() if k != name}
    text = element_text(attribute, test)
    if failure:
        return ExplainedNode(f"{'NOT ' * none}{text} ({failure})", None, _NOTHING)
    if told.two_valued:
        return ExplainedNode(f"NOT {text}" if none else text, (truth is True) is not none, values)
    asks_unknown = UNKNOWN in literals
    if none is asks_unknown:
        return ExplainedNode(f"NOT {text}" if none else text, None if truth is None else truth is not none, values)
    if asks_unknown:
        return ExplainedNode(f"({text}) IS NOT FALSE", truth is not False, values)
    return ExplainedNode(f"({text}) IS NOT TRUE", truth is not True, values)


def _explain_call(
    told: _SegmentEvent,
    text: str,
    asks_unknown: bool,
    is_unknown: bool,
    values: dict[str, Any],
    found: bool,
    none: bool,
) -> ExplainedNode:
    """Returns the node of a special function.

    With ``none``, a predicate that includes Unknown is a NOT; any other is an IS NOT TRUE.
    """
    if told.two_valued:
        return ExplainedNode(text, found is not none, values)
    is_plain = asks_unknown is none
    if none and not is_plain:
        text = f"({text}) IS NOT FALSE"
    truth = None if is_unknown and is_plain else found is not none
    return ExplainedNode(text, truth, values)


def _lacks(attribute: Attribute, value: Any) -> bool:
    """Returns whether a predicate that is not true for a value is Unknown there."""
    if isinstance(value, list) and attribute.multi:
        return None in value
    return value is None


def _find_value(values: dict[str, Any], name: str) -> Any:
    """Returns the value of a name, or else of a name that differs only in case."""
    if name in values:
        return values[name]
    return next((value for other, value in values.items() if other.lower() == name.lower()), None)


def _follow_path(values: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = values
    for part in path:
        if value is None:
            return None
        if not isinstance(value, dict):
            return value
        value = _find_value(value, part)
    return value


def _value(attribute: Attribute, values: dict[str, Any]) -> Any:
    if attribute.role is Role.CALL:
        return {".".join(path): _follow_path(values, path) for path in attribute.paths}
    value = _follow_path(values, attribute.path)
    function = attribute.computed_by[0] if value is not None else ""
    if function == "address":
        return str(address_of(value))
    if function == "micros_between":
        return dt.timedelta(microseconds=value)
    if function == "semver":
        return version_of(value)
    if isinstance(value, list) and attribute.role is Role.ENTRY:
        return next((v for k, v in value if k == attribute.key), None)
    return value
