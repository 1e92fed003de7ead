"""Subscriptions as the caller has them to lowered predicates, ids and what was rejected."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arguments import checked_choice, is_listed
from colmatch.errors import ExpressionError, OptionError, Rejected, SubscriptionError, shown
from colmatch.incoming import column_of, table_of
from colmatch.indexing.settings import Budget
from colmatch.language import SQL, Language
from colmatch.lowering.few import FEW_EXPRESSIONS, FewExpressions
from colmatch.lowering.forms import Form
from colmatch.lowering.lower import LoweredExpressions, Lowering
from colmatch.options import Options
from colmatch.predicates.columns import with_given
from colmatch.progress import PART, bar, counted
from colmatch.schema import Attributes, Schema
from colmatch.session import Session
from colmatch.subscriptions.computed import ComputedNames
from colmatch.subscriptions.constants import constants_of_table, with_constants
from colmatch.subscriptions.ids import Ids, checked_unique, ids_of_column, ids_of_values
from colmatch.subscriptions.rows import add_table
from colmatch.subscriptions.table import PredicateTable
from colmatch.subscriptions.tags import NO_TAGS, GivenTags, Tags, given_tags, tags_of, tags_of_table
from colmatch.subscriptions.weights import (
    GivenWeights,
    Rejects,
    check_names,
    checked_priority,
    given_priority,
    given_weights,
    resolved,
)

if TYPE_CHECKING:
    from colmatch.betree.compile import BetreeCompiler
    from colmatch.sql.compile import Compiler
    from colmatch.subscriptions.texts import TextReader

Errors = Literal["raise", "collect"]
PIECE = 1 << 16  # expressions that are read and lowered before others come: forms may take 5 KB each
FEWEST_TEXTS = 1024  # that kernels read together
MEANWHILE = 4096  # that are read one by one before it is asked again whether these kernels are compiled
PHRASES_KEPT = 200_000  # shapes of phrases that kernels may have met before they forget them
FORMS_KEPT = 100_000  # forms that a reader may have known before it forgets them


class NewSubscriptions(NamedTuple):
    """Subscriptions that were taken in, lowered. Arrays are contiguous and read-only."""

    lowered: LoweredExpressions
    attributes: Attributes
    ids: Ids  # of each subscription that is left
    rejected: list[Rejected]
    local_literal: str | None  # a timestamp literal that was read in the zone of the options, None where there is none
    tags: Tags = NO_TAGS  # of the subscriptions that are left


class ArrowTexts(Sequence[Any]):
    """A column of texts, of which a piece at a time is made of Python's strings."""

    def __init__(self, texts: pa.Array) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, which: Any) -> Any:
        found = self._texts[which]
        return found.to_pylist() if isinstance(which, slice) else found.as_py()

    def slice(self, start: int, stop: int) -> pa.StringArray:
        """Returns some of them as strings."""
        found = self._texts.slice(start, stop - start)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if pa.types.is_dictionary(found.type):
            found = found.dictionary_decode()
        return found.cast(pa.string())

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), PART):
            yield from self[start : start + PART]


class GivenSubscriptions(NamedTuple):
    """Subscriptions that were read: as many texts or builder expressions as ids."""

    ids: Ids
    expressions: Sequence[Any]
    weights: GivenWeights | None = None  # what they give to attributes
    priority: NDArray[np.float64] | None = None
    tags: GivenTags | None = None


