"""Ranks of ompy on the nodes of a Ray cluster: `ompy_ray.run(n, function, ...)`.

Ranks import this package without Ray, which takes a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ompy_ray.running import JobFailed, run

__all__ = ["JobFailed", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ompy_ray import running

    return getattr(running, name)
