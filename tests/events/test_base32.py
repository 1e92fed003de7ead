"""Base32 in texts has the bytes that Spark 4.3 reads, even of texts that are cut."""

from __future__ import annotations

import base64
from random import Random

import pyarrow as pa
import pytest

import colmatch as cm

OF_SPARK = {
    "": b"",
    "MZXW6YTBOI======": b"foobar",
    "mzxw6": b"foo",
    "M": b"\x03",
    "MR": b"d",
    "AAA": b"\0",
    "MZXW6YT": b"foob",
    "MZXW6YTBM": b"fooba\x0b",
    "77777777Z": b"\xff\xff\xff\xff\xff\xfe",
    "MZ==ABCD": b"f",
    "=MZ": b"",
    " MZX-W0\n1896===": b"foo",
    "\u017f\u00c0\u0131": b"",
}


@pytest.mark.parametrize("text", OF_SPARK)
def test_base32_is_read_as_spark_does(text: str) -> None:
    matcher = cm.Matcher.build({0: f"from_base32(s) = X'{OF_SPARK[text].hex()}'"}, {"s": "string"})
    assert matcher.exists_one({"s": text})
    assert matcher.match_lists(pa.table({"s": [text, None]})).to_pylist() == [[0], []]


def test_base32_there_and_back() -> None:
    random = Random(32)
    some = [random.randbytes(size) for size in range(40)]
    rules = {i: f"from_base32(s) = X'{one.hex()}'" for i, one in enumerate(some)}
    texts = [base64.b32encode(one).decode() for one in some]
    matcher = cm.Matcher.build(rules, {"s": "string"})
    for written in (texts, [text.rstrip("=").lower() for text in texts]):
        assert matcher.match_lists(pa.table({"s": written})).to_pylist() == [[i] for i in range(len(some))]
