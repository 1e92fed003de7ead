"""k-index. ``arrays`` says how it lies in memory, ``match`` reads it, ``build`` makes it."""
