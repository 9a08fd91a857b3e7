"""Lines about registration and opening, for `--mca <framework>_base_verbose component`.

Imported when the first line is due; it imports structlog, which is slow to start.
"""

from __future__ import annotations

import os
import sys

import structlog


def tell(step: str, framework: str, **details: str) -> None:
    """Write one line about a step to standard error."""
    logger = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.TimeStamper("%H:%M:%S.%f", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0),
        ],
    )
    filled = {key: value for key, value in details.items() if value}
    logger.info(f"mca:{framework}: {step}", pid=os.getpid(), **filled)
