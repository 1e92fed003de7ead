"""For people who look on: HTML of figures for notebooks, and progress bars."""
