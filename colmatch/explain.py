"""An explanation says why a subscription is true for an event, or is not.

It is the expression as it was written, as a tree with values and truth. Without its text, it is the
predicates that the matcher keeps.
"""

from __future__ import annotations

import builtins
import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
from colmatch.events.rows import events_of
from colmatch.events.single.mapping import as_mapping, is_object, rename_fields
from colmatch.events.single.row import RowMaker
from colmatch.events.special.clock import Clock
from colmatch.events.special.elements import judge
from colmatch.given.elements import EXISTS, ElementCall, ElementTest
from colmatch.given.schema import Attribute, Attributes, Role, with_definitions
from colmatch.given.special import UNKNOWN, Call
from colmatch.kernels import layout
from colmatch.kinds.registry import FEWEST
from colmatch.lowering.written import LiteralTexts, asks_presence, element_text, key_runs, name_of, predicate_text
from colmatch.predicates.programs import fold_program
from colmatch.show.names import Listed
from colmatch.show.notebook import cell, fold_body
from colmatch.sql.skeleton import AND, CONDITION, COUNT, DEFINED, NOT, OR, Piece, cut_text, open_definitions, truth_of
from colmatch.subscriptions.texts_kept import Kept
from colmatch.text.addresses import address_of
from colmatch.text.versions import version_of
from colmatch.updates.initial import build_parts, take_in
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
class Explanation(Listed):
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

    def as_text(self) -> str:
        """Returns the explanation as an expression, with the value behind each part.

        Examples
        --------
        >>> matcher.explain({"price": 310.0}, "cheap").as_text()
        'price < 100 [310.0]'
        """

        def told(node: ExplainedNode, within: bool = False) -> str:
            if not node.children:
                return _leaf_text(node, " ")
            is_defined = node.text.endswith(DEFINED)
            parts = [told(child, not is_defined) for child in node.children]
            if node.text in (_GROUPS[AND], _GROUPS[OR]):
                text = (" AND " if node.text == _GROUPS[AND] else " OR ").join(parts)
                return f"({text})" if within else text
            if node.text.startswith("IS"):
                return f"{parts[0]} {node.text}"
            if is_defined:
                return f"{node.text.removesuffix(f', {DEFINED}')} ({parts[0]})"
            return f"NOT {parts[0]}" if node.text == NOT else f"at_least({node.text.split()[2]}, {', '.join(parts)})"

        return told(self.tree)

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
    return f"{_WORDS[node.truth]:{width}} {_leaf_text(node)}"


def _leaf_text(node: ExplainedNode, space: str = "   ") -> str:
    value = "" if node.children or node.value is _NOTHING else f"{space}[{_show_value(node.value)}]"
    return f"{node.text}{value}"


def _show_value(value: Any) -> str:
    text = "NULL" if value is None else repr(value) if isinstance(value, (str, bytes, list, dict)) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def explain(parts: Parts, event: Any, id: int | str, clock: Clock | None = None) -> Explanation:
    """Returns the explanation of ``Matcher.explain``."""
    written = Written.of(parts, [id], clock)
    single = isinstance(event, Mapping) or is_object(event)
    row = written.with_time(_row(parts, event))
    values = {name: _read_value(column) for name, column in zip(row.schema.names, row.columns, strict=True)}
    return written.explain(id, row, values, single)


