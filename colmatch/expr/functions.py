"""The table of functions that are computed once for each text, number or day.

The parser, the builder, the types and the pages of the reference come from it. A new function
needs a row here, and its computation in ``texts.py``, ``regexes.py`` or ``maths.py`` of
``events/computed/``.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

STRING, DOUBLE, WHOLE, INT, BIGINT, DATE, TIMESTAMP = "string", "double", "whole", "int", "bigint", "date", "timestamp"
TEXT, NUMBER = "a text", "a number"  # constants, which are literals: a string and a whole number
CONSTANTS = (TEXT, NUMBER)
ONLY_DATE, ONLY_TIMESTAMP = "date!", "timestamp!"  # values of other types are not cast
_SHOWN = {WHOLE: "int or bigint", TEXT: "literal string", NUMBER: "literal int"}


class Function(NamedTuple):
    """A function of Spark SQL.

    Attributes
    ----------
    name : Spark's name
    arguments : types of the values, then constants. A value of a narrower type is cast, and so is a
        timestamp where a date is needed. ``whole`` is any type of whole numbers
    result : its type; ``whole`` is that of the first argument
    call : how it is written
    test : what makes a condition of the call, which is true for ``row``
    row : an event
    about : what it returns, for the reference
    optional : how many of the last arguments may be left out
    synonyms : names in other dialects, or of Spark
    """

    name: str
    arguments: tuple[str, ...]
    result: str
    call: str
    test: str
    row: dict[str, Any]
    about: str
    optional: int = 0
    synonyms: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        """Returns the types of its arguments, with ? for those that may be left out."""
        least = len(self.arguments) - self.optional
        shown = [_SHOWN.get(kind, kind.rstrip("!")) + "?" * (i >= least) for i, kind in enumerate(self.arguments)]
        return f"{self.name}({', '.join(shown)}) -> {_SHOWN.get(self.result, self.result)}"


# Columns of the rows, with their types
COLUMNS = {
    "path": "string", "name": "string", "id": "string", "day": "date32", "at": "timestamp", "x": "double", "flags": "int", "y": "int",
}  # fmt: skip
_PATH = {"path": "shop/guide/index.htm"}
_NAME = {"name": "ada lovelace"}
_DAY = {"day": dt.date(2024, 1, 31)}
_AT = {"at": dt.datetime(2024, 1, 31, 12, 30, tzinfo=dt.UTC)}
_ID = {"id": "user-1"}
_X = {"x": 2.0}
_ROWS = (
    # Texts
    Function("split_part", (STRING, TEXT, NUMBER), STRING, "split_part(path, '/', 1)", "= 'shop'", _PATH,
             "A part of a text between separators. Parts count from 1, or from -1 at the end. It is `''` where there are too few."),
    Function("substring_index", (STRING, TEXT, NUMBER), STRING, "substring_index(path, '/', 2)", "= 'shop/guide'", _PATH,
             "What is before the n-th separator; for a negative number, what is behind it, counted from the end."),
    Function("translate", (STRING, TEXT, TEXT), STRING, "translate(path, '/.', '-_')", "= 'shop-guide-index_htm'", _PATH,
             "Each character of the second text becomes that of the third in the same place, or goes where there is none."),
    Function("lpad", (STRING, NUMBER, TEXT), STRING, "lpad(id, 8, '0')", "= '00user-1'", _ID,
             "A text of exactly so many characters: padded at its beginning, or cut at its end.", 1),
    Function("rpad", (STRING, NUMBER, TEXT), STRING, "rpad(id, 8, '0')", "= 'user-100'", _ID,
             "A text of exactly so many characters: padded or cut at its end.", 1),
    Function("initcap", (STRING,), STRING, "initcap(name)", "= 'Ada Lovelace'", _NAME,
             "A capital at the beginning and after each space, and small letters elsewhere."),
    Function("ascii", (STRING,), INT, "ascii(name)", "= 97", _NAME, "The number of the first character, 0 for `''`.", 0,
             ("unicode", "ord")),
    Function("octet_length", (STRING,), INT, "octet_length(name)", "> 5", _NAME, "The number of bytes in UTF-8.", 0, ("strlen",)),
    Function("bit_length", (STRING,), INT, "bit_length(name)", "= 96", _NAME, "The number of bits in UTF-8."),
    Function("crc32", (STRING,), BIGINT, "crc32(id)", "% 100 < 90", {"id": "user-1"}, "The checksum of the bytes in UTF-8."),
    Function("md5", (STRING,), STRING, "md5(id)", "LIKE '%7%'", _ID, "The MD5 hash as 32 hexadecimal digits."),
    Function("sha1", (STRING,), STRING, "sha1(id)", "LIKE '%a%'", _ID, "The SHA-1 hash as 40 hexadecimal digits.", 0, ("sha",)),
    Function("sha2", (STRING, NUMBER), STRING, "sha2(id, 256)", "LIKE '%a%'", _ID,
             "The SHA-2 hash of 224, 256, 384 or 512 bits in hexadecimal digits. 0 is 256, and any other number makes it NULL."),
    Function("base64", (STRING,), STRING, "base64(id)", "= 'dXNlci0x'", _ID,
             "The bytes in UTF-8 as Base64, in lines of 76 characters.", 0, ("to_base64",)),
    Function("hex", (STRING,), STRING, "hex(id)", "= '757365722D31'", _ID, "The bytes in UTF-8 as hexadecimal digits.", 0,
             ("to_hex",)),
    Function("levenshtein", (STRING, TEXT), INT, "levenshtein(name, 'ada lovelaze')", "<= 1", _NAME,
             "How many characters must be inserted, deleted or replaced to make the other text.", 0, ("editdist3",)),
    Function("find_in_set", (STRING, TEXT), INT, "find_in_set(name, 'bob,ada lovelace')", "= 2", _NAME,
             "The place of a text in a list with commas, counted from 1, and 0 where it is not there."),
    Function("regexp_extract", (STRING, TEXT, NUMBER), STRING, r"regexp_extract(path, '(\\w+)/(\\w+)', 2)", "= 'guide'", _PATH,
             "A group of the first match, 1 by default; 0 is the whole match. It is `''` without a match.", 1),
    Function("regexp_substr", (STRING, TEXT), STRING, "regexp_substr(path, 'g[a-z]+')", "= 'guide'", _PATH,
             "The first match, NULL if there is none or it is empty."),
    Function("regexp_count", (STRING, TEXT), INT, "regexp_count(path, '/')", "= 2", _PATH, "The number of matches."),
    Function("regexp_replace", (STRING, TEXT, TEXT), STRING, "regexp_replace(path, '[aeiou]', '')", "= 'shp/gd/ndx.htm'", _PATH,
             "All matches replaced. `$1` in the new text is the first group."),
    # Numbers
    Function("pow", (DOUBLE, DOUBLE), DOUBLE, "pow(x, 3)", "= 8", _X, "x to the power of y.", 0, ("power",)),
    Function("exp", (DOUBLE,), DOUBLE, "exp(x)", "> 7.38", _X, "e to the power of x."),
    Function("expm1", (DOUBLE,), DOUBLE, "expm1(x)", "> 6.38", _X, "exp(x) - 1, exact near 0."),
    Function("ln", (DOUBLE,), DOUBLE, "ln(x)", "> 0.69", _X, "The natural logarithm, NULL for 0 and less."),
    Function("log10", (DOUBLE,), DOUBLE, "log10(x)", "> 0.3", _X, "The logarithm to the base 10, NULL for 0 and less."),
    Function("log2", (DOUBLE,), DOUBLE, "log2(x)", "= 1", _X, "The logarithm to the base 2, NULL for 0 and less."),
    Function("log1p", (DOUBLE,), DOUBLE, "log1p(x)", "> 1.09", _X, "ln(1 + x), exact near 0, NULL for -1 and less."),
    Function("cbrt", (DOUBLE,), DOUBLE, "cbrt(x * 4)", "= 2", _X, "The cube root."),
    Function("hypot", (DOUBLE, DOUBLE), DOUBLE, "hypot(x * 1.5, 4)", "= 5", _X, "The root of x * x + y * y."),
    Function("rint", (DOUBLE,), DOUBLE, "rint(x + 0.4)", "= 2", _X, "The nearest whole number, the even one of two."),
    *[Function(name, (DOUBLE,), DOUBLE, f"{name}(x / 4)", "> -100", _X, about) for name, about in (
        ("sin", "The sine of an angle in radians."), ("cos", "The cosine of an angle in radians."),
        ("tan", "The tangent of an angle in radians."), ("asin", "The angle with a sine, in radians."),
        ("acos", "The angle with a cosine, in radians."), ("atan", "The angle with a tangent, in radians."),
        ("sinh", "The hyperbolic sine."), ("cosh", "The hyperbolic cosine."), ("tanh", "The hyperbolic tangent."),
        ("degrees", "Radians as degrees."), ("radians", "Degrees as radians."))],
    Function("atan2", (DOUBLE, DOUBLE), DOUBLE, "atan2(x, x)", "< 1", _X, "The angle of a point, in radians: `atan2(y, x)`."),
    # Bits
    Function("shiftleft", (WHOLE, INT), WHOLE, "shiftleft(flags, 2)", "= 20", {"flags": 5}, "Bits moved to the left."),
    Function("shiftright", (WHOLE, INT), WHOLE, "shiftright(flags, 1)", "= 2", {"flags": 5}, "Bits moved to the right; the sign stays."),
    Function("shiftrightunsigned", (WHOLE, INT), WHOLE, "shiftrightunsigned(flags, 1)", "= 2", {"flags": 5},
             "Bits moved to the right, with zeros at the left."),
    Function("bit_count", (WHOLE,), INT, "bit_count(flags)", "= 2", {"flags": 5}, "The number of bits that are 1."),
    # Days
    Function("add_months", (DATE, INT), DATE, "add_months(day, 1)", "= DATE '2024-02-29'", _DAY,
             "The same day of a later month, or its last day."),
    Function("last_day", (DATE,), DATE, "last_day(day)", "= DATE '2024-01-31'", _DAY, "The last day of the month."),
    Function("next_day", (DATE, TEXT), DATE, "next_day(day, 'Mon')", "= DATE '2024-02-05'", _DAY,
             "The first later day of the week with this English name. NULL for other names."),
    Function("make_date", (INT, INT, INT), DATE, "make_date(y, 2, 29)", "= DATE '2024-02-29'", {"y": 2024},
             "The date of a year, month and day. NULL if there is no such date."),
    Function("unix_date", (ONLY_DATE,), INT, "unix_date(day)", "= 19753", _DAY, "Days since 1970-01-01."),
    Function("date_from_unix_date", (INT,), DATE, "date_from_unix_date(y)", "= DATE '1975-07-18'", {"y": 2024},
             "The day that is so many days after 1970-01-01."),
    Function("unix_seconds", (ONLY_TIMESTAMP,), BIGINT, "unix_seconds(at)", "= 1706704200", _AT, "Whole seconds since 1970."),
    Function("unix_millis", (ONLY_TIMESTAMP,), BIGINT, "unix_millis(at)", "= 1706704200000", _AT, "Whole milliseconds since 1970."),
    Function("unix_micros", (ONLY_TIMESTAMP,), BIGINT, "unix_micros(at)", "= 1706704200000000", _AT, "Microseconds since 1970."),
)  # fmt: skip
TABLE = {function.name: function for function in _ROWS}
SYNONYMS_OF_TABLE = {synonym: function.name for function in _ROWS for synonym in function.synonyms}
