"""Namespaces, links and secure shells of one laboratory.

All of it lies in namespaces of its own: a switch with one bridge for each rail and one for
management, and the hosts, each with a cable to every bridge. The machine's own network has no
part in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tools.lab import slurm

MANAGEMENT = "management"
HOSTS_MAX = 99  # arbitrary: numbers that fit an address and a name of an interface
RAILS_MAX = 9  # arbitrary: same
FRAMES = 3200  # bytes, two frames; arbitrary: tbf passes no frame larger than its burst
BURST_US = 500  # us of a rate that may pass at once; arbitrary: tbf wakes up no more often
PATIENCE = 5.0  # s; arbitrary: sshd listens within some hundredths, killed processes go at once
SLURM_PATIENCE = 30.0  # s; arbitrary: slurmds register within a few
TOOLS = ("ip", "ss", "tc", "nsenter", "unshare", "ssh", "ssh-keygen")
SSHD = "/usr/sbin/sshd"
SSHD_HOME = Path("/run/sshd")  # sshd will not start without it
MADE_HOME = "made-sshd-home"  # the file that says so


# hooks of what a host filters
REFUSING = "type filter hook input priority -300"
LOSING = "type filter hook prerouting priority -300"


class LabError(Exception):
    """It cannot be done; the text says why."""


def why_not() -> str:
    """Why this machine cannot have a laboratory; empty if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if not os.access(SSHD, os.X_OK):
        return f"there is no {SSHD}; apt-get install openssh-server"
    tried = subprocess.run(["unshare", "--net", "--uts", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.decode().strip()}"


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def _filtering(table: str, chain: str) -> str:
    """Commands of nft that put a chain in the place of what a table had; empty: of nothing."""
    commands = [f"add table inet {table}", f"delete table inet {table}"]
    if chain:
        commands.append(f"table inet {table} {{ chain in {{ {chain}; }}; }}")
    return "; ".join(commands)


class Laboratory:
    """One laboratory, by its name; it need not be up."""

    def __init__(self, name: str) -> None:
        if not name.isalnum():
            raise LabError(f"{name!r} is no name: letters and digits are")
        self.name = name
        self.directory = Path(f"/run/ompy-lab-{name}")

    # up and down

    def up(self, hosts: int, rails: int, *, with_slurm: bool = False) -> None:
        """Make it; what was made is taken down again if it fails."""
        if with_slurm and slurm.missing():
            raise LabError(f"not installed: {', '.join(slurm.missing())}")
        if not (1 <= hosts <= HOSTS_MAX and 0 <= rails <= RAILS_MAX):
            raise LabError(f"1 to {HOSTS_MAX} hosts and up to {RAILS_MAX} rails are possible")
        try:
            self.directory.mkdir(mode=0o700)
        except FileExistsError:
            raise LabError(f"{self.name} is up, or was not taken down: run down") from None
        try:
            self._make_network(hosts, rails)
            self._make_keys(hosts)
            for number in range(1, hosts + 1):
                self._start_sshd(number)
            for number in range(1, hosts + 1):
                self._await_sshd(number)
            if with_slurm:
                addresses = [self._address(number, 0) for number in range(1, hosts + 1)]
                slurm.up(self.directory, addresses, self._start_daemon)
                self._await_slurm(hosts)
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """End its processes and remove its namespaces and files. Harmless when it is not up."""
        spaces = [*self._spaces()]
        deadline = time.monotonic() + PATIENCE
        while pids := [pid for space in spaces for pid in self._pids(space)]:
            if time.monotonic() > deadline:
                raise LabError(f"processes do not go: {pids}")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        for space in spaces:
            _run("ip", "netns", "delete", space)
        with self._sshd_home_locked():
            made_home = (self.directory / MADE_HOME).exists()
            shutil.rmtree(self.directory, ignore_errors=True)
            if made_home:
                self._give_back_sshd_home()

    @contextlib.contextmanager
    def _sshd_home_locked(self) -> Iterator[None]:
        """Only one laboratory at a time makes sshd's home, or gives it on, or back.

        Else one gives it on to another while that removes its files, and its directory stays.
        """
        directory = os.open(self.directory.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield
        finally:
            os.close(directory)

    def _give_back_sshd_home(self) -> None:
        """Unless another laboratory's sshd still wants it, which then has to do it."""
        for other in self.directory.parent.glob("ompy-lab-*"):
            with contextlib.suppress(OSError):
                (other / MADE_HOME).touch()
                return
        with contextlib.suppress(OSError):
            SSHD_HOME.rmdir()

    def _spaces(self) -> Iterator[str]:
        for line in _run("ip", "netns", "list").splitlines():
            space = line.split()[0]
            if space.startswith(f"{self.name}-"):
                yield space

    def _space(self, host: str) -> str:
        space = f"{self.name}-{host}"
        if space not in self._spaces():
            raise LabError(f"there is no host {host} in {self.name}; there are {self.hosts()}")
        return space

    @property
    def _switch(self) -> str:
        return f"{self.name}-switch"

    def hosts(self) -> list[str]:
        """Names of the hosts."""
        names = [space.removeprefix(f"{self.name}-") for space in self._spaces()]
        return sorted((n for n in names if n != "switch"), key=lambda name: int(name[1:]))

    def _make_network(self, hosts: int, rails: int) -> None:
        """The switch in one batch, and each host in one: a process for each command is slow."""
        bridges = ["management", *(f"rail{rail}" for rail in range(1, rails + 1))]
        _run("ip", "netns", "add", self._switch)
        for number in range(1, hosts + 1):
            _run("ip", "netns", "add", f"{self.name}-h{number}")
        switch = [f"link add {name} type bridge" for name in bridges]
        switch += [f"link set {name} up" for name in bridges]
        for number in range(1, hosts + 1):
            for name in bridges:
                port = self._port(f"h{number}", name)
                there = f"peer name {name} netns {self.name}-h{number}"
                switch.append(f"link add {port} type veth {there}")
                switch.append(f"link set {port} master {name} up")
        self._batch(self._switch, switch)
        for number in range(1, hosts + 1):
            lines = ["link set lo up"]
            for index, name in enumerate(bridges):
                lines.append(f"address add {self._address(number, index)}/24 dev {name}")
                lines.append(f"link set {name} up")
            self._batch(f"{self.name}-h{number}", lines)

    def _batch(self, space: str, lines: Sequence[str]) -> None:
        command = ["ip", "-netns", space, "-batch", "-"]
        done = subprocess.run(
            command, input="\n".join(lines), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LabError(f"{space}: {done.stderr.strip()}")

    @staticmethod
    def _port(host: str, link: str) -> str:
        """The switch's end of a cable."""
        return f"{host}.{link}"[:15]  # what Linux allows for a name

    @staticmethod
    def _address(number: int, index: int) -> str:
        return f"10.99.0.{number}" if index == 0 else f"10.77.{index}.{number}"

    # secure shells

    def _make_keys(self, hosts: int) -> None:
        for name in ("host_key", "user_key"):
            path = str(self.directory / name)
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path)
        public = (self.directory / "host_key.pub").read_text()
        shutil.copy(self.directory / "user_key.pub", self.directory / "authorized_keys")
        known, config = [], []
        for number in range(1, hosts + 1):
            address = self._address(number, 0)
            known.append(f"{address} {public}")
            config.append(f"Host h{number}\n  HostName {address}\n")
        config.append(
            f"Host *\n  IdentityFile {self.directory}/user_key\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.directory}/known_hosts\n  StrictHostKeyChecking yes\n"
        )
        (self.directory / "known_hosts").write_text("".join(known))
        (self.directory / "ssh_config").write_text("".join(config))

    def _start_sshd(self, number: int) -> None:
        with self._sshd_home_locked():
            if not SSHD_HOME.exists():
                SSHD_HOME.mkdir(mode=0o755)
                (self.directory / MADE_HOME).touch()
        config = self.directory / f"sshd_config.h{number}"
        config.write_text(
            f"ListenAddress {self._address(number, 0)}\nHostKey {self.directory}/host_key\n"
            f"AuthorizedKeysFile {self.directory}/authorized_keys\nPidFile none\n"
            "StrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nUseDNS no\n"
            "PasswordAuthentication no\nPrintMotd no\nMaxStartups 100\n"
        )
        log = str(self.directory / f"sshd.h{number}.log")
        # itself detached, and later found by its namespace
        words = [SSHD, "-f", str(config), "-E", log]
        _run(*self.command(f"h{number}", words))

    def _await_sshd(self, number: int) -> None:
        space = f"{self.name}-h{number}"
        deadline = time.monotonic() + PATIENCE
        while ":22 " not in _run("ip", "netns", "exec", space, "ss", "-ltn"):
            if time.monotonic() > deadline:
                log = (self.directory / f"sshd.h{number}.log").read_text()
                raise LabError(f"sshd of h{number} does not listen: {log.strip()}")
            time.sleep(0.02)

    # daemons

    def _start_daemon(self, host: str, words: Sequence[str], log: str) -> None:
        """Begin something that stays, and is later found by its namespace."""
        with (self.directory / f"{log}.out").open("wb") as output:
            subprocess.Popen(
                self.command(host, words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **self.environment()},
            )

    def _await_slurm(self, hosts: int) -> None:
        deadline = time.monotonic() + SLURM_PATIENCE
        env = {**os.environ, **self.environment()}
        command = self.command("h1", ["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"])
        while True:
            done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
            if len(done.stdout.split()) == hosts:
                return
            if time.monotonic() > deadline:
                logs = {
                    path.name: path.read_text(errors="replace")[-1000:]
                    for path in self.directory.glob("*.out")
                }
                raise LabError(f"Slurm does not come up: {done.stderr.strip()} {logs}")
            time.sleep(0.1)

    # use

    def command(self, host: str, words: Sequence[str]) -> list[str]:
        """The command that runs `words` on a host, which has its own name."""
        named = 'hostname "$0" && exec "$@"'
        space = f"--net=/run/netns/{self._space(host)}"
        return ["nsenter", space, "unshare", "--uts", "sh", "-c", named, host, *words]

    def environment(self) -> dict[str, str]:
        """Variables that make ompy-run find the hosts."""
        found = {"OMPY_MCA_plm_ssh_args": f"-F {self.directory}/ssh_config"}
        config = self.directory / "slurm.conf"
        return {**found, "SLURM_CONF": str(config)} if config.exists() else found

    def processes(self, host: str) -> dict[int, str]:
        """Command lines of what runs on a host, the laboratory's own daemons excepted."""
        found = {}
        for pid in self._pids(self._space(host)):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                listener = words.startswith("sshd:") and "[listener]" in words
                daemon = os.path.basename(words.partition(" ")[0]) in slurm.DAEMONS
                daemon = daemon or words.strip(": \n") == slurm.SCRIPTS
                if words and not listener and not daemon:
                    found[pid] = " ".join(words.split())
        return found

    @staticmethod
    def _pids(space: str) -> list[int]:
        return [int(word) for word in _run("ip", "netns", "pids", space).split()]

    # faults

    def cut(self, host: str, link: str) -> None:
        """Pull a cable: the link goes down at both ends."""
        self._space(host)
        _run("ip", "-netns", self._switch, "link", "set", self._port(host, link), "down")

    def heal(self, host: str, link: str) -> None:
        """Put a cable back."""
        self._space(host)
        _run("ip", "-netns", self._switch, "link", "set", self._port(host, link), "up")

    def crash(self, host: str) -> None:
        """Nothing of a host is heard any more. Its processes stay: nobody can tell."""
        for link in self._links(host):
            self.cut(host, link)

    def revive(self, host: str) -> None:
        """Put all cables of a host back."""
        for link in self._links(host):
            self.heal(host, link)

    def _links(self, host: str) -> list[str]:
        names = _run("ip", "-netns", self._space(host), "-oneline", "link").splitlines()
        links = [line.split(":")[1].split("@")[0].strip() for line in names]
        return [link for link in links if link == MANAGEMENT or link.startswith("rail")]

    def rate(self, host: str, link: str, value: str) -> None:
        """Limit what a host sends over a link, as tc has it (`100mbit`); `none` lifts it."""
        tc = ("tc", "-netns", self._space(host), "qdisc")
        if value == "none":
            _run(*tc, "delete", "dev", link, "root")
        else:
            shape = ("tbf", "rate", value, "burst", "256kb", "latency", "20ms")
            _run(*tc, "replace", "dev", link, "root", *shape)

    def shape(self, host: str, link: str, mbit: int) -> None:
        """Limit both directions of a link as a cable does: no burst passes, and nothing is lost."""
        burst = max(FRAMES, mbit * BURST_US // 8)
        shape = ("tbf", "rate", f"{mbit}mbit", "burst", str(burst), "latency", "500ms")
        for space, device in ((self._space(host), link), (self._switch, self._port(host, link))):
            _run("tc", "-netns", space, "qdisc", "replace", "dev", device, "root", *shape)

    def refuse(self, host: str, link: str, value: str) -> None:
        """Answer each packet of a connection over a link with a reset (`on`), or not (`off`)."""
        if shutil.which("nft") is None:
            raise LabError("refuse needs nftables")
        if value not in ("on", "off"):
            raise LabError(f"{value}: on or off")
        rule = f"{REFUSING}; iifname {link} meta l4proto tcp reject with tcp reset"
        self._filter(host, f"lab_refuse_{link}", rule if value == "on" else "")

    def loss(self, host: str, link: str, percent: str) -> None:
        """Lose that much of what comes in over a link, whatever it is; 0 lifts it."""
        if shutil.which("nft") is None:
            raise LabError("loss needs nftables")
        share = round(float(percent) * 1000)
        if not 0 <= share <= 100_000:
            raise LabError(f"{percent}: 0 to 100 per cent")
        dice = "drop" if share == 100_000 else f"numgen random mod 100000 < {share} drop"
        self._filter(host, f"lab_{link}", f"{LOSING}; iifname {link} {dice}" if share else "")

    def _filter(self, host: str, table: str, chain: str) -> None:
        """Have a host filter what comes in, in place of what the table did; empty: not any more."""
        _run("ip", "netns", "exec", self._space(host), "nft", _filtering(table, chain))

    def arm(self, fault: str, hosts: Sequence[str], link: str) -> Callable[[], None]:
        """Have a fault ready, whose processes wait for a word: to start them takes long.

        Args:
            fault: `refuse`, `loss` (of everything) or `cut`, as in the methods of these names.
            hosts: where.
            link: which.

        Returns:
            Call it, once, and the fault begins everywhere within a few milliseconds. It returns
            when it has.
        """
        ready = [(self._waiting(fault, host), self._words(fault, host, link)) for host in hosts]

        def fire() -> None:
            for process, words in ready:
                assert process.stdin is not None
                process.stdin.write(words)
                process.stdin.close()
            for process, words in ready:
                if process.wait(PATIENCE):
                    raise LabError(f"{words.strip()}: {process.returncode}")

        return fire

    def _waiting(self, fault: str, host: str) -> subprocess.Popen[str]:
        """What executes a fault as soon as it is told, ahead of what that is to disturb."""
        words = ["ip", "netns", "exec", self._space(host), "nft", "-f", "-"]
        if fault == "cut":
            words = ["ip", "-netns", self._switch, "-batch", "-"]
        nice = ["nice", "-n", "-15"]
        return subprocess.Popen([*nice, *words], stdin=subprocess.PIPE, text=True)

    def _words(self, fault: str, host: str, link: str) -> str:
        if fault == "cut":
            return f"link set {self._port(host, link)} down\n"
        if fault == "refuse":
            rule = f"{REFUSING}; iifname {link} meta l4proto tcp reject with tcp reset"
            return _filtering(f"lab_refuse_{link}", rule) + "\n"
        return _filtering(f"lab_{link}", f"{LOSING}; iifname {link} drop") + "\n"
