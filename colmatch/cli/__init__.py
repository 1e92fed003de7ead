"""The command line.

``commands`` has the entry point, and what each command does is read from there.
"""


def main() -> None:
    """Entry point of the console script."""
    from colmatch.cli.commands import main

    main()
