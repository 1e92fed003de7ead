"""The experiments of documents 000, 002 and 003: an entry each, and what runs and checks them."""
