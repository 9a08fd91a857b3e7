"""Guests: tickets, the proof, and what their ends mean to the job."""

from __future__ import annotations

import json
import os
import socket
import stat

import pytest
from ompy import __version__
from ompy.engine.reactor import Reactor
from ompy.frameworks.job import App, Job, Placement
from ompy.runtime.agents.agent_proof import accept
from ompy.runtime.agents.agent_start import BANNER
from ompy.runtime.agents.agent_tree import Tree
from ompy.runtime.connections.control import Kind, encode
from ompy.runtime.connections.credentials import CredentialError
from ompy.runtime.connections.frame_io import send_all
from ompy.runtime.connections.modex import bundle, unbundle
from ompy.runtime.connections.pipes import PipePair
from ompy.runtime.guests.job_key import hide_key
from ompy.runtime.guests.listener import GREETING, GuestListener
from ompy.runtime.guests.ticket import Ticket, TicketError, read_ticket, write_ticket
from ompy.runtime.machines.acts import AdmitGuest, CloseView, Send, Show, Stop
from ompy.runtime.machines.agents.guest_relay import GuestMachine
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.launcher.job_rules import JobRules
from ompy.runtime.machines.launcher.job_table import JobPhase
from ompy.runtime.machines.launcher.open_job import OpenJobMachine

TICKET = Ticket("0" * 16, ("127.0.0.1",), 4711)
KEY = bytes(range(32))
APP = {"argv": ["b"], "ranks": 2, "environment": [], "directory": "/"}


class TestTicket:
    def test_only_its_owner_may_read_it(self, tmp_path):
        path = tmp_path / "ticket"
        write_ticket(str(path), TICKET)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert read_ticket(str(path)) == TICKET

    def test_two_have_different_secrets(self, tmp_path):
        for name in "ab":
            write_ticket(str(tmp_path / name), TICKET)
        secrets = {json.loads((tmp_path / name).read_text())["secret"] for name in "ab"}
        assert len(secrets) == 2
        assert {len(secret) for secret in secrets} == {64}

    def test_no_file_is_overwritten(self, tmp_path):
        path = tmp_path / "ticket"
        path.write_text("mine")
        with pytest.raises(TicketError, match="such a file already"):
            write_ticket(str(path), TICKET)
        assert path.read_text() == "mine"

    def test_no_link_is_followed(self, tmp_path):
        (tmp_path / "ticket").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(TicketError):
            write_ticket(str(tmp_path / "ticket"), TICKET)
        assert not (tmp_path / "elsewhere").exists()

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
    def test_others_may_not_have_it(self, tmp_path, mode):
        path = tmp_path / "ticket"
        write_ticket(str(path), TICKET)
        path.chmod(mode)
        with pytest.raises(TicketError, match="chmod 600"):
            read_ticket(str(path))

    @pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"form": "ompy ticket 1"}', "\0"])
    def test_other_files_are_none(self, tmp_path, text):
        path = tmp_path / "ticket"
        path.write_text(text)
        path.chmod(0o600)
        with pytest.raises(TicketError):
            read_ticket(str(path))

    def test_there_is_none(self, tmp_path):
        with pytest.raises(TicketError, match="No such file"):
            read_ticket(str(tmp_path / "ticket"))


def test_a_hidden_key_needs_both_the_secret_and_the_name():
    hidden = hide_key(KEY, b"shared", "name")
    assert hidden != KEY
    assert hide_key(hidden, b"shared", "name") == KEY
    assert hide_key(hidden, b"other", "name") != KEY
    assert hide_key(hidden, b"shared", "another") != KEY


