"""k-index. ``arrays`` describes it in memory, ``match`` reads it, ``build`` builds it."""
