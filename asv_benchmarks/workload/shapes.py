"""The parameters of the named workloads.

They are what the papers say, and what was chosen where they are silent.
"""

from __future__ import annotations

from typing import Any

# The PS-Tree paper, section 7.1, table 1, the bold values; sizes are averages there, spread by
# two here
_FREE: dict[str, Any] = {
    "subscriptions": 1_000_000,
    "cardinality": 100,
    "subscription_size": (3, 7),
    "event_size": (30, 30),
    "equality": 0.2,
    "width": (0.0, 1.0),
}

# The matching probability 0.001 of documents 000 and 003, where next to nothing matches by chance:
# 0.5 / 500. Half of the subscriptions then stay as they were drawn. Only the first 500 events have
# that many matches; later ones have what matches by chance.
_ONE_IN_A_THOUSAND: dict[str, Any] = {"planted": 0.5, "around": 500}

SHAPES: dict[str, dict[str, Any]] = {
    # Our own. Ranges as wide as the domain at most, half of it on average. An event matches about
    # 370, 680 and 45 of a million by chance, most of them of three predicates.
    "dense": {**_FREE, "attributes": 100},
    "dense-planted": {**_FREE, "attributes": 100, "planted": 0.5, "attribute_zipf": 0.5, "value_zipf": 0.5},
    "dense-equal": {**_FREE, "attributes": 100, "equality": 0.6},
    # The PS-Tree paper, section 7.1, table 1. Silent on the operators that are no equalities, and
    # on widths: BETWEEN, up to the whole domain. Event sizes are averages, spread by ten here. In
    # the dense one 0.00046 match by chance, and 0.27 / 500 are planted.
    "pstree-dense": {**_FREE, "attributes": 100, "event_size": (20, 40), "planted": 0.27, "around": 500},
    "pstree-sparse": {**_FREE, **_ONE_IN_A_THOUSAND, "attributes": 30_000, "event_size": (20, 40), "layout": "map"},
    # The OpIndex paper, section 7.1 and table 3; section 4.4: sizes uniform from 1, operands
    # uniform. Which values of the table are the defaults is lost with its bold type but for the
    # blanks that it left: 4, 20, 40 %, 50, 0. Table 2 calls m the size of an event, table 3 its
    # maximum: all events have 20 pairs here.
    "opindex": {
        "subscriptions": 1_000_000,
        "attributes": 20_000,
        "cardinality": 50,
        "subscription_size": (1, 4),
        "event_size": (20, 20),
        "equality": 0.4,
        "operators": (("<=", 0.5), (">=", 0.5)),
        "layout": "map",
    },
    # The BE*-Tree paper, section VII, table III. 8 predicates and 15 pairs are averages there,
    # spread by four here. "A handful of values" in a range: 1 to 10 of 250M. Silent on the share of
    # equalities: a fifth, as in the PS-Tree paper.
    "bestar": {
        **_ONE_IN_A_THOUSAND,
        "subscriptions": 1_000_000,
        "attributes": 400,
        "cardinality": 250_000_000,
        "subscription_size": (4, 12),
        "event_size": (11, 19),
        "equality": 0.2,
        "width": (0.0, 4e-8),
        "clusters": 4,
        "cluster_size": 100,
    },
    # The PS-Tree paper, sections 7.1 and 7.4: 3M, 122 dimensions, 1 to 56 predicates, 8 on average,
    # events of 20 pairs. Silent on the rest: channels, regions and positions are equalities and
    # lists, profiles ranges; few attributes are popular; 400 of a million match.
    "ads": {
        "subscriptions": 3_000_000,
        "attributes": 122,
        "cardinality": 1000,
        "subscription_size": (1, 56),
        "subscription_mean": 8.0,
        "event_size": (20, 20),
        "equality": 0.6,
        "operators": (("in", 0.8), ("between", 0.2)),
        "width": (0.0, 0.1),
        "attribute_zipf": 1.0,
        "planted": 0.1,
    },
    # The PS-Tree paper, sections 7.1 and 7.3: 2.1M keyword queries of 2.78 predicates in 17,577
    # dimensions, events of 93.07 pairs. A keyword's first three letters are the attribute, the next
    # three the value: 26**3 values. Silent on skew and matching: Zipf 1, a tenth planted.
    "querylog": {
        "subscriptions": 2_100_000,
        "attributes": 17_577,
        "cardinality": 26**3,
        "subscription_size": (1, 10),
        "subscription_mean": 2.78,
        "event_size": (60, 126),
        "equality": 1.0,
        "attribute_zipf": 1.0,
        "value_zipf": 1.0,
        "planted": 0.1,
        "layout": "map",
    },
}
