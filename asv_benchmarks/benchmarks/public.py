"""Public rules with public events, read from files that are not part of the project.

``user_agents.json.gz`` and ``sigma_*`` are in one folder, EasyList, EasyPrivacy and the requests of
adblock-rust in another, and ``10K_acl1_rules.gz`` of ClassBench in a third.
"""

from __future__ import annotations

import gzip
import ipaddress
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
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


_FIELDS = {"source": 2**32 - 1, "target": 2**32 - 1, "source_port": 65535, "target_port": 65535, "protocol": 255}


def _ranges(line: str) -> list[tuple[int, int]]:
    """Returns the five ranges of a rule of ClassBench: addresses, ports, protocol."""
    source, target, *ports, protocol = line.lstrip("@").split("\t")[:5]
    networks = [ipaddress.ip_network(text, strict=False) for text in (source, target)]
    found = [(int(network[0]), int(network[-1])) for network in networks]
    found += [tuple(map(int, re.findall(r"\d+", text))) for text in ports]
    value, mask = (int(text, 16) for text in protocol.split("/"))
    return [*found, (value, value) if mask == 255 else (0, 255)]


def firewall(folder: Path) -> Given:
    """Rules of a firewall, and packets of which each is within a rule."""
    with gzip.open(folder / "10K_acl1_rules.gz", "rt") as file:
        rules = [_ranges(line) for line in file]
    texts = [
        " AND ".join(
            f"{name} = {low}" if low == high else f"{name} BETWEEN {low} AND {high}"
            for (name, most), (low, high) in zip(_FIELDS.items(), ranges, strict=True)
            if (low, high) != (0, most)
        )
        or "TRUE"
        for ranges in rules
    ]
    rng, all_ranges = np.random.default_rng(1), np.array(rules)
    packets = rng.integers(all_ranges[:, :, 0], all_ranges[:, :, 1] + 1)[rng.permutation(len(rules))]
    events = pa.table({name: packets[:, i] for i, name in enumerate(_FIELDS)})
    return Given(pa.table({"id": pa.array(range(len(texts))), "expression": texts}), events.schema, events)
