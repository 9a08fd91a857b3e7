"""Type codes are those of mpi4py."""

from __future__ import annotations

import pytest
from ompy import MPI
from ompy.mpi.datatypes.predefined import DATATYPES, typedict, typedict_c, typedict_f

from tests.unit.mpi.reference_codes import ALL, CODES, OF_C, OF_FORTRAN

# names of one type that the other MPI prefers
OTHER_NAMES = {"SHORT_FLOAT": "FLOAT16_T", "LONG_LONG_INT": "LONG_LONG", "C_COMPLEX": "C_COMPLEX"}


@pytest.mark.parametrize("name", CODES)
def test_codes(name: str) -> None:
    code, char, text = CODES[name]
    datatype = DATATYPES[name]
    if code:
        assert datatype.tocode() == code
    else:
        with pytest.raises(ValueError, match="cannot map to character code or type string"):
            datatype.tocode()
    assert (datatype.typechar, datatype.typestr) == (char, text)


@pytest.mark.parametrize("name", CODES)
def test_a_code_means_a_type_with_that_code(name: str) -> None:
    code, *_ = CODES[name]
    if code:
        found = MPI.Datatype.fromcode(code)
        assert found.typestr == DATATYPES[name].typestr


@pytest.mark.parametrize(
    ("ours", "theirs"), [(typedict, ALL), (typedict_c, OF_C), (typedict_f, OF_FORTRAN)]
)
def test_dictionaries(ours: dict[str, MPI.Datatype], theirs: dict[str, str]) -> None:
    expected = {
        code: DATATYPES[OTHER_NAMES.get(name, name)].Get_name() for code, name in theirs.items()
    }
    assert {code: found.Get_name() for code, found in ours.items()} == expected


def test_derived_types_have_the_codes_of_mpi4py() -> None:
    assert MPI.INT32_T.Dup().tocode() == "i4"
    assert MPI.AINT.Dup().tocode() == "p"
    assert MPI.Datatype.Create_f90_complex(6, 30).tocode() == "c8"
    assert MPI.Datatype.Create_f90_integer(5).tocode() == "i4"
    for made in (MPI.INT32_T.Create_resized(0, 4), MPI.INT.Create_contiguous(1)):
        with pytest.raises(ValueError, match="cannot map"):
            made.tocode()
        assert made.typestr == "V4"


def test_null_types_are_of_no_kind() -> None:
    with pytest.raises(MPI.Exception):
        _ = MPI.DATATYPE_NULL.is_named
    with pytest.raises(MPI.Exception):
        _ = MPI.COMM_NULL.is_topo