class _Outside:
    """Somebody who comes to a listener."""

    def __init__(self, path: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", read_ticket(path).port), 5)
        self.channel: PipePair | None = None

    def close(self) -> None:
        self.socket.close()
        if self.channel is not None:
            self.channel.close()

    def name(self) -> str:
        said = b""
        while not said.endswith(b"\n"):
            said += self.socket.recv(1)
        assert said.startswith(GREETING)
        return said[len(GREETING) : -1].decode()

    def prove(self, secret: str, name: str):
        self.socket.settimeout(None)
        self.channel = PipePair(os.dup(self.socket.fileno()), os.dup(self.socket.fileno()))
        return accept(self.channel, name, secret, BANNER)


class TestListener:
    @pytest.fixture
    def path(self, tmp_path):
        return str(tmp_path / "ticket")

    @pytest.fixture
    def listener(self, path):
        loop, guests = Reactor(), []
        made = GuestListener(path, "0" * 16, "127.0.0.1", KEY)
        made.begin_accepting(loop, guests.append)
        made.loop, made.guests = loop, guests
        yield made
        made.stop_accepting()
        for guest in guests:
            guest.connection.close()
        loop.close()

    @pytest.fixture
    def outside(self, listener, path):
        made = _Outside(path)
        self.turn_until(listener, lambda: listener._strangers)
        yield made
        made.close()

    def turn(self, listener, seconds=0.3):
        listener.loop.call_later(seconds, listener.loop.stop)
        listener.loop.run_forever()

    def test_the_ticket_goes_with_it(self, listener, path):
        port = read_ticket(path).port
        listener.stop_accepting()
        assert not os.path.exists(path)
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), 1)

    def test_who_has_the_ticket_gets_in(self, listener, path, outside):
        sealed, proof = outside.prove(path, name := outside.name())
        facts = {"version": __version__, "pid": 5, "host": "there"}
        send_all(sealed, encode(Kind.READY, facts, b"[]"))
        self.turn_until(listener, lambda: listener.guests)
        (guest,) = listener.guests
        assert guest.header == facts
        assert guest.apps == b"[]"
        assert hide_key(guest.hidden_key, proof.key, name) == KEY

    def test_another_version_is_turned_away(self, listener, path, outside):
        sealed, _ = outside.prove(path, outside.name())
        send_all(sealed, encode(Kind.READY, {"version": "9", "pid": 5, "host": "x"}, b"[]"))
        self.turn_until(listener, lambda: not listener._strangers)
        assert not listener.guests
        assert b"ompy is 9 there" in sealed.recvmsg(4096)[0]

    def test_another_secret_opens_nothing(self, outside, tmp_path):
        other = tmp_path / "other"
        write_ticket(str(other), TICKET)
        with pytest.raises(CredentialError):
            outside.prove(str(other), outside.name())

    @pytest.mark.parametrize(
        "said", [b"GET / HTTP/1.0\r\n\r\n", BANNER + b"\0" * 600, BANNER, b"\0" * 20_000]
    )
    def test_strangers_get_nowhere(self, listener, outside, said):
        outside.socket.sendall(said)
        outside.socket.shutdown(socket.SHUT_WR)
        self.turn_until(listener, lambda: not listener._strangers)
        assert not listener.guests

    def turn_until(self, listener, done):
        for _ in range(200):
            self.turn(listener, 0.05)
            if done():
                return
        raise AssertionError("ten seconds were not enough")

    @pytest.fixture
    def crowd(self, listener, path):
        made = [_Outside(path) for _ in range(20)]
        yield made
        for one in made:
            one.close()

    def test_silent_strangers_are_few(self, listener, crowd):
        for one in crowd[16:]:
            one.socket.setblocking(False)
        self.turn_until(listener, lambda: all(ended(one.socket) for one in crowd[16:]))
        assert len(listener._strangers) == 16

    def test_silent_strangers_are_dropped(self, listener, crowd, monkeypatch):
        monkeypatch.setattr("ompy.runtime.guests.listener.PROOF_PATIENCE", 0.01)
        for one in crowd:
            one.socket.setblocking(False)
        self.turn_until(listener, lambda: all(ended(one.socket) for one in crowd))
        assert not listener._strangers


def ended(connection: socket.socket) -> bool:
    """Whether the other side has closed it; what it said before is thrown away."""
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


def machine(*, survives: bool = False) -> OpenJobMachine:
    """A job of two ranks on one host."""
    job = Job("0" * 16, (App(("a",), 2),), ("h0",), (Placement(0, 0, 0, 0), Placement(1, 0, 0, 1)))
    rules = JobRules(grace_ms=1000, heartbeat_s=0.1, misses=3, start_s=10.0, survives=survives)
    made = OpenJobMachine(job, Tree([]), [Child(0, 100, remote=False)], rules)
    made.handle(Event(Seen.BEGUN), 0.0)
    for rank in (0, 1):
        tell(made, 0, Kind.STAGE, rank=rank, stage="attached")
        tell(made, 0, Kind.STAGE, rank=rank, stage="initialized")
        tell(made, 0, Kind.MODEX, bundle({rank: bytes([rank])}))
    return made


def tell(made, who, kind, body=b"", /, **header):
    return made.handle(Event(Seen.BELOW, who, kind, header, body), 1.0)


