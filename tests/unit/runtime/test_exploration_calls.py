"""Each call of the API is tried by `ompy sim --explore`, or said not to be, or tells of no time.

The calls are those of `MPI.pyi`. A new one is on none of the lists until somebody has looked what
it tells a program: whatever depends on when others act is a choice, or stands in docs/explore.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest
from ompy.frameworks.direct import TESTED

ROOT: Final = Path(__file__).resolve().parents[3]
STUB: Final = ROOT / "core" / "ompy" / "MPI.pyi"
PAGE: Final = (ROOT / "docs" / "explore.md").read_text()
TESTS: Final = "\n".join(
    path.read_text() for path in sorted((ROOT / "tests" / "proc").glob("test_sim_explore*.py"))
)

# classes that know of no other rank, and what handles have in common
ALONE: Final = {
    *("Pickle", "BottomType", "BufferAutomaticType", "Errhandler", "Group", "InPlaceType", "Info"),
    *("Op", "Status", "buffer", "Datatype", "Exception", "Cartcomm", "Graphcomm", "Distgraphcomm"),
}
HANDLES: Final = (
    "*.f2py *.py2f *.fromint *.toint *.fromhandle *.handle *.free *.Free *.*_errhandler *.*_attr"
    " *.*_keyval *.*_name *.*_info *.info *.name *.attrs *.*_group *.group *.*_rank *.rank *.*_size"
    " *.size *.group_* *.*topo* *.is_* *.Is_int* *.remote_*"
)

# what others do at some time makes a difference, and each that it can make is tried
TRIED: Final = {
    "messages": "Comm.*ecv Comm.Sendrecv_replace Comm.sendrecv Comm.*robe Message.*robe"
    " Message.*ecv Comm.Send Comm.send",
    "requests": "Request.*est* Request.*ait* Request.*et_status* Request.*ancel Prequest.Parrived",
    "windows": "Win.Accumulate Win.Compare_and_swap Win.Fetch_and_op Win.Get Win.Get_accumulate"
    " Win.Put Win.Lock* Win.Unlock* Win.Flush* Win.Sync Win.Test Win.Wait Win.Post Win.Start"
    " Win.Complete Win.Fence",
    "shared file pointers": "File.Get_position_shared",
    "names": "Lookup_name Publish_name Unpublish_name",
}
# what programs are told of as of a request; nonblocking collective calls are in `TESTED`
REQUESTS: Final = {
    "messages": "Comm.[iI]*send Comm.[SBR]*send_init Comm.Send_init Comm.Isendrecv* Comm.P*_init"
    " Comm.[iI]recv Comm.Recv_init Message.[iI]recv",
    "buffers": "*Iflush_buffer",
    "communicators": "Comm.Idup*",
    "windows": "Win.R*",
    "files": "File.I*",
}
# likewise, and the page says that it is not tried
SAID: Final = {
    "Time.": "Wtime",
    "The order of accesses of several ranks to one file": "File.[RW]* File.S*"
    " File.Get_position File.Get_size File.size File.Preallocate File.Close File.Get_byte_offset",
    "Loads from the own part of a window": "Win.tomemory Win.Shared_query",
    "Names of files": "File.Delete File.Open",
    "Several ranks that come to one port": "Intracomm.Accept Intracomm.Connect Open_port Close_port"
    " Comm.Join",
    "Ranks that die": "Comm.Agree Comm.Shrink Comm.Revoke Comm.Is_revoked"
    " Comm.Get_failed Comm.Ack_failed _set_expendable",
}
# no time makes a difference to what they tell: those that wait for all members, those whose end
# says nothing of others, those that ask of this process
COLLECTIVE: Final = (
    "*llgather* *llreduce* *lltoall* *arrier* *cast* *ather* *catter* *educe* *scan* *Scan*"
    " Comm.Create Comm.Clone Comm.Dup* Comm.Split* Comm.Disconnect Intracomm.Create_* Intercomm.*"
    " Intracomm.Spawn* Intracomm.*_map Win.Create* Win.Allocate* Comm.Compare"
)
CERTAIN: Final = (
    f"{HANDLES} {COLLECTIVE} Comm.Bsend Comm.bsend Comm.Ssend Comm.ssend Comm.Rsend Comm.Abort"
    " *Attach_buffer *Detach_buffer *Flush_buffer Comm.Get_parent Comm.topology"
    " Prequest.Pready* Prequest.Start* Grequest.* Win.*ttach Win.Detach Win.flavor Win.model"
    " Topocomm.*degree* Topocomm.*edges File.Get_amode File.amode File.*atomicity File.Get_view"
    " File.Set_view File.Set_info File.Get_type_extent Session.*"
)
MODULE: Final = (
    "Add_error_* Remove_error_* Get_error_* Aint_* Alloc_mem Free_mem Compute_dims Finalize Init"
    " Init_thread Is_* Query_thread Get_abi_* Get_address Get_hw_resource_info Get_library_version"
    " Get_processor_name Get_version Pcontrol Register_datarep Wtick get_vendor _addressof _comm_*"
    " _commctx_* _datatype_* _handleof _set_abort_status _sizeof _typealign _typecode"
)


def calls() -> Iterator[tuple[str, bool]]:
    """All that the API has: name with the class, and whether it returns a request."""
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, _returns_request(node)
        elif isinstance(node, ast.ClassDef) and node.name not in ALONE:
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and not one.name.startswith("__"):
                    yield f"{node.name}.{one.name}", _returns_request(one)


def _returns_request(function: ast.FunctionDef) -> bool:
    said = ast.unparse(function.returns) if function.returns is not None else ""
    return bool(re.search(r"\b(Request|Prequest)\b", said))


CALLS: Final = dict(calls())


def _fits(name: str, patterns: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns.split())


def _fitting(name: str, lists: Mapping[str, str]) -> list[str]:
    return [which for which, patterns in lists.items() if _fits(name, patterns)]


def is_collective_request(name: str) -> bool:
    """Whether the world says when it ends, as of every nonblocking collective call."""
    return name.partition(".")[2] in TESTED


@pytest.mark.parametrize("name", [name for name, request in CALLS.items() if request])
def test_a_request_is_told_of_when_the_world_says(name: str) -> None:
    tried = [*_fitting(name, REQUESTS), *(["collective"] if is_collective_request(name) else [])]
    others = [*_fitting(name, SAID), *(["its own"] if name == "Grequest.Start" else [])]
    made = [*_fitting(name, {"": "*.fromint *.fromhandle *.f2py"})]
    assert len(tried) + len(others) + len(made) == 1, (tried, others)


@pytest.mark.parametrize("name", [name for name, request in CALLS.items() if not request])
def test_a_call_is_tried_or_said_not_to_be_or_tells_of_no_time(name: str) -> None:
    if "." not in name and not _fitting(name, SAID) and not _fitting(name, TRIED):
        assert _fits(name, f"{MODULE} Attach_buffer Detach_buffer Flush_buffer"), name
        return
    found = [*_fitting(name, TRIED), *_fitting(name, SAID)]
    assert len(found) == 1 or (not found and _fits(name, CERTAIN)), found


@pytest.mark.parametrize("phrase", SAID)
def test_what_is_not_tried_is_said(phrase: str) -> None:
    assert phrase in PAGE.partition("## What is not tried")[2].partition("## How it works")[0]


@pytest.mark.parametrize(
    "pattern", " ".join([*TRIED.values(), *REQUESTS.values(), *SAID.values()]).split()
)
def test_a_pattern_is_of_some_call(pattern: str) -> None:
    assert any(fnmatchcase(name, pattern) for name in CALLS), pattern


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_request_of_each_kind_is_in_a_program_that_is_explored(kind: str) -> None:
    names = [name.rpartition(".")[2] for name in CALLS if _fits(name, REQUESTS[kind])]
    assert any(f".{name}(" in TESTS for name in names), names
