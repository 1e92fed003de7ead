"""A matcher as one file, and the journal of its updates beside it.

In come the parts of a matcher; out comes a checksummed file that is replaced at once and mapped
into memory. ``saved`` says what is written, ``file`` how. ``journal`` has the updates since;
``looking`` reads both and changes neither. ``log`` has the form of a journal, which is that of the
log of a file of pages as well, and ``recovery`` goes on where one is damaged.
"""
