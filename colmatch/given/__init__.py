"""Arguments besides subscriptions and events, checked once: schema, options, language.

Any Python or Arrow object comes in; values that the other rooms trust go out. Read ``schema``
first.
"""
