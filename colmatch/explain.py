"""Why a subscription is true, or not, for an event: the normalised expression as a tree, with
values and truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from colmatch.errors import EventError, SubscriptionError
from colmatch.events.binding import require
from colmatch.events.reader import Reader, batches
from colmatch.incoming import is_text, refusing
from colmatch.kernels import layout
from colmatch.lowering.keys import KEY_MAX, KEY_MIN, key_float, literal_text
from colmatch.schema import Attribute, Family, Role
from colmatch.text.reduce import successor

if TYPE_CHECKING:
    from colmatch.parts import Parts

Truth = bool | None  # None: Unknown
_WORDS = {True: "True", False: "False", None: "Unknown"}


@dataclass(frozen=True, slots=True)
class Node:
    """A predicate with the event's value, or an AND / OR of nodes."""

    text: str
    truth: Truth
    value: Any = None
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Prints as a tree.

    ``matched`` is whether the subscription is true; ``tree`` the evaluated expression.
    """

    id: int | str
    matched: bool
    tree: Node
    event: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        lines = [f"subscription {self.id!r}: {'matches' if self.matched else 'does not match'}"]

        def show(node: Node, indent: str, last: bool) -> None:
            value = "" if node.children or node.value is _NOTHING else f"   [{_shown(node.value)}]"
            lines.append(f"{indent}{'└─' if last else '├─'} {_WORDS[node.truth]:7} {node.text}{value}")
            for i, child in enumerate(node.children):
                show(child, indent + ("   " if last else "│  "), i == len(node.children) - 1)

        show(self.tree, "", True)
        return "\n".join(lines)


_NOTHING = object()


def _shown(value: Any) -> str:
    text = "NULL" if value is None else repr(value) if isinstance(value, (str, bytes, list, dict)) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def explain(parts: Parts, event: Any, id: int | str, find: Callable[[int | str], int | None]) -> Explanation:
    """See ``Matcher.explain``. ``find`` says which number a subscription has."""
    number = find(id) if _fits(parts.ids.type, id) else None
    if number is None:
        raise SubscriptionError(f"there is no subscription {id!r:.80}")
    row = _row(parts, event)
    preds = parts.predicates
    mine = np.flatnonzero(preds.owner == number).tolist()
    if parts.options.missing_columns == "error":  # of what other subscriptions use, anything may be missing
        words = (preds.pred[p, 0] for c in mine for p in range(preds.first[c], preds.first[c + 1]))
        require(row.schema, (parts.attributes[int(word) & layout.ATTR_MASK].path for word in words))
    entries = Reader(parts.attributes, parts.literals).read(row)
    keys = [entries.key[entries.col[a] : entries.col[a + 1]].tolist() for a in range(len(parts.attributes))]
    values = {name: _shown_value(column) for name, column in zip(row.schema.names, row.columns, strict=True)}
    nodes = [_conjunction(parts, c, keys, values) for c in mine]
    if not nodes:
        tree = Node("FALSE: contradicts itself", False, _NOTHING)
    elif len(nodes) == 1:
        tree = nodes[0]
    else:
        tree = Node("any of", _any([node.truth for node in nodes]), _NOTHING, tuple(nodes))
    return Explanation(id, tree.truth is True, tree, values)


def _shown_value(column: pa.Array) -> Any:
    """The only value of a column, as Arrow writes it where Python has none such: a date after
    the year 9999, say.
    """
    try:
        return column.to_pylist()[0]
    except (ValueError, OverflowError, LookupError):  # beyond the year 9999, or a zone that is unknown
        return " ".join(column.to_string(skip_new_lines=True).removeprefix("[").removesuffix("]").split())


def _fits(type: pa.DataType, id: Any) -> bool:
    if pa.types.is_string(type):
        return isinstance(id, str) and is_text(id)
    return isinstance(id, (int, np.integer)) and not isinstance(id, bool) and bool(KEY_MIN <= id <= KEY_MAX)


def _row(parts: Parts, event: Any) -> pa.RecordBatch:
    if isinstance(event, Mapping):
        fields = [field for field in parts.schema.arrow if field.name in event]
        unknown = [name for name in event if name not in parts.schema.arrow.names]
        if unknown:
            raise EventError(f"the event has {unknown[0]!r:.80}, which is no column of the schema")
        with refusing(EventError, "the event does not fit the schema"):
            arrays = [pa.array([_checked(event[field.name], field.type)], _decoded(field.type)) for field in fields]
        return pa.RecordBatch.from_arrays(arrays, [field.name for field in fields]) if fields else _empty_row()
    found = list(batches(event, 2))
    if sum(batch.num_rows for batch in found) != 1:
        raise EventError(f"explain takes one event, not {sum(batch.num_rows for batch in found)}: slice the row out")
    return next(batch for batch in found if batch.num_rows)


def _decoded(type: pa.DataType) -> pa.DataType:
    """The type without dictionaries and runs: Arrow makes no such array of any Python value, and
    crashes on some.
    """
    types = pa.types
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return _decoded(type.value_type)
    if types.is_map(type):
        return pa.map_(_decoded(type.key_type), _decoded(type.item_type))
    if types.is_struct(type):
        return pa.struct([pa.field(field.name, _decoded(field.type)) for field in type])
    if types.is_list(type) or types.is_large_list(type):
        return (pa.list_ if types.is_list(type) else pa.large_list)(_decoded(type.value_type))
    return type


def _checked(value: Any, type: pa.DataType) -> Any:
    """A value for a column of that type, whose maps have pairs for entries: Arrow crashes on
    others.
    """
    if hasattr(value, "as_py"):
        value = value.as_py()
    if pa.types.is_map(type) and value is not None:
        value = list(value.items() if isinstance(value, Mapping) else value)
        if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in value):
            raise EventError(
                f"the event does not fit the schema: a value of {type} is a mapping, or pairs of a key and a value"
            )
        return [(_checked(key, type.key_type), _checked(item, type.item_type)) for key, item in value]
    if pa.types.is_struct(type) and isinstance(value, Mapping):
        kinds = {field.name: field.type for field in type}
        return {name: _checked(item, kinds[name]) if name in kinds else item for name, item in value.items()}
    if isinstance(value, (list, tuple)) and hasattr(type, "value_type"):
        return [_checked(item, type.value_type) for item in value]
    return value


def _empty_row() -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))


def _any(truths: list[Truth]) -> Truth:
    return True if True in truths else None if None in truths else False


def _all(truths: list[Truth]) -> Truth:
    return False if False in truths else None if None in truths else True


def _conjunction(parts: Parts, c: int, keys: list[list[int]], values: dict[str, Any]) -> Node:
    preds = parts.predicates
    leaves = [_predicate(parts, p, keys, values) for p in range(preds.first[c], preds.first[c + 1])]
    if len(preds.jump_first) and preds.jump_first[c] >= 0:
        stack: list[Node] = []
        for token in preds.tree[preds.tree_first[c] : preds.tree_first[c + 1]].tolist():
            if token >= 0:
                stack.append(leaves[token])
                continue
            size, either = (-token) // 2, token % 2 == 1
            children = tuple(stack[-size:])
            del stack[-size:]
            truths = [child.truth for child in children]
            stack.append(
                Node("any of" if either else "all of", _any(truths) if either else _all(truths), _NOTHING, children)
            )
        return stack[0]
    if not leaves:
        return Node("TRUE", True, _NOTHING)
    if len(leaves) == 1:
        return leaves[0]
    return Node("all of", _all([leaf.truth for leaf in leaves]), _NOTHING, tuple(leaves))


def _predicate(parts: Parts, p: int, keys: list[list[int]], values: dict[str, Any]) -> Node:
    word, low, high = (int(x) for x in parts.predicates.pred[p])
    attr = word & layout.ATTR_MASK
    attribute = parts.attributes[attr]
    if word & layout.FLAG_RUN:
        codes = list(
            zip(parts.predicates.run_lo[low:high].tolist(), parts.predicates.run_hi[low:high].tolist(), strict=True)
        )
    else:
        codes = [(low, high)] if low <= high else []
    begin, end = int(parts.codes.first[attr]), int(parts.codes.first[attr + 1])
    bounds = parts.codes.bound[begin:end]
    if len(parts.codes.label):
        label = parts.codes.label[begin:end]
        codes = [
            (int(np.searchsorted(label, lo)) + 1 + (lo > 1), int(np.searchsorted(label, hi + 1)) + 1)
            for lo, hi in codes
        ]
    run = [
        (KEY_MIN if lo == 1 else int(bounds[lo - 2]), KEY_MAX if hi > end - begin else int(bounds[hi - 1]) - 1)
        for lo, hi in codes
    ]
    none = bool(word & layout.FLAG_NONE)
    found = any(lo <= key <= hi for key in keys[attr] for lo, hi in run)
    truth: Truth = not found if none else found if keys[attr] or _two_valued(attribute) else None
    if len(parts.literals.label) and attribute.type.textual:
        run = [(_number(parts, attr, lo), hi if hi == KEY_MAX else _number(parts, attr, hi + 1) - 1) for lo, hi in run]
    return Node(_text(parts, attr, run, none), truth, _value(attribute, values))


def _number(parts: Parts, attr: int, key: int) -> int:
    """The key where a literal or the space behind one begins, as it would be without labels."""
    if key == KEY_MIN:
        return key
    label = parts.literals.label[parts.literals.first[attr] : parts.literals.first[attr + 1]]
    r = int(np.searchsorted(label, key, "right")) - 1
    return 2 * r + 1 + (int(label[r]) != key)


def _two_valued(attribute: Attribute) -> bool:
    return attribute.role is Role.HAS_NULL


def _value(attribute: Attribute, values: dict[str, Any]) -> Any:
    value: Any = values
    for part in attribute.path:
        if value is None:
            return None
        if not isinstance(value, dict):
            return value
        value = (
            value.get(part) if part in value else next((v for k, v in value.items() if k.lower() == part.lower()), None)
        )
    if isinstance(value, list) and attribute.role is Role.ENTRY:
        return next((v for k, v in value if k == attribute.key), None)
    return value


def _text(parts: Parts, attr: int, run: list[tuple[int, int]], none: bool) -> str:
    """A predicate as the expression language writes it."""
    attribute = parts.attributes[attr]
    name = attribute.name
    if attribute.pattern:
        op, operand = attribute.pattern
        shown = f"{op}({name}, {operand!r})" if op in ("endswith", "contains") else f"{name} {op.upper()} {operand!r}"
        return f"({shown}) IS NOT TRUE" if none else shown
    if attribute.role is Role.HAS_NULL:
        return f"{name} has {'no' if none else 'a'} NULL element"
    if run == [(KEY_MIN, KEY_MAX)]:
        return f"{_owner(attribute)} IS {'' if none else 'NOT '}NULL"
    if not run:
        return "TRUE" if none else "FALSE"
    literal = _literals(parts, attr)
    if attribute.multi:
        points = [literal(lo) for lo, hi in run if lo == hi]
        text = (
            f"array_contains({name}, {points[0]})"
            if len(points) == 1
            else f"arrays_overlap({name}, array({_listed(points)}))"
        )
        return f"NOT {text}" if none else text
    gaps = [(a[1] + 1, b[0] - 1) for a, b in pairwise(run)]
    if run[0][0] == KEY_MIN and run[-1][1] == KEY_MAX and all(lo == hi for lo, hi in gaps):
        points = [literal(lo) for lo, _ in gaps]
        text = f"{name} <> {points[0]}" if len(points) == 1 else f"{name} NOT IN ({_listed(points)})"
    elif (
        run[0][0] == KEY_MIN and run[-1][1] == KEY_MAX and len(gaps) == 1 and (prefix := _prefix(parts, attr, *gaps[0]))
    ):
        text = f"{name} NOT LIKE {prefix}"
    elif len(run) == 1 and (prefix := _prefix(parts, attr, *run[0])):
        text = f"{name} LIKE {prefix}"
    elif all(lo == hi for lo, hi in run):
        points = [literal(lo) for lo, _ in run]
        text = f"{name} = {points[0]}" if len(points) == 1 else f"{name} IN ({_listed(points)})"
    else:
        text = " OR ".join(_range(attribute, name, lo, hi, literal) for lo, hi in run)
    return f"({text}) IS NOT TRUE" if none else text


def _owner(attribute: Attribute) -> str:
    return ".".join(attribute.path) if attribute.role is Role.SIZE else attribute.name


def _listed(points: list[str], most: int = 12) -> str:
    return ", ".join(points[:most]) + (f", … {len(points) - most} more" if len(points) > most else "")


def _literals(parts: Parts, attr: int) -> Any:
    type = parts.attributes[attr].type
    if not type.textual:
        return lambda key: literal_text(type, key)
    literals = parts.literals

    def text(key: int) -> str:
        number = int(literals.first[attr]) + key // 2
        data = literals.data[literals.offset[number] : literals.offset[number + 1]].tobytes()
        if type.family is Family.BINARY:
            return f"X'{data.hex().upper()}'"
        return "'" + data.decode(errors="backslashreplace").replace("\\", "\\\\").replace("'", "\\'") + "'"

    return text


def _prefix(parts: Parts, attr: int, lo: int, hi: int) -> str:
    """The LIKE pattern of the interval that a prefix was lowered to, empty when it is not such
    an interval.
    """
    if parts.attributes[attr].type.family is not Family.STRING or lo < 0 or lo % 2 == 0 or hi % 2 == 1 or hi >= KEY_MAX:
        return ""
    literals, base = parts.literals, int(parts.literals.first[attr])
    start, after = (
        literals.data[literals.offset[base + key // 2] : literals.offset[base + key // 2 + 1]].tobytes()
        for key in (lo, hi)
    )
    if start == b"" or successor(start) != after:
        return ""
    text = (
        start.decode(errors="backslashreplace")
        .replace("\\", "\\\\")
        .replace("%", "\\%")
        .replace("_", "\\_")
        .replace("'", "\\'")
    )
    return f"'{text}%'"


def _range(attribute: Attribute, name: str, lo: int, hi: int, literal: Any) -> str:
    if lo == hi:
        return f"{name} = {literal(lo)}"
    type = attribute.type
    at_least, at_most = ">=", "<="
    if type.textual:
        # Odd labels are literals, even ones the space before the literal half as large.
        lo, at_least = (lo, ">=") if lo % 2 else (lo - 1, ">")
        hi, at_most = (hi, "<=") if hi % 2 else (hi + 1, "<")
    elif type.family is Family.FLOAT:
        if lo != KEY_MIN and len(repr(key_float(lo - 1))) < len(repr(key_float(lo))):
            lo, at_least = lo - 1, ">"
        if hi != KEY_MAX and len(repr(key_float(hi + 1))) < len(repr(key_float(hi))):
            hi, at_most = hi + 1, "<"
    low = "" if lo == KEY_MIN or (type.textual and lo < 0) else f"{name} {at_least} {literal(lo)}"
    high = "" if hi >= KEY_MAX else f"{name} {at_most} {literal(hi)}"
    if low and high and (at_least, at_most) == (">=", "<="):
        return f"{name} BETWEEN {literal(lo)} AND {literal(hi)}"
    return " AND ".join(text for text in (low, high) if text)
