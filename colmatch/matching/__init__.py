"""A batch through the kernels: working memory, threads, and results in order.

In comes a record batch and a version of the matcher; out come the pairs of event and subscription.
Read ``worker`` first.
"""