class SubscriptionReader:
    """Takes in subscriptions of one schema, again and again.

    Attributes keep their ids, and texts of a known form are read quickly.

    Parameters
    ----------
    attributes : those that have ids already; others are added to it, also those of subscriptions
        that are rejected
    """

    def __init__(
        self, schema: Schema, options: Options, attributes: Attributes, budget: Budget, language: Language = SQL
    ) -> None:
        self.schema = schema
        self.options = options
        self.budget = budget
        self.language = language
        self.attributes = attributes
        self._compilers: dict[bool, Compiler | BetreeCompiler] = {}  # by whether weights are given to attributes
        self._few: FewExpressions | None = None
        self._texts: TextReader | None = None
        self._seen: set[int] = set()  # ids of the forms that it has come upon

    def take_in(self, subscriptions: Any, errors: Errors, progress: bool = False) -> NewSubscriptions:
        """Lowers subscriptions: anything that ``Matcher.build`` takes, or what ``read`` made of it.

        progress : show a bar on standard error

        Raises
        ------
        ExpressionError : an expression cannot be understood, with ``errors="raise"``
        SubscriptionError : the subscriptions cannot be read
        OptionError : ``errors`` is something else
        """
        errors = checked_choice("errors={}", errors, get_args(Errors))
        given = read(subscriptions, self.language)
        was = gc.isenabled()
        try:
            try:
                # A million small tuples that all stay are looked through again and again otherwise:
                # a quarter of the time of a build from texts.
                gc.disable()
                return self._taken_in(given, errors, progress)
            finally:
                if was:
                    gc.enable()
        finally:  # again, since Ctrl-C may come between the two lines before
            if was:
                gc.enable()

    def _taken_in(self, given: PredicateTable | GivenSubscriptions, errors: Errors, progress: bool) -> NewSubscriptions:
        attributes = self.attributes
        if isinstance(given, PredicateTable):
            lowering = Lowering(attributes, Session(self.options.timezone))
            computed = ComputedNames(self.schema, self.options)
            ids = Ids(add_table(given, self.schema, computed, attributes, lowering))
            intake = _finish(lowering, attributes, ids, None, {}, errors, tags_of(given.tags, ids))
            return intake._replace(local_literal=intake.local_literal or computed.zoned)
        ids, expressions = given.ids, given.expressions
        tags = tags_of(given.tags, ids)
        compiler, few = self._compiler_for(given.weights is not None)
        wrong: Rejects = {}
        weights, priority = None, given.priority
        if priority is not None:
            priority, wrong = checked_priority(priority)
        if given.weights is not None:
            weights, others = resolved(given.weights, self.schema)
            wrong |= others
        failed: dict[int, ExpressionError] = {}
        if 0 < len(expressions) <= FEW_EXPRESSIONS and given.weights is None and not wrong:
            read_forms = _in_order(compiler, expressions, failed)
            self._seen.update(id(form) for form, _ in read_forms)
            lowered = None if failed else few.lower(read_forms)
            if lowered is not None:
                local = few.session.literal or compiler.zoned
                if priority is not None:
                    lowered = lowered._replace(predicates=with_given(lowered.predicates, {"priority": priority}))
                return NewSubscriptions(lowered, attributes, ids, [], local, tags)
        lowering = Lowering(attributes, Session(self.options.timezone), weights, priority)
        by_kernels = given.weights is None and not self.language.is_betree
        lowering.rejected.update(wrong)
        zoned = compiler.zoned
        known = set(failed)
        if not failed or errors == "collect":
            with bar(len(expressions), "subscriptions", progress) as shown:
                start = 0
                while start < len(expressions) and not (failed and errors == "raise"):
                    if start:
                        compiler, _ = self._compiler_for(given.weights is not None)
                    stop, left, found = self._next_piece(compiler if by_kernels else None, expressions, start, lowering)
                    failed.update(found)
                    if found and errors == "raise":  # what is read one by one may be wrong before it
                        left = [number for number in left if number < min(found)]
                    elif known:  # of a few, which were read above
                        left = [number for number in left if number not in known]
                    shown.update(stop - start - len(left))
                    texts = expressions[start:stop] if isinstance(left, range) else map(expressions.__getitem__, left)
                    numbered = counted(zip(left, texts, strict=True), shown)
                    forms = _forms(compiler, numbered, failed, stop=errors == "raise")
                    self._seen.update(id(form) for form, _, _ in forms)
                    for form, subs, literals in forms:
                        lowering.add(form, subs, literals)
                    zoned = zoned or compiler.zoned
                    lowering.let_go()
                    start = stop
        if errors == "raise" and failed:
            sub = min(failed)
            raise failed[sub].at(ids[sub])
        return _finish(lowering, attributes, ids, (compiler, expressions), failed, errors, tags, zoned)

    def _next_piece(
        self, compiler: Any, expressions: Sequence[Any], start: int, lowering: Lowering
    ) -> tuple[int, Sequence[int], dict[int, ExpressionError]]:
        """Has kernels read expressions from ``start`` on, where they can.

        compiler : of single texts, None where kernels can read none

        Returns where the next ones begin, the numbers of those that are to be read one by one, and
        the errors of others by their numbers.
        """
        stop = min(start + PIECE, len(expressions))
        few = stop - start < FEWEST_TEXTS or compiler is None
        texts = None if few else _texts(expressions, start, stop)
        if texts is not None:
            kept = self._texts
            if kept is None or kept.compiler is not compiler or kept.phrases > PHRASES_KEPT:
                from colmatch.subscriptions.texts import TextReader

                kept = self._texts = TextReader(compiler)
            if kept.is_ready():
                left, errors = kept.read(texts, start, lowering)
                return stop, (start + left).tolist(), {start + text: error for text, error in errors.items()}
            stop = min(start + MEANWHILE, stop)
        return stop, range(start, stop), {}

    def _compiler_for(self, by_attribute: bool) -> tuple[Compiler | BetreeCompiler, FewExpressions]:
        """Returns the compiler, and what lowers a few forms."""
        if self._few is None or len(self._seen) > FORMS_KEPT:
            self._compilers, self._seen = {}, set()
            self._few = FewExpressions(self.attributes, Session(self.options.timezone))
        compiler = self._compilers.get(by_attribute)
        if compiler is None:
            compiler = self._compilers[by_attribute] = _compiler_of(self.language)(
                self.schema, self.attributes, self.options, self.budget, by_attribute, self.language.two_valued
            )
        return compiler, self._few


