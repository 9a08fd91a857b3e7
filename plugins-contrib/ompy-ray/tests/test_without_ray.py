"""What this distribution does to those who did not ask for it: nothing."""

from __future__ import annotations

import subprocess
import sys


def test_ranks_do_not_import_ray() -> None:
    code = "import sys, ompy_ray; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
