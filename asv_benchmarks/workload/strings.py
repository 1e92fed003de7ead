"""Workloads of text patterns: detection rules over logged processes, and user agents.

They are drawn in the shape of public data, so that anyone can measure without it. ``detections``
are like the rules of SigmaHQ for Windows: ANDs, ORs and NOTs of LIKE without case, over 60 columns
most of which an event does not have. ``user-agents`` are like the regular expressions of ua-parser:
most have a product's name and versions, some may begin anywhere, some have any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from colmatch.errors import OptionError
from colmatch.given.arguments import check_choice, check_whole

CHUNK = 1024  # rules or events that are drawn at a time
PLENTY = 1000  # programs, and products
TEXTS = pa.schema({"id": pa.int64(), "expression": pa.string()})


class Draw(NamedTuple):
    """What a workload is drawn by. The number of a rule or of an event may make it another one."""

    subscriptions: int  # by default
    columns: dict[str, pa.DataType]
    rule: Callable[[Random, int], str]
    event: Callable[[Random, int], dict[str, Any]]


class TextWorkload:
    """Rules as texts, and events, as endless streams. Every part is reproducible.

    Parameters
    ----------
    name : ``detections`` or ``user-agents``
    subscriptions : number of rules; None for 2,400 and 1,270, as in the public rule sets
    seed : seed of the data; another seed gives other data

    Raises
    ------
    OptionError : the name is not a workload, or a number is out of range
    """

    def __init__(self, name: str, subscriptions: int | None = None, seed: int = 0) -> None:
        self.name = check_choice("a workload of texts called {}", name, NAMES)
        self._draw = DRAWS[name]
        count = self._draw.subscriptions if subscriptions is None else subscriptions
        self.subscriptions = _from_zero(count, "subscriptions")
        self.seed = _from_zero(seed, "seed")

    def texts(self, start: int = 0, count: int | None = None) -> pa.Table:
        """Draws subscriptions ``start`` to ``start + count``: id int64, expression string."""
        return pa.Table.from_batches(self.text_batches(start, count), TEXTS)

    def text_batches(self, start: int = 0, count: int | None = None) -> Iterator[pa.RecordBatch]:
        """Draws these subscriptions, piece by piece."""
        begin = _from_zero(start, "start")
        stop = self.subscriptions if count is None else begin + _from_zero(count, "count")
        if not begin <= stop <= self.subscriptions:
            raise OptionError(f"there are no subscriptions {begin:,} to {stop:,}, but {self.subscriptions:,} in all")
        for first, found in self._drawn("rule", self._draw.rule, begin, stop):
            yield pa.record_batch([pa.array(range(first, first + len(found)), pa.int64()), found], schema=TEXTS)

    def schema(self) -> pa.Schema:
        """Returns the schema of the events, for ``Matcher.build``."""
        return pa.schema(self._draw.columns)

    def events(self, rows: int, start: int = 0) -> pa.Table:
        """Draws events ``start`` to ``start + rows`` of an endless stream."""
        return pa.Table.from_batches(self.event_batches(rows, start), self.schema()).combine_chunks()

    def event_batches(self, rows: int, start: int = 0) -> Iterator[pa.RecordBatch]:
        """Draws these events, piece by piece."""
        begin = _from_zero(start, "start")
        for _, found in self._drawn("event", self._draw.event, begin, begin + _from_zero(rows, "rows")):
            yield pa.RecordBatch.from_pylist(found, self.schema())

    def _drawn(
        self, what: str, draw: Callable[[Random, int], Any], begin: int, stop: int
    ) -> Iterator[tuple[int, list[Any]]]:
        for chunk in range(begin // CHUNK, -(-stop // CHUNK)):
            rng = Random(f"{self.name} {self.seed} {what} {chunk}")
            found = [draw(rng, number) for number in range(chunk * CHUNK, (chunk + 1) * CHUNK)]
            first = max(begin, chunk * CHUNK)
            yield first, found[first - chunk * CHUNK : stop - chunk * CHUNK]


def _from_zero(value: int, what: str) -> int:
    return check_whole(f"{what}={{}}", value, 0, 2**40, most="2**40")


SYLLABLES = (
    *("ba", "co", "de", "fi", "gu", "la", "me", "ni", "or", "pu", "ra", "si", "to", "ve", "xa"),
    *("win", "net", "sys", "app", "ser", "log", "end", "key"),
)


def _word(number: int) -> str:
    """A word of its own for each number."""
    word = ""
    while True:
        word += SYLLABLES[number % len(SYLLABLES)]
        number //= len(SYLLABLES)
        if not number:
            return word


def _frequent(rng: Random, most: int) -> int:
    """Draws a number below ``most``, small ones more often."""
    return int(most ** rng.random()) - 1 if rng.random() < 0.9 else rng.randrange(most)


PATHS = {"Image": 9, "ParentImage": 4, "TargetFilename": 3, "ImageLoaded": 2, "TargetObject": 3}
LINES = {"CommandLine": 10, "ParentCommandLine": 1, "ScriptBlockText": 3}
OTHERS = {f"Field{i}": 1 for i in range(50)}
FOLDERS = ("C:\\Windows\\System32\\", "C:\\Program Files\\", "C:\\Users\\Public\\", "C:\\Windows\\Temp\\")


def detection(rng: Random, number: int) -> str:
    """Draws a rule: selections that all must hold, then filters that must not."""
    parts = [_selection(rng) for _ in range(rng.choice((1, 2, 2, 3)))]
    if rng.random() < 0.2:
        parts.append(f"EventID = {rng.randrange(4600, 4800)}")
    filters = [f"NOT {_selection(rng)}" for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    return " AND ".join([*parts, *filters])


def _selection(rng: Random) -> str:
    columns = rng.choices((PATHS, LINES, OTHERS), (5, 5, 2))[0]
    (column,) = rng.choices(list(columns), list(columns.values()))
    several = range(rng.choice((1, 1, 2, 3, 5, 9)))
    if columns is PATHS:
        some = [f"%\\\\\\\\{_word(rng.randrange(PLENTY))}.exe" for _ in several]
    else:
        some = [f"%{_phrase(rng, rng.randrange(PLENTY))}%" for _ in several]
    joined = rng.choice((" OR ", " OR ", " AND ")) if columns is LINES else " OR "
    return "(" + joined.join(f"{column} ILIKE '{one}'" for one in some) + ")"


def _phrase(rng: Random, number: int) -> str:
    return f"{_word(number)}{rng.choice(' -./')}{rng.randrange(100)}"


def logged(rng: Random, number: int) -> dict[str, Any]:
    """Draws an event: a process, or one of the other things that a system logs."""
    found: dict[str, Any] = {"EventID": rng.choice((1, 3, 7, 11, 13, 4104, rng.randrange(4600, 4800)))}
    for column in PATHS:
        if rng.random() < 0.4:
            found[column] = f"{rng.choice(FOLDERS)}{_word(_frequent(rng, 4 * PLENTY)).title()}.exe"
    if rng.random() < 0.3:
        words = (_phrase(rng, _frequent(rng, 4 * PLENTY)) for _ in range(rng.randrange(3, 20)))
        found["CommandLine"] = " ".join(words)
    if rng.random() < 0.1:
        lines = (f"${_word(_frequent(rng, 9 * PLENTY))} = {i}" for i in range(rng.randrange(20, 120)))
        found["ScriptBlockText"] = "\n".join(lines)
    for _ in range(rng.randrange(6)):
        found[f"Field{rng.randrange(50)}"] = _phrase(rng, _frequent(rng, PLENTY))
    return found


FORMS = {  # of a regular expression, with its share
    r"({name})/(\d+)(?:\.(\d+)|)(?:\.(\d+)|)": 8,
    r"; *({name}[ _]?[A-Z]{{1,3}}\d{{2,4}}[a-z]?)(?: Build|\) AppleWebKit)": 8,
    r"({name})[ /]v?(\d+)": 3,
    r"\b({name}|{other})(?:[ /](\d+)|\b)": 2,
    r"^.{{0,200}}(?:{name}|{other})(?:Bot|Spider)[ /](\d+)": 1,
    r"(?i)({name}).{{1,100}}({other})": 1,
    r"^({name}|{other}) \(.{{0,200}}; *(\w+)\)": 1,
    r"(Android|Linux)[ -](\d+)\.(\d+).{{1,100}} {name}$": 1,
}


def product(rng: Random, number: int) -> str:
    """Draws a rule that knows a product, or a device."""
    (form,) = rng.choices(list(FORMS), list(FORMS.values()))
    regex = form.format(name=_word(number).title(), other=_word(rng.randrange(PLENTY)).title())
    return f"agent RLIKE r'{regex}'"


def agent(rng: Random, number: int) -> dict[str, Any]:
    """Draws how a program calls itself: mostly a browser on a telephone."""
    name, device = (_word(_frequent(rng, 2 * PLENTY)).title() for _ in range(2))
    version = f"{rng.randrange(1, 90)}.{rng.randrange(10)}.{rng.randrange(5000)}"
    if rng.random() < 0.2:
        page = f"{device.lower()}.example/{rng.choice(('bot', 'info', 'about'))}{number % 50}"
        return {"agent": f"{name}/{version} (+http://{page})"}
    model = f"{device} {''.join(rng.choices('ABCDEFGHS', k=2))}{rng.randrange(10, 9999)}"
    system = f"Linux; Android {rng.randrange(4, 15)}.{rng.randrange(4)}; {model} Build/{rng.randrange(10**6)}"
    engine = "AppleWebKit/537.36 (KHTML, like Gecko)"
    return {"agent": f"Mozilla/5.0 ({system}) {engine} {name}/{version} Mobile Safari/537.36"}


COLUMNS = {"EventID": pa.int32(), **dict.fromkeys({**PATHS, **LINES, **OTHERS}, pa.string())}
DRAWS = {
    "detections": Draw(2400, COLUMNS, detection, logged),
    "user-agents": Draw(1270, {"agent": pa.string()}, product, agent),
}
NAMES = tuple(DRAWS)
