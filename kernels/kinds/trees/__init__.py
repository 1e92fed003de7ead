"""The common part of BE-Tree and BE*-Tree: node tables, placing, splitting, removal, matching.

Read ``arrays`` first, then ``place`` and ``match``.
"""
