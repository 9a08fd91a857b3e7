"""Methods replaced for single instances of a class whose instances have no room for any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Method = Callable[..., Any]


def replaceable(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> tuple[dict[Any, Method], Method]:
    """Have instances of `owner` look in a dictionary for their own method `name`.

    Returns:
        The dictionary, for functions without `self`; and the method as it was, which has it.
    """
    plain: Method = getattr(owner, name)
    own: dict[Any, Method] = {}

    def chosen(self: Any, *args: Any, **named: Any) -> Any:
        if self in own:
            return own[self](*args, **named)
        return plain(self, *args, **named)

    monkeypatch.setattr(owner, name, chosen)
    return own, plain
