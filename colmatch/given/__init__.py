"""What callers hand over beside subscriptions and events, checked once: schema, options, language.

Comes in: any Python or Arrow object. Goes out: values that the other rooms trust. Read ``schema``
first.
"""