def _texts(expressions: Sequence[Any], start: int, stop: int) -> pa.StringArray | None:
    """Returns some expressions as strings; None where one is something else."""
    given = expressions[start:stop] if not isinstance(expressions, ArrowTexts) else None
    if given is not None and set(map(type, given)) != {str}:
        return None
    try:  # 2 GB of texts are too many for an array, and half a surrogate pair is no text
        some = expressions.slice(start, stop) if given is None else pa.array(given, pa.string())  # type: ignore[attr-defined]
    except (UnicodeEncodeError, pa.ArrowException):
        return None
    return some if isinstance(some, pa.StringArray) else None


def _compiler_of(language: Language) -> type[Compiler | BetreeCompiler]:
    """Imports what reads a language: SQL brings its parser."""
    if language.is_betree:
        from colmatch.betree.compile import BetreeCompiler

        return BetreeCompiler
    from colmatch.sql.compile import Compiler

    return Compiler


_FormOf = tuple[Form, list[int], list[Any]]  # a form, its subscriptions, and their literals


def _in_order(
    compiler: Compiler | BetreeCompiler, expressions: Sequence[Any], failed: dict[int, ExpressionError]
) -> list[tuple[Form, list[Any]]]:
    """Returns the form and the literals of each expression, up to the first that fails."""
    found = []
    for sub, expression in enumerate(expressions):
        try:
            found.append(compiler.form(expression))
        except ExpressionError as error:
            failed[sub] = error
            break
    return found


def _forms(
    compiler: Compiler | BetreeCompiler,
    expressions: Iterable[tuple[int, Any]],
    failed: dict[int, ExpressionError],
    stop: bool,
) -> Collection[_FormOf]:
    """Returns forms, and for each its subscriptions and their literals.

    expressions : each with the number of its subscription

    Errors are entered in ``failed``; the first is the last with ``stop``.
    """
    forms: dict[int, _FormOf] = {}
    for sub, expression in expressions:
        try:
            form, literals = compiler.form(expression)
        except ExpressionError as error:
            # without what it was found in: frames hold tokens and trees
            failed[sub] = ExpressionError(error.message, line=error.line, column=error.column)
            if stop:
                return ()
            continue
        known = forms.get(id(form))  # a form is held here, so that its id stays its own
        if known is None:
            known = forms[id(form)] = (form, [], [])
        known[1].append(sub)
        known[2].append(literals)
    return forms.values()


def _finish(
    lowering: Lowering,
    attributes: Attributes,
    ids: Ids,
    texts: Any,
    failed: dict[int, ExpressionError],
    errors: Errors,
    tags: Tags,
    zoned: str | None = None,
) -> NewSubscriptions:
    lowered = lowering.finish()
    bad = {
        sub: (error.message, None if error.line is None else (error.line, error.column or 1))
        for sub, error in failed.items()
    }
    for sub, reject in lowered.rejected.items():
        place = texts[0].place(texts[1][sub], reject.slot) if texts is not None and reject.slot >= 0 else None
        bad[sub] = (reject.message, place)
    if bad and errors == "raise":
        sub = min(bad)
        message, place = bad[sub]
        line, column = place or (None, None)
        raise ExpressionError(message, id=ids[sub], line=line, column=column)
    rejected = [Rejected(ids[sub], bad[sub][1], bad[sub][0]) for sub in sorted(bad)]
    if bad:
        left = np.ones(len(ids), bool)
        left[list(bad)] = False
        ids, tags = ids.filter(left), tags.filter(left)
        owner = (np.cumsum(left) - 1)[lowered.predicates.owner].astype(np.uint32)
        lowered = lowered._replace(predicates=lowered.predicates._replace(owner=owner))
    local = lowering.session.literal or zoned
    return NewSubscriptions(lowered.frozen(), attributes, ids, rejected, local, tags)


