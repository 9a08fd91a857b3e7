"""The raw limits of this machine, by a C program where one compiles. For `peers.py`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("machine_limits.c")
NAMES: Final = {
    "shared_8": "8 bytes one way through a shared word, C, us",
    "tcp_8": "8 bytes one way over loopback TCP, polled, C, us",
    "memcpy_64k": "memcpy of 64 KiB that is in the cache, MB/s",
    "memcpy_8m": "memcpy of 8 MiB, MB/s",
}


def machine_limits() -> dict[str, float]:
    """Value by name; empty where nothing compiles C."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "limits"
        subprocess.run([compiler, "-O2", "-o", str(program), str(SOURCE)], check=True)
        done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    words = (line.split() for line in done.stdout.splitlines())
    return {name: float(value) for name, value in words}


def limits_table(limits: dict[str, float]) -> str:
    """The limits in Markdown."""
    if not limits:
        return "No C compiler: the limits of the machine were not measured."
    lines = ["| limit | |", "| --- | --- |"]
    lines += [f"| {NAMES[name]} | {value:,.2f} |" for name, value in limits.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(limits_table(machine_limits()))
