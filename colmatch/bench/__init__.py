"""Figures of the index kinds on a user's own subscriptions and events, as a table and as a plot.

``figures`` measures, ``plot`` draws; ``demo`` matches real flights.
"""
