"""What an explanation says of a predicate: True, False or Unknown, as SQL does."""

from __future__ import annotations

from random import Random

import oracle
from strategies import a_predicate, a_schema, some_rows, terms

import colmatch as cm


def test_a_predicate_and_its_not_have_the_truth_of_sql() -> None:
    """But for ``<=>`` and IS: kept is when a predicate is true, and these are false of NULL."""
    said = set()
    for seed in range(150):
        rng = Random(seed)
        schema = a_schema(rng)
        some = [a_predicate(rng, rng.choice(terms(schema)), nulls=0) for _ in range(10)]
        some = [one for one in some if one[0] != "<=>" and not one[0].startswith("is ")]
        texts = {i: oracle.to_sql(one) for i, one in enumerate([*some, *(("not", one) for one in some)])}
        if not texts:
            continue
        matcher = cm.Matcher.build(texts, schema)
        for row in some_rows(rng, schema, 4, nulls=0.4):
            for i, text in texts.items():
                wanted = oracle.value(some[i % len(some)], row)
                wanted = wanted if i < len(some) or wanted is None else not wanted
                told = matcher.explain(row, i)
                if told.tree.text.endswith("IS NOT NULL") or told.tree.text.startswith("FALSE"):
                    continue  # true of all values, or of none
                assert told.tree.truth is wanted, f"{text}\n{row}\n{told}"
                said.add((wanted, i < len(some)))
    assert len(said) == 6
