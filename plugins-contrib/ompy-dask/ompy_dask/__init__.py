"""Ranks of ompy on the workers of a Dask cluster: `ompy_dask.run(client, n, function, ...)`.

The component `plm/dask` is in this package, too, and every ompy-run looks at it. So Dask is
imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ompy_dask.running import JobFailed, run

__all__ = ["JobFailed", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ompy_dask import running

    return getattr(running, name)
