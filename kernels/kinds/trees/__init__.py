"""What BE-Tree and BE*-Tree have in common: node tables, placing, splitting, taking out, matching.

Read ``arrays`` first, then ``place`` and ``match``.
"""
