"""Warnings on their way from a rank to the controller."""

from __future__ import annotations

import sys
import warnings
from typing import Any


def pack_warning(message: warnings.WarningMessage) -> dict[str, Any]:
    """What the controller needs to show a warning, as JSON can hold it."""
    return {
        "text": str(message.message),
        "category": [message.category.__module__, message.category.__qualname__],
        "filename": message.filename,
        "lineno": message.lineno,
    }


def unpack_warning(packed: dict[str, Any]) -> warnings.WarningMessage:
    """The warning again; of the class `UserWarning` if its own cannot be found here."""
    category = _category(*packed["category"])
    return warnings.WarningMessage(
        message=packed["text"],  # a text alone: the class may want other arguments
        category=category,
        filename=packed["filename"],
        lineno=packed["lineno"],
    )


def _category(module: str, name: str) -> type[Warning]:
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, Warning) else UserWarning
