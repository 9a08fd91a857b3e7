"""Every command whose standard output nobody reads any more ends quietly, as others do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.proc
COMMANDS = (
    ("ompy.cli.run", "--help"),
    ("ompy.cli.run", "--version"),
    ("ompy.cli.info", "--all"),
    ("ompy.cli.main", "--help"),
    ("ompy.cli.main", "--version"),
    ("ompy.cli.main", "trace", "--help"),
    ("ompy.cli.main", "completion", "bash"),
    ("ompy.cli.main", "explain", "--size", "8"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_it_ends_as_by_sigpipe(command: tuple[str, ...]) -> None:
    module, *arguments = command
    reading, writing = os.pipe()
    os.close(reading)
    program = f"import sys; from {module} import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=writing, stderr=subprocess.PIPE
    ) as process:
        os.close(writing)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (141, b"")
