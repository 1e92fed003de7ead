"""The command line.

``commands`` has the entry point and all commands: read it first.
"""


def main() -> None:
    """Runs the command line, as the console script."""
    from colmatch.cli.commands import main

    main()
