"""A caller's subscriptions to lowered predicates, ids and rejected subscriptions.

Read ``intake`` first: it takes mappings, pairs, Arrow tables and predicate tables. ``table`` is the
public class of predicate tables; ``rows`` and ``operators`` lower them. ``ids`` has everything
about ids.
"""
