"""Names, keys, functions and handlers that a call cannot use are refused when they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

TEXTS = [(5, TypeError), (None, TypeError), ("a\0b", ValueError), ("\udc80", UnicodeEncodeError)]
KEYED = {
    "set": lambda info, key: info.__setitem__(key, "x"),
    "Set": lambda info, key: info.Set(key, "x"),
    "Get": lambda info, key: info.Get(key),
    "get": lambda info, key: info.get(key),
    "in": lambda info, key: key in info,
    "item": lambda info, key: info[key],
    "pop": lambda info, key: info.pop(key),
    "del": lambda info, key: info.__delitem__(key),
    "Delete": lambda info, key: info.Delete(key),
    "value": lambda info, key: info.Set("x", key),
    "update": lambda info, key: info.update({key: "x"}),
    "Create": lambda _, key: MPI.Info.Create({key: "x"}),
}
Keyed = Callable[[MPI.Info, Any], Any]
WITH_KEYS = {"Comm": MPI.Comm, "Datatype": MPI.Datatype, "Win": MPI.Win}


@pytest.mark.parametrize(("text", "error"), TEXTS)
@pytest.mark.parametrize("call", KEYED.values(), ids=KEYED)
def test_what_is_no_key(call: Keyed, text: Any, error: type[Exception]) -> None:
    info = MPI.Info.Create({"a": "1"})
    with pytest.raises(error):
        call(info, text)
    assert info.items() == [("a", "1")]


@pytest.mark.parametrize("call", KEYED.values(), ids=KEYED)
def test_bytes_are_their_text(call: Keyed) -> None:
    def told(key: Any) -> Any:
        info = MPI.Info.Create({"a": "1"})
        found = call(info, key)
        return found.items() if isinstance(found, MPI.Info) else found, info.items()

    assert told(b"a") == told("a")


def test_a_value_is_not_empty() -> None:
    info = MPI.Info.Create()
    with pytest.raises(MPI.Exception) as caught:
        info["a"] = ""
    assert caught.value.Get_error_class() == MPI.ERR_INFO_VALUE


def in_a_world(program: Callable[[Any], Any]) -> Any:
    """What a program returns that is given a communicator of one process."""

    def started(process: RankProcess) -> Any:
        return program(world_of(process).Dup())

    (found,) = virtual(1, started).results  # type: ignore[attr-defined]
    return found


def made(comm: Any) -> dict[str, Any]:
    """An object of each class that has attributes, a name and an error handler."""
    return {"Comm": comm, "Datatype": MPI.INT.Dup(), "Win": MPI.Win.Allocate(8, comm=comm)}


@pytest.mark.parametrize(("text", "error"), TEXTS)
def test_what_is_no_name(text: Any, error: type[Exception]) -> None:
    def program(comm: Any) -> None:
        for each in made(comm).values():
            for call in (
                lambda it=each: it.Set_name(text),
                lambda it=each: setattr(it, "name", text),
            ):
                with pytest.raises(error):
                    call()
            each.name = b"name"
            assert each.name == "name"

    in_a_world(program)


@pytest.mark.parametrize("kind", WITH_KEYS)
def test_functions_of_keys(kind: str) -> None:
    for wrong in (5, "x", object()):
        for name in ("copy_fn", "delete_fn"):
            with pytest.raises(TypeError, match="expecting a function"):
                WITH_KEYS[kind].Create_keyval(**{name: wrong})
    assert WITH_KEYS[kind].Create_keyval(True, False) != MPI.KEYVAL_INVALID


def test_attributes_without_python_are_integers() -> None:
    def program(comm: Any) -> None:
        for kind, each in made(comm).items():
            keyval = WITH_KEYS[kind].Create_keyval(nopython=True)
            for wrong in ("x", None, [1]):
                with pytest.raises(TypeError, match="an integer is required"):
                    each.Set_attr(keyval, wrong)
            with pytest.raises(OverflowError):
                each.Set_attr(keyval, 1 << 64)
            assert each.Get_attr(keyval) is None
            each.Set_attr(keyval, 7)
            assert each.Get_attr(keyval) == 7

    in_a_world(program)


def test_error_handlers_of_another_kind() -> None:
    def program(comm: Any) -> None:
        objects = {**made(comm), "File": MPI.FILE_NULL}
        del objects["Datatype"]
        for kind, each in objects.items():
            before = each.Get_errhandler()
            for other, of_other in objects.items():
                handler = type(of_other).Create_errhandler(print)
                if other != kind:
                    with pytest.raises(
                        MPI.Exception, match=f"for a {other}, not a {kind}"
                    ) as caught:
                        each.Set_errhandler(handler)
                    assert caught.value.Get_error_class() == MPI.ERR_ARG
                handler.Free()
            assert each.Get_errhandler() == before

    in_a_world(program)


def test_hints_are_of_an_info_object() -> None:
    def program(comm: Any) -> None:
        for each in (comm, MPI.Win.Allocate(8, comm=comm)):
            with pytest.raises(MPI.Exception) as caught:
                each.Set_info(MPI.INFO_NULL)
            assert caught.value.Get_error_class() == MPI.ERR_INFO

    in_a_world(program)


def test_bytes_are_not_received_over_objects() -> None:
    objects = np.array(["kept", None], dtype=object)
    fields = np.zeros(2, [("a", "i4"), ("b", object)])

    def program(comm: Any) -> None:
        window = MPI.Win.Allocate(16, comm=comm)
        window.Lock_all()
        for buffer in (objects, fields):
            for call in (
                lambda to=buffer: comm.Irecv([to, MPI.INT], 0),
                lambda to=buffer: comm.Sendrecv([b"abcd", MPI.INT], 0, 0, [to, MPI.INT]),
                lambda to=buffer: comm.Allgather([b"abcd", MPI.INT], [to, 1, MPI.INT]),
                lambda to=buffer: comm.Gatherv([b"abcd", MPI.INT], [to, [1], None, MPI.INT]),
                lambda to=buffer: comm.Alltoallw(
                    [b"abcd", [1], [0], [MPI.INT]], [to, [1], [0], [MPI.INT]]
                ),
                lambda to=buffer: MPI.INT.Unpack(b"abcd", 0, to, comm),
                lambda to=buffer: MPI.INT.Pack(b"abcd", to, 0, comm),
                lambda to=buffer: window.Get([to, MPI.INT], 0),
                lambda to=buffer: MPI.Win.Create(to, comm=comm),
            ):
                with pytest.raises((TypeError, MPI.Exception), match="objects"):
                    call()
        window.Unlock_all()

    in_a_world(program)
    assert objects.tolist() == ["kept", None]


def test_fortran_types_of_the_same_digits_are_one() -> None:
    for name, digits in (("integer", (6,)), ("real", (6, 30)), ("complex", (6, 30))):
        create = getattr(MPI.Datatype, f"Create_f90_{name}")
        assert create(*digits) == create(*digits)
    assert MPI.Datatype.Create_f90_integer(6) != MPI.Datatype.Create_f90_integer(7)
    assert MPI.Datatype.Create_f90_integer(6) != MPI.INT32_T


def test_a_window_larger_than_memory() -> None:
    def program(comm: Any) -> int:
        with pytest.raises(MPI.Exception) as caught:
            MPI.Win.Allocate(1 << 60, comm=comm)
        return int(caught.value.Get_error_class())

    assert in_a_world(program) == MPI.ERR_NO_MEM


def test_how_many_dimensions() -> None:
    with pytest.raises(ValueError, match="number of dimensions"):
        MPI.Compute_dims(4, -1)
    with pytest.raises(OverflowError):
        MPI.Compute_dims(1 << 31, 2)


@pytest.mark.parametrize("code", [5, None, b"i", [], "no such"])
def test_what_is_no_type_code(code: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="cannot map code|unhashable"):
        MPI.Datatype.fromcode(code)


OF_REQUESTS = [
    *("Waitall", "Waitany", "Waitsome", "Testall", "Testany", "Testsome"),
    *("waitall", "waitany", "waitsome", "testall", "testany", "testsome"),
    *("Get_status_all", "Get_status_any", "Get_status_some"),
]


@pytest.mark.parametrize("given", [None, 5, "request"])
@pytest.mark.parametrize("name", [*OF_REQUESTS, "Startall"])
def test_what_is_among_requests_and_is_none(name: str, given: Any) -> None:
    """As None is in a list that was made in advance."""

    def program(comm: Any) -> None:
        call = getattr(MPI.Prequest, name)
        cases = [(), (MPI.REQUEST_NULL,), (comm.Irecv(bytearray(1), 0),)]
        if name == "Startall" or "all" in name.lower():  # these come to it later
            del cases[1 if name == "Startall" else 2 :]
        for before in cases:
            said = f"Cannot convert {type(given).__name__} to mpi4py.MPI.Request"
            with pytest.raises(TypeError, match=said):
                call([*before, given])

    in_a_world(program)


@pytest.mark.parametrize(("text", "error"), TEXTS)
def test_what_is_no_name_of_a_port(text: Any, error: type[Exception]) -> None:
    """The launcher would have heard it."""

    def program(comm: Any) -> None:
        for call in (
            lambda: MPI.Close_port(text),
            lambda: MPI.Lookup_name(text),
            lambda: MPI.Publish_name(text, "port"),
            lambda: MPI.Publish_name("service", text),
            lambda: MPI.Unpublish_name(text, "port"),
            lambda: MPI.Unpublish_name("service", text),
            lambda: comm.Accept(text),
            lambda: comm.Connect(text),
        ):
            with pytest.raises(error):
                call()

    in_a_world(program)


TO_NOBODY: dict[str, Callable[[MPI.Comm, int], Any]] = {
    **{
        name: lambda comm, tag, name=name: getattr(comm, name)(1, MPI.PROC_NULL, tag)  # type: ignore[misc]
        for name in ("send", "ssend", "isend", "issend")
    },
    **{
        name: lambda comm, tag, name=name: getattr(comm, name)(bytearray(4), MPI.PROC_NULL, tag)  # type: ignore[misc]
        for name in ("Send", "Ssend", "Rsend", "Isend", "Issend", "Irsend", "Send_init")
    },
    "sendrecv": lambda comm, tag: comm.sendrecv(1, MPI.PROC_NULL, tag, None, MPI.PROC_NULL),
    "Sendrecv_replace": lambda comm, tag: comm.Sendrecv_replace(
        bytearray(4), MPI.PROC_NULL, tag, MPI.PROC_NULL
    ),
}
FROM_NOBODY: dict[str, Callable[[MPI.Comm, int], Any]] = {
    **{
        name: lambda comm, tag, name=name: getattr(comm, name)(bytearray(4), MPI.PROC_NULL, tag)  # type: ignore[misc]
        for name in ("Recv", "Irecv", "Recv_init")
    },
    **{
        name: lambda comm, tag, name=name: getattr(comm, name)(None, MPI.PROC_NULL, tag)  # type: ignore[misc]
        for name in ("recv", "irecv")
    },
    **{
        name: lambda comm, tag, name=name: getattr(comm, name)(MPI.PROC_NULL, tag)  # type: ignore[misc]
        for name in ("Probe", "Iprobe", "Mprobe", "Improbe", "probe", "iprobe", "mprobe", "improbe")
    },
}


@pytest.mark.parametrize("name", [*TO_NOBODY, *FROM_NOBODY])
def test_a_tag_that_cannot_be_is_one_to_nobody_neither(name: str) -> None:
    """At the edge of a grid a wrong tag is the error that it is elsewhere."""
    call = TO_NOBODY.get(name) or FROM_NOBODY[name]

    def program(process: RankProcess) -> None:
        comm = world_of(process)
        for tag in (-5, 2**31, 2**40, *((-1,) if name in TO_NOBODY else ())):
            with pytest.raises(MPI.Exception, match="a tag is a number") as caught:
                call(comm, tag)
            assert caught.value.Get_error_class() == MPI.ERR_TAG
        call(comm, 0)
        if name in FROM_NOBODY:
            call(comm, MPI.ANY_TAG)

    virtual(1, program)


SEVERAL = ("Waitall", "Testall", "Waitsome", "Testsome", "waitall", "testall", "waitsome")


@pytest.mark.parametrize("call", [*SEVERAL, "Get_status_all", "Get_status_some"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "'int' has no len"),
        (MPI.Status(), "'Status' has no len"),
        ("x", "Cannot convert str to mpi4py.MPI.Status"),
        ([None], "Cannot convert NoneType to mpi4py.MPI.Status"),
        ((MPI.Request(),), "Cannot convert Request to mpi4py.MPI.Status"),
    ],
)
def test_what_is_no_list_of_statuses(call: str, given: Any, said: str) -> None:
    def program(process: RankProcess) -> None:
        request = world_of(process).Irecv(bytearray(1), MPI.PROC_NULL)
        with pytest.raises(TypeError, match=said):
            getattr(MPI.Request, call)([request], given)

    virtual(1, program)
