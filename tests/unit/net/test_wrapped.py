"""Middleware passes on every call of a stream, those that are added one day too."""

from __future__ import annotations

from inspect import isfunction, signature
from typing import Any

import pytest
from ompy.net.base import Source, Stream
from ompy.net.faults.wrapped import WrappedStream

CALLS = [
    name
    for name, what in {**vars(Source), **vars(Stream)}.items()
    if isfunction(what) and not name.startswith("_")
]


class Recording:
    """Notes what is called, and with what."""

    def __init__(self) -> None:
        self.called: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> str:
            self.called.append((name, arguments))
            return f"what {name} returns"

        return call


@pytest.mark.parametrize("name", CALLS)
def test_each_call_is_passed_on(name: str) -> None:
    inner = Recording()
    contract = signature(getattr(Stream, name))
    arguments = tuple(f"argument {number}" for number in range(len(contract.parameters) - 1))
    returned = getattr(WrappedStream(inner), name)(*arguments)  # type: ignore[arg-type]
    assert inner.called == [(name, arguments)]
    nothing = contract.return_annotation == "None"
    assert returned == (None if nothing else f"what {name} returns")
