"""What a caller hands over as subscriptions, to lowered predicates, ids and what was rejected.

Read ``intake`` first: it takes mappings, pairs, Arrow tables and predicate tables. ``table`` is the
public class of the last, ``rows`` and ``operators`` lower it. All about ids stands in ``ids``.
"""
