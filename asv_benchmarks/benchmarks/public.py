"""Public rules with public events, read from files that are not part of the project.

``user_agents.json.gz`` and ``sigma_*`` are in one folder, EasyList, EasyPrivacy and the requests of
adblock-rust in another.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

_LIKE = str.maketrans({"\\": r"\\", "'": "''", "%": r"\%", "_": r"\_", "*": "%", "^": "/"})


class Given(NamedTuple):
    rules: pa.Table
    schema: Any
    events: pa.Table


def _read(path: Path) -> Any:
    with gzip.open(path) as file:
        return json.load(file)


def condition(regex: str) -> str:
    return "agent RLIKE '" + regex.replace("\\", "\\\\").replace("'", "''") + "'"


def agents(folder: Path) -> Given:
    found = _read(folder / "user_agents.json.gz")
    regexes = sorted({(f"(?{flag})" if flag else "") + regex for _, _, regex, flag in found["patterns"]})
    texts = list(map(condition, regexes))
    rules = pa.table({"id": pa.array(range(len(texts))), "expression": texts})
    return Given(rules, {"agent": "string"}, pa.table({"agent": sorted(set(found["strings"]))}))


def detections(folder: Path) -> Given:
    found = _read(folder / "sigma_rules.json.gz")
    rules = pa.table({"id": list(found), "expression": [condition for condition, _ in found.values()]})
    schema = json.loads((folder / "sigma_schema.json").read_text())
    return Given(rules, schema, pq.read_table(folder / "sigma_events.parquet"))


def _filters(folder: Path) -> Iterator[str]:
    """Yields filters of URLs without their options; no exceptions and no regular expressions."""
    for name in ("easylist", "easyprivacy"):
        with gzip.open(folder / f"{name}.txt.gz", "rt") as file:
            for line in map(str.strip, file):
                pattern = line.partition("$")[0]
                is_regex = len(pattern) > 1 and pattern[0] == pattern[-1] == "/"
                if pattern and not line.startswith(("!", "[", "@@")) and "#" not in line and not is_regex:
                    yield pattern


def _url_condition(pattern: str) -> str:
    """Returns the condition on a URL: a separator is taken for a slash."""
    end = "" if pattern.endswith("|") else "%"
    text = pattern.strip("|").translate(_LIKE)
    if pattern.startswith("||"):
        return f"url LIKE '%://{text}{end}' OR url LIKE '%.{text}{end}'"
    return f"url LIKE '{'' if pattern.startswith('|') else '%'}{text}{end}'"


def filters(folder: Path) -> Given:
    texts = list(map(_url_condition, _filters(folder)))
    urls = [request["url"] for request in _read(folder / "requests.json.gz")]
    rules = pa.table({"id": pa.array(range(len(texts))), "expression": texts})
    return Given(rules, {"url": "string"}, pa.table({"url": urls}))
