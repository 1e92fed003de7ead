"""bitslice: work shared between the events of a batch.

``arrays`` says how the index lies in memory, ``match`` reads it, ``build`` makes it. A batch goes
through ``columns``, ``postings``, ``tiles``, ``masks`` and ``results``.
"""
