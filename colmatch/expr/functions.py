"""The table of functions: all that an expression may call.

The parser, its hints, the builder, ``colmatch.functions``, the types and the pages of the reference
come from it. A new function needs a row here, and its computation in ``texts.py``, ``regexes.py``
or ``maths.py`` of ``events/computed/``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, NamedTuple

from colmatch.events.computed.formats import writer_of
from colmatch.events.computed.intervals import check_zone
from colmatch.events.computed.nodes import VARIANT, VERSION
from colmatch.text.formats import reader_of

BYTES, BINARY, MOMENT = "text or bytes", "binary", "moment"  # a moment is a timestamp of either type
WRITTEN = "text or whole number"  # a number is written as a text
OPTION, FORM = "a text or NULL", "a text or number"
STRING, DOUBLE, WHOLE, INT, BIGINT, DATE, TIMESTAMP = "string", "double", "whole", "int", "bigint", "date", "timestamp"
NUMERIC = "numeric"  # whole numbers become BIGINT, and floats DOUBLE
TEXT, NUMBER, LONG = "a text", "a number", "a long number"  # constants, which are literals
CONSTANTS = {  # with their types
    TEXT: ("string",), NUMBER: ("int",), LONG: ("int", "bigint"), OPTION: ("string", "void"), FORM: ("string", "int"),
}  # fmt: skip
ANY, ANY_NUMBER, BOOLEAN = "any", "number", "boolean"  # the first two are not cast
ONLY_DATE = "date!"  # values of other types are not cast
UNIT, MAYBE_UNIT = "unit", "unit?"  # a word such as HOUR; the second may be left out
LIST, MAP, TEST, INTERVAL = "list", "map", "condition", "interval"
VALUE, CONDITION, ELEMENTS, SPECIAL, SYNTAX = "value", "condition", "elements", "special", "syntax"  # kinds
SPARK, OURS = "Spark SQL", "colmatch"  # the sources of most meanings
MOST_PARTS = 1000  # operators of a computed value in a text, and arguments of each function
_SHOWN = {
    WHOLE: "int or bigint", NUMERIC: "bigint or double", TEXT: "literal string", NUMBER: "literal int", LONG: "literal bigint",
    BYTES: "string or binary", WRITTEN: "string or int", MOMENT: "timestamp",
    OPTION: "literal string or NULL", FORM: "literal string or int",
}  # fmt: skip


class Function(NamedTuple):
    """A function of the language.

    Attributes
    ----------
    name : Spark's name, if Spark has it
    arguments : types of the values, then constants. A value of a narrower type is cast, and so is a
        timestamp where a date is needed. ``whole`` is any type of whole numbers
    result : its type; ``whole`` is that of the first argument
    call : how it is written
    test : what makes a condition of the call, which is true for ``row``
    row : an event
    about : what it returns, for the reference
    optional : how many of the last arguments may be left out
    synonyms : names in other dialects, or of Spark
    source : what defines its meaning
    repeats : whether there may be more arguments like the last one
    nulls : when it is NULL, for the reference
    ansi : why it is not computed in ANSI mode; empty if it is
    zoned : it depends on the session's time zone, which is its last constant
    fails : it may be an error in ANSI mode
    check : raises ValueError for constants that it cannot use
    value : what it is, written with other functions: tuples of a name and arguments, which are
        numbers for the function's own
    rule : the method of ``Typing`` that types it, if arguments and result do not say enough; empty
        if it has no types
    kind : how the parser reads it. A ``value`` is computed, and any other becomes a condition: by
        a node of sqlglot, of elements of a list, or as a special function. ``syntax`` is rewritten
        before
    form : how it is written, if not as a name before arguments
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
    source: str = SPARK
    repeats: bool = False
    nulls: str = "The result is NULL where a value is NULL."
    ansi: str = ""
    zoned: bool = False
    fails: bool = False
    check: Callable[..., Any] | None = None
    value: tuple[Any, ...] = ()
    rule: str = "_of_table"
    kind: str = VALUE
    form: str = ""

    @property
    def written(self) -> str:
        """Returns the types of its arguments, with ? for those that may be left out."""
        least = len(self.arguments) - self.optional
        shown = [_SHOWN.get(kind, kind.rstrip("!")) + "?" * (i >= least) for i, kind in enumerate(self.arguments)]
        shown += ["..."] * self.repeats
        return self.form or f"{self.name}({', '.join(shown)})"

    @property
    def signature(self) -> str:
        """Returns the types of its arguments and of its result."""
        return f"{self.written} -> {_SHOWN.get(self.result, self.result)}"

    def find_fault(self, name: str, count: int) -> str:
        """Returns the error for a call with so many arguments; empty for a right number.

        name : the function's name in the call
        """
        least = len(self.arguments) - self.optional - (MAYBE_UNIT in self.arguments)
        most = len(self.arguments) if not self.repeats else MOST_PARTS if self.kind == VALUE else count
        if least <= count <= most:
            return ""
        return f"{name} has too few or too many arguments here: it is written {self.written}, as in {self.call}"


