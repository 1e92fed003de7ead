"""``python -m colmatch.cli``."""

from colmatch.cli import main

main()
