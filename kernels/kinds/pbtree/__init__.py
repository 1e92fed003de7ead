"""PB+tree: predicates in pages of 4 KiB, in memory or behind a cache.

``arrays`` says what stands in a page, ``plan`` what of a conjunction is counted, ``bulk`` fills
pages, ``match`` reads them, ``update`` changes them. ``blocks`` has small trees, ``small`` hands
out their blocks and takes them back, ``large`` has trees with pages of their own: ``leaves`` and
``lists``.
"""