def explain_many(
    parts_of: Callable[[int | str], Parts],
    events: Any,
    ids: Sequence[int | str],
    type: pa.DataType,
    clock: Clock | None,
) -> pa.Table:
    """Returns the table of ``Matcher.explain_many``.

    parts_of : returns parts that contain the subscription of an id
    type : of the ids
    """
    # Read the texts together where the ids are in the same parts
    groups: dict[int, tuple[Parts, list[int | str]]] = {}
    for id in ids:
        parts = parts_of(id)
        groups.setdefault(builtins.id(parts.version), (parts, []))[1].append(id)
    read = {id: one for parts, some in groups.values() for one in [Written.of(parts, some, clock)] for id in some}
    written = {id: read[id] for id in ids}
    # Explain each event
    told: list[Explanation] = []
    rows = 0
    apart = list(dict.fromkeys(written.values()))
    for batch in batches(events, 1 << 12) if ids else ():
        for i in range(batch.num_rows):
            try:
                timed = {one: one.with_time(batch.slice(i, 1)) for one in apart}
                told.extend([one.explain(id, timed[one], {}, False) for id, one in written.items()])
            except EventError as error:
                error.count_from(rows + i)
                raise
        rows += batch.num_rows
    columns = {
        "event": pa.array(np.repeat(np.arange(rows), len(ids))),
        "subscription": pa.array(ids, type).take(pa.array(np.tile(np.arange(len(ids)), rows))),
        "matched": pa.array([one.matched for one in told], pa.bool_()),
        "explanation": pa.array([one.as_text() for one in told], pa.string()),
    }
    return pa.table(columns)


class Written:
    """Some subscriptions as they were written, to be explained.

    The conditions of their texts are the subscriptions of a small matcher: each condition, its
    negation, and each text as a whole. A subscription without a text is explained by the predicates
    that the matcher keeps of it, and so is one in the language of be-tree.
    """

    def __init__(self, parts: Parts, clock: Clock | None, pieces: dict[int | str, Piece], small: Parts | None) -> None:
        self._parts = parts
        self._clock, self._clock_names = clock, [] if clock is None else clock.names(parts.version.attributes)
        self._pieces = pieces  # by id
        self._small = None if small is None else _Looker(small, 0, None)
        self._kept: dict[int | str, _Looker] = {}
        self._seen: tuple[pa.RecordBatch, _SegmentEvent] | None = None
        self._places = {} if small is None else {text: i for i, text in enumerate(_texts_of(pieces.values()))}

    @staticmethod
    def of(parts: Parts, ids: Sequence[int | str], clock: Clock | None) -> Written:
        """Reads the texts of ids.

        Raises SubscriptionError: an id has no subscription.
        """
        version = parts.version
        numbers = [version.find(id) for id in ids]
        for id, number in zip(ids, numbers, strict=True):
            if number is None:
                raise SubscriptionError(f"there is no subscription {show_value(id)}")
        texts = version.texts.take(np.array(numbers, np.int64)).to_pylist() if len(version.texts) else [None] * len(ids)
        pieces: dict[int | str, Piece] = {}
        for id, text in zip(ids, texts, strict=True):
            piece = None if text is None or parts.language.is_betree else cut_text(Kept.of(text).expression)
            if piece is not None:
                piece = open_definitions(piece, with_definitions(parts.schema, version.definitions))
                pieces[id] = Piece(CONDITION, Kept.of(text).expression, (piece,))
        return Written(parts, clock, pieces, _build_small(parts, _texts_of(pieces.values())) if pieces else None)

    def with_time(self, row: pa.RecordBatch) -> pa.RecordBatch:
        """Returns an event with the columns that the clock gives."""
        return row if self._clock is None else self._clock.add_to(row, self._clock_names)

    def explain(self, id: int | str, row: pa.RecordBatch, values: dict[str, Any], single: bool) -> Explanation:
        """Returns the explanation of an id for a batch of one row, which has its time.

        values : of the columns of the row
        single : the event is a single one, which may lack columns
        """
        lacks = RequiredColumns(self._parts.schema).lacks(row, lenient=True)
        lacking = () if lacks is None else tuple(lacks.columns)
        tree = self._of_text(id, row, single) or self._of_predicates(id, row, single)
        return Explanation(id, tree.truth is True and not lacking, tree, values, self._parts.language.missing, lacking)

    def _of_text(self, id: int | str, row: pa.RecordBatch, single: bool) -> ExplainedNode | None:
        """Returns the tree of a text; None if its parts do not say what the whole does."""
        whole = self._pieces.get(id)
        if whole is None or self._small is None:
            return None
        if self._seen is None or self._seen[0] is not row:  # several ids are explained for one row
            self._seen = row, self._small.look(row, single)
        told = self._seen[1]
        if any(self._small.is_left_out(2 * self._places[text]) for text in _texts_of([whole])):
            return None
        tree = self._node(whole.parts[0], told)
        return tree if (tree.truth is True) == _is_met(told, self._small.of(2 * self._places[whole.text])) else None

    def _node(self, piece: Piece, told: _SegmentEvent) -> ExplainedNode:
        """Returns the node of a part of a text."""
        assert self._small is not None
        if piece.word != CONDITION:
            nodes = [self._node(part, told) for part in piece.parts]
            truth = truth_of(piece, [node.truth for node in nodes])
            text = _GROUPS.get(piece.word, piece.word)
            if piece.word == COUNT:
                true = sum(node.truth is True for node in nodes)
                text = f"at least {piece.least} of {len(nodes)}, {true} {'is' if true == 1 else 'are'} true"
            if piece.word == DEFINED:
                text = f"{piece.text}, {DEFINED}"
            return ExplainedNode(text, truth, _NOTHING, tuple(nodes))
        place = self._places[piece.text]
        yes, no = self._small.of(2 * place), self._small.of(2 * place + 1)
        truth = True if _is_met(told, yes) else False if told.two_valued or _is_met(told, no) else None
        values, failed = _values_of(told, [*yes, *no])
        named = dict(sorted(values.items(), key=lambda pair: piece.text.find(pair[0])))  # in the order of the text
        value = next(iter(named.values())) if len(named) == 1 else named or _NOTHING
        text = _LINES.sub(" ", piece.text) + "".join(f" ({reason})" for reason in failed)
        return ExplainedNode(text, truth, _NOTHING if failed else value)

    def _of_predicates(self, id: int | str, row: pa.RecordBatch, single: bool) -> ExplainedNode:
        """Returns the tree of the predicates that the matcher keeps of a subscription."""
        looker = self._kept.get(id)
        if looker is None:
            version = self._parts.version
            number = version.find(id)
            assert number is not None
            holder = version.holder(number)
            looker = self._kept[id] = _Looker(self._parts, holder, number - version.bases[holder])
        told = looker.look(row, single)
        nodes = _join_programs([_conjunction(told, c) for c in looker.conjunctions])
        if not nodes:
            return ExplainedNode("FALSE: contradicts itself", False, _NOTHING)
        return nodes[0] if len(nodes) == 1 else _group(nodes, True)


