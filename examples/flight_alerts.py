"""Travellers' alerts on real flights: the 336,776 that left New York in 2013.

    pip install "colmatch[examples]"
    python examples/flight_alerts.py

``colmatch demo`` does the same with 100,000 alerts and some figures.
"""

import pyarrow.compute as pc

import colmatch as cm
from colmatch.bench.flights import alerts, flights

# Ours, by name, and a thousand of other people's.
mine = {
    "late to Los Angeles": "origin = 'JFK' AND dest = 'LAX' AND dep_delay >= 60 AND hour BETWEEN 6 AND 9",
    "cancelled": "carrier = 'B6' AND dest IN ('SFO', 'OAK', 'SJC') AND dep_time IS NULL",
    "American's own tails": "tailnum LIKE 'N%AA' AND NOT (origin = 'LGA' OR arr_delay < 120)",
    "Independence Day": "month = 7 AND day = 4 AND (dep_time IS NULL OR arr_delay > 90)",
    "made it up": cm.col("dep_delay").between(30, 45) & (cm.col("arr_delay") <= -20),
}
others = {f"traveller {id}": text for id, text in alerts(1_000)}

events = flights()
matcher = cm.Matcher.build({**mine, **others}, events.schema)
print(f"{len(matcher):,} alerts, index {matcher.kind}")

# Results come in batches as the flights go by: (event, subscription) pairs, an event being the
# number of its row.
firings = 0
latest: dict[str, int] = {}
for pairs in matcher.match_batches(events):
    firings += pairs.num_rows
    own = pairs.filter(pc.is_in(pairs["subscription"], pc.cast(list(mine), pairs["subscription"].type)))
    latest.update(zip(own["subscription"].to_pylist(), own["event"].to_pylist(), strict=True))
print(f"{firings:,} firings in {events.num_rows:,} flights")

for name, row in sorted(latest.items()):
    flight = events.slice(row, 1)
    print(f"\n{name!r} fired last for flight {row}:")
    print(matcher.explain(flight, name))
