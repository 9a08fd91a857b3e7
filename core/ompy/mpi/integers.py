"""Integers as mpi4py takes them: whatever C makes an int of, by `__int__`, a fraction dropped.

Plain ints go as they are; a call on the way of a message looks no further.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def whole_number(number: object) -> int:
    """An integer of something that is none: of a float, of numpy's numbers and truth values.

    Raises:
        TypeError: it has no `__int__`.
    """
    if type(number) is int:
        return number
    kind = type(number)
    if not hasattr(kind, "__int__") and not hasattr(kind, "__index__"):
        raise TypeError("an integer is required")
    return int(number)  # type: ignore[call-overload,no-any-return]


def takes_integers(*names: str) -> Callable[[Function], Function]:
    """Have a function be called with integers for these parameters."""

    def decorate(function: Function) -> Function:
        code = function.__code__
        places = [code.co_varnames.index(name) for name in names]

        @wraps(function)
        def called(*positional: Any, **named: Any) -> Any:
            for place in places:
                if place < len(positional) and type(positional[place]) is not int:
                    changed = list(positional)
                    changed[place] = whole_number(changed[place])
                    positional = tuple(changed)
            for name in names:
                if name in named and type(named[name]) is not int:
                    named[name] = whole_number(named[name])
            return function(*positional, **named)

        return called  # type: ignore[return-value]

    return decorate
