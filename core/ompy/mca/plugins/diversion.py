"""Standard output while a component is imported or opened: it belongs to others.

In a rank it is the user's program that writes there, in `ompy-info --parsable` the report. What
a component's import prints is kept and told as a remark about the component.
"""

from __future__ import annotations

import _thread
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ompy.mca.plugins.component_records import ComponentRecord

SHOWN_MAX: Final = 60  # characters; arbitrary: enough to know where it comes from


class Diversion:
    """Catches what this thread writes to `sys.stdout` in a `with` block; other threads go on.

    Whoever keeps the object it finds in `sys.stdout` writes to the real one after the block.
    What goes past `sys.stdout`, to descriptor 1, is not caught.
    """

    def __init__(self) -> None:
        self._stream: Any = None
        self._thread = 0
        self._caught: list[str] = []

    def __enter__(self) -> Diversion:
        self._stream = sys.stdout
        self._thread = _thread.get_ident()
        if self._stream is not None:
            sys.stdout = self
        return self

    def __exit__(self, *_exception: object) -> None:
        self._thread = 0
        if sys.stdout is self:
            sys.stdout = self._stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Keep it, or hand it on."""
        if _thread.get_ident() != self._thread:
            return int(self._stream.write(text))
        self._caught.append(text)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Keep them, or hand them on."""
        for line in lines:
            self.write(line)

    def remark(self, record: ComponentRecord, what: str) -> None:
        """Note in a record that `what` wrote, and the beginning of what it wrote."""
        text = "".join(self._caught).strip()
        if text and not record.remark:
            shown = repr(text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}...")
            record.remark = f"{what} wrote to standard output: {shown}"
