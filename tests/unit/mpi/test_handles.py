"""Handles, and the small objects: status, info, errors, operations, options."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref
from array import array
from struct import pack, unpack
from typing import Any

import pytest
from ompy.data.errors import (
    ERR_INFO_KEY,
    ERR_INFO_NOKEY,
    ERR_LASTCODE,
    ERR_OP,
    ERR_REQUEST,
    MPIError,
)
from ompy.mpi import errors
from ompy.mpi.collectives.operation import OP_NULL, OPERATIONS, Op
from ompy.mpi.communicators.comm import COMM_NULL, Comm
from ompy.mpi.communicators.group import GROUP_EMPTY, GROUP_NULL, Group
from ompy.mpi.communicators.intercomm import Intercomm
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import BYTE, DATATYPE_NULL, DATATYPES
from ompy.mpi.errhandler import ERRHANDLER_NULL, ERRORS_RETURN, Errhandler
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import CONSTANTS, Handle
from ompy.mpi.info import INFO_ENV, INFO_NULL, Info
from ompy.mpi.limits import MOST
from ompy.mpi.point_to_point.matched import MESSAGE_NO_PROC, MESSAGE_NULL
from ompy.mpi.point_to_point.request import REQUEST_NULL, Prequest, Request
from ompy.mpi.point_to_point.status import Status
from ompy.mpi.processes.options import Options, rc, settle_options
from ompy.mpi.processes.sessions import SESSION_NULL
from ompy.mpi.windows.windows import WIN_NULL
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

NULLS = [
    COMM_NULL,
    DATATYPE_NULL,
    ERRHANDLER_NULL,
    GROUP_NULL,
    INFO_NULL,
    MESSAGE_NULL,
    OP_NULL,
    REQUEST_NULL,
    SESSION_NULL,
    WIN_NULL,
]
LIVING = [
    DATATYPES["INT"],
    OPERATIONS["SUM"],
    GROUP_EMPTY,
    INFO_ENV,
    ERRORS_RETURN,
    MESSAGE_NO_PROC,
]


@pytest.mark.parametrize("null", NULLS, ids=lambda handle: type(handle).__name__)
def test_null_handles(null: Handle) -> None:
    kind = type(null)
    assert not null
    assert null.handle == 0
    assert kind() == null == kind(null)
    assert kind() is not null
    assert all(null != other for other in NULLS if other is not null)
    assert null != 0
    with pytest.raises(TypeError):
        hash(null)
    with pytest.raises(TypeError):
        null < null  # noqa: B015
    for other in NULLS:
        if other is not null:
            with pytest.raises(TypeError, match="cannot be made of"):
                kind(other)
    null.free()
    assert weakref.ref(null)() is null


@pytest.mark.parametrize("handle", NULLS + LIVING, ids=lambda handle: type(handle).__name__)
def test_predefined_handles_are_pickled_by_name(handle: Handle) -> None:
    for duplicate in (pickle.loads(pickle.dumps(handle)), copy.copy(handle), copy.deepcopy(handle)):
        assert duplicate is handle
    other = type(handle)(handle)
    again = pickle.loads(pickle.dumps(other))
    assert again == handle
    assert again is not handle


@pytest.mark.parametrize("handle", LIVING, ids=lambda handle: type(handle).__name__)
def test_handles_as_integers(handle: Handle) -> None:
    kind = type(handle)
    assert handle.handle > 0
    for number, back in (
        (handle.handle, kind.fromhandle),
        (handle.toint(), kind.fromint),
        (handle.py2f(), kind.f2py),
    ):
        assert back(number) == handle
    with pytest.raises(MPIException, match="no handle"):
        kind.fromhandle(10**9)
    with pytest.raises(AttributeError):
        handle.handle = 5  # type: ignore[misc]
    handle.free()
    assert handle, "predefined handles stay"
    clone = kind(handle)
    clone.free()
    assert not clone


def test_an_integer_does_not_keep_its_object_alive() -> None:
    info = Info.Create()
    number = info.handle
    assert Info.fromhandle(number) == info
    del info
    with pytest.raises(MPIException):
        Info.fromhandle(number)


def test_classes_take_only_what_they_can_stand_for() -> None:
    assert Prequest(REQUEST_NULL) == REQUEST_NULL
    assert not Intercomm(COMM_NULL)
    for kind, bad in ((Comm, 1), (Request, "x"), (Group, [1])):
        with pytest.raises(TypeError):
            kind(bad)


def test_names_are_known_once() -> None:
    assert CONSTANTS["UNSIGNED_INT"] is CONSTANTS["UNSIGNED"]
    assert all(handle._name for handle in CONSTANTS.values())


# --- status


@pytest.mark.parametrize("number", range(8))
def test_elements_that_are_set_are_those_that_are_found(number: int) -> None:
    """MPI standard, 12.3: Set_elements has Get_elements return this number."""
    pair = Datatype.Create_struct([1, 2], [0, 8], [DATATYPES["INT"], DATATYPES["DOUBLE"]])
    threes = DATATYPES["INT"].Create_contiguous(3)
    for datatype in (*DATATYPES.values(), pair, pair.Create_vector(2, 2, 3), threes):
        if datatype and datatype.size:
            status = Status()
            status.Set_elements(datatype, number)
            assert status.Get_elements(datatype) == number
    status.Set_elements(pair, 5)
    assert (status.Get_count(BYTE), status.Get_count(pair)) == (32, -32766)


def test_a_status() -> None:
    status = Status()
    assert (status.source, status.tag, status.error, status.count) == (-1, -1, 0, 0)
    status.source, status.tag, status.error = 3, 4, 5
    status.Set_elements(DATATYPES["INT"], 7)
    assert status.Get_count(BYTE) == 28
    assert status.Get_count(DATATYPES["DOUBLE_INT"]) == -32766
    status.cancelled = True
    twin = pickle.loads(pickle.dumps(status))
    assert twin == status == Status(status) == Status.f2py(status.py2f())
    assert twin.Is_cancelled()
    memory = status.tomemory()
    memory[0] = 30
    assert status.source == 30
    status.tag = 40
    assert memory[1] == 40
    status.count = 2**40 + 2**31
    assert Status.f2py(status.py2f()).count == 2**40 + 2**31
    for bad in (1, "x"):
        with pytest.raises(TypeError):
            Status(bad)


def test_waiting_for_nothing() -> None:
    status = Status()
    status.source = 5
    nothing = Request()
    assert nothing.Wait(status) is True
    assert status.source == -1
    assert nothing.test() == (True, None)
    assert Request.waitall([nothing, nothing]) == [None, None]
    assert Request.Waitany([nothing]) == -32766
    assert Request.Waitsome([nothing]) is None
    assert Request.Testall([]) is True
    for call in (nothing.Free, nothing.Cancel, Prequest().Start):
        with pytest.raises(MPIException) as caught:
            call()
        assert caught.value == ERR_REQUEST


# --- info


def test_info_is_a_dictionary_in_order() -> None:
    info = Info.Create({"b": "1", "a": "2"})
    assert (info.keys(), info.Get_nthkey(1), len(info), "a" in info) == (["b", "a"], "a", 2, True)
    info.update([("c", "3")], d="4")
    assert info.pop("b") == "1"
    assert info.popitem() == ("d", "4")
    twin = pickle.loads(pickle.dumps(info))
    assert twin != info
    assert twin.items() == info.items() == [("a", "2"), ("c", "3")]
    with pytest.raises(MPIException) as caught:
        info.Delete("b")
    assert caught.value == ERR_INFO_NOKEY
    with pytest.raises(MPIException) as caught:
        info.Set("k" * 36, "v")
    assert caught.value == ERR_INFO_KEY
    with pytest.raises(KeyError):
        INFO_NULL["a"] = "b"
    info.Free()
    assert info == INFO_NULL
    assert INFO_ENV.Get("maxprocs")


# --- errors


def test_an_exception_is_its_code() -> None:
    exception = MPIException(ERR_OP, "the details")
    assert isinstance(exception, MPIError)
    assert isinstance(exception, RuntimeError)
    assert exception == ERR_OP
    assert hash(exception) == hash(ERR_OP)
    assert ERR_OP - 1 < exception < ERR_OP + 1
    assert str(exception) == "MPI_ERR_OP: invalid reduce operation: the details"
    assert repr(exception) == f"MPI.Exception({ERR_OP})"
    assert not MPIException(0)
    again = pickle.loads(pickle.dumps(exception))
    assert (again, again.detail) == (exception, "the details")
    assert exception != "text"


def test_classes_and_codes_of_the_programs_own() -> None:
    kind = errors.Add_error_class()
    assert kind > ERR_LASTCODE
    assert kind == errors.last_used_code()
    code = errors.Add_error_code(kind)
    errors.Add_error_string(code, "out of ink")
    assert errors.Get_error_class(code) == kind
    assert str(MPIException(code)) == "out of ink"
    assert errors.Get_error_string(kind) == ""
    for remove, number in (
        (errors.Remove_error_class, kind),
        (errors.Remove_error_code, code),
        (errors.Remove_error_code, kind),
        (errors.Remove_error_string, kind),
        (errors.Remove_error_class, 0),
    ):
        with pytest.raises(MPIException):
            remove(number)
    errors.Remove_error_string(code)
    errors.Remove_error_code(code)
    errors.Remove_error_class(kind)
    with pytest.raises(MPIException):
        errors.Add_error_code(kind)


# --- operations


def test_operations_on_objects() -> None:
    known: dict[str, tuple[Any, Any, Any]] = {
        "MAX": (2, 3, 3),
        "MIN": (2, 3, 2),
        "SUM": ([1], [2], [1, 2]),
        "PROD": (2, 3, 6),
        "LAND": (1, 2, True),
        "LXOR": (1, 2, False),
        "BAND": (6, 3, 2),
        "MAXLOC": ((1, 2), (1, 0), (1, 0)),
        "MINLOC": ((1, 2), (0, 5), (0, 5)),
        "REPLACE": (1, 2, 2),
        "NO_OP": (1, 2, 1),
    }
    for name, (x, y, result) in known.items():
        assert OPERATIONS[name](x, y) == result
        assert OPERATIONS[name].is_predefined
    with pytest.raises(ValueError, match="null"):
        OP_NULL(1, 2)
    with pytest.raises(MPIException):
        OPERATIONS["SUM"].Free()


def module_level(left: Any, right: Any, _: Any) -> Any:
    return left + right


def test_operations_of_the_users() -> None:
    own = Op.Create(module_level, commute=True)
    twin = pickle.loads(pickle.dumps(own))
    assert twin != own
    assert (twin([1], [2]), twin.Is_commutative()) == ([1, 2], True)
    with pytest.raises(ValueError, match="pickled"):
        Op.fromint(own.toint()).__reduce__()
    for each in (own, twin):
        each.Free()
    import ompy.MPI  # noqa: F401 - the limit is for a real rank

    for _ in range(2 * MOST):
        Op.Create(module_level)  # nobody keeps it: it does not count
    gc.collect()
    many = [Op.Create(module_level) for _ in range(MOST)]
    with pytest.raises(RuntimeError, match=str(MOST)):
        Op.Create(module_level)
    for each in many:
        each.Free()


def test_reducing_locally() -> None:
    left, right = array("i", [1, 2]), array("i", [10, 20])
    OPERATIONS["SUM"].Reduce_local(left, right)
    assert list(right) == [11, 22]
    with pytest.raises(ValueError, match="differ"):
        OPERATIONS["SUM"].Reduce_local(left, array("d", [1.0, 2.0]))
    pair = DATATYPES["DOUBLE_INT"]  # with a gap behind
    one, other = (bytearray(pack("=di4xdi4x", *four)) for four in ((3, 1, 5, 2), (3, 0, 6, 7)))
    OPERATIONS["MINLOC"].Reduce_local([one, 2, pair], [other, 2, pair])
    assert unpack("=di4xdi4x", other) == (3, 0, 5, 2)


def test_error_handlers_are_counted() -> None:
    import ompy.MPI  # noqa: F401 - the limit is for a real rank

    gc.collect()
    many = [Comm.Create_errhandler(lambda *_: None) for _ in range(MOST)]
    with pytest.raises(RuntimeError):
        Comm.Create_errhandler(lambda *_: None)
    for each in many:
        each.Free()
        assert each == ERRHANDLER_NULL
    Errhandler(ERRORS_RETURN).Free()
    assert ERRORS_RETURN


# --- options


def test_options() -> None:
    options = Options(threads=False)
    assert (options.threads, options.initialize) == (False, True)
    options(irecv_bufsz=5)
    assert vars(options) == {"threads": False, "irecv_bufsz": 5}
    for call in (lambda: options(nonsense=1), lambda: setattr(options, "nonsense", 1)):
        with pytest.raises(TypeError, match="nonsense"):
            call()
    assert "thread_level='multiple'" in repr(rc)


def test_options_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing `MPI` settles what holds: the environment first, defaults for what is no use."""
    settled = Options()
    monkeypatch.setattr("ompy.mpi.processes.options.rc", settled)
    monkeypatch.setenv("MPI4PY_RC_INITIALIZE", "no")
    monkeypatch.setenv("MPI4PY_RC_THREAD_LEVEL", "Serialized")
    monkeypatch.setenv("MPI4PY_RC_THREADS", "perhaps")
    settled.errors = "ignore"
    with pytest.warns(RuntimeWarning) as caught:
        settle_options()
    said = sorted(str(warning.message) for warning in caught)
    assert [text.split(":")[0] for text in said] == [
        "environment variable MPI4PY_RC_THREADS",
        "mpi4py.rc.errors",
    ]
    assert (settled.initialize, settled.thread_level) == (False, "serialized")
    assert (settled.threads, settled.errors, settled.finalize) == (True, "exception", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.delenv("MPI4PY_RC_THREADS")
        settle_options()


def test_a_communicator_has_the_name_that_it_was_given() -> None:
    """MPI 4.1, 7.8: an empty one where it was given none. What messages call it is no name."""

    def program(process: RankProcess) -> list[str]:
        made = world_of(process).Dup()
        found = [made.Get_name()]
        made.Set_name("halo")
        return [*found, made.name, made.Dup().name]

    assert virtual(1, program).results == [["", "halo", ""]]  # type: ignore[attr-defined]
