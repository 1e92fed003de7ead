"""Numbers of the operators that give intervals of keys, and of the places of literals among keys.

``colmatch/lowering/forms.py`` explains the operators, ``floors.py`` there explains the places.
"""

EQ = 0
LT = 1
LE = 2
GT = 3
GE = 4
BETWEEN = 5
IN = 6
PRESENT = 7
PREFIX = 14

BELOW, EXACT, ABOVE = -1, 0, 1
