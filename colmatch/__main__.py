"""The command ``colmatch`` as ``python -m colmatch``, for a script that is not on the path."""

from colmatch.cli import main

if __name__ == "__main__":
    main()
