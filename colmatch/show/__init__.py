"""Displays for people: figures as HTML in notebooks, and progress bars."""
