"""A matcher as one file.

In come the parts of a matcher; out comes a checksummed file that is replaced at once and mapped
into memory. ``saved`` says what is written, ``file`` how.
"""
