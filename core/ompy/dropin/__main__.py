"""`python -m ompy.dropin`: the folder that makes `import mpi4py` find ompy, for PYTHONPATH."""

from __future__ import annotations

import os

if __name__ == "__main__":
    print(os.path.dirname(os.path.abspath(__file__)))  # noqa: T201 - what it is for
