"""Inserts, deletes and replacements in a matcher that is in use.

Updates take lowered subscriptions and make a new version, which the next batch sees. Read ``set``
first: it lists the calls of a matcher to its subscriptions. Then read ``memory_set``, ``versions``,
``segments``, ``merger`` and ``combined``. ``labels`` places new boundaries between the old codes of
the growing segment. ``records`` defines the journal's record of an update.
"""
