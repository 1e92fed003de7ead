"""The parts of a new matcher, from the arguments of its caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from colmatch.betree.events import schema_of
from colmatch.errors import OptionError
from colmatch.events.sample import NOTHING, SampleKeeper, count_values
from colmatch.events.vocabulary import Vocabulary
from colmatch.given.arguments import check_flag
from colmatch.given.language import Language
from colmatch.given.options import Options, options_of
from colmatch.given.schema import Attributes, Schema, with_definitions
from colmatch.kinds import plan
from colmatch.kinds.registry import is_in_pages
from colmatch.kinds.settings import Settings
from colmatch.predicates.columns import EMPTY
from colmatch.subscriptions.change import definitions_in
from colmatch.subscriptions.definitions import change_definitions, join_definitions, read_definitions
from colmatch.subscriptions.given import read
from colmatch.subscriptions.intake import Collecting, Errors, NewSubscriptions, SubscriptionReader
from colmatch.subscriptions.texts_kept import NO_TEXTS
from colmatch.updates.deleted import DeletedNumbers
from colmatch.updates.literals import label_first
from colmatch.updates.segments import Handed, build_segment
from colmatch.updates.vacuum import drop_unused
from colmatch.updates.versions import Parts, Version


class BuildInput(NamedTuple):
    """The arguments of a build, checked, and the lowered subscriptions."""

    requested: Settings
    options: Options
    schema: Schema
    language: Language
    intake: NewSubscriptions  # without their predicates
    predicates: Handed
    definitions: Mapping[str, str]


def take_in(
    subscriptions: Any,
    schema: Any,
    index: str | Settings,
    options: Options | Mapping[str, Any] | None,
    errors: Errors | Collecting,
    language: Language,
    constants: Any = None,
    tags: Any = None,
    progress: bool = False,
    attributes: Attributes | None = None,
    define: Any = None,
    writes_out: bool = False,
) -> BuildInput:
    """Checks and lowers. The arguments and errors are as for ``Matcher.build``.

    attributes : attributes that have ids already
    writes_out : whether expressions have definitions written out, even large ones
    """
    requested = plan.read_settings(index)
    options = check_options(requested, options_of(options))
    if language.is_betree:
        schema = schema_of(schema)
    columns = schema if isinstance(schema, Schema) else Schema(schema)
    given = read(subscriptions, language, constants, tags)
    changes = join_definitions(definitions_in([given]), read_definitions(define))
    definitions = change_definitions({}, changes, columns, language)
    reader = SubscriptionReader(
        with_definitions(columns, definitions, writes_out),
        options,
        attributes or Attributes(),
        requested.budget,
        language,
    )
    intake = reader.take_in(given, errors, check_flag("progress={}", progress))
    predicates, lowered = Handed(intake.lowered.predicates), intake.lowered._replace(predicates=EMPTY)
    return BuildInput(requested, options, columns, language, intake._replace(lowered=lowered), predicates, definitions)


def check_options(requested: Settings, options: Options) -> Options:
    """Returns the options if they suit the kind of index.

    Raises OptionError: events are to be observed, but a file of pages counts none.
    """
    if options.observe and is_in_pages(requested):
        raise OptionError(
            f"Options(observe={options.observe}): no events are counted for a file of pages, so none are observed: "
            "leave observe=0, or choose an index in memory"
        )
    return options


def build_parts(given: BuildInput, sample: Any, keeps_unused: bool = False) -> Parts:
    """Indexes the lowered subscriptions, and returns the parts of a matcher.

    keeps_unused : whether attributes without predicates stay. Those of rejected expressions, and of
        conditions that were decided, have none
    """
    requested, options, columns, language, intake, predicates, definitions = given
    lowered, attributes, count = intake.lowered, intake.attributes, len(intake.ids)
    codes, string_literals = label_first(lowered.codes, lowered.literals)
    literals = Vocabulary.among(string_literals)
    seen, kept = None, NOTHING
    if sample is not None:
        keeper = SampleKeeper(sample, options.batch_rows, columns)
        lenient = options.missing_columns == "null"
        seen, kept = count_values(iter(keeper), attributes, codes, literals, lenient), keeper.kept()
    segment, reason = build_segment(requested, predicates, codes, seen, count, count)
    version = Version(
        attributes=attributes,
        literals=literals,
        segments=(segment,),
        bases=(0,),
        growing=False,
        deleted=DeletedNumbers(),
        alive=(count,),
        stale=(0,),
        gone=0,
        ids=intake.ids,
        reason=reason,
        session_parts=intake.session_parts,
        rejected={entry.id: entry for entry in intake.rejected},
        definitions=definitions,
        sample=kept,
        tags=intake.tags,
        texts=NO_TEXTS.extended(intake.texts, count),
    )
    if not keeps_unused:
        version = drop_unused(version, None)
    return Parts(schema=columns, options=options, requested=requested, version=version, language=language)
