"""What explain writes can be read again, and means what it meant."""

from __future__ import annotations

import pyarrow as pa
import pytest

import colmatch as cm

SCHEMA = {"s": "string"}


@pytest.mark.parametrize("prefix", ["ab", "50%", "a_b", "C:\\temp", "it's", "\\", "\\%", "%", "_\\_"])
def test_a_prefix_is_read_again_as_it_was(prefix: str) -> None:
    texts = [prefix, prefix + "x", prefix.replace("\\", ""), prefix.replace("%", "y"), prefix.replace("_", "y"), "x"]
    events = pa.table({"s": texts})
    matcher = cm.Matcher.build({1: cm.col("s").startswith(prefix)}, SCHEMA)
    shown = str(matcher.explain(events.slice(0, 1), 1)).splitlines()[-1]
    written = shown[shown.index("s LIKE") :].rsplit("   [", 1)[0]
    assert matcher.count(events).tolist() == [text.startswith(prefix) for text in texts]
    assert cm.Matcher.build({1: written}, SCHEMA).count(events).tolist() == matcher.count(events).tolist()
