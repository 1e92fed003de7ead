"""Definitions of a version: rules with them written out, and their names for people.

A larger definition is one computed value, whose attribute says nothing of the columns within.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from colmatch.errors import SubscriptionError
from colmatch.given.language import SQL
from colmatch.given.options import Options
from colmatch.given.schema import Attribute, Role, Schema
from colmatch.kernels.layout import ATTR_MASK
from colmatch.kinds.registry import FEWEST
from colmatch.updates.initial import build_parts, take_in
from colmatch.updates.read_back import table_of_numbers
from colmatch.updates.versions import Parts, Version


def written_out(parts: Parts) -> Parts:
    """Returns a matcher of the same subscriptions, with all definitions written out.

    It is the same one if no definition is a value, if a subscription has no text, or if one would
    be too large.
    """
    version = parts.version
    numbers = np.flatnonzero(version.live())
    if not _has_values(version):
        return parts
    try:
        given = table_of_numbers(version, numbers)
    except SubscriptionError:  # a text was not kept
        return parts
    options, define = replace(parts.options, keep_texts=False, observe=0), version.definitions
    read = take_in(given, parts.schema, "auto", options, "collect", parts.language, define=define, writes_out=True)
    return parts if read.intake.rejected else build_parts(read, None)


def names_of_values(version: Version, schema: Schema, options: Options) -> dict[Attribute, str]:
    """Returns the names of definitions that are values, by the attribute of each."""
    if not _has_values(version):
        return {}
    rules = dict(zip(version.definitions, version.definitions, strict=True))
    options = replace(options, keep_texts=False, observe=0)
    read = take_in(rules, schema, FEWEST.name, options, "collect", SQL, define=version.definitions)
    made = build_parts(read, None).version
    names: dict[Attribute, str] = {}
    for segment, base in zip(made.segments, made.bases, strict=True):
        preds = segment.predicates
        lone = np.flatnonzero(np.diff(preds.first) == 1)
        words = preds.pred[preds.first[lone], 0] & ATTR_MASK
        for number, a in zip((preds.owner[lone] + base).tolist(), words.tolist(), strict=True):
            if made.attributes[a].role is Role.COMPUTED:
                names.setdefault(made.attributes[a], str(made.ids[number]))
    return names


def _has_values(version: Version) -> bool:
    return bool(version.definitions) and any(one.role is Role.COMPUTED for one in version.attributes.members)
