"""From a caller's subscriptions to lowered predicates, ids and rejected subscriptions."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

import numpy as np
import pyarrow as pa

from colmatch.errors import ExpressionError, OptionError, Rejected, SubscriptionError, show_value
from colmatch.given.arguments import check_choice, most_of, number
from colmatch.given.language import SQL, Language
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Schema, definitions_of
from colmatch.given.session import Session, SessionParts
from colmatch.kinds.settings import Budget
from colmatch.lowering.few import FEW_EXPRESSIONS, FewExpressions
from colmatch.lowering.lower import LoweredExpressions, Lowering
from colmatch.show.progress import bar
from colmatch.subscriptions.computed import ComputedNames
from colmatch.subscriptions.given import GivenSubscriptions, read
from colmatch.subscriptions.ids import Ids
from colmatch.subscriptions.readers import ExpressionReader, FewReader, SingleReader
from colmatch.subscriptions.rows import add_table
from colmatch.subscriptions.table import PredicateTable
from colmatch.subscriptions.tags import NO_TAGS, Tags, tags_of
from colmatch.subscriptions.texts_kept import texts_of

if TYPE_CHECKING:
    from colmatch.betree.compile import BetreeCompiler
    from colmatch.sql.compile import FormCompiler
    from colmatch.subscriptions.texts import TextReader

Errors = Literal["raise", "collect"]


class Collecting(NamedTuple):
    """A limit for the bad expressions of a call that are left out.

    Attributes
    ----------
    most : how many may be left out, or as a float which share; None for no limit
    is_whole : whether the call gives all subscriptions of a matcher, so that one must be good
    total : how many it gives, if only some of them are read; None if all are
    """

    most: int | float | None
    is_whole: bool
    total: int | None = None

    def allows(self, rejected: int, count: int) -> bool:
        """Returns whether so many of some subscriptions may be left out."""
        if self.most is None:
            return not rejected or rejected < count or not self.is_whole
        return rejected <= (self.most if isinstance(self.most, int) else most_of(self.most, count))

    def check(self, rejected: Sequence[Rejected], count: int) -> None:
        """Checks the number of subscriptions that are left out of some.

        Raises SubscriptionError: they are too many.
        """
        count = count if self.total is None else self.total
        if not self.allows(len(rejected), count):
            limit = "at least one is needed" if self.most is None else f"max_rejected={self.most}"
            first, (line, column) = rejected[0], rejected[0].position or (None, None)
            error = ExpressionError(first.message, id=first.id, line=line, column=column)
            raise SubscriptionError(
                f"{len(rejected):,} of {count:,} expressions cannot be used, and {limit}; nothing was taken in. "
                f"The first error: {error}"
            )


def read_errors(
    errors: Any, max_rejected: Any = None, is_whole: bool = False, total: int | None = None
) -> Literal["raise"] | Collecting:
    """Reads the arguments ``errors`` and ``max_rejected`` of a call.

    is_whole, total : as of ``Collecting``

    Raises OptionError: one of them has another value, or a limit comes without ``"collect"``.
    """
    if check_choice("errors={}", errors, get_args(Errors)) == "raise":
        if max_rejected is not None:
            raise OptionError("max_rejected= goes with errors='collect': without it, no expression may be bad")
        return "raise"
    if max_rejected is None:
        return Collecting(None, is_whole, total)
    most = number(max_rejected)
    if most is None or not most >= 0 or (isinstance(most, float) and most > 1):
        raise OptionError(
            f"max_rejected={show_value(max_rejected)}: give a number of expressions, or a share from 0.0 to 1.0"
        )
    return Collecting(most, is_whole, total)


PIECE = 1 << 16  # texts that kernels read together
SINGLE_PIECE = 1 << 14  # expressions that are read one by one before they are lowered: their forms may take 5 KB each
FEWEST_TEXTS = 128  # fewest texts that kernels read together
PHRASES_KEPT = 200_000  # shapes of phrases that a reader of texts may know before it forgets them
FORMS_KEPT = 100_000  # forms that a reader may have known before it forgets them


class NewSubscriptions(NamedTuple):
    """New subscriptions, lowered. Arrays are contiguous and read-only."""

    lowered: LoweredExpressions
    attributes: Attributes
    ids: Ids  # of the subscriptions that are left
    rejected: list[Rejected]
    session_parts: SessionParts
    tags: Tags = NO_TAGS  # of the subscriptions that are left
    texts: pa.LargeStringArray | None = None  # of the same ones, if texts are kept


class SubscriptionReader:
    """A reader of subscriptions of one schema, for repeated use.

    Attributes keep their ids, and texts of a known form are read quickly.

    Parameters
    ----------
    attributes : attributes that have ids already; the reader adds others, also for rejected
        subscriptions
    """

    def __init__(
        self, schema: Schema, options: Options, attributes: Attributes, budget: Budget, language: Language = SQL
    ) -> None:
        self.schema = schema
        self.options = options
        self.budget = budget
        self.language = language
        self.attributes = attributes
        self._single: dict[bool, SingleReader] = {}  # by whether attributes have weights
        self._few: FewReader | None = None
        self._texts: TextReader | None = None

    def take_in(self, subscriptions: Any, errors: Errors | Collecting, progress: bool = False) -> NewSubscriptions:
        """Lowers subscriptions: anything that ``Matcher.build`` takes, or a result of ``read``.

        progress : show a bar on standard error

        Raises
        ------
        ExpressionError : an expression cannot be understood, with ``errors="raise"``
        SubscriptionError : the subscriptions cannot be read, or more are bad than may be
        """
        given = read(subscriptions, self.language)
        was = gc.isenabled()
        try:
            try:
                # Otherwise, the collector visits a million small tuples again and again, and all
                # of them stay. This takes a quarter of the time of a build from texts.
                gc.disable()
                return self._lower(given, errors, progress)
            finally:
                if was:
                    gc.enable()
        finally:  # again, since Ctrl-C may come between the two lines above
            if was:
                gc.enable()

    def _lower(
        self, given: PredicateTable | GivenSubscriptions, errors: Errors | Collecting, progress: bool
    ) -> NewSubscriptions:
        if len(self.attributes.solved) > FORMS_KEPT:
            self._forget()
            self.attributes.forget_solved()
        lowering = Lowering(self.attributes, Session(self.options.timezone))
        bad: dict[int, ExpressionError] = {}
        if definitions_of(self.schema):
            self._single_reader(False)  # definitions are checked, even if no expression is given
        if isinstance(given, PredicateTable):
            computed = ComputedNames(self.schema, self.options)
            ids = Ids(add_table(given, self.schema, computed, self.attributes, lowering))
            lowering.computed_parts = computed.session_parts
            tags, lowered = tags_of(given.tags, ids), lowering.finish()
            bad = {sub: ExpressionError(reject.message) for sub, reject in lowered.rejected.items()}
        else:
            ids, tags = given.ids, tags_of(given.tags, given.ids)
            lowering.weights, lowering.priority, rejects = given.weights.resolve(self.schema)
            lowering.rejected.update(rejects)
            with bar(len(ids), "subscriptions", progress) as shown:
                bad = self._read(given.expressions, lowering, errors == "raise", shown)
            if bad and errors == "raise":
                raise bad[min(bad)].at(ids[min(bad)])
            lowered = lowering.finish()
            for sub, reject in lowered.rejected.items():
                compiler = self._single_reader(lowering.weights is not None).compiler
                place = compiler.place(given.expressions[sub], reject.slot) if reject.slot >= 0 else None
                line, column = place or (None, None)
                bad[sub] = ExpressionError(reject.message, line=line, column=column)
        if bad and errors == "raise":
            raise bad[min(bad)].at(ids[min(bad)])
        rejected = [_as_rejected(bad[sub], ids[sub]) for sub in sorted(bad)]
        if rejected and isinstance(errors, Collecting):
            errors.check(rejected, len(ids))
        left = None
        if bad:
            left = np.ones(len(ids), bool)
            left[list(bad)] = False
            ids, tags = ids.filter(left), tags.filter(left)
            owner = (np.cumsum(left) - 1)[lowered.predicates.owner].astype(np.uint32)
            lowered = lowered._replace(predicates=lowered.predicates._replace(owner=owner)).freeze()
        texts = None
        if self.options.keep_texts and not isinstance(given, PredicateTable):
            texts = texts_of(given, left)
        return NewSubscriptions(lowered, self.attributes, ids, rejected, lowering.session_parts, tags, texts)

    def _read(
        self, expressions: Sequence[Any], lowering: Lowering, stop: bool, shown: Any
    ) -> dict[int, ExpressionError]:
        """Passes expressions to a lowering. Returns errors by number.

        With ``stop``, reading ends at the first error.
        """
        failed: dict[int, ExpressionError] = {}
        start = 0
        while start < len(expressions) and not (failed and stop):
            readers, most = self._readers(len(expressions) - start, lowering, whole=not start)
            numbers: Sequence[int] = range(start, min(start + most, len(expressions)))
            start += len(numbers)
            for reader in readers:
                count = len(numbers)
                numbers, errors = reader.read(expressions, numbers, lowering, stop) if count else (numbers, {})
                shown.update(count - len(numbers))
                failed.update(errors)
                if errors and stop:  # the next reader may find an error before this one
                    numbers = [number for number in numbers if number < min(errors)]
            compiler = self._single_reader(lowering.weights is not None).compiler
            lowering.computed_parts = lowering.computed_parts.with_others(compiler.session_parts)
            lowering.flush_if_possible()
        return failed

    def _readers(self, count: int, lowering: Lowering, whole: bool) -> tuple[list[ExpressionReader], int]:
        """Returns the readers, in the order of their use, and the most expressions for one pass.

        count : number of expressions that are left
        whole : whether these are all
        """
        weighted = lowering.weights is not None
        single = self._single_reader(weighted, is_first=True)
        if whole and count <= FEW_EXPRESSIONS and not weighted:
            if self._few is None:
                self._few = FewReader(single, FewExpressions(self.attributes, Session(self.options.timezone)))
            return [self._few, single], FEW_EXPRESSIONS
        if count >= FEWEST_TEXTS and not self.language.is_betree:
            texts = self._texts
            if texts is None or texts.compiler is not single.compiler or texts.phrases > PHRASES_KEPT:
                from colmatch.subscriptions.texts import TextReader

                texts = self._texts = TextReader(cast("FormCompiler", single.compiler))
            if texts.is_ready():
                return [texts, single], PIECE
        return [single], SINGLE_PIECE

    def _single_reader(self, weighted: bool, is_first: bool = False) -> SingleReader:
        """Returns the reader of single expressions.

        is_first : whether readers may forget forms now, if they have met too many
        """
        if is_first and sum(len(reader.forms) for reader in self._single.values()) > FORMS_KEPT:
            self._forget()
        if weighted not in self._single:
            compiler = _compiler_of(self.language)(
                self.schema, self.attributes, self.options, self.budget, weighted, self.language.two_valued
            )
            self._single[weighted] = SingleReader(compiler)
        return self._single[weighted]

    def _forget(self) -> None:
        """Forgets all forms."""
        self._single, self._few, self._texts = {}, None, None


def _as_rejected(error: ExpressionError, id: int | str) -> Rejected:
    return Rejected(id, None if error.line is None else (error.line, error.column or 1), error.message)


def _compiler_of(language: Language) -> type[FormCompiler | BetreeCompiler]:
    """Imports the compiler of a language: SQL brings its parser."""
    if language.is_betree:
        from colmatch.betree.compile import BetreeCompiler

        return BetreeCompiler
    from colmatch.sql.compile import FormCompiler

    return FormCompiler