# Columns of the rows, with their types
COLUMNS = {
    "path": "string", "name": "string", "id": "string", "text": "string", "day": "date32", "at": "timestamp",
    "x": "double", "flags": "int", "y": "int", "version": "string", "payload": "string", "ip": "string", "lat": "double", "lon": "double",
    "doc": "variant",
    "tags": "array<string>", "scores": "array<int>", "attrs": "map<string, string>", "items": "array<struct<sku string, price double>>",
    "seen": "array<struct<id bigint, timestamp bigint>>", "encoded": "string",
    "caps": "array<struct<type string, id bigint, ns string, value bigint, timestamp bigint>>",
}  # fmt: skip
_PATH = {"path": "shop/guide/index.htm"}
_NAME = {"name": "ada lovelace"}
_DAY = {"day": dt.date(2024, 1, 31)}
_AT = {"at": dt.datetime(2024, 1, 31, 12, 30, tzinfo=dt.UTC)}
_ID = {"id": "user-1"}
_PAYLOAD = {"payload": '{"user": {"name": "ada"}}'}
_DOC = {"doc": {"user": {"name": "ada", "age": 36, "pet": None}}}
_X = {"x": 2.0}
_ENCODED = {"encoded": "61646121"}
_SKIPS = "A NULL changes nothing: the result is that without it, and never NULL."
_Y = {"y": 5}
_TAGS = {"tags": ["a", "b"]}
_ATTRS = {"attrs": {"os": "linux"}}
_ITEMS = {"items": [{"sku": "a", "price": 12.5}]}
_SCORES = {"scores": [3, 7]}
_SEEN = {"seen": [{"id": 12, "timestamp": 1_706_704_000_000_000}], **_AT}
_CAPS = {"caps": [{"type": "flight", "id": 7, "ns": "shop", "value": 2, "timestamp": 1_706_704_000_000_000}], **_AT}
_TO_UNKNOWN = "It is unknown where a column is NULL."
_OF_LIST = "It is NULL without a list, and where no element decides and one is NULL."
_OF_LIST_ALONE = "It is NULL without a list."
_NO_NULLS = "The result is never NULL."
_ZERO, _ONE, _NULL, _NOW = ("literal", "int", "0"), ("literal", "int", "1"), ("null",), ("current_timestamp",)
_IS_ZERO = ("=", 1, _ZERO)
_ROWS = (
    # Texts
    Function("lower", (STRING,), STRING, "lower(name)", "= 'ada lovelace'", {"name": "Ada Lovelace"}, "The text in small letters.", 0,
             ("lcase",)),
    Function("upper", (STRING,), STRING, "upper(name)", "= 'ADA LOVELACE'", _NAME, "The text in capitals.", 0, ("ucase",)),
    *[Function(name, (STRING,), STRING, f"{name}(name)", "LIKE '%ada%'", {"name": " ada "}, about) for name, about in (
        ("trim", "The text without spaces at its ends."), ("ltrim", "The text without spaces at its beginning."),
        ("rtrim", "The text without spaces at its end."))],
    Function("reverse", (STRING,), STRING, "reverse(name)", "LIKE 'ecal%'", _NAME, "The characters from the last to the first."),
    Function("length", (STRING,), INT, "length(name)", "= 12", _NAME, "The number of characters. `len` of a list is its size.", 0,
             ("char_length", "character_length", "len")),
    Function("concat", (STRING,), STRING, "concat(name, '!')", "= 'ada lovelace!'", _NAME, "All texts in a row, also `name || '!'`.",
             repeats=True),
    Function("concat_ws", (TEXT, STRING), STRING, "concat_ws('-', id, name)", "= 'user-1-ada lovelace'", {**_ID, **_NAME},
             "All texts in a row, with a separator between two.", 1, repeats=True, rule="_concat_ws",
             nulls="A NULL is left out, and the result is never NULL, but with a separator that is NULL."),
    Function("substring", (STRING, NUMBER, NUMBER), STRING, "substring(path, 1, 4)", "= 'shop'", _PATH,
             "The characters from a place on, as many as the third argument says. Places count from 1, or from -1 at the end. "
             "Also `substring(path FROM 1 FOR 4)`.", 1, ("substr",)),
    Function("left", (STRING, NUMBER), STRING, "left(path, 4)", "= 'shop'", _PATH, "The first characters, as many as a number says.",
             value=("substring", 0, _ONE, 1)),
    Function("right", (STRING, NUMBER), STRING, "right(path, 3)", "= 'htm'", _PATH, "The last characters, as many as a number says.",
             rule="_right"),
    Function("replace", (STRING, TEXT, TEXT), STRING, "replace(path, '/', '-')", "= 'shop-guide-index.htm'", _PATH,
             "The text with each place of the second one replaced by the third, or taken out without one.", 1),
    Function("instr", (STRING, TEXT, NUMBER, NUMBER), INT, "instr(path, 'guide')", "= 6", _PATH,
             "The place of the first such part, from 1; 0 if there is none. Further arguments are the place to begin at, from -1 at the "
             "end, and which of the parts is meant.", 2, ("strpos",), rule="_instr"),
    Function("locate", (TEXT, STRING, NUMBER), INT, "locate('guide', path)", "= 6", _PATH,
             "The place of a part in a text, from 1; 0 if there is none. Also `position('guide' IN path)`. The third argument is the "
             "place to begin at.", 1, ("charindex", "position"), rule=""),
    Function("startswith", (STRING, TEXT), BOOLEAN, "startswith(path, 'shop')", "", _PATH, "Whether the text begins so.", 0,
             ("starts_with", "prefix"), kind=CONDITION),
    Function("endswith", (STRING, TEXT), BOOLEAN, "endswith(path, '.htm')", "", _PATH, "Whether the text ends so.", 0,
             ("ends_with", "suffix"), kind=CONDITION),
    Function("contains", (STRING, TEXT), BOOLEAN, "contains(path, 'guide')", "", _PATH, "Whether the text has this part.", kind=CONDITION),
    Function("regexp_like", (STRING, TEXT, TEXT), BOOLEAN, "regexp_like(path, '^shop')", "", _PATH,
             "Whether a regular expression matches some part of the text: `path RLIKE '^shop'`. Flags stand in it, as in `'(?i)^shop'`, "
             "and a third argument is refused.", 1,
             ("rlike", "regexp", "regexp_matches", "regexp_contains"), kind=CONDITION),
    Function("cidr_contains", (TEXT, STRING), BOOLEAN, "cidr_contains('10.0.0.0/8', ip)", "", {"ip": "10.1.2.3"},
             "Whether an address is in a network, of version 4 or 6. A text that is no address is in none.", source=OURS,
             rule="_in_network"),
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
    Function("ascii", (WRITTEN,), INT, "ascii(name)", "= 97", _NAME, "The number of the first character, 0 for `''`.", 0,
             ("unicode", "ord")),
    Function("octet_length", (BYTES,), INT, "octet_length(name)", "> 5", _NAME, "The number of bytes in UTF-8.", 0, ("strlen",)),
    Function("bit_length", (BYTES,), INT, "bit_length(name)", "= 96", _NAME, "The number of bits in UTF-8."),
    Function("crc32", (BYTES,), BIGINT, "crc32(id)", "% 100 < 90", {"id": "user-1"}, "The checksum of the bytes in UTF-8."),
    Function("md5", (BYTES,), STRING, "md5(id)", "LIKE '%7%'", _ID, "The MD5 hash as 32 hexadecimal digits."),
    Function("sha1", (BYTES,), STRING, "sha1(id)", "LIKE '%a%'", _ID, "The SHA-1 hash as 40 hexadecimal digits.", 0, ("sha",)),
    Function("sha2", (BYTES, NUMBER), STRING, "sha2(id, 256)", "LIKE '%a%'", _ID,
             "The SHA-2 hash of 224, 256, 384 or 512 bits in hexadecimal digits. 0 is 256, and any other number makes it NULL."),
    Function("hash", (ANY,), INT, "hash(id, x)", "<> 42", {"id": "user-1", "x": 2.0},
             "The MurmurHash3 of values of any types, which Spark also partitions by.", repeats=True, nulls=_SKIPS),
    Function("xxhash64", (ANY,), BIGINT, "xxhash64(id, x)", "<> 42", {"id": "user-1", "x": 2.0},
             "The xxHash of values of any types, of 64 bits.", repeats=True, nulls=_SKIPS),
    Function("murmur3_32", (LONG, STRING), BIGINT, "murmur3_32(0, id)", "% 100 < 100", _ID,
             "The MurmurHash3 of the bytes in UTF-8 with a seed, from 0 to 4294967295. Unlike `hash`, it is what other "
             "libraries compute.", 0, (), "MurmurHash3 for x86, of 32 bits"),
    Function("bucket", (LONG, STRING, NUMBER), INT, "bucket(0, id, 100)", "< 100", _ID,
             "The share of a text, from 0: `murmur3_32(seed, text) % n`.", 0, (), "MurmurHash3 for x86, of 32 bits"),
    Function("fnv1a_32", (STRING,), BIGINT, "fnv1a_32(id)", "% 1000 < 1000", _ID,
             "The FNV-1a hash of the bytes in UTF-8, from 0 to 4294967295.", 0, (), "FNV-1a, of 32 bits"),
    Function("conv", (WRITTEN, NUMBER, NUMBER), STRING, "conv(id, 36, 10)", "= '1436499'", _ID,
             "A number in another base, up to the first character that is no digit. It has 64 bits, and a sign if the new "
             "base is negative. With ANSI, more than 64 bits are an error.", fails=True),
    Function("base64", (BYTES,), STRING, "base64(id)", "= 'dXNlci0x'", _ID,
             "The bytes in UTF-8 as Base64, in lines of 76 characters.", 0, ("to_base64",)),
    Function("hex", (BYTES,), STRING, "hex(id)", "= '757365722D31'", _ID,
             "The bytes of a text in UTF-8, of a binary, or of a number without leading zeros, as hexadecimal digits.", 0,
             ("to_hex",), rule="_hex"),
    Function("levenshtein", (STRING, TEXT, NUMBER), INT, "levenshtein(name, 'ada lovelaze')", "<= 1", _NAME,
             "How many characters must be inserted, deleted or replaced to make the other text; -1 for more than a limit.", 1,
             ("editdist3",)),
    Function("find_in_set", (STRING, TEXT), INT, "find_in_set(name, 'bob,ada lovelace')", "= 2", _NAME,
             "The place of a text in a list with commas, counted from 1, and 0 where it is not there."),
    Function("regexp_extract", (STRING, TEXT, NUMBER), STRING, r"regexp_extract(path, '(\\w+)/(\\w+)', 2)", "= 'guide'", _PATH,
             "A group of the first match, 1 by default; 0 is the whole match. It is `''` without a match.", 1),
    Function("regexp_substr", (STRING, TEXT), STRING, "regexp_substr(path, 'g[a-z]+')", "= 'guide'", _PATH,
             "The first match, NULL if there is none or it is empty."),
    Function("regexp_count", (STRING, TEXT), INT, "regexp_count(path, '/')", "= 2", _PATH, "The number of matches."),
    Function("regexp_replace", (STRING, TEXT, TEXT), STRING, "regexp_replace(path, '[aeiou]', '')", "= 'shp/gd/ndx.htm'", _PATH,
             "All matches replaced. `$1` in the new text is the first group."),
    Function("semver", (STRING, NUMBER), VERSION, "semver(version)", ">= semver('1.2.0-rc.1')", {"version": "v1.2"},
             "A version, which is compared with another version. `v` before it and build metadata make no difference, missing "
             "numbers are 0. It is NULL for a text that is no version. A second argument allows more numbers than 3.", 1, (),
             "Semantic Versioning 2.0.0"),
    # JSON
    Function("json_extract_path_text", (STRING, TEXT), STRING, "json_extract_path_text(payload, 'user', 'name')", "= 'ada'", _PAYLOAD,
             "What names of fields lead to in a JSON text, as `get_json_object` has it.", repeats=True, source="PostgreSQL", rule=""),
    Function("get_json_object", (STRING, TEXT), STRING, "get_json_object(payload, '$.user.name')", "= 'ada'", _PAYLOAD,
             "What a path leads to in a JSON text: a string without quotes, and a list or object as JSON. NULL for what is not there, "
             "and where the text is no JSON. "
             "`[*]` in a path is all elements, as a list if there are several.", 0, ("json_extract_string",)),
    Function("json_value", (STRING, TEXT), STRING, "json_value(payload, '$.user.name')", "= 'ada'", _PAYLOAD,
             "The same for a string, number or Boolean, and NULL for a list or object.", 0, ("json_extract_scalar",), "SQL:2016"),
    # Variants
    Function("variant_get", (VARIANT, TEXT, TEXT), ANY, "variant_get(doc, '$.user.age', 'int')", "> 30", _DOC,
             "What a path leads to in a variant, as a type, also `doc:user.age::int`. A value that does not fit the type is an error. "
             "Without a type, it is a variant, which `is_variant_null` or another path takes.", 1, rule="",
             nulls="NULL where nothing is there, and for the null of JSON."),
    Function("try_variant_get", (VARIANT, TEXT, TEXT), ANY, "try_variant_get(doc, '$.user.age', 'int')", "> 30", _DOC,
             "The same, and NULL for a value that does not fit the type. Also `TRY_CAST(doc:user.name AS INT)`.", 1, rule="",
             nulls="NULL where nothing is there, and for the null of JSON."),
    Function("is_variant_null", (VARIANT,), BOOLEAN, "is_variant_null(doc:user.pet)", "", _DOC,
             "Whether a variant is the null of JSON, which is a value.", nulls=_NO_NULLS),
    Function("parse_json", (STRING,), VARIANT, "variant_get(parse_json(payload), '$.user.name', 'string')", "= 'ada'", _PAYLOAD,
             "The variant of a JSON text, of which a value is taken. A text that is no JSON is an error."),
    Function("try_parse_json", (STRING,), VARIANT, "try_parse_json(payload):user.name::string", "= 'ada'", _PAYLOAD,
             "The same, NULL for a text that is no JSON."),
    # Numbers
    Function("abs", (ANY_NUMBER,), ANY_NUMBER, "abs(x)", "= 2", {"x": -2.0}, "The number without its sign.", rule="_unary"),
    Function("sign", (DOUBLE,), DOUBLE, "sign(x)", "= 1", _X, "1, -1 or 0: the sign of a number.", 0, ("signum",)),
    Function("sqrt", (DOUBLE,), DOUBLE, "sqrt(x * 8)", "= 4", _X, "The square root, NaN of a number below 0."),
    Function("floor", (ANY_NUMBER, NUMBER), BIGINT, "floor(x + 0.7)", "= 2", _X,
             "The next whole number below. Of a decimal, a decimal, which may keep some digits.", 1, rule="_rounded"),
    Function("ceil", (ANY_NUMBER, NUMBER), BIGINT, "ceil(x + 0.2)", "= 3", _X,
             "The next whole number above. Of a decimal, a decimal, which may keep some digits.", 1, ("ceiling",), rule="_rounded"),
    Function("round", (ANY_NUMBER, NUMBER), ANY_NUMBER, "round(x + 0.126, 2)", "= 2.13", _X,
             "The number with so many digits behind the point, 0 by default. Halves are rounded away from 0.", 1, rule="_round"),
    Function("mod", (ANY_NUMBER, ANY_NUMBER), ANY_NUMBER, "mod(y, 3)", "= 2", _Y,
             "The rest of a division, with the sign of the first number: `y % 3`. NULL, or an error in ANSI mode, where the second is 0.",
             value=("%", 0, 1)),
    Function("pmod", (ANY_NUMBER, ANY_NUMBER), ANY_NUMBER, "pmod(y, 3)", "= 2", _Y, "The rest of a division, with the sign of the second.",
             rule="_pmod"),
    Function("div", (WHOLE, WHOLE), BIGINT, "div(y, 2)", "= 2", _Y,
             "The quotient without its fraction: `y DIV 2`. NULL, or an error in ANSI mode, where the second is 0.", rule="_bits"),
    Function("isnan", (DOUBLE,), BOOLEAN, "isnan(x)", "= (y > 5)", {"x": 2.0, "y": 5}, "Whether a number is NaN.", 0, ("is_nan",),
             nulls=_NO_NULLS),
    Function("nanvl", (ANY_NUMBER, ANY_NUMBER), ANY_NUMBER, "nanvl(x, 0)", "= 2", _X, "The first number, or the second if it is NaN.",
             rule="_nanvl"),
    *[Function(name, (ANY, ANY), ANY, f"{name}(x, {other})", "= 2", _X, about, repeats=True, rule="_extreme",
               nulls="A NULL is left out. The result is NULL where all values are.") for name, other, about in (
        ("greatest", 1, "The greatest of two or more values of one type. NaN is greater than all numbers."),
        ("least", 3, "The least of two or more values of one type."))],
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
    *[Function(name, (ANY_NUMBER, ANY_NUMBER), ANY_NUMBER, f"{name}(x, 4)", "IS NOT NULL", _X, about, 0, synonyms, rule="_tried")
      for name, about, synonyms in (
        ("try_add", "x + y, NULL where it is too large for its type.", ("safe_add",)),
        ("try_subtract", "x - y, NULL where it is too large for its type.", ("safe_subtract",)),
        ("try_multiply", "x * y, NULL where it is too large for its type.", ("safe_multiply",)),
        ("try_divide", "x / y, NULL where y is 0.", ("safe_divide",)),
        ("try_mod", "x % y, NULL where y is 0.", ()))],
    Function("positive", (ANY_NUMBER,), ANY_NUMBER, "positive(x)", "= 2", _X, "The number itself, also written `+x`.", rule="_positive"),
    Function("zeroifnull", (ANY_NUMBER,), ANY_NUMBER, "zeroifnull(x)", "= 2", _X, "The number, 0 for NULL.", value=("coalesce", 0, _ZERO)),
    Function("nullifzero", (ANY_NUMBER,), ANY_NUMBER, "nullifzero(x)", "= 2", _X, "The number, NULL for 0.",
             value=("case", ("=", 0, _ZERO), _NULL, 0)),
    Function("div0", (ANY_NUMBER, ANY_NUMBER), DOUBLE, "div0(x, 0)", "= 0", _X, "x / y, 0 where y is 0, as in Snowflake.",
             value=("case", ("and", _IS_ZERO, ("not", ("isnull", 0))), _ZERO, ("try_divide", 0, 1)), source="Snowflake"),
    Function("div0null", (ANY_NUMBER, ANY_NUMBER), DOUBLE, "div0null(x, 4)", "= 0.5", _X,
             "x / y, 0 where y is 0 or NULL, as in Snowflake.",
             value=("case", ("or", _IS_ZERO, ("isnull", 1)), _ZERO, ("try_divide", 0, 1)), source="Snowflake"),
    Function("equal_null", (ANY, ANY), BOOLEAN, "equal_null(name, 'ada lovelace')", "IS TRUE", _NAME,
             "Whether two values are equal, or both NULL: `a <=> b`.", value=("<=>", 0, 1)),
    # Bits
    *[Function(name, (WHOLE, WHOLE), WHOLE, f"{name}(flags, 3)", f"= {of}", {"flags": 5}, f"{about}, also written `flags {sign} 3`.", 0,
               synonyms, "Snowflake", value=(sign, 0, 1)) for name, sign, of, about, synonyms in (
        ("bitand", "&", 1, "The bits that both numbers have", ("bitwise_and",)),
        ("bitor", "|", 7, "The bits that one number has, or both", ("bitwise_or",)),
        ("bitxor", "^", 6, "The bits that one number has alone", ("bitwise_xor", "xor")))],
    Function("shiftleft", (WHOLE, INT), WHOLE, "shiftleft(flags, 2)", "= 20", {"flags": 5},
             "Bits moved to the left, also written `flags << 2`.",
             0, ("bitshiftleft",)),
    Function("shiftright", (WHOLE, INT), WHOLE, "shiftright(flags, 1)", "= 2", {"flags": 5},
             "Bits moved to the right; the sign stays. Also written `flags >> 1`.", 0, ("bitshiftright",)),
    Function("shiftrightunsigned", (WHOLE, INT), WHOLE, "shiftrightunsigned(flags, 1)", "= 2", {"flags": 5},
             "Bits moved to the right, with zeros at the left."),
    Function("bit_count", (WHOLE,), INT, "bit_count(flags)", "= 2", {"flags": 5}, "The number of bits that are 1."),
    # Days
    *[Function(name, (DATE,), INT, f"{name}(day)", f"= {of}", _DAY, about, 0, synonyms, "ISO 8601" if name == "week" else SPARK,
               rule="_part") for name, of, about, synonyms in (
        ("year", 2024, "The year of a date or timestamp.", ()), ("quarter", 1, "The quarter, from 1 to 4.", ()),
        ("month", 1, "The month, from 1 to 12.", ()), ("day", 31, "The day of the month.", ("dayofmonth",)),
        ("dayofyear", 31, "The day of the year, from 1.", ()), ("dayofweek", 4, "The day of the week, 1 for Sunday.", ("dow",)),
        ("weekday", 2, "The day of the week, 0 for Monday.", ()), ("week", 5, "The week of ISO 8601.", ("weekofyear",)))],
    *[Function(name, (TIMESTAMP,), INT, f"{name}(at)", "< 60", _AT, f"The {name} of a timestamp.", rule="_part")
      for name in ("hour", "minute", "second")],
    Function("dayofweek_iso", (DATE,), INT, "dayofweek_iso(day)", "= 3", _DAY, "The day of the week, 1 for Monday.", 0, ("isodow",),
             "PostgreSQL", value=("+", ("weekday", 0), _ONE)),
    Function("extract", (UNIT, TIMESTAMP), INT, "extract(year FROM day)", "= 2024", _DAY,
             "A part of a date or timestamp, such as `year`, `dow` or `epoch`.", kind=SYNTAX, rule="", form="extract(unit FROM timestamp)"),
    Function("date_part", (UNIT, TIMESTAMP), INT, "date_part('year', day)", "= 2024", _DAY,
             "A part of a date or timestamp, whose name is a text.", 0, ("datepart",), kind=SYNTAX, rule=""),
    Function("date_trunc", (UNIT, TIMESTAMP), TIMESTAMP, "date_trunc('month', at)", "< TIMESTAMP '2024-01-02 00:00:00'", _AT,
             "The beginning of the year, quarter, month, week, day, hour or the like.", rule="_date_trunc"),
    Function("trunc", (DATE, UNIT), DATE, "trunc(day, 'MM')", "= DATE '2024-01-01'", _DAY,
             "The first day of the year, quarter, month or week.", rule="_trunc"),
    Function("date_add", (MAYBE_UNIT, DATE, INT), DATE, "date_add(day, 3)", "= DATE '2024-02-03'", _DAY,
             "So many days later. With a unit, it is `timestampadd`.", 0, ("dateadd",), rule="_days"),
    Function("date_sub", (DATE, INT), DATE, "date_sub(day, 3)", "= DATE '2024-01-28'", _DAY, "So many days sooner.",
             rule="_days"),
    Function("datediff", (MAYBE_UNIT, DATE, DATE), INT, "datediff(day, DATE '2024-01-01')", "= 30", _DAY,
             "The days from the second date to the first. With a unit, it is `timestampdiff`, from the first to the second.", 0,
             ("date_diff",), rule="_days"),
    Function("timestampadd", (UNIT, WHOLE, TIMESTAMP), TIMESTAMP, "timestampadd(HOUR, 2, at)", "= TIMESTAMP '2024-01-31 14:30:00Z'", _AT,
             "So many units later.", rule="_timestampadd"),
    Function("timestampdiff", (UNIT, TIMESTAMP, TIMESTAMP), BIGINT, "timestampdiff(MINUTE, day, at)", "> 0",
             {**_AT, "day": dt.date(2024, 1, 30)}, "The whole units from the first to the second.", rule="_timestampdiff"),
    Function("timestamp_add", (TIMESTAMP, INTERVAL), TIMESTAMP, "timestamp_add(at, INTERVAL 2 HOURS)",
             "= TIMESTAMP '2024-01-31 14:30:00Z'", _AT, "Later: `at + INTERVAL 2 HOURS`.", 0, ("datetime_add",), "BigQuery",
             value=("+", 0, 1)),
    Function("timestamp_sub", (TIMESTAMP, INTERVAL), TIMESTAMP, "timestamp_sub(at, INTERVAL 2 HOURS)",
             "= TIMESTAMP '2024-01-31 10:30:00Z'", _AT, "Sooner: `at - INTERVAL 2 HOURS`.", 0, ("datetime_sub",), "BigQuery",
             value=("-", 0, 1)),
    Function("timestamp_diff", (TIMESTAMP, TIMESTAMP, UNIT), BIGINT, "timestamp_diff(at, day, HOUR)", "= 12", {**_AT, **_DAY},
             "The whole units from the second to the first: `timestampdiff(HOUR, day, at)`.", 0, ("datetime_diff",), "BigQuery", rule=""),
    Function("timestamp_trunc", (TIMESTAMP, UNIT), TIMESTAMP, "timestamp_trunc(at, MONTH)", "= TIMESTAMP '2024-01-01 00:00:00Z'", _AT,
             "The beginning of a unit: `date_trunc('month', at)`.", 0, ("datetime_trunc",), "BigQuery", rule=""),
    Function("interval", (TEXT,), INTERVAL, "at + interval('2 hours')", "= TIMESTAMP '2024-01-31 14:30:00Z'", _AT,
             "A length of time, also written `INTERVAL 2 HOURS`.", rule="", nulls=_NO_NULLS),
    Function("months_between", (TIMESTAMP, TIMESTAMP, BOOLEAN), DOUBLE, "months_between(day, DATE '2023-12-31')", "= 1", _DAY,
             "The months from the second to the first, rounded to 8 digits unless the third argument is FALSE.", 1, rule="_months_between"),
    Function("make_interval", (NUMBER,), INTERVAL, "at + make_interval(0, 0, 0, 7)", "= TIMESTAMP '2024-02-07 12:30:00Z'", _AT,
             "A length of time of literal years, months, weeks, days, hours, minutes and seconds.", 1, repeats=True, rule="",
             nulls=_NO_NULLS),
    Function("make_dt_interval", (NUMBER,), INTERVAL, "at + make_dt_interval(7)", "= TIMESTAMP '2024-02-07 12:30:00Z'", _AT,
             "A length of time of literal days, hours, minutes and seconds.", 1, repeats=True, rule="", nulls=_NO_NULLS),
    Function("make_ym_interval", (NUMBER, NUMBER), INTERVAL, "day + make_ym_interval(1, 1)", "= DATE '2025-02-28'", _DAY,
             "A length of time of literal years and months.", 2, rule="", nulls=_NO_NULLS),
    Function("timezone", (TEXT, TIMESTAMP), TIMESTAMP, "timezone('Europe/Berlin', at)", "= TIMESTAMP_NTZ '2024-01-31 13:30:00'", _AT,
             "A timestamp on the clocks of a zone, or the timestamp when they show a local one: `at AT TIME ZONE 'Europe/Berlin'`.", 0, (),
             "PostgreSQL", rule=""),
    Function("convert_timezone", (TEXT, TEXT, TIMESTAMP), "timestamp_ntz", "convert_timezone('UTC', 'Europe/Berlin', at)",
             "= TIMESTAMP_NTZ '2024-01-31 13:30:00'", _AT,
             "A local timestamp of the first zone, the session's if it is left out, on the clocks of the second.", 1, rule=""),
    Function("current_timestamp", (), TIMESTAMP, "now()", "> at", _AT, "The time of the call of `match`, or its `now=`.", 0,
             ("now", "getdate"), rule="", nulls=_NO_NULLS),
    Function("current_date", (), DATE, "current_date()", "> day", _DAY, "The date of the call of `match`, or of its `now=`.", 0,
             ("curdate", "today"), value=("cast", _NOW, "date")),
    Function("localtimestamp", (), "timestamp_ntz", "localtimestamp()", "> at", _AT,
             "The time of the call on the clocks of the session.", value=("cast", _NOW, "timestamp_ntz")),
    Function("date", (ANY, INT, INT), DATE, "date(at)", "= DATE '2024-01-31'", _AT,
             "The date of a timestamp or text, or of a year, month and day.", 2, rule=""),
    Function("timestamp", (ANY,), TIMESTAMP, "timestamp(text)", "= TIMESTAMP '2024-01-31 12:30:00'", {"text": "2024-01-31 12:30"},
             "The timestamp of a text, date or number of seconds.", rule=""),
    Function("to_date", (ANY, TEXT), DATE, "to_date(text, 'dd/MM/yyyy')", "= DATE '2024-01-31'", {"text": "31/01/2024"},
             "The date that a text has in a format. Without one, it is a CAST.", 1, rule=""),
    Function("try_to_date", (ANY, TEXT), DATE, "try_to_date(text, 'dd/MM/yyyy')", "= DATE '2024-01-31'", {"text": "31/01/2024"},
             "The date that a text has in a format, NULL for other texts.", 1, rule=""),
    Function("try_to_timestamp", (ANY, TEXT), TIMESTAMP, "try_to_timestamp(text, 'dd/MM/yyyy')", "= TIMESTAMP '2024-01-31 00:00:00'",
             {"text": "31/01/2024"}, "The timestamp that a text has in a format, NULL for other texts.", 1, rule="_try_to_timestamp"),
    *[Function(name, (ANY, TEXT), type, f"{name}(text)", f"= {type.upper()} '2024-01-31 12:30:00'", {"text": "2024-01-31 12:30"}, about,
               1, rule=rule) for name, type, rule, about in (
        ("to_timestamp_ltz", TIMESTAMP, "", "The same as `to_timestamp`."),
        ("to_timestamp_ntz", "timestamp_ntz", "_to_timestamp_ntz", "The timestamp without a zone that a text has, also in a format."))],
    *[Function(name, (TEXT,), name, f"at >= {name}('2024-01-31 00:00:00')", "", _AT, f"A literal, also `{name.upper()} '2024-01-31'`.",
               kind=SYNTAX, rule="", nulls=_NO_NULLS) for name in ("timestamp_ltz", "timestamp_ntz")],
    Function("unix_timestamp", (ANY, TEXT), BIGINT, "unix_timestamp(text, 'yyyy-MM-dd')", "> 0", {"text": "2024-01-31"},
             "The whole seconds since 1970 of a text in a format, a date or a timestamp, or of the call.", 2, rule="_unix_timestamp"),
    Function("to_unix_timestamp", (ANY, TEXT), BIGINT, "to_unix_timestamp(text, 'yyyy-MM-dd')", "> 0", {"text": "2024-01-31"},
             "The same as `unix_timestamp` of its arguments.", 1, value=("unix_timestamp", 0, 1)),
    Function("from_unixtime", (ANY_NUMBER, TEXT), STRING, "from_unixtime(y, 'yyyy-MM')", "= '1970-01'", {"y": 2024},
             "Seconds since 1970 as a text in a format, `yyyy-MM-dd HH:mm:ss` by default.", 1, rule=""),
    Function("epoch", (ANY,), DOUBLE, "epoch(at)", "= 1706704200", _AT, "The seconds since 1970, with a fraction.", source="DuckDB",
             value=("cast", ("cast", 0, TIMESTAMP), DOUBLE)),
    Function("add_months", (DATE, INT), DATE, "add_months(day, 1)", "= DATE '2024-02-29'", _DAY,
             "The same day of a later month, or its last day."),
    Function("last_day", (DATE,), DATE, "last_day(day)", "= DATE '2024-01-31'", _DAY, "The last day of the month."),
    Function("next_day", (DATE, TEXT), DATE, "next_day(day, 'Mon')", "= DATE '2024-02-05'", _DAY,
             "The first later day of the week with this English name. NULL for other names."),
    Function("make_date", (INT, INT, INT), DATE, "make_date(y, 2, 29)", "= DATE '2024-02-29'", {"y": 2024},
             "The date of a year, month and day. NULL if there is no such date, which is an error with ANSI.", fails=True),
    Function("unix_date", (ONLY_DATE,), INT, "unix_date(day)", "= 19753", _DAY, "Days since 1970-01-01."),
    Function("date_from_unix_date", (INT,), DATE, "date_from_unix_date(y)", "= DATE '1975-07-18'", {"y": 2024},
             "The day that is so many days after 1970-01-01."),
    Function("unix_seconds", (MOMENT,), BIGINT, "unix_seconds(at)", "= 1706704200", _AT, "Whole seconds since 1970."),
    Function("unix_millis", (MOMENT,), BIGINT, "unix_millis(at)", "= 1706704200000", _AT, "Whole milliseconds since 1970."),
    Function("unix_micros", (MOMENT,), BIGINT, "unix_micros(at)", "= 1706704200000000", _AT, "Microseconds since 1970."),
    Function("timestamp_seconds", (NUMERIC,), TIMESTAMP, "timestamp_seconds(y)", "= TIMESTAMP '1970-01-01 00:33:44Z'", {"y": 2024},
             "The timestamp that is so many seconds after 1970."),
    Function("timestamp_millis", (WHOLE,), TIMESTAMP, "timestamp_millis(y)", "> TIMESTAMP '1970-01-01 00:00:02Z'", {"y": 2024},
             "The timestamp that is so many milliseconds after 1970.", 0, ("epoch_ms",)),
    Function("timestamp_micros", (WHOLE,), TIMESTAMP, "timestamp_micros(y)", "> TIMESTAMP '1970-01-01 00:00:00Z'", {"y": 2024},
             "The timestamp that is so many microseconds after 1970."),
    Function("to_timestamp", (STRING, TEXT), TIMESTAMP, "to_timestamp(text, 'dd/MM/yyyy HH:mm')", "< TIMESTAMP '2024-01-31 12:31:00'",
             {"text": "31/01/2024 12:30"}, "The timestamp that a text has in a format. Without one, it is a CAST.",
             1, zoned=True, fails=True, check=reader_of),
    Function("from_utc_timestamp", (TIMESTAMP, TEXT), TIMESTAMP, "from_utc_timestamp(at, 'Europe/Berlin')",
             "= TIMESTAMP '2024-01-31 13:30:00Z'", _AT, "The timestamp that shows in UTC what clocks of a zone showed.", check=check_zone),
    Function("to_utc_timestamp", (TIMESTAMP, TEXT), TIMESTAMP, "to_utc_timestamp(at, 'Europe/Berlin')",
             "= TIMESTAMP '2024-01-31 11:30:00Z'", _AT, "The other way round, from clocks of a zone to UTC.", check=check_zone),
    Function("date_format", (TIMESTAMP, TEXT), STRING, "date_format(at, 'yyyy-MM')", "= '2024-01'", _AT,
             "A date or timestamp as a text, in a format.", zoned=True, check=writer_of, synonyms=("to_char", "to_varchar")),
    # Choices
    Function("coalesce", (ANY,), ANY, "coalesce(x, 0)", "= 2", _X, "The first value that is not NULL.", 0, ("nvl", "ifnull"),
             repeats=True, rule="_coalesce", nulls="The result is NULL where all values are."),
    Function("if", (TEST, ANY, ANY), ANY, "if(x > 1, 'many', 'few')", "= 'many'", _X,
             "The second argument where the condition is true, else the third.", 1, ("iff",), value=("case", 0, 1, 2)),
    Function("case", (TEST, ANY), ANY, "CASE WHEN x > 1 THEN 'many' ELSE 'few' END", "= 'many'", _X,
             "The value behind the first condition that is true. `CASE x WHEN 2 THEN 'two' END` compares a value.", repeats=True,
             rule="_case", nulls="The result is NULL where no condition is true and there is no ELSE.",
             form="CASE WHEN condition THEN any ... ELSE any END"),
    Function("nvl2", (ANY, ANY, ANY), ANY, "nvl2(x, 'some', 'none')", "= 'some'", _X,
             "The second value where the first is not NULL, else the third.", value=("case", ("isnull", 0), 2, 1)),
    Function("nullif", (ANY, ANY), ANY, "nullif(y, 0)", "= 5", _Y, "The first value, NULL where it equals the second.",
             value=("case", ("=", 0, 1), _NULL, 0)),
    Function("isnull", (ANY,), BOOLEAN, "isnull(x)", "AND y = 5", {"x": None, **_Y},
             "Whether a value is NULL: `x IS NULL`.", nulls=_NO_NULLS,
             kind=SYNTAX, rule=""),
    Function("isnotnull", (ANY,), BOOLEAN, "isnotnull(x)", "", _X, "Whether a value is not NULL: `x IS NOT NULL`.", nulls=_NO_NULLS,
             kind=SYNTAX, rule=""),
    Function("cast", (ANY, "type"), ANY, "CAST(x AS BIGINT)", "= 2", _X, "The value as another type, also `x::bigint`.", kind=SYNTAX,
             rule="", form="CAST(any AS type)"),
    Function("try_cast", (ANY, "type"), ANY, "TRY_CAST(text AS INT)", "= 7", {"text": "7"},
             "The value as another type, NULL if it is none.", 0, ("safe_cast",), kind=SYNTAX, rule="", form="TRY_CAST(any AS type)"),
    Function("double", (TEXT,), DOUBLE, "x < double('inf')", "", _X, "A literal: a number, `inf` or `nan`.", kind=SYNTAX, rule="",
             nulls=_NO_NULLS),
    Function("struct", (ANY,), "struct", "struct(y, name) = struct(5, 'ada lovelace')", "", {**_Y, **_NAME},
             "A tuple, which is compared with another: `(y, name) = (5, 'ada lovelace')`.", 0, ("row",), repeats=True, kind=SYNTAX, rule="",
             nulls="Equal tuples may have NULL in the same place."),
    # Containers
    Function("size", (LIST,), INT, "size(tags)", "= 2", _TAGS, "The number of elements of a list, or of entries of a map.", 0,
             ("cardinality", "array_size", "array_length", "list_length"), kind=CONDITION, rule=""),
    Function("array", (ANY,), LIST, "arrays_overlap(tags, array('a', 'x'))", "", _TAGS, "A list of literals, also `['a', 'x']`.", 1,
             ("array_construct", "list_value", "make_array"), repeats=True, kind=CONDITION, rule="", nulls=_NO_NULLS),
    Function("array_contains", (LIST, ANY), BOOLEAN, "array_contains(tags, 'a')", "", _TAGS, "Whether a list has an element.", 0,
             ("list_contains", "array_has", "list_has"), kind=CONDITION, rule="", nulls=_OF_LIST),
    Function("arrays_overlap", (LIST, LIST), BOOLEAN, "arrays_overlap(tags, array('a', 'c'))", "", _TAGS,
             "Whether a list has one of some elements: `tags && array('a', 'c')`.", 0, ("list_has_any", "array_has_any"), kind=CONDITION,
             rule="", nulls=_OF_LIST),
    Function("contains_all", (LIST, ANY), BOOLEAN, "contains_all(tags, 'a', 'b')", "", _TAGS,
             "Whether a list has all of some elements: `tags @> array('a', 'b')`.", 0, ("list_has_all", "array_has_all"), OURS, True,
             kind=CONDITION, rule="", nulls=_OF_LIST),
    Function("element_at", (LIST, ANY), ANY, "element_at(scores, -1)", "= 7", _SCORES,
             "An element of a list by its place, from 1 or from -1 at the end, or the entry of a map with a key.", rule=""),
    Function("try_element_at", (LIST, NUMBER), ANY, "try_element_at(scores, 2)", "= 7", _SCORES,
             "The same, and NULL with ANSI where there is none.", rule=""),
    Function("get", (LIST, NUMBER), ANY, "get(scores, 1)", "= 7", _SCORES,
             "An element of a list by its place, from 0; NULL where there is none.",
             rule=""),
    *[Function(name, (LIST,), ANY, f"{name}(scores)", f"= {of}", _SCORES, f"The {about} element of a list.", 0, (synonym,), rule="",
               nulls="A NULL is left out. The result is NULL where no element is left.") for name, of, about, synonym in (
        ("array_max", 7, "greatest", "list_max"), ("array_min", 3, "least", "list_min"))],
    Function("array_position", (LIST, ANY), BIGINT, "array_position(tags, 'b')", "= 2", _TAGS,
             "The place of the first element that equals a literal, from 1; 0 if there is none.", rule="", nulls=_OF_LIST_ALONE),
    Function("map_contains_key", (MAP, ANY), BOOLEAN, "map_contains_key(attrs, 'os')", "", _ATTRS, "Whether a map has a key.", 0,
             ("map_contains",), rule=""),
    *[Function(name, (MAP,), LIST, f"exists({name}(attrs), i -> {test})", "", _ATTRS, f"A list of the {about} of a map.", rule="")
      for name, test, about in (("map_keys", "i = 'os'", "keys"), ("map_values", "i = 'linux'", "values"),
                                ("map_entries", "i.key = 'os'", "entries, with the fields `key` and `value`,"))],
    Function("exists", (LIST, TEST), BOOLEAN, "exists(items, i -> i.price > 10)", "", _ITEMS,
             "Whether a condition is true for some element.", 0, ("any_match",), kind=ELEMENTS, rule="", nulls=_OF_LIST),
    Function("forall", (LIST, TEST), BOOLEAN, "forall(items, i -> i.price > 10)", "", _ITEMS,
             "Whether a condition is true for all elements, also of an empty list.", 0, ("all_match",), kind=ELEMENTS, rule="",
             nulls=_OF_LIST),
    Function("filter", (LIST, TEST), LIST, "size(filter(items, i -> i.price > 10))", "= 1", _ITEMS,
             "The elements for which a condition is true. They are counted, and nothing else.", 0, ("list_filter", "array_filter"),
             kind=ELEMENTS, rule="", nulls="The number is NULL without a list."),
    # Special
    Function("at_least", (NUMBER, TEST), BOOLEAN, "at_least(2, x > 1, y = 5, y > 9)", "", {**_X, **_Y},
             "Whether so many of the conditions are true, from 1 to all of them.", source=OURS, repeats=True, kind=SPECIAL, rule="",
             nulls="It is NULL where the conditions that are NULL decide."),
    Function("geo_within_radius", ("latitude", "longitude", "degrees", "degrees", "kilometres"), BOOLEAN,
             "geo_within_radius(lat, lon, 48.2, 16.4, 10.0)", "", {"lat": 48.21, "lon": 16.37},
             "Whether a place lies within some kilometres of a center, on a great circle of a ball of 6372.8 km.", source=OURS,
             kind=SPECIAL, rule="", nulls=_TO_UNKNOWN),
    *[Function(name, ("segments", "clock", "id", "seconds"), BOOLEAN, f"{name}(seen, at, 12, {seconds})", "", _SEEN,
               f"Whether a segment was entered {about}.", source=OURS, kind=SPECIAL, rule="", nulls=_TO_UNKNOWN)
      for name, seconds, about in (("segment_within", 3600, "at most so many seconds ago"),
                                   ("segment_before", 60, "more than so many seconds ago"))],
    Function("within_frequency_cap", ("caps", "clock", "type", "id", "name space", "times", "seconds"), BOOLEAN,
             "within_frequency_cap(caps, at, 'flight', 7, 'shop', 3, 3600)", "", _CAPS,
             "Whether an item was shown fewer times than a number, or not within so many seconds.", source=OURS, kind=SPECIAL, rule="",
             nulls=_TO_UNKNOWN),
    # Texts and bytes
    Function("encode", (STRING, TEXT), BINARY, "encode(name, 'utf-8')", "= X'616461206C6F76656C616365'", _NAME,
             "The bytes of a text in a character set. A character that the set lacks is an error."),
    Function("decode", (BYTES, TEXT), STRING, "decode(unhex(encoded), 'utf-8')", "= 'ada!'", _ENCODED,
             "The text of bytes in a character set. Bytes that are no text are an error. With more arguments, it is the value behind the "
             "first equal one, else the last: `decode(y, 5, 'five', 'other')`. Without a last value, Spark makes texts "
             "of the others.", repeats=True),
    Function("unhex", (STRING,), BINARY, "unhex(encoded)", "= X'61646121'", _ENCODED,
             "The bytes of hexadecimal digits, NULL for other texts."),
    Function("unbase64", (STRING,), BINARY, "unbase64(encoded)", "= X'EB5EB8EB5DB5'", _ENCODED,
             "The bytes of Base64. Other characters are passed over; what is incomplete is an error."),
    Function("to_binary", (STRING, TEXT), BINARY, "to_binary(encoded, 'hex')", "= X'61646121'", _ENCODED,
             "The bytes of a text in the form 'hex', 'base64' or 'utf-8'. A text of another form is an error.", 1),
    Function("try_to_binary", (STRING, TEXT), BINARY, "try_to_binary(encoded, 'hex')", "= X'61646121'", _ENCODED,
             "The same, NULL for a text of another form.", 1),
    Function("to_base32", (BYTES,), STRING, "to_base32(name)", "LIKE 'MFS%'", _NAME, "The bytes in UTF-8 as Base32."),
    Function("from_base32", (STRING,), BINARY, "from_base32(encoded)", "= X'F7B9ED'", _ENCODED,
             "The bytes of Base32 before its padding. Other characters are passed over."),
    Function("is_valid_utf8", (BYTES,), BOOLEAN, "is_valid_utf8(unhex(encoded))", "IS TRUE", _ENCODED,
             "Whether bytes are a text in UTF-8."),
    Function("make_valid_utf8", (BYTES,), STRING, "make_valid_utf8(unhex(encoded))", "= 'ada!'", _ENCODED,
             "The text of bytes, with U+FFFD for bytes that are none."),
    Function("validate_utf8", (BYTES,), STRING, "validate_utf8(unhex(encoded))", "= 'ada!'", _ENCODED,
             "The text of bytes. Bytes that are none are an error."),
    Function("try_validate_utf8", (BYTES,), STRING, "try_validate_utf8(unhex(encoded))", "= 'ada!'", _ENCODED,
             "The text of bytes, NULL for bytes that are none."),
    Function("hmac", (TEXT, BYTES, TEXT), BINARY, "hmac('key', name)", "<> X'00'", _NAME,
             "The HMAC of a message with a key, by SHA-256 or another hash: `hmac('key', name, 'SHA-512')`.", 1),
    Function("bitmap_count", (BINARY,), BIGINT, "bitmap_count(unhex(encoded))", "= 11", _ENCODED, "The number of bits that are 1."),
    Function("url_encode", (STRING,), STRING, "url_encode(name)", "= 'ada+lovelace'", _NAME,
             "A text as it stands in a form of the web."),
    Function("url_decode", (STRING,), STRING, "url_decode(text)", "= 'ada lovelace'", {"text": "ada%20lovelace"},
             "The text of a form. A `%` without two hexadecimal digits is an error."),
    Function("try_url_decode", (STRING,), STRING, "try_url_decode(text)", "= 'ada lovelace'", {"text": "ada%20lovelace"},
             "The same, NULL where `url_decode` is an error."),
    Function("parse_url", (STRING, TEXT, TEXT), STRING, "parse_url(text, 'QUERY', 'q')", "= 'ada'", {"text": "https://shop.de/?q=ada"},
             "A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY, USERINFO, or the value of a key in the query. "
             "NULL without it, and for what is no URL, which is an error with ANSI.", 1, fails=True),
    Function("try_parse_url", (STRING, TEXT, TEXT), STRING, "try_parse_url(text, 'HOST')", "= 'shop.de'",
             {"text": "https://shop.de/?q=ada"}, "The same, NULL for what is no URL.", 1),
    # Words
    Function("soundex", (STRING,), STRING, "soundex(name)", "= 'A341'", _NAME, "A letter and three digits for an English sound."),
    Function("luhn_check", (STRING,), BOOLEAN, "luhn_check(id)", "IS TRUE", {"id": "79927398713"},
             "Whether the last digit is the check digit of Luhn, as that of a card."),
    Function("mask", (STRING, OPTION, OPTION, OPTION, OPTION), STRING, "mask(id)", "= 'XXX-nnn'", {"id": "ABC-123"},
             "A text with `X`, `x` and `n` for capitals, small letters and digits, or with other characters: "
             "`mask(id, 'A', 'a', '0', NULL)`. NULL keeps what is there.", 4),
    Function("quote", (STRING,), STRING, "quote(name)", "LIKE '%lace%'", _NAME, "A text in quotes, with backslashes before quotes."),
    Function("repeat", (STRING, NUMBER), STRING, "repeat(name, 2)", "LIKE '%ceada%'", _NAME, "A text so many times."),
    Function("space", (INT,), STRING, "space(y)", "= '     '", _Y, "So many spaces, 4,096 at most."),
    Function("overlay", (STRING, TEXT, NUMBER, NUMBER), STRING, "overlay(name, 'm', 1, 2)", "= 'ma lovelace'", _NAME,
             "A text with characters from a place on replaced, as many as the new text has or as are named. "
             "Also `overlay(name PLACING 'm' FROM 1 FOR 2)`.", 1),
    Function("btrim", (STRING, TEXT), STRING, "btrim(name, 'ace')", "= 'da lovel'", _NAME,
             "A text without these characters, or spaces, at both ends. Also `trim(BOTH 'ace' FROM name)`.", 1),
    Function("jaro_winkler_similarity", (STRING, TEXT), DOUBLE, "jaro_winkler_similarity(name, 'ada lovelaze')", "> 0.9", _NAME,
             "How alike two texts are, from 0 to 1."),
    Function("regexp_instr", (STRING, TEXT), INT, "regexp_instr(path, '/g')", "= 5", _PATH,
             "The place of the first match, counted from 1; 0 without one."),
    Function("format_string", (TEXT, ANY), STRING, "format_string('%s-%03d', name, y)", "= 'ada lovelace-005'", {**_NAME, **_Y},
             "A format with values for `%s` and `%d`, which may have a width.", synonyms=("printf",), repeats=True,
             nulls="A NULL is written as null.", rule="_format_string"),
    Function("json_array_length", (STRING,), INT, "json_array_length(payload)", "= 2", {"payload": "[1, 2]"},
             "The number of elements of a list in JSON, NULL for what is none."),
    # Numbers as texts
    Function("bin", (BIGINT,), STRING, "bin(y)", "= '101'", _Y, "A whole number as bits, of 64 if it is negative."),
    Function("char", (BIGINT,), STRING, "char(y)", "<> 'A'", _Y, "The character with this number, modulo 256.", 0, ("chr",)),
    Function("format_number", (ANY_NUMBER, FORM), STRING, "format_number(x, 2)", "= '2.00'", _X,
             "A number with commas and so many digits behind the point, or in a format such as '#,##0.00'.", rule="_format_number"),
    Function("elt", (INT, WRITTEN), STRING, "elt(y, 'a', name)", "= 'ada lovelace'", {**_NAME, "y": 2},
             "The text at a place. NULL beyond the last, which is an error with ANSI.", repeats=True,
             nulls="NULL where the place or the text is NULL.", rule="_elt"),
    # More numbers
    *[Function(name, (DOUBLE,), DOUBLE, f"{name}(x / 2)", "IS NOT NULL", _X, about) for name, about in (
        ("acosh", "The inverse hyperbolic cosine."), ("asinh", "The inverse hyperbolic sine."),
        ("atanh", "The inverse hyperbolic tangent."), ("cot", "1 / tan(x)."), ("sec", "1 / cos(x)."), ("csc", "1 / sin(x)."))],
    Function("log", (DOUBLE, DOUBLE), DOUBLE, "log(2, x)", "= 1", _X,
             "The logarithm of x to a base: `log(base, x)`. NULL for 0 and less. Of one number, the natural one.", 1, rule="_log"),
    Function("factorial", (INT,), BIGINT, "factorial(y)", "= 120", _Y, "The product of the numbers up to this one; NULL beyond 20."),
    Function("negative", (ANY_NUMBER,), ANY_NUMBER, "negative(x)", "= -2", _X, "-x.", value=("negate", 0)),
    Function("pi", (), DOUBLE, "pi()", "> x", _X, "3.14159.", value=("literal", "double", "3.141592653589793")),
    Function("e", (), DOUBLE, "e()", "> x", _X, "2.71828.", value=("literal", "double", "2.718281828459045")),
    Function("bit_get", (WHOLE, NUMBER), "tinyint", "bit_get(flags, 2)", "= 1", {"flags": 5},
             "A bit of a number, counted from the lowest, 0.", 0, ("getbit",), rule="_bit_get"),
    Function("bitmap_bit_position", (BIGINT,), BIGINT, "bitmap_bit_position(y)", "= 4", _Y, "The place of a number in its bitmap."),
    Function("bitmap_bucket_number", (BIGINT,), BIGINT, "bitmap_bucket_number(y)", "= 1", _Y, "The bitmap that a number is in."),
    # Days of the week
    Function("dayname", (DATE,), STRING, "dayname(day)", "= 'Wed'", _DAY, "The day of the week in three letters.",
             value=("date_format", ("cast", 0, "date"), ("literal", "string", "E"))),
    Function("monthname", (DATE,), STRING, "monthname(day)", "= 'Jan'", _DAY, "The month in three letters.",
             value=("date_format", ("cast", 0, "date"), ("literal", "string", "MMM"))),
)  # fmt: skip
TABLE = {function.name: function for function in _ROWS}
NAMES = {**TABLE, **{synonym: function for function in _ROWS for synonym in function.synonyms}}
SYNONYMS = {name: function.name for name, function in NAMES.items() if name not in TABLE and function.kind == VALUE}
