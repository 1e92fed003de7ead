"""The check of a text's length, before the text is read.

Each condition becomes an object of Python, so reading a megabyte takes seconds.
"""

from __future__ import annotations

from colmatch.errors import ExpressionError, line_and_column


def check_size(text: str, most: int) -> None:
    """Refuses a text of more than ``most`` bytes in UTF-8.

    Raises ExpressionError: the text has more bytes. Its place is the first character beyond them.
    """
    size = len(text)
    if size <= most and size * 4 > most and not text.isascii():
        size = len(text.encode(errors="surrogatepass"))
    if size > most:
        there = text[:most].encode(errors="surrogatepass")[:most].decode(errors="ignore")
        line, column = line_and_column(there, len(there))
        raise ExpressionError(
            f"the expression has more than {most:,} bytes: split it, put long lists into a PredicateTable, or raise "
            "Options(max_text_bytes=...)",
            line=line,
            column=column,
        )
