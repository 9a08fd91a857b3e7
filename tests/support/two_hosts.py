"""Two hosts of namespaces with somebody in the middle of every cable, and jobs over them.

Needs root and iproute2, no sshd: the ranks are started on their hosts as torchrun would start them
(`runtime/passive`), one on each.
"""

from __future__ import annotations

import array
import fcntl
import itertools
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0  # s; far beyond what anything here takes, beside many others too
_SIOCETHTOOL = 0x8946  # Linux
# Linux ETHTOOL_S{TXCSUM,SG,TSO,GSO,GRO}: or what is on the wire is no packet yet
_OFFLOADS = (0x17, 0x19, 0x1F, 0x24, 0x2C)
_names = itertools.count()


def why_not() -> str:
    """Why there can be no such hosts here; empty if there can."""
    if os.geteuid():
        return "it needs root"
    if shutil.which("ip") is None:
        return "there is no ip (iproute2)"
    done = subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True)
    return "namespaces cannot be made" if done.returncode else ""


def _ip(*words: object) -> None:
    done = subprocess.run(["ip", *map(str, words)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)


class TwoHosts:
    """Hosts `a` and `b`; in the namespace `m` between them ends every cable.

    Without an injector the cables go straight from one to the other.
    """

    def __init__(self, rails: int = 1, how: str = "none", count: int = 1, path: str = "") -> None:
        """Make them. `how`, `count` and `path` are the injector's; no `how`: nobody is there."""
        self.name = f"ompyinj{os.getpid()}x{next(_names)}"
        self._rails = rails
        self._injector: subprocess.Popen[str] | None = None
        self._made: list[str] = []
        try:
            self._make(how, count, path)
        except BaseException:
            self.close()
            raise

    def space(self, which: str) -> str:
        """The name of a namespace."""
        return self.name + which

    def _make(self, how: str, count: int, path: str) -> None:
        for which in "abm" if how else "ab":
            _ip("netns", "add", self.space(which))
            self._made.append(self.space(which))
            _ip("-n", self.space(which), "link", "set", "lo", "up")
        pairs = []
        for rail in range(self._rails):
            for host, number in (("a", 1), ("b", 2)):
                end, far = f"rail{rail}", f"{host}{rail}"
                if how:
                    there = ("peer", "name", far, "netns", self.space("m"))
                    _ip("link", "add", end, "netns", self.space(host), "type", "veth", *there)
                    _ip("-n", self.space("m"), "link", "set", far, "up")
                elif host == "a":
                    there = ("peer", "name", end, "netns", self.space("b"))
                    _ip("link", "add", end, "netns", self.space("a"), "type", "veth", *there)
                address = f"10.{90 + rail}.0.{number}/24"
                _ip("-n", self.space(host), "address", "add", address, "dev", end)
                _ip("-n", self.space(host), "link", "set", end, "up")
                if how:
                    self._in(host, _plain_packets, end)
            pairs.append(f"a{rail}:b{rail}")
        for host in "ab":
            for rail in range(self._rails):
                self._wait_for_carrier(host, f"rail{rail}")
        if how:
            for which in pairs:
                for end in which.split(":"):
                    self._in("m", _plain_packets, end)
            words = ["tests.support.injector", how, str(count), path or "/nowhere", *pairs]
            self._injector = subprocess.Popen(
                ["ip", "netns", "exec", self.space("m"), sys.executable, "-m", *words],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert self._injector.stdout is not None
            assert self._injector.stdout.readline() == "ready\n"

    def _wait_for_carrier(self, host: str, end: str) -> None:
        """The kernel says it up to a second late, and ranks leave out what is down."""
        command = ["ip", "-n", self.space(host), "-o", "link", "show", "dev", end]
        late = time.monotonic() + PATIENCE
        while " state UP " not in subprocess.check_output(command, text=True):
            assert time.monotonic() < late, f"{end} of {host} has no carrier"
            time.sleep(0.02)

    def _in(self, which: str, what: object, *words: str) -> None:
        """Call a function of this module in a namespace."""
        code = f"from tests.support.two_hosts import *; from tests.support import two_hosts as t; t.{what.__name__}(*{words!r})"  # type: ignore[attr-defined]  # noqa: E501
        command = ["ip", "netns", "exec", self.space(which), sys.executable, "-c", code]
        subprocess.run(command, check=True, cwd=ROOT)

    def run(
        self, secret: Path, program: str, *words: str, ranks: int = 2, **settings: object
    ) -> tuple[list[int], list[str], list[str]]:
        """Run a program on both hosts. Exit codes, outputs and errors, by rank.

        Args:
            secret: a path for the file by which the hosts prove themselves.
            program: Python.
            words: its arguments.
            ranks: half of them on each host.
            settings: MCA parameters.
        """
        secret.write_bytes(os.urandom(32))
        secret.chmod(0o600)
        each = ranks // 2
        started = []
        for rank in range(ranks):
            variables = {
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "LOCAL_RANK": str(rank % each),
                "LOCAL_WORLD_SIZE": str(each),
                "MASTER_ADDR": "10.90.0.1",
                "MASTER_PORT": "1",
                "OMPY_SECRET_FILE": str(secret),
                "TORCHELASTIC_RUN_ID": self.name,
                **{f"OMPY_MCA_{name}": str(value) for name, value in settings.items()},
            }
            host = "a" if rank < each else "b"
            inside = ["unshare", "-u", "sh", "-c", f'hostname host-{host}; exec "$@"', "sh"]
            started.append(
                subprocess.Popen(
                    [
                        "ip",
                        "netns",
                        "exec",
                        self.space(host),
                        *inside,
                        sys.executable,
                        "-c",
                        program,
                        *words,
                    ],
                    env=variables,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        try:
            said = [one.communicate(timeout=PATIENCE) for one in started]
        finally:
            for one in started:
                one.kill()
        return [one.returncode for one in started], [s[0] for s in said], [s[1] for s in said]

    def strikes(self) -> int:
        """How often the injector has altered something; it ends."""
        if self._injector is None:
            return 0
        self._injector.kill()
        said = self._injector.communicate()[0]
        self._injector = None
        return said.count("struck")

    def close(self) -> None:
        """Leave nothing."""
        if self._injector is not None:
            self._injector.kill()
            self._injector.communicate()
        for name in self._made:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)

    def __enter__(self) -> TwoHosts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _plain_packets(interface: str) -> None:
    """Have packets leave an interface as they would go over a wire."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for what in _OFFLOADS:
            value = array.array("B", struct.pack("II", what, 0))
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(probe, _SIOCETHTOOL, request)
            except OSError:  # one that this kernel has not, or does not let go
                continue
