"""The way of a batch through the kernels: working memory, threads, and results in order.

Batches of events come in; pairs of event and subscription go out. Read ``workers`` first: it cuts
events into batches and gives each to a ``worker``, in ``threads``. A worker returns the matches as
``pieces``.
"""
