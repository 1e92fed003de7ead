"""The version, which saved matchers name."""

__version__ = "0.1.0"
