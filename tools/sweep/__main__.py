"""Runs over many worlds, faults or programs: whether it holds, and how often. Resumable."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools.group import main  # noqa: E402 - the root of the tree had to be known first

if __name__ == "__main__":
    main(__file__, __doc__)
