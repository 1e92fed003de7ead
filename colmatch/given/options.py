"""Options of a matcher of any kind, in one frozen value, checked once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from colmatch.errors import OptionError, show_value, suggest_names
from colmatch.given.arguments import check_choice, check_flag, check_whole, text

MissingColumns = Literal["error", "null"]
Order = Literal["subscription", "any"]
DoubleQuotes = Literal["texts", "names"]
Casts = Literal["written", "spark"]

# options that can be changed while a matcher is in use
RUNNING = ("batch_rows", "threads", "missing_columns", "order", "observe", "max_text_bytes")


@dataclass(frozen=True, slots=True)
class Options:
    """Options to build and run a matcher. The defaults suit almost everyone.

    Settings of one index kind are not here, but in ``colmatch.index``.

    Attributes
    ----------
    batch_rows : most rows that are matched at a time. Larger input is cut and smaller batches are
        gathered, so peak memory follows this number and not the caller's batches. 1 to 2**20.
    threads : threads that match at once; 0 is one for each core that the process may use. Inside
        Spark it is always one, since Spark runs a worker for each core. 0 to 1024.
    missing_columns : treatment of events without a column or struct field that an expression uses,
        or without an end of a range. ``"error"`` raises an EventError, and ``"null"`` takes the
        column to be NULL in every row.
    order : order of the subscriptions that match one event. ``"subscription"`` is the order of
        ``Matcher.ids``. With ``"any"``, the order depends on the index kind and on merges. It saves
        up to a sixth of the time when events match hundreds of subscriptions.
    observe : number of recently matched events to keep, about one of every 128. They take 16 MB at
        most. Each merge of segments, and ``compact``, uses the kept events instead of a sample.
        With 0, none is kept; a matcher in a file of pages needs 0. 0 to 4096.
    max_depth : deepest nesting of parentheses, NOT and unary minus that the parser accepts. 1 to
        400.
    max_text_bytes : most UTF-8 bytes in the text of one expression. A longer text is an error
        before any of it is read. A ``PredicateTable`` has no such limit. 1 to 2**30.
    timezone : zone of a timestamp literal without a zone when its column has one (Spark's session
        time zone): ``"Europe/Berlin"``, ``"+02:00"``. Parts of timestamps, such as ``hour(at)``,
        are computed in this zone.
    ansi : True to compute values in Spark's ANSI mode. An overflow, a division by zero or a value
        that does not fit a cast is then an EventError. Otherwise the result wraps or is NULL.
    double_quotes : meaning of double quotes in expressions. ``"texts"`` is Spark's: ``"Nice"`` is
        the text ``'Nice'``. ``"names"`` is the meaning in ANSI SQL, PostgreSQL, DuckDB and
        Snowflake: ``"city"`` is the column.
    keep_texts : True to keep the texts of subscriptions, compressed, as they were written. A text
        of 60 bytes takes 13. Without them, ``Matcher.expression``, ``to_table`` and ``sync`` are
        errors (the guide, docs/read-back.md).
    casts : casts where texts meet values of other types, as in ``s = 5``. With ``"written"``, such
        a comparison is an error, unless its casts are written in it. With ``"spark"``, it gets the
        casts that Spark 4.3 inserts, which depend on ``ansi``.
    """

    batch_rows: int = 8192
    threads: int = 0
    missing_columns: MissingColumns = "error"
    order: Order = "subscription"
    observe: int = 0
    max_depth: int = 200
    max_text_bytes: int = 1 << 20
    timezone: str = "UTC"
    ansi: bool = False
    double_quotes: DoubleQuotes = "texts"
    keep_texts: bool = True
    casts: Casts = "written"

    def __post_init__(self) -> None:
        for name, low, high in (
            ("batch_rows", 1, 2**20),
            ("threads", 0, 1024),
            ("observe", 0, 4096),
            ("max_depth", 1, 400),
            ("max_text_bytes", 1, 2**30),
        ):
            object.__setattr__(self, name, check_whole(f"Options({name}={{}})", getattr(self, name), low, high))
        for name, choices in (
            ("missing_columns", get_args(MissingColumns)),
            ("order", get_args(Order)),
            ("double_quotes", get_args(DoubleQuotes)),
            ("casts", get_args(Casts)),
        ):
            object.__setattr__(self, name, check_choice(f"Options({name}={{}})", getattr(self, name), choices))
        for name in ("ansi", "keep_texts"):
            object.__setattr__(self, name, check_flag(f"Options({name}={{}})", getattr(self, name)))
        from colmatch.given.session import time_zone

        zone = text(self.timezone)
        try:
            time_zone(zone or "none")
        except ValueError as error:
            raise OptionError(f"Options(timezone={show_value(self.timezone)}): not a known time zone") from error
        object.__setattr__(self, "timezone", zone)

    def with_settings(self, options: Options) -> Options:
        """Returns ``options``, checked for a matcher that was built with these.

        Raises
        ------
        OptionError : ``options`` differ in an option that the index was built with
        """
        for name, value in check_options(options).to_dict().items():
            if name not in RUNNING and value != getattr(self, name):
                raise OptionError(f"the index was built with {name}={getattr(self, name)!r}: rebuild for {value!r}")
        return options

    def opened_with(self, options: Options | Mapping[str, Any], zone_part: str | None) -> Options:
        """Returns these options of a built matcher, changed by the options given on opening.

        Parameters
        ----------
        options : an ``Options`` sets its non-default values; a mapping sets its entries
        zone_part : a literal or value that depends on the time zone, or None

        Raises
        ------
        OptionError : ``options`` differ in an option that the index was built with
        """
        if isinstance(options, Mapping):
            changes = _check_names(options)
        else:
            default = Options()
            changes = {
                name: value
                for name, value in check_options(options).to_dict().items()
                if value != getattr(default, name)
            }
        opened = replace(self, **changes)
        if zone_part is not None and opened.timezone != self.timezone:
            raise OptionError(
                f"timezone={opened.timezone!r}: {zone_part} was read in {self.timezone!r}; rebuild for another zone"
            )
        replace(self, timezone=opened.timezone).with_settings(opened)
        return opened

    def to_dict(self) -> dict[str, int | str | bool]:
        """Returns the value of each option by its name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def value_of_text(written: str, default: Any) -> Any:
    """Reads a value of the type of ``default`` from a command line.

    An unreadable value stays a text, for a later check to refuse.
    """
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(written.lower(), written)
    if isinstance(default, int) and re.fullmatch("[+-]?[0-9]{1,19}", written):
        return int(written)
    return written


def _check_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a mapping from names of options as a dict, if there are options of all names."""
    defaults = Options().to_dict()
    for name in options:
        if name not in defaults:
            raise OptionError(f"there is no option {show_value(name)}: {suggest_names(str(name), defaults, 'Options')}")
    return dict(options)


def options_of(given: Options | Mapping[str, Any] | None) -> Options:
    """Returns the options for a new matcher; a mapping sets the options that it names."""
    return Options(**_check_names(given or {})) if given is None or isinstance(given, Mapping) else check_options(given)


def check_options(options: object) -> Options:
    """Returns the argument, which must be an ``Options``."""
    if not isinstance(options, Options):
        raise OptionError(f"options={show_value(options)}: Options(...) is needed")
    return options
