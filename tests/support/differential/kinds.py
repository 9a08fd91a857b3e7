"""The kinds of random programs: each is a module here, with a function `run`."""

from __future__ import annotations

from typing import Final

KINDS: Final = (
    *("reductions", "mixtures", "windows", "files", "objects", "threads"),
    *("streams", "partitions", "handles", "spawned", "pools"),
)
