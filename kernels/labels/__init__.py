"""Codes with gaps, for indexes that take updates: boundaries and string literals fit between
others.
"""
