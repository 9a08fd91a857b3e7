from collections.abc import Sequence
from os import PathLike

def load(
    name: str | bytes | PathLike[str],
    path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None,
) -> None: ...
