"""Rules of json-rules-engine, moved over, and the best three for each customer.

pip install colmatch
python examples/best_offers.py
"""

import json

import pyarrow as pa

import colmatch as cm

# What stands in rules.json today. ``priority`` orders what an engine fires; here it is a score.
rules = [
    {
        "name": "welcome",
        "priority": 1,
        "conditions": {"any": [{"fact": "orders", "operator": "lessThanInclusive", "value": 1}]},
    },
    {
        "name": "free delivery",
        "priority": 5,
        "conditions": {
            "all": [
                {"fact": "basket", "operator": "greaterThan", "value": 60},
                {"fact": "country", "operator": "in", "value": ["FR", "BE"]},
            ]
        },
    },
    {
        "name": "come back",
        "priority": 3,
        "conditions": {
            "all": [
                {"not": {"fact": "days_away", "operator": "lessThan", "value": 90}},
                {"fact": "tags", "operator": "doesNotContain", "value": "no mail"},
            ]
        },
    },
    {
        "name": "large basket",
        "priority": 4,
        "conditions": {"all": [{"fact": "basket", "operator": "greaterThanInclusive", "value": 200}]},
    },
]
conditions = cm.rules.from_json_rules(json.dumps(rules))
priorities = {rule["name"]: rule["priority"] for rule in rules}
table = pa.table(
    {
        "id": list(conditions),
        "expression": [str(condition) for condition in conditions.values()],
        "priority": [priorities[name] for name in conditions],
    }
)
schema = "orders int, basket double, country string, days_away int, tags array<string>"
matcher = cm.Matcher.build(table, schema)

customers = pa.Table.from_pylist(
    [
        {"name": "ada", "orders": 1, "basket": 80.0, "country": "FR", "days_away": 0, "tags": []},
        {"name": "ben", "orders": 9, "basket": 230.0, "country": "BE", "days_away": 120, "tags": ["gift"]},
        {"name": "cleo", "orders": 4, "basket": 20.0, "country": "IT", "days_away": 200, "tags": ["no mail"]},
    ],
    pa.schema([("name", pa.string()), *matcher.schema.arrow]),
)
for offer in matcher.match_topk(customers, 3, score="priority", keep="name").to_pylist():
    print(f"{offer['name']:>5}: {offer['subscription']} ({offer['score']:.0f})")

# Who gets nothing, and why.
for row, count in enumerate(matcher.count(customers)):
    if not count:
        print(f"\n{customers['name'][row]} gets nothing:")
        for name in conditions:
            print(matcher.explain(customers.slice(row, 1), name))

# A rule changes while the service runs.
matcher.replace(pa.table({"id": ["come back"], "expression": ["days_away >= 180 AND country = 'IT'"], "priority": [9]}))
print(matcher.match_topk(customers, 1, score="priority", keep="name").select(["name", "subscription"]).to_pylist())
