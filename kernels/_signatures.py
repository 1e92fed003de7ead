"""Types of the arguments that kernels declare.

A kernel has a Python annotation for each argument, and its tuples have one for each field
(``layout.py``). They determine numba's types, so a kernel can be compiled before it is called
(``_warm.py``). A call with other types compiles it once more, which is an error in the tests.
"""

import functools
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from numba import from_dtype, types

from colmatch.kernels.layout import DTYPES

SCALARS = {int: types.int64, float: types.float64, bool: types.boolean}


@functools.cache
def signatures(function: Callable[..., Any]) -> list[tuple[types.Type, ...]]:
    """Returns the signatures that a kernel declares, each the types of its arguments.

    There is one, or one for each constraint of a ``TypeVar``. The list is empty if an argument has
    no annotation.
    """
    hints = get_type_hints(function, include_extras=True)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    if not hints.keys() >= set(names):
        return []
    annotations = [hints[name] for name in names]
    variables = {hint for hint in map(_strip_marks, annotations) if isinstance(hint, TypeVar)}
    assert len(variables) < 2, f"{function.__qualname__}: two TypeVars could be combined in several ways"
    choices = next(iter(variables)).__constraints__ if variables else (None,)
    return [tuple(numba_type(hint, False, choice) for hint in annotations) for choice in choices]


def _strip_marks(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def numba_type(hint: Any, written: bool = False, choice: Any = None) -> types.Type:
    """Returns numba's type of an annotation.

    written : whether arrays are written
    choice : the type in place of a ``TypeVar``
    """
    marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
    plain = _strip_marks(hint)
    plain = choice if isinstance(plain, TypeVar) else plain
    written = (written or "written" in marks) and "fixed" not in marks
    if plain in SCALARS:
        return SCALARS[plain]
    if plain in DTYPES:
        dimensions = 1 + any(mark == "table" or isinstance(mark, int) for mark in marks)
        return types.Array(from_dtype(DTYPES[plain]), dimensions, "C", readonly=not written)
    if get_origin(plain) is tuple:
        return types.BaseTuple.from_types([numba_type(part, written) for part in get_args(plain)])
    fields = _fields(plain)
    return types.BaseTuple.from_types([numba_type(fields[name], written) for name in plain._fields], plain)


@functools.cache
def _fields(of: Any) -> dict[str, Any]:
    return get_type_hints(of, include_extras=True)
