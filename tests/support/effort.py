"""How many seeds and examples a run takes: `OMPY_EFFORT=20` is twenty times as many as CI does.

Less than 1 is for what has been run in another form already.
"""

from __future__ import annotations

import os


def effort(count: int) -> int:
    """`count` seeds or examples in CI, more in `tools/nightly.py` and `tools/release.py`."""
    return max(1, round(count * float(os.environ.get("OMPY_EFFORT", "1"))))


THOROUGH = effort(1) > 1  # also the sizes and combinations that take long and seldom tell more
