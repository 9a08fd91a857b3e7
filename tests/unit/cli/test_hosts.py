"""Which hosts a command line names, which rank goes where, and what is refused."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.cli.launch.command_line import CommandError, parse_command_line
from ompy.cli.launch.hosts import Allocation, Host, allocate_slots
from ompy.cli.launch.launching import make_job, run_command
from ompy.cli.launch.mapping import MapBy, parse_map_by, place_ranks
from ompy.runtime.launching.allocation import expand


@pytest.fixture(autouse=True)
def three_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    for name in ("OMPI_MCA_orte_default_hostfile", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def hostfile(tmp_path):
    def write(text, name="hosts"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def hosts(*words, files=()):
    return allocate_slots(words, files, "here", 3)


def job(*arguments):
    return make_job(parse_command_line([*arguments, "true"]), "here").job


def words(text):
    return text.split()


def where(*arguments):
    """The host of each rank."""
    made = job(*arguments)
    return " ".join(made.hosts[placement.node] for placement in made.placements)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["a"], [("a", 1)]),
        (["a,b:2"], [("a", 1), ("b", 2)]),
        (["a,a,b,a"], [("a", 3), ("b", 1)]),
        (["b", "a:2,b:4"], [("b", 5), ("a", 2)]),
        (["localhost:2,127.0.0.1,here,here.example.org"], [("here", 5)]),
        (["here:*"], [("here", 3)]),
        ([" a , b "], [("a", 1), ("b", 1)]),
    ],
)
def test_host_option(words, expected):
    assert [(host.name, host.slots) for host in hosts(*words).hosts] == expected


def test_host_option_with_a_user():
    assert hosts("me@a:2").hosts == (Host("a", 2, user="me"),)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("a:0", "'0' is no number of slots"),
        ("a:", "'' is no number of slots"),
        ("a:x", "'x' is no number of slots"),
        ("a:-1", "'-1' is no number of slots"),
        ("a:²", "is no number of slots"),
        ("a:*", "the cores of a are not known here; write a:N"),
        ("-oProxyCommand=touch /tmp/x", "is no name of a host"),
        ("a b", "'a b' is no name of a host"),
        ("$(id)", "is no name of a host"),
        ("-x@a", "'-x' is no name of a user"),
        ("@a", "'' is no name of a user"),
        (",", "names no host"),
    ],
)
def test_words_that_are_no_hosts(word, text):
    with pytest.raises(CommandError) as caught:
        hosts(word)
    assert text in str(caught.value)
    assert "--host" in str(caught.value)


def test_hostfile(hostfile):
    path = hostfile(
        "# the cluster\n\n"
        "a slots=2 max_slots=4   # two\n"
        "b slots = 3\n"
        "c\n"
        "d max-slots=1 username=me port=2222\n"
        "c count=2\n"
        "you@localhost cpu=1\n"
        "e:4\n"
    )
    assert hosts(files=[path]).hosts == (
        Host("a", 2, 4),
        Host("b", 3),
        Host("c", 3),
        Host("d", 1, 1, "me", 2222),
        Host("here", 1, user="you"),
        Host("e", 4),
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("a slot=2", "slot=2 is no setting of a host; did you mean slots?"),
        ("a 2", "2 is no setting of a host"),
        ("a slots=two", "'two' is no number of slots"),
        ("a:two", "'two' is no number of slots"),
        ("a slots=", "'' is no number of slots"),
        ("a slots=3 max_slots=2", "3 slots are more than max_slots, which is 2"),
        ("a port=70000", "'70000' is no number of port"),
        ("-a", "'-a' is no name of a host"),
        ("a username=-l", "'-l' is no name of a user"),
    ],
)
def test_lines_of_a_hostfile_that_make_no_sense(hostfile, line, text):
    path = hostfile(f"# first\n{line}\n")
    with pytest.raises(CommandError) as caught:
        hosts(files=[path])
    assert text in str(caught.value)
    assert f"{path}:2" in str(caught.value)


def test_hostfiles_that_cannot_be_used(hostfile, tmp_path):
    with pytest.raises(CommandError, match=r"nowhere: it cannot be read: No such file"):
        hosts(files=[str(tmp_path / "nowhere")])
    with pytest.raises(CommandError, match="it names no host"):
        hosts(files=[hostfile("# nothing\n")])
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(CommandError, match="it cannot be read"):
        hosts(files=[str(tmp_path / "bytes")])


def test_host_option_chooses_from_a_hostfile(hostfile):
    path = hostfile("a slots=4\nb slots=4 port=22 username=me\nc slots=4\n")
    assert hosts("b:2,a", files=[path]).hosts == (Host("b", 2, user="me", port=22), Host("a", 4))
    with pytest.raises(CommandError, match=r"host bb is not in .*; did you mean b?"):
        hosts("bb", files=[path])


def test_an_allocation_says_which_hosts_there_are(hostfile, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2],here")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "2(x2),1")
    assert where() == "n1 n1 n2 n2 here"
    assert where("--host", "n2,here") == "n2 n2 here"
    assert where("--host", "n2:1") == "n2"
    assert where("--hostfile", hostfile("n1 slots=1\n")) == "n1"
    with pytest.raises(CommandError, match="host n3 is not in the allocation of this job"):
        job("--host", "n3")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "2")
    with pytest.raises(CommandError, match="SLURM_TASKS_PER_NODE=2 are of different lengths"):
        job()
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-")
    with pytest.raises(CommandError, match="is no list of hosts"):
        job()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("h1", "h1"),
        ("h[1-3]", "h1 h2 h3"),
        ("h[08-11],m", "h08 h09 h10 h11 m"),
        ("a[1,3-4]b[1-2]", "a1b1 a1b2 a3b1 a3b2 a4b1 a4b2"),
    ],
)
def test_names_as_slurm_writes_them(text, names):
    assert expand(text) == names.split()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--host a:2,b:2", "a a b b"),
        ("-H a:2,b:2 -n 3", "a a b"),
        ("--host a:2,b:2 --map-by node", "a b a b"),
        ("--host a:1,b:3 --map-by node", "a b b b"),
        ("--host a:2,b:2 --map-by ppr:1:node", "a b"),
        ("--host a:2,b:2 --map-by ppr:2:node -n 3", "a a b"),
        ("--host a:2,b:2 -N 1", "a b"),
        ("--host a:2,b:2 --map-by numa", "a a b b"),
        ("--host a:3,b:3 --map-by core:SPAN -n 4", "a a b b"),
        ("--host a:1,b:3 --map-by slot:span -n 3", "a b b"),
        ("--host a:2,b:2 --rank-by node", "a b a b"),
        ("--host a:1,b:3 --map-by :PE=2:OVERSUBSCRIBE --rank-by node -n 5", "a b a b b"),
        ("--host a:2,b:2 --map-by slot:PE=2 -n 3", "a a b"),
        ("--host a,b,a --map-by seq", "a b a"),
        ("--host a:2,b --map-by seq -n 2", "a a"),
        ("--host a,b -n 5 --oversubscribe", "a a a b b"),
        ("--host a:2,b -n 6 --map-by node:oversubscribe", "a b a b a a"),
        ("-n 4", "here here here here"),
        ("", "here here here"),
        ("--map-by ppr:2:node", "here here"),
        ("--host localhost:2", "here here"),
    ],
)
def test_maps(arguments, expected):
    assert where(*arguments.split()) == expected


def test_a_map_says_local_ranks_and_leaves_empty_hosts_out():
    made = job("--host", "a,b:2,c", "--map-by", "seq", "-n", "3")
    assert made.hosts == ("a", "b")
    assert [(p.node, p.local_rank) for p in made.placements] == [(0, 0), (1, 0), (1, 1)]


def test_max_slots_hold_even_when_oversubscribed(hostfile):
    path = hostfile("a slots=1 max_slots=2\nb slots=1\n")
    assert where("--hostfile", path, "-n", "6", "--oversubscribe") == "a a b b b b"
    only = hostfile("a slots=1 max_slots=2\n", "one")
    with pytest.raises(CommandError, match=r"3 processes .* room for 2: .* max_slots"):
        job("--hostfile", only, "-n", "3", "--oversubscribe")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--host a:2,b -n 4", "4 processes were asked for, the hosts have room for 3: slots are"),
        ("--host localhost -n 2", "here 1; say how many there are (--host a:4"),
        ("--host a:2 --map-by ppr:3:node", "a has 2 slot(s)"),
        ("--host a:2 --map-by ppr:2:node -n 3", "2 on each of 1 host(s) are 2"),
        ("--host a,b --map-by seq -n 3", "the hosts are named for 2"),
        ("--host a --map-by board", "ranks are mapped by slot, node, hwthread, core, l1cache"),
        ("--host a --map-by ppr:x:node", "write ppr:N:OBJECT"),
        ("--host a --map-by ppr:2:board", "write ppr:N:OBJECT"),
        ("--host a --map-by ppr:2:sockt", "N from 1 to"),
        ("--host a --map-by rankfile", "write rankfile:FILE=PATH, or --rankfile PATH"),
        ("--rankfile /nowhere/ranks", "--rankfile /nowhere/ranks: it cannot be read: No such file"),
        ("--rankfile f --map-by node", "--map-by and --rankfile exclude each other"),
        ("--host a --map-by slot:ordered", "the modifiers are oversubscribe, nooversubscribe, sp"),
        ("--host a --map-by slot:PE=0", "the modifiers are oversubscribe, nooversubscribe, sp"),
        ("--host a --map-by slot:PE=x", "span and PE=N"),
        ("--host a --bind-to board", "ranks are bound to one of none, hwthread, core, l1cache"),
        ("--host a --bind-to core:ordered", "the modifiers are overload-allowed, no-overload and"),
        ("--host a --rank-by board", "ranks are numbered by one of slot, node, fill, hwthread"),
        ("--host a --map-by slot:PE=2 --bind-to none", "2 cores for each rank: --bind-to none"),
        ("--host a --cpu-set 0-1", "no rank is bound; add --bind-to core"),
        ("--bind-to core --cpu-set x", "--bind-to core: the set of processors: 'x' is no list"),
        ("--host a --map-by slot -N 2", "exclude each other"),
        ("-n 4 --map-by slot:nooversubscribe", "4 processes were asked for, 3 cores"),
    ],
)
def test_what_cannot_be_mapped(arguments, text):
    with pytest.raises(CommandError) as caught:
        job(*arguments.split())
    assert text in str(caught.value)
    assert caught.value.exit_code == 2


def test_each_program_has_its_hosts():
    groups = parse_command_line(words("--host a:2 -n 2 one : --host b -n 1 two : -n 1 three"))
    with pytest.raises(CommandError, match="room for 0"):
        make_job(groups, "here")
    groups = parse_command_line(words("--host a:2 -n 1 one : --host b:2 -n 1 two : -n 2 three"))
    made = make_job(groups, "here").job
    assert [(made.hosts[p.node], p.app) for p in made.placements] == [
        ("a", 0), ("b", 1), ("a", 2), ("b", 2),
    ]  # fmt: skip


def test_a_program_elsewhere_is_not_looked_for_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = make_job(parse_command_line(["--host", "a", "no-such-program"]), "here").job
    assert made.apps[0].directory == str(tmp_path)
    with pytest.raises(CommandError, match="there is no program"):
        make_job(parse_command_line(["--host", "a,here", "no-such-program"]), "here")


def test_the_default_hostfile_of_the_mpi_operator(hostfile, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_orte_default_hostfile", hostfile("worker-0 slots=2\n"))
    assert where() == "worker-0 worker-0"
    assert where("--host", "b") == "b"


def test_display_map_and_do_not_launch(capfd):
    arguments = "--host a:2,b:2 --map-by node -n 3 --display-map --do-not-launch true"
    assert run_command(arguments.split()) == 0
    text = capfd.readouterr().out
    assert "Total slots allocated 4" in text
    first, second = text.split("Data for node: ")[1:]
    assert first.startswith("a\tNum slots: 2\tMax slots: 0\tNum procs: 2")
    assert [line.split("rank: ")[1][0] for line in first.splitlines() if "rank:" in line] == [
        "0",
        "2",
    ]
    assert second.startswith("b\tNum slots: 2\tMax slots: 0\tNum procs: 1")


names = st.sampled_from("abcd")
some_hosts = st.lists(
    st.builds(Host, names, st.integers(1, 4), st.sampled_from([0, 4, 6])),
    min_size=1, max_size=4, unique_by=lambda host: host.name,
)  # fmt: skip


@given(some_hosts, st.integers(1, 20), st.sampled_from(["slot", "node"]), st.booleans())
def test_every_rank_has_a_place_or_there_is_no_room(listed, count, policy, oversubscribe):
    allocation = Allocation(tuple(listed), ())
    limits = {
        host.name: (host.max_slots or 100) if oversubscribe else host.slots for host in listed
    }
    try:
        layout = place_ranks([count], [allocation], MapBy(policy), oversubscribe=oversubscribe)
    except CommandError:
        assert count > sum(limits.values())
        return
    assert [p.rank for p in layout.placements] == list(range(count))
    for node, host in enumerate(layout.hosts):
        local = [p.local_rank for p in layout.placements if p.node == node]
        assert local == list(range(len(local)))
        assert 0 < len(local) <= limits[host.name]
    nodes = [p.node for p in layout.placements]
    if policy == "slot":
        assert nodes == sorted(nodes)
    assert parse_map_by(policy) == MapBy(policy)