_GROUPS = {AND: "all of", OR: "any of"}
_MOST_KEPT, _LARGEST_KEPT = 32, 64  # small matchers of a version that are kept, and the texts of each
_LINES = re.compile(r"\s*[\r\n]\s*")


def _texts_of(pieces: Iterable[Piece]) -> list[str]:
    """Returns the conditions of texts, and the texts themselves, once each."""
    texts: dict[str, None] = {}
    stack = list(pieces)
    while stack:
        piece = stack.pop()
        if piece.word == CONDITION:
            texts[piece.text] = None
        stack.extend(piece.parts)
    return list(texts)


def _build_small(parts: Parts, texts: list[str]) -> Parts:
    """Returns a matcher of texts and their negations, which are numbered in turn.

    Small ones of the last calls are kept, since a text is often explained for several events.
    """
    if len(texts) > _LARGEST_KEPT:
        return _read_small(parts, texts)
    key = (parts.options, *texts)
    kept = parts.version.explained
    small = kept.pop(key, None) or _read_small(parts, texts)
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = small
    return small


def _read_small(parts: Parts, texts: list[str]) -> Parts:
    given = {2 * i + no: f"NOT ({text})" if no else text for i, text in enumerate(texts) for no in (0, 1)}
    options = replace(parts.options, keep_texts=False, observe=0)
    definitions = parts.version.definitions
    read = take_in(given, parts.schema, FEWEST.name, options, "collect", parts.language, define=definitions)
    return build_parts(read, None)


