"""Segments that become one: their boundaries and codes together."""
