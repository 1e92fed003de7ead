"""A batch through the kernels: working memory, threads, and results in order.

In come batches of events; out come the pairs of event and subscription. Read ``workers`` first: it
cuts events to batches and gives each to a ``worker``, in ``threads``. ``pieces`` are what comes
back.
"""
