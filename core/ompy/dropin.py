"""`python -m ompy.dropin`: the folder that makes `import mpi4py` find ompy, for PYTHONPATH.

The folder is `dropin`, beside this file. It is on the path of programs, so nothing else may be in
it: Python would take a `__main__.py` there for that of a folder which has none.
"""

from __future__ import annotations

import os

if __name__ == "__main__":
    print(os.path.splitext(os.path.abspath(__file__))[0])
