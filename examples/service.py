"""Events that come one by one in several threads, while another thread changes the rules.

    pip install colmatch
    python examples/service.py [SECONDS]

A call sees the rules as they are at that moment, and waits for no update.
"""

import itertools
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import colmatch as cm

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
cities = ["Lyon", "Nice", "Porto", "Turin"]
stop = threading.Event()
matcher = cm.Matcher.build(
    {f"under {price} in {city}": f"city = '{city}' AND price < {price}" for city in cities for price in (50, 100, 200)},
    "city string, price double, stars bigint",
)


def serve(number: int) -> tuple[int, int]:
    """Answers events until the service stops; returns how many, and how many matches they had."""
    rng, events, matches = Random(number), 0, 0
    while not stop.is_set():
        event = {"city": rng.choice(cities), "price": rng.uniform(20, 300), "stars": rng.randint(1, 5)}
        matches += len(matcher.match_one(event))
        events += 1
    return events, matches


def change() -> int:
    """Lets travellers come and go: at most a hundred of them are there at a time."""
    for number in itertools.count():
        if stop.is_set():
            return number
        city, stars = cities[number % len(cities)], number % 5 + 1
        matcher.insert({f"traveller {number}": f"city = '{city}' AND stars >= {stars} AND price < 80"})
        if number >= 100:
            matcher.delete([f"traveller {number - 100}"])


with matcher, ThreadPoolExecutor() as pool:
    served = [pool.submit(serve, number) for number in range(3)]
    changed = pool.submit(change)
    stop.wait(seconds)
    stop.set()
    events, matches = map(sum, zip(*(one.result() for one in served), strict=True))
    print(f"{events:,} events and {matches:,} matches in {seconds:g} s, while {changed.result():,} travellers came")
    print(f"{len(matcher)} subscriptions are left")
