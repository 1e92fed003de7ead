"""A matcher as one file, and the journal of its updates beside it.

``saved`` turns the parts of a matcher into arrays, and ``file`` writes them to a checksummed file.
The file is replaced at once, and mapped into memory. ``journal`` has the updates since. ``looking``
reads both and changes neither. ``log`` has the form of a journal, which the log of a file of pages
shares. ``recovery`` repairs damaged logs.
"""