def join(made, host="h1"):
    body = json.dumps([APP]).encode()
    return made.handle(
        Event(Seen.JOINED, made.next_node, None, {"host": host, "pid": 7}, body), 1.0
    )


def exited(rank, status, stage, *, expendable=False):
    return {
        "rank": rank,
        "status": status,
        "stage": stage,
        "reason": f"ended with {status}",
        "expendable": expendable,
        "known": False,
    }


def sent(acts, to, kind):
    return [act for act in acts if isinstance(act, Send) and (act.to, act.kind) == (to, kind)]


def meet(made):
    """Rank 0 and the guest's first rank meet at a port."""
    (answer,) = sent(tell(made, 0, Kind.ASK, rank=0, ask=1, what="open"), 0, Kind.ANSWER)
    port = answer.body.decode()
    tell(made, 0, Kind.ASK, json.dumps([0, 1]).encode(), rank=0, ask=2, what="accept", port=port)
    tell(made, 1, Kind.ASK, json.dumps([2, 3]).encode(), rank=2, ask=1, what="connect", port=port)


class TestJob:
    def test_a_guest_is_told_what_it_asks_for_and_the_others_of_it(self):
        made = machine()
        tell(made, 0, Kind.MODEX, bundle({1: b"again"}))
        acts = join(made)
        admit = next(act for act in acts if isinstance(act, AdmitGuest))
        assert admit.node == 1
        assert admit.job.hosts == ("h0", "h1")
        assert [p.node for p in admit.job.placements] == [0, 0, 1, 1]
        (told,) = sent(tell(made, 1, Kind.FETCH, node=1, host=0), 1, Kind.MODEX)
        assert unbundle(told.body) == {0: b"\0", 1: b"again"}
        assert sent(acts, 0, Kind.GROW)
        assert not sent(acts, 1, Kind.GROW)

    def test_ranks_that_have_ended_are_told_as_such(self):
        made = machine()
        tell(made, 0, Kind.STAGE, rank=1, stage="finalized", calls={})
        tell(made, 0, Kind.EXITED, **exited(1, 0, "finalized"))
        acts = join(made)
        assert [a.header["rank"] for a in sent(acts, 1, Kind.DEPARTED)] == [1]

    def test_the_fence_of_the_beginning_is_not_a_guests(self):
        made = machine()
        join(made)
        assert sent(tell(made, 0, Kind.FENCED), 0, Kind.FENCED)

    @pytest.mark.parametrize(
        "words",
        [
            (Kind.EXITED, exited(3, 4, "initialized")),
            (Kind.EXITED, exited(3, -9, "started")),
            (Kind.EXITED, exited(3, 0, "initialized")),
            (Kind.ABORTED, {"rank": 3, "pid": 8, "code": 5}),
            (Kind.LOST, {"rank": 3, "pid": 8}),
            (Kind.UNSTARTED, {"rank": 3, "code": 127}),
        ],
    )
    def test_a_lone_guest_ends_alone(self, words):
        made = machine()
        join(made)
        kind, header = words
        acts = tell(made, 1, kind, **header)
        assert len(sent(acts, 1, Kind.END)) == 1
        assert not sent(acts, 0, Kind.END)
        assert not sent(tell(made, 1, Kind.EXITED, **exited(2, -15, "initialized")), 1, Kind.END)
        assert made.phase is JobPhase.RUNNING
        assert made.verdict.failure is None

    def test_the_end_of_a_guest_that_met_others_ends_all(self):
        made = machine()
        join(made)
        meet(made)
        acts = tell(made, 1, Kind.EXITED, **exited(3, 4, "initialized"))
        assert sent(acts, 0, Kind.END)
        assert made.verdict.exit_code == 4

    @pytest.mark.parametrize("met", [False, True])
    def test_a_guest_whose_launcher_goes(self, met):
        made = machine()
        join(made)
        for rank in (2, 3):
            tell(made, 1, Kind.STAGE, rank=rank, stage="initialized")
        if met:
            meet(made)
        acts = made.handle(Event(Seen.CHILD_GONE, 1), 2.0)
        assert bool(sent(acts, 0, Kind.END)) is met
        assert {a.header["rank"] for a in sent(acts, 0, Kind.DEPARTED)} == (
            set() if met else {2, 3}
        )

    @pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0)])
    def test_the_job_ends_with_the_last_of_all(self, first, second):
        made = machine()
        join(made)
        for node in (first, second):
            for rank in (2 * node, 2 * node + 1):
                tell(made, node, Kind.STAGE, rank=rank, stage="finalized", calls={})
                tell(made, node, Kind.EXITED, **exited(rank, 0, "finalized"))
            acts = tell(made, node, Kind.FINISHED, node=node, known=4)
            closes = any(isinstance(act, CloseView) for act in acts)
            assert closes is (node == second)
        assert made.exit_code == 0

    def test_what_is_spawned_stays_with_who_asks(self):
        made = machine()
        join(made)
        app = {**APP, "ranks": 3, "hosts": []}
        for rank, node in ((0, 0), (2, 1)):
            asked = json.dumps({"apps": [app], "parents": [rank]}).encode()
            tell(made, node, Kind.ASK, asked, rank=rank, ask=9, what="spawn")
            placed = made._asked.job.placements[-3:]
            assert {p.node for p in placed} == {node}

    def test_nobody_joins_a_job_that_is_being_ended(self):
        made = machine()
        tell(made, 0, Kind.ABORTED, rank=0, pid=7, code=3)
        with pytest.raises(AssertionError):
            join(made)


