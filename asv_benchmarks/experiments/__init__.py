"""Experiments of the BE*-Tree, OpIndex and PS-Tree papers, and how they are run and checked."""