class _Looker:
    """A reader of events for the explanations of subscriptions of a segment.

    own : a subscription of the segment; None for all
    """

    def __init__(self, parts: Parts, holder: int, own: int | None) -> None:
        version = self._version = parts.version
        self._parts = parts
        self._segment = version.segments[holder]
        owner = self._segment.predicates.owner
        self.conjunctions = range(len(owner)) if own is None else np.flatnonzero(owner == own).tolist()
        self._of: dict[int, list[int]] = {}
        for c in self.conjunctions:
            self._of.setdefault(int(owner[c]), []).append(c)
        preds = self._segment.predicates
        self._used = {
            int(preds.pred[p, 0]) & layout.ATTR_MASK
            for c in self.conjunctions for p in range(preds.first[c], preds.first[c + 1])
        }  # fmt: skip
        self._attributes = version.attributes.only(self._used)
        self._reader = Reader(self._attributes, version.literals)
        self._derived = DerivedColumns(self._attributes, lenient=True)
        self._needed = {path[0].lower() for i in self._used for path in _paths_of(version.attributes[i])}
        self._literals = whole(version.literals)

    def of(self, number: int) -> list[int]:
        """Returns the conjunctions of a subscription whose id is a number."""
        place = self._version.find(number)
        return [] if place is None else self._of.get(place, [])

    def is_left_out(self, number: int) -> bool:
        """Returns whether an expression could not be read."""
        return self._version.find(number) is None

    def look(self, row: pa.RecordBatch, single: bool) -> _SegmentEvent:
        """Returns what there is to know of an event, a batch of one row.

        Raises EventError: a column is missing, and the event is no single one.
        """
        # Columns of other expressions may be missing; a single event may lack all columns
        if self._parts.options.missing_columns == "error" and not single:
            require(row.schema, chain.from_iterable(attribute.paths for attribute in self._attributes))
        entries = self._reader.read(row)
        keys = {id: entries.key[entries.col[id] : entries.col[id + 1]].tolist() for id in self._used}
        computed, failed = self._derived.add_to(row)
        values = {
            name: _read_value(column)
            for name, column in zip(computed.schema.names, computed.columns, strict=True)
            if name.lower() in self._needed
        }
        return _SegmentEvent(
            self._version.attributes,
            self._literals,
            self._segment,
            keys,
            values,
            {name: f"cannot be computed: {of.message_of(0)}" for name, of in failed.items()},
            self._parts.language.two_valued,
            row,
        )


def _paths_of(attribute: Attribute) -> list[tuple[str, ...]]:
    return [attribute.path, *attribute.paths]


def _is_met(told: _SegmentEvent, conjunctions: list[int]) -> bool:
    """Returns whether a conjunction is true. A value that cannot be computed makes none true."""
    preds = told.segment.predicates

    def holds(p: int) -> bool:
        word = int(preds.pred[p, 0])
        attr = word & layout.ATTR_MASK
        if _is_of_elements(told.attributes[attr]):
            return _leaf(told, p).node.truth is True
        runs = key_runs(preds, told.segment.codes, p)
        found = any(lo <= key <= hi for key in told.keys[attr] for lo, hi in runs)
        return found is not bool(word & layout.FLAG_NONE) and not _is_failed(told, told.attributes[attr])

    for c in conjunctions:
        first, at = int(preds.first[c]), 0
        if not len(preds.jump_first) or preds.jump_first[c] < 0:
            if all(holds(p) for p in range(first, int(preds.first[c + 1]))):
                return True
            continue
        while at >= 0:
            at = int(preds.jump[preds.jump_first[c] + at, 0 if holds(first + at) else 1])
        if at == layout.ACCEPT:
            return True
    return False


def _is_failed(told: _SegmentEvent, attribute: Attribute) -> bool:
    return attribute.role is Role.COMPUTED and attribute.path[0] in told.failed


def _is_of_elements(attribute: Attribute) -> bool:
    return attribute.role is Role.CALL and Call.of(str(attribute.key)).function == EXISTS


