"""Matchers that live in a file of pages: ``file`` keeps pages, ``store`` what stands in them."""