def read(
    subscriptions: Any, language: Language = SQL, constants: Any = None, tags: Any = None
) -> PredicateTable | GivenSubscriptions:
    """Reads what the caller hands over, which may take time, or call the matcher again.

    constants : by id, for a language that has some
    tags : by id

    Raises SubscriptionError: it cannot be read, or an id is none, or there twice; or tags are given
    twice.
    """
    given = _read(subscriptions, language)
    if tags is not None:
        if given.tags is not None:
            raise SubscriptionError(
                "tags= is given, and the subscriptions have tags of their own: one of both is needed"
            )
        beside = given_tags(tags)
        given = given.with_tags(beside) if isinstance(given, PredicateTable) else given._replace(tags=beside)
    if constants is not None and isinstance(given, PredicateTable):
        raise OptionError("constants= goes with expressions, not with a PredicateTable")
    if constants is None or isinstance(given, PredicateTable):
        return given
    return given._replace(expressions=with_constants(given.ids, given.expressions, constants, language))


def _read(subscriptions: Any, language: Language) -> PredicateTable | GivenSubscriptions:
    if isinstance(subscriptions, (PredicateTable, GivenSubscriptions)):
        return subscriptions
    is_list = type(subscriptions) is list  # as usual, and quicker
    package = type(subscriptions).__module__.partition(".")[0]
    if not is_list and isinstance(subscriptions, Mapping):
        ids, expressions = list(subscriptions), list(subscriptions.values())
    elif package == "pandas" and hasattr(subscriptions, "to_list"):  # a Series, whose index Arrow has not
        ids, expressions = subscriptions.index.to_list(), subscriptions.to_list()
    elif not is_list and (hasattr(subscriptions, "__arrow_c_stream__") or hasattr(subscriptions, "__arrow_c_array__")):
        return _arrow_pairs(subscriptions, language)
    elif package == "polars" and hasattr(subscriptions, "collect"):  # a LazyFrame
        return _read(subscriptions.collect(), language)
    elif package == "pyarrow" and hasattr(subscriptions, "to_table"):  # a dataset
        return _read(subscriptions.to_table(), language)
    elif is_list or is_listed(subscriptions):
        ids, expressions = [], []
        for i, pair in enumerate(subscriptions):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                table = "; pyarrow.Table.from_pylist makes a table" if isinstance(pair, Mapping) else ""
                said = f"subscription number {i} is {shown(pair)}: a pair (id, expression) is needed{table}"
                raise SubscriptionError(said)
            ids.append(pair[0])
            expressions.append(pair[1])
    else:
        raise SubscriptionError(
            f"subscriptions cannot be read from {type(subscriptions).__name__}: a dict {{id: text}}, pairs (id, text), an Arrow "
            "table with the columns id and expression, or a PredicateTable is needed"
        )
    return GivenSubscriptions(ids_of_values(ids), expressions)


def _arrow_pairs(source: Any, language: Language) -> GivenSubscriptions:
    where = "the table of subscriptions"
    table = table_of(source, SubscriptionError, where)
    ids, texts = (column_of(table, name, SubscriptionError, where) for name in ("id", "expression"))
    if ids.null_count:
        raise SubscriptionError(f"{where}: column 'id' is NULL in row {ids.is_null().index(True).as_py()}")
    check_names(table, where)
    given = texts.type.value_type if pa.types.is_dictionary(texts.type) else texts.type
    if not (pa.types.is_string(given) or pa.types.is_large_string(given)):
        raise SubscriptionError(f"{where}: column 'expression' is {texts.type}, a string is needed")
    unique = Ids(checked_unique(ids_of_column(ids, where)))
    expressions: Sequence[Any] = ArrowTexts(texts)
    if language.is_betree:
        expressions = with_constants(unique, expressions, constants_of_table(table, unique, where), language)
    weights, priority = given_weights(table, where), given_priority(table, where)
    return GivenSubscriptions(unique, expressions, weights, priority, tags_of_table(table, where))
