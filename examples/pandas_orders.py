"""A frame of pandas as it comes from a spreadsheet: with holes, dates, categories and odd columns.

pip install colmatch pandas
python examples/pandas_orders.py
"""

import pandas as pd

import colmatch as cm

orders = pd.DataFrame(
    {
        "customer": ["ada", "ben", None, "dora"],
        "items": [3, None, 12, 1],  # a hole makes doubles of whole numbers
        "total": [59.9, 12.5, 240.0, None],
        "ordered": pd.to_datetime(["2026-11-20 08:30", "2026-11-21 23:59", None, "2026-11-24 12:00"]).tz_localize(
            "Europe/Paris"
        ),
        "channel": pd.Categorical(["web", "shop", "web", "web"]),
        "note": ["", "call back", None, "gift"],
        "raw": [{"a": 1}, {"b": 2}, {"a": 3}, {}],  # no rule uses it
    },
    index=pd.Index(["o-1", "o-2", "o-3", "o-4"], name="order"),
)

# The schema says what is meant: ``items`` are whole numbers, though pandas has doubles for them.
schema = {
    "customer": str,
    "items": int,
    "total": float,
    "ordered": "timestamp with time zone",
    "channel": str,
    "note": str,
}
rules = {
    "wholesale": "items >= 10",
    "no customer": "customer IS NULL",
    "late evening": "hour(ordered) >= 22",
    "since Saturday, online": "ordered >= TIMESTAMP '2026-11-21 00:00:00' AND channel = 'web'",
    "to be called": "note ILIKE '%call%' OR total IS NULL",
}
matcher = cm.Matcher.build(rules, schema, options=cm.Options(timezone="Europe/Paris"))

print(matcher.match(orders, keep=["order", "customer"]).drop_columns(["event"]).to_pandas())
orders["rules"] = pd.Series(matcher.match_lists(orders).to_pylist(), index=orders.index)
print(orders.loc["o-3", "rules"])

# A misspelt column is found when the rules are read, and half an item when the orders are.
for mistake in (
    lambda: cm.Matcher.build({"wholesale": "item >= 10"}, schema),
    lambda: matcher.match(orders.assign(items=[3, 2.5, 1, 1])),
):
    try:
        mistake()
    except cm.ColmatchError as error:
        print(f"{type(error).__name__}: {error}")