def _values_of(told: _SegmentEvent, conjunctions: list[int]) -> tuple[dict[str, Any], list[str]]:
    """Returns what predicates look at, by name, and why values of it could not be computed."""
    preds, values, failed = told.segment.predicates, dict[str, Any](), dict[str, None]()
    for c in conjunctions:
        for p in range(preds.first[c], preds.first[c + 1]):
            attribute = told.attributes[int(preds.pred[p, 0]) & layout.ATTR_MASK]
            if _is_failed(told, attribute):
                failed[told.failed[attribute.path[0]]] = None
            elif (name := name_of(attribute)) not in values:
                leaf = _leaf(told, p) if _is_of_elements(attribute) else None
                if leaf is not None and leaf.failure:
                    failed[leaf.failure] = None
                else:
                    values[name] = _value(attribute, told.values) if leaf is None else leaf.node.value
    return values, list(failed)


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
    pieces = list(batches(events_of(event, parts.schema), 2))
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
    if len(preds.jump_first) and preds.jump_first[c] >= 0:

        def join(parts: list[_ExplainedLeaf], either: bool) -> _ExplainedLeaf:
            return _ExplainedLeaf(_group([part.node for part in parts], True) if either else _all_of(parts))

        return fold_program(preds, c, partial(_leaf, told), join).node
    leaves = [_leaf(told, p) for p in range(preds.first[c], preds.first[c + 1])]
    return _all_of(leaves) if leaves else ExplainedNode("TRUE", True, _NOTHING)


class _ExplainedLeaf(NamedTuple):
    """A node, and for a predicate its subject and its role for NULLs of the subject.

    Attributes
    ----------
    guards : ``"value"`` for ``s IS NOT NULL``, ``"list"`` for ``l IS NOT NULL``, ``"elements"`` for
        "l has no NULL element"
    negated : the node of the predicate together with guards of its subject: a NOT. Without guards,
        the predicate is an IS NOT TRUE
    failure : why a condition on elements cannot be computed
    """

    node: ExplainedNode
    subject: tuple[Any, ...] = ()
    guards: str = ""
    negated: ExplainedNode | None = None
    failure: str = ""


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
    if _is_failed(told, attribute):
        return _ExplainedLeaf(ExplainedNode(f"{text} ({told.failed[attribute.path[0]]})", None, _NOTHING))
    if _is_of_elements(attribute):
        return _explain_elements(told, attribute, [texts[key] for key, _ in texts.dense(runs)], none)
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


def _explain_elements(told: _SegmentEvent, attribute: Attribute, literals: list[bytes], none: bool) -> _ExplainedLeaf:
    """Returns the node of a condition on elements, with the elements that pass as its value."""
    call = ElementCall.of(Call.of(str(attribute.key)))
    test = next(test for literal in literals if (test := ElementTest.of(literal)) is not None)
    truth, passing, failure = judge(call, test, told.row)
    values, name = _value(attribute, told.values), ".".join(call.column)
    if passing:
        values = {f"{name}[{i}]": values[name][i] for i in passing} | {k: v for k, v in values.items() if k != name}
    text = element_text(attribute, test)
    if failure:
        return _ExplainedLeaf(ExplainedNode(f"{'NOT ' * none}{text} ({failure})", None, _NOTHING), failure=failure)
    asks_unknown = UNKNOWN in literals
    if told.two_valued:
        holds = truth is True or (asks_unknown and truth is None)  # no list
        return _ExplainedLeaf(ExplainedNode(f"NOT {text}" if none else text, holds is not none, values))
    if none is asks_unknown:
        return _ExplainedLeaf(
            ExplainedNode(f"NOT {text}" if none else text, None if truth is None else truth is not none, values)
        )
    if asks_unknown:
        return _ExplainedLeaf(ExplainedNode(f"({text}) IS NOT FALSE", truth is not False, values))
    return _ExplainedLeaf(ExplainedNode(f"({text}) IS NOT TRUE", truth is not True, values))


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
