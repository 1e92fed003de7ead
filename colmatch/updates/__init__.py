"""Inserts, deletes and replacements in a matcher that is in use.

In come lowered subscriptions; out comes a new version, which the next batch sees. Read ``set``
first, which says what a matcher needs of its subscriptions, and ``memory_set``; then ``versions``,
``segments``, ``merger`` and ``combined``. ``labels`` says where new boundaries go between old codes
of the segment that grows, ``records`` what a journal has of an update.
"""
