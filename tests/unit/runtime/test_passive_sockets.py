"""Passive mode's ways to the coordinator and from the ranks, over sockets and one small loop."""

import contextlib
import os
import socket
import threading

import pytest
from ompy.engine.reactor import Reactor
from ompy.runtime.connections.blocking_calls import BlockingCalls
from ompy.runtime.connections.control import Decoder, Kind, encode
from ompy.runtime.connections.credentials import CredentialError, SecretFile
from ompy.runtime.machines.acts import Keep, TurnAway
from ompy.runtime.machines.events import Seen
from ompy.runtime.passive import coordinator_search, step_watch, waiting_ranks
from ompy.runtime.passive.coordinator_address import listen_for_agents, ports
from ompy.runtime.passive.coordinator_search import CoordinatorSearch
from ompy.runtime.passive.handshake_driver import HandshakeDriver
from ompy.runtime.passive.meeting import MeetingError, prove_as_agent, prove_as_coordinator
from ompy.runtime.passive.step_watch import StepWatch, TaskWatch
from ompy.runtime.passive.waiting_ranks import WaitingRanks

from tests.support.turns import run_until

PART = {"host": "a", "ranks": [[1, 0, 42, ["python"]]], "cores": 2}
SALT = bytes(range(32))


@pytest.fixture
def reactor():
    made = Reactor()
    yield made
    made.close()


OPENED = []


@pytest.fixture(autouse=True)
def _closing():
    """No test has to close what a handshake ended with."""
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def calls(reactor):
    return BlockingCalls(reactor)


@pytest.fixture
def proof(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"sixteen bytes ok")
    path.chmod(0o600)
    return SecretFile(str(path))


class Outcome:
    """What was told of a handshake."""

    def __init__(self):
        self.told = []

    def done(self, connection, value):
        OPENED.append(connection)
        self.told.append((connection, value))

    def failed(self, problem):
        self.told.append(problem)


def agent(reactor, calls, end, proof, **more):
    outcome = Outcome()
    steps = prove_as_agent(proof, "j", PART, os.urandom(16))
    driver = HandshakeDriver(reactor, calls, end, steps, outcome.done, outcome.failed, **more)
    return driver, outcome.told


def coordinator(reactor, calls, end, proof):
    outcome = Outcome()
    steps = prove_as_coordinator(proof, "j", SALT, os.urandom(16))
    HandshakeDriver(reactor, calls, end, steps, outcome.done, outcome.failed)
    return outcome.told


def test_both_sides_of_a_handshake(reactor, calls, proof):
    ours, theirs = socket.socketpair()
    _, met = agent(reactor, calls, ours, proof)
    joined = coordinator(reactor, calls, theirs, proof)
    run_until(reactor, lambda: met and joined)
    ((connection, agents),) = met
    ((_, coordinators),) = joined
    assert connection is ours
    assert agents.key == proof.key(SALT)
    assert agents.keys == coordinators.keys[::-1]
    # nothing was read beyond it, and nobody reads any longer
    theirs.send(b"next")
    reactor.call_later(0.02, theirs.close)
    run_until(reactor, lambda: theirs.fileno() < 0)
    assert ours.recv(100) == b"next"
    ours.close()


