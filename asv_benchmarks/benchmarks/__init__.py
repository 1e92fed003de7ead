"""Benchmarks of colmatch, run by asv. ``asv.conf.json`` beside this package says how."""
