"""PB+tree: predicates in pages of 4 KiB, in memory or behind a cache.

``arrays`` describes the contents of a page, and ``plan`` chooses the parts of a conjunction to
count. ``bulk`` fills pages, ``match`` reads them, and ``update`` changes them. ``blocks`` has small
trees, and ``small`` allocates their blocks. ``large`` has trees with separate pages: ``leaves`` and
``lists``.
"""