class TestGuest:
    @pytest.fixture
    def guest(self):
        alone = Job(
            "0" * 16, (App(("b",), 2),), ("h1",), tuple(Placement(r, 0, 0, r) for r in (0, 1))
        )
        made = GuestMachine(1, alone, Child(1, 50, remote=False), KEY, quiet=False)
        made.handle(Event(Seen.BEGUN), 0.0)
        placed = (Placement(0, 0, 0, 0), Placement(1, 1, 1, 0), Placement(2, 1, 1, 1))
        job = Job("0" * 16, (App(("a",), 1), App(("b",), 2)), ("h0", "h1"), placed)
        header = {
            "heartbeat_ms": 100,
            "heartbeat_misses": 3,
            "agent_misses": 3,
            "start_timeout_ms": 1000,
        }
        acts = made.handle(Event(Seen.ABOVE, -1, Kind.START, header, job.packed()), 0.0)
        (start,) = sent(acts, 1, Kind.START)
        assert start.body == KEY + job.packed()
        return made

    def test_what_its_ranks_write_stays_here(self, guest):
        acts = guest.handle(
            Event(Seen.BELOW, 1, Kind.OUTPUT, {"rank": 2, "stream": 1}, b"x\n"), 0.0
        )
        assert acts == [Show(1, 1, 1, b"x\n")]
        acts = guest.handle(Event(Seen.WRITTEN, header={"bytes": 2}), 0.0)
        assert sent(acts, 1, Kind.CREDIT)[0].header == {"bytes": 2}

    def test_its_ranks_decide_its_exit_code(self, guest):
        tell(guest, 1, Kind.EXITED, **exited(2, 9, "initialized"))
        tell(guest, 1, Kind.EXITED, **exited(1, -15, "initialized"))
        assert not guest.done
        acts = tell(guest, 1, Kind.FINISHED, node=1, known=3)
        assert sent(acts, -1, Kind.FINISHED)
        assert guest.done
        assert guest.exit_code == 9
        (found,) = guest.failure_report()
        assert "Rank 1 ended with exit code 9" in found.finding.text

    def test_a_job_that_ends_takes_it_along(self, guest):
        acts = guest.handle(Event(Seen.ABOVE, -1, Kind.END, {"grace_ms": 100}), 0.0)
        assert sent(acts, 1, Kind.END)
        tell(guest, 1, Kind.EXITED, **exited(1, -15, "initialized"))
        assert guest.exit_code == 1
        assert "has been ended" in guest.failure_report()[0].finding.text

    def test_a_job_that_goes_ends_it(self, guest):
        acts = guest.handle(Event(Seen.PARENT_GONE), 0.0)
        assert any(isinstance(act, Stop) for act in acts)
        assert guest.exit_code == 1

    def test_a_signal_ends_its_ranks_and_a_second_one_at_once(self, guest):
        acts = guest.handle(Event(Seen.TOLD_TO_END, 2), 0.0)
        assert sent(acts, 1, Kind.END)
        assert guest.exit_code == 130
        acts = guest.handle(Event(Seen.TOLD_TO_END, 2), 0.0)
        assert any(isinstance(act, Stop) for act in acts)

    def test_ranks_of_others_do_not_count(self, guest):
        tell(guest, 1, Kind.EXITED, **exited(7, 3, "initialized"))
        assert guest.exit_code == 0
