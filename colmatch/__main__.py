"""The command ``colmatch`` as ``python -m colmatch``, where its script is not on the path."""

from colmatch.cli import main

if __name__ == "__main__":
    main()
