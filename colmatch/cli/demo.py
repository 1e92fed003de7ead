"""``colmatch demo``: real flights and travellers' alerts."""

from __future__ import annotations

import click

from colmatch.cli.options import index_option, set_option


@click.command()
@click.option("--alerts", default=100_000, show_default=True, type=click.IntRange(min=1), help="How many alerts.")
@click.option(
    "--flights", default=None, type=click.IntRange(min=1), help="How many flights, evenly out of the 336,776."
)
@click.option("--seed", default=2013, show_default=True, help="Of the alerts.")
@index_option
@set_option
def demo(alerts: int, flights: int | None, seed: int, kind: str, settings: tuple[str, ...]) -> None:
    """Match a year of real flights with travellers' alerts.

    Needs `pip install "colmatch[examples]"`.

    \b
    colmatch demo --alerts 10000
    """
    from colmatch.bench.demo import run
    from colmatch.cli.arguments import read_index

    run(alerts, flights, seed, read_index(kind, settings))
