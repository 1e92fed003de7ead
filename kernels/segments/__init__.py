"""Merging of segments into one: their boundaries and codes together."""