class SlowlyRead:
    """A socket that takes a byte at a time: nothing arrives in one piece."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def recv(self, _size):
        return self._inner.recv(1)

    def send(self, data, flags):
        return self._inner.send(data[:1], flags)


def test_a_handshake_in_single_bytes(reactor, calls, proof):
    ours, theirs = (SlowlyRead(end) for end in socket.socketpair())
    _, met = agent(reactor, calls, ours, proof)
    joined = coordinator(reactor, calls, theirs, proof)
    run_until(reactor, lambda: met and joined)
    assert met[0][1].key == proof.key(SALT)
    ours.close()
    theirs.close()


def test_nobody_answers(reactor, calls, proof):
    ours, theirs = socket.socketpair()
    with theirs:
        _, told = agent(reactor, calls, ours, proof, patience=0.01)
        run_until(reactor, lambda: told)
        assert isinstance(told[0], TimeoutError)
        assert theirs.recv(1) == b"", "it has hung up"


def test_the_other_hangs_up(reactor, calls, proof):
    ours, theirs = socket.socketpair()
    _, told = agent(reactor, calls, ours, proof)
    theirs.close()
    run_until(reactor, lambda: told)
    assert isinstance(told[0], (MeetingError, OSError))
    assert ours.fileno() == -1


def test_one_that_is_cancelled_tells_nobody(reactor, calls, proof):
    ours, theirs = socket.socketpair()
    driver, told = agent(reactor, calls, ours, proof, patience=0.01)
    driver.cancel()
    driver.cancel()
    theirs.setblocking(False)
    with theirs:
        over = []
        reactor.call_later(0.03, over.append, True)
        run_until(reactor, lambda: over)
        assert theirs.recv(1) == b""
    assert told == []


class Waiting(SecretFile):
    """Seals when it is told to, in the thread it is called in."""

    def __init__(self, path):
        super().__init__(path)
        self.begun, self.go_on = threading.Event(), threading.Event()

    def seal(self, text):
        self.begun.set()
        assert self.go_on.wait(30)
        return super().seal(text)


def test_one_that_is_cancelled_while_a_seal_is_made(reactor, calls, tmp_path, proof):
    waiting = Waiting(str(tmp_path / "secret"))
    ours, theirs = socket.socketpair()
    driver, told = agent(reactor, calls, ours, waiting)
    coordinator(reactor, calls, theirs, proof)
    run_until(reactor, waiting.begun.is_set)
    driver.cancel()
    waiting.go_on.set()
    ended = []
    calls.start_call(ended.append, int)
    run_until(reactor, lambda: ended)
    assert told == []


class Broken(SecretFile):
    """No seal can be made here."""

    def seal(self, text):
        raise CredentialError("no munged")


def test_no_seal_can_be_made(reactor, calls, tmp_path, proof):
    ours, theirs = socket.socketpair()
    _, told = agent(reactor, calls, ours, Broken(str(tmp_path / "secret")))
    other = coordinator(reactor, calls, theirs, proof)
    run_until(reactor, lambda: told and other)
    assert isinstance(told[0], CredentialError)
    assert isinstance(other[0], MeetingError)


# looking for the coordinator


class Search:
    """One under way, and what it has told."""

    def __init__(self, reactor, calls, proof, job, host="127.0.0.1"):
        self.found, self.unusable, self.overdue = [], [], []
        OPENED.append(self)
        self.search = CoordinatorSearch(
            reactor, calls, proof, (host, job), PART,
            self.found.append, self.unusable.append, self.overdue.append,
        )  # fmt: skip

    def close(self):
        self.search.cancel()
        for found in self.found:
            found.connection.close()


@pytest.fixture
def job(request):
    return f"{request.node.name}.{os.getpid()}"


def serve_agents(reactor, calls, listener, proof, job):
    """Answer as a coordinator does. What has come of each handshake."""
    outcome, handshakes = Outcome(), []

    def admit():
        connection, _ = listener.accept()
        steps = prove_as_coordinator(proof, job, SALT, os.urandom(16))
        handshakes.append(
            HandshakeDriver(reactor, calls, connection, steps, outcome.done, outcome.failed)
        )

    listener.setblocking(False)
    reactor.add_reader(listener, admit)
    return outcome.told


def test_the_coordinator_comes_later(reactor, calls, proof, job, monkeypatch):
    monkeypatch.setattr(coordinator_search, "OVERDUE", 0.0)
    under_way = Search(reactor, calls, proof, job)
    run_until(reactor, lambda: under_way.overdue)
    assert under_way.overdue == ["nobody listens there"]
    with listen_for_agents(job) as listener:
        joined = serve_agents(reactor, calls, listener, proof, job)
        run_until(reactor, lambda: under_way.found and joined)
        reactor.remove_reader(listener)
    (found,) = under_way.found
    assert found.key == proof.key(SALT)
    assert joined[0][1].hello["part"] == PART
    assert len(under_way.overdue) == 1


def test_what_cannot_prove_itself_is_passed_over(reactor, calls, proof, job):
    """At the first port is another program, at the second one that hangs up."""
    with (
        socket.create_server(("", ports(job)[0])) as other,
        socket.create_server(("", ports(job)[1])) as hanging_up,
        listen_for_agents(job) as listener,
    ):
        kept = []

        def answer_other():
            kept.append(other.accept()[0])
            OPENED.append(kept[-1])
            kept[-1].send(b"220 a mail server, at your service\r\n")

        reactor.add_reader(other, answer_other)
        reactor.add_reader(hanging_up, lambda: hanging_up.accept()[0].close())
        joined = serve_agents(reactor, calls, listener, proof, job)
        under_way = Search(reactor, calls, proof, job)
        run_until(reactor, lambda: under_way.found and joined)
        assert len(joined) == 1, "the coordinator is met once"
        with contextlib.suppress(ConnectionResetError):  # it has not read all that was said
            assert kept[0].recv(1) == b"", "it has hung up"
        for each in (other, hanging_up, listener):
            reactor.remove_reader(each)


def test_no_proof_can_be_made(reactor, calls, proof, job, tmp_path):
    with listen_for_agents(job) as listener:
        serve_agents(reactor, calls, listener, proof, job)
        under_way = Search(reactor, calls, Broken(str(tmp_path / "secret")), job)
        run_until(reactor, lambda: under_way.unusable)
        reactor.remove_reader(listener)
    assert str(under_way.unusable[0]) == "no munged"
    assert not under_way.found


@pytest.mark.parametrize("turns", range(12))
def test_a_search_that_is_cancelled_ends(reactor, calls, proof, job, turns):
    """At any moment of it: nothing is told and no connection is left."""
    with listen_for_agents(job) as listener:
        joined = serve_agents(reactor, calls, listener, proof, job)
        under_way = Search(reactor, calls, proof, job)
        for _ in range(turns):
            reactor.call_soon(reactor.stop)
            reactor.run_forever()
        before = bool(under_way.found)
        under_way.search.cancel()
        over = []
        reactor.call_later(0.1, over.append, True)
        run_until(reactor, lambda: over)
        reactor.remove_reader(listener)
    assert bool(under_way.found) == before
    assert under_way.unusable == []
    assert len(joined) <= 1


def test_a_host_without_an_address_is_asked_for_again(reactor, calls, proof, job, monkeypatch):
    asked = []

    def unknown(host):
        asked.append(host)
        return []

    monkeypatch.setattr(coordinator_search, "addresses", unknown)
    monkeypatch.setattr(coordinator_search, "RETRY", 0.001)
    under_way = Search(reactor, calls, proof, job, host="nowhere")
    run_until(reactor, lambda: len(asked) > 2)
    under_way.search.cancel()
    assert set(asked) == {"nowhere"}


# ranks that come


@pytest.fixture
def listener():
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("")  # a name that nobody else has
        made.listen(16)
        yield made


HELLO = {"rank": 3, "local_rank": 1}


def connected(listener):
    rank = socket.socket(socket.AF_UNIX)
    rank.connect(listener.getsockname())
    return rank


def first_frame(rank):
    decoder = Decoder()
    rank.settimeout(10)
    while (frame := decoder.next()) is None:
        decoder.feed(rank.recv(4096))
    return frame


def test_a_rank_says_who_it_is_and_is_kept_and_handed_over(reactor, listener):
    events = []
    waiting = WaitingRanks(reactor, listener, events.append)
    said = encode(Kind.HELLO, HELLO)
    with connected(listener) as rank:
        rank.send(said[:7])
        reactor.call_later(0.02, rank.send, said[7:])
        run_until(reactor, lambda: events)
        assert (events[0].what, events[0].who) == (Seen.CAME, 0)
        assert events[0].header == {**HELLO, "pid": os.getpid()}
        waiting.keep_rank(Keep(0, 3, 0))
        assert first_frame(rank).kind is Kind.ALIVE
        ((connection, attached),) = waiting.hand_over()
        assert (attached.rank, attached.local_rank) == (3, 1)
        connection.close()
    assert list(waiting.hand_over()) == []
    reactor.remove_reader(listener)


def test_one_that_is_kept_and_goes_is_told(reactor, listener):
    events = []
    waiting = WaitingRanks(reactor, listener, events.append)
    rank = connected(listener)
    rank.send(encode(Kind.HELLO, HELLO))
    run_until(reactor, lambda: events)
    waiting.keep_rank(Keep(0, 3, 0))
    rank.close()
    run_until(reactor, lambda: len(events) > 1)
    assert (events[1].what, events[1].who) == (Seen.CLIENT_GONE, 3)
    reactor.remove_reader(listener)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("code", [None, 7])
def test_one_that_is_turned_away(reactor, listener, keep, code):
    events = []
    waiting = WaitingRanks(reactor, listener, events.append)
    with connected(listener) as rank:
        rank.send(encode(Kind.HELLO, HELLO))
        run_until(reactor, lambda: events)
        if keep:
            waiting.keep_rank(Keep(0, 3, 0))
            assert first_frame(rank).kind is Kind.ALIVE
        waiting.turn_away(TurnAway(0, code, "why"))
        if code is not None:
            frame = first_frame(rank)
            assert (frame.kind, frame.header, frame.body) == (Kind.REFUSED, {"code": 7}, b"why")
        assert rank.recv(1) == b""
    assert list(waiting.hand_over()) == []
    reactor.remove_reader(listener)


@pytest.mark.parametrize(
    "said",
    [b"", b"GET / HTTP/1.0\r\n\r\n", encode(Kind.ALIVE), encode(Kind.HELLO, HELLO)[:9]],
    ids=["nothing", "a browser's", "another word", "half a hello"],
)
def test_strangers_of_the_same_user_are_dropped(reactor, listener, said, monkeypatch):
    monkeypatch.setattr(waiting_ranks, "HELLO_TIMEOUT", 0.05)
    events, over = [], []
    WaitingRanks(reactor, listener, events.append)
    with connected(listener) as rank:
        rank.send(said)
        rank.setblocking(False)

        def ended():
            with contextlib.suppress(BlockingIOError):
                over.append(rank.recv(1))
            return over

        run_until(reactor, ended)
    assert over == [b""]
    assert events == []
    reactor.remove_reader(listener)


# looking after tasks of a step


def counted(monkeypatch, *counts):
    """Looks that find these, the last of them ever after. How many there were."""
    left, looks = list(counts), []

    def count(_step):
        looks.append(True)
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(step_watch, "count_tasks", count)
    monkeypatch.setattr(step_watch, "LOOK", 0.001)
    return looks


def test_a_task_that_is_missing_twice_in_a_row_is_told_once(reactor, calls, monkeypatch):
    looks, gone = counted(monkeypatch, 2, 1, 2, 1), []
    TaskWatch(reactor, calls, 2, lambda: gone.append(len(looks)))
    run_until(reactor, lambda: gone)
    assert gone == [5]


def test_once_all_have_come_nobody_is_missing(reactor, calls, monkeypatch):
    """A watch that ends because it is not needed any more says nothing."""
    looks, gone = counted(monkeypatch, 2), []
    watch = TaskWatch(reactor, calls, 2, lambda: gone.append(True))
    run_until(reactor, lambda: len(looks) > 2)
    watch.cancel()
    counted(monkeypatch, 0)
    over = []
    reactor.call_later(0.05, over.append, True)
    run_until(reactor, lambda: over)
    assert gone == []


def test_where_a_container_hides_them_nothing_is_known(reactor, calls, monkeypatch):
    looks, gone = counted(monkeypatch, None), []
    TaskWatch(reactor, calls, 2, lambda: gone.append(True))
    over = []
    run_until(reactor, lambda: looks)
    reactor.call_later(0.05, over.append, True)
    run_until(reactor, lambda: over)
    assert (len(looks), gone) == (1, [])


SRUN = """#!/bin/sh
printf 'h2\\nh'; sleep 0.05; printf '3\\n'
cat > /dev/null
echo ended > {ended}
"""


def test_what_watchers_on_other_hosts_say(reactor, tmp_path, monkeypatch):
    """Whole lines, until nobody wants to know; then they end, by the end of their input."""
    ended = tmp_path / "ended"
    (tmp_path / "srun").write_text(SRUN.format(ended=ended))
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    gone = []
    watch = StepWatch(reactor, {"h2": 1, "h3": 2}, gone.append)
    run_until(reactor, lambda: len(gone) == 2)
    assert gone == ["h2", "h3"]
    assert not ended.exists()
    process = watch._process
    watch.cancel()
    watch.cancel()
    run_until(reactor, lambda: process.returncode is not None)
    assert ended.exists()


def test_without_srun_nobody_is_asked(reactor, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    StepWatch(reactor, {"h2": 1}, lambda _host: None).cancel()
