"""Double quotes: texts as in Spark, or names as in ANSI SQL (``Options.double_quotes``).

A text in double quotes that is the name of a column is an error. In PostgreSQL, DuckDB or
Snowflake, the same expression names the column.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import show_value
from colmatch.expr.ast import Refusal
from colmatch.given.schema import Schema, column_paths
from colmatch.kernels._forks import cached_property

# Texts with double quotes around names only. None is within other quotes, and there is no
# backslash, comment or doubled quote. All other texts are left to tokens.
_PLAIN = r"""^(?:[^"'`\\]|'[^'"\\]*'|`[^`"\\]*`|"[^"`\\]+")*$"""
_HARD = r"""--|/\*|"\""""
_NAME = r'"([^"]+)"'
_IS_PLAIN, _IS_HARD = re.compile(_PLAIN), re.compile(_HARD)
NO_NAME = "a name in double quotes is not empty and has no quote in it: write it in backquotes, as in `name`"
NO_COLUMN = (
    "a text in double quotes stands where a column is needed: write `name` for a column, "
    'or set Options(double_quotes="names")'
)


class Quotes:
    """The meaning of double quotes in texts over one schema.

    Attributes
    ----------
    names : whether double quotes are around names of columns; otherwise they are around texts
    """

    def __init__(self, schema: Schema | None = None, double_quotes: str = "texts") -> None:
        self._schema = schema
        self.names = double_quotes == "names"

    @cached_property
    def _columns(self) -> dict[str, tuple[str, ...]]:
        """Maps names of columns and fields in lower case to their paths."""
        if self._schema is None or self.names:
            return {}
        return {".".join(path).lower(): path for path in column_paths(self._schema)}

    def is_column(self, text: str) -> bool:
        """Returns whether a text is the name of a column."""
        return text.lower() in self._columns

    def needs_reading(self, text: str) -> bool:
        """Returns whether a text may have the name of a column in double quotes."""
        return '"' in text and any(map(self.is_column, text.split('"')[1:-1]))

    def refusal(self, text: str, at: int) -> Refusal:
        """Returns the error for a text in double quotes that is the name of a column."""
        name, path = show_value(text)[1:-1], self._columns.get(text.lower(), (text,))
        column = f"`{name}`" if len(path) == 1 else ".".join(f"`{part}`" for part in path)
        return Refusal(
            f'"{name}" is a text here, and the name of a column: write {column} for the column, '
            f"'{name}' for the text, or set Options(double_quotes=\"names\")",
            at,
        )

    def written(self, text: str) -> str:
        """Writes names in backquotes where they are in double quotes.

        Every character keeps its place.
        """
        if not self.names or '"' not in text:
            return text
        if _IS_HARD.search(text) or not _IS_PLAIN.search(text):
            return _by_tokens(text)
        return re.sub(_NAME, r"`\1`", text)

    def of_column(self, texts: pa.StringArray) -> tuple[pa.StringArray, NDArray[np.bool_]]:
        """Returns texts as ``written`` does, and a mask of texts to be read one by one."""
        quoted = pc.match_substring(texts, '"')
        left = np.zeros(len(texts), np.bool_)
        which = np.flatnonzero(quoted.to_numpy(zero_copy_only=False))
        if not len(which) or not (self.names or self._columns):
            return texts, left
        candidates = texts.take(pa.array(which))
        if self.names:
            plain = pc.match_substring_regex(candidates, _PLAIN).to_numpy(zero_copy_only=False)
            plain &= ~pc.match_substring_regex(candidates, _HARD).to_numpy(zero_copy_only=False)
            left[which[~plain]] = True
            mask = np.zeros(len(texts), np.bool_)
            mask[which[plain]] = True
            with_names = pc.replace_substring_regex(texts.filter(pa.array(mask)), _NAME, r"`\1`")
            return pc.replace_with_mask(texts, pa.array(mask), with_names), left
        pieces = pc.split_pattern(candidates, '"')
        is_name = pc.is_in(pc.utf8_lower(pieces.values), pa.array(sorted(self._columns), texts.type))
        rows = pc.list_parent_indices(pieces).filter(is_name)
        left[which[rows.to_numpy()]] = True
        return texts, left


def _by_tokens(text: str) -> str:
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import TokenError
    from sqlglot.tokenizer_core import TokenType

    try:
        tokens = Spark().tokenize(text)
    except (TokenError, TypeError, ValueError, AttributeError, LookupError, AssertionError):
        return text  # the reader of the text finds the fault
    characters = list(text)
    for token in tokens:
        inside = text[token.start + 1 : token.end]
        if (
            token.token_type is TokenType.STRING
            and text[token.start] == '"'
            and inside
            and not set(inside) & set('"`\\')
            and '"' not in text[token.start - 1 : token.start] + text[token.end + 1 : token.end + 2]
        ):
            characters[token.start] = characters[token.end] = "`"
    return "".join(characters)
