"""The environment variables of the seed, as its users set them."""

from __future__ import annotations

import json

import pytest
from ompy.frameworks.nic.gni import Ordering
from ompy.mca.errors import UsageError
from ompy.mca.registry import Registry
from ompy_components.conduit.gni.parameters import contradiction, ordering

from tests.support.conduit_parameters import CATALOG, NAMES, registry, values

# seed gasnet: variable, parameter, default, least and largest value
TABLE: tuple[tuple[str, str, object, int | None, int | None], ...] = (
    ("GASNET_NETWORKDEPTH", "networkdepth", 12, 1, None),
    ("GASNET_GNI_NUM_PD", "num_pd", 512, 1, None),
    ("GASNET_GNI_GET_FMA_RDMA_CUTOVER", "get_fma_rdma_cutover", 4096, 0, 16384),
    ("GASNET_GNI_PUT_FMA_RDMA_CUTOVER", "put_fma_rdma_cutover", 4096, 0, 16384),
    ("GASNET_GNI_GET_BOUNCE_REGISTER_CUTOVER", "get_bounce_register_cutover", 8192, 0, 32768),
    ("GASNET_GNI_PUT_BOUNCE_REGISTER_CUTOVER", "put_bounce_register_cutover", 8192, 0, 32768),
    ("GASNET_GNI_BOUNCE_SIZE", "bounce_size", 262144, 0, None),
    ("GASNET_GNI_MEM_CONSISTENCY", "mem_consistency", "relaxed", None, None),
    ("GASNET_GNI_MEMREG", "memreg", 16, 0, None),
    ("GASNET_DEFAULT_PHYSMEM_PINNBLE_RATIO", "physmem_pinnable_ratio", 0.80, None, None),
    ("GASNET_PHYSMEM_PINNABLE_RATIO", "physmem_pinnable_ratio", 0.80, None, None),
    ("GASNET_PHYSMEM_MAX", "physmem_max", 0, 0, None),
    ("GASNET_PHYSMEM_NOPROBE", "physmem_noprobe", False, None, None),
)
BOTH = pytest.mark.parametrize("conduit", NAMES)


@BOTH
@pytest.mark.parametrize(("variable", "name", "default", "least", "largest"), TABLE)
def test_each_variable_of_the_seed(conduit, variable, name, default, least, largest) -> None:
    full = f"conduit_{conduit}_{name}"
    assert registry({variable: ""}).declaration(full)[1].default == default
    assert registry().value(full) == default
    for limit, beyond in ((least, -1), (largest, 1)):
        if limit is not None:
            assert registry({variable: str(limit)}).value(full) == limit
            with pytest.raises(
                UsageError, match=f"environment variable {variable}: {variable} can"
            ):
                registry({variable: str(limit + beyond)}).check_settings()


@BOTH
def test_sizes_and_words_as_users_write_them(conduit: str) -> None:
    environ = {
        "GASNET_GNI_BOUNCE_SIZE": "512K",
        "GASNET_PHYSMEM_MAX": "24G",
        "GASNET_PHYSMEM_NOPROBE": "1",
        "GASNET_GNI_MEM_CONSISTENCY": "strict",
        "GASNET_DEFAULT_PHYSMEM_PINNBLE_RATIO": "1.5",
        "OMPI_SOMETHING": "x",
    }
    made = registry(environ)
    made.check_settings()
    found = {
        name: made.value(f"conduit_{conduit}_{name}")
        for name in ("bounce_size", "physmem_max", "physmem_noprobe", "physmem_pinnable_ratio")
    }
    assert found == {
        "bounce_size": 512 << 10,
        "physmem_max": 24 << 30,
        "physmem_noprobe": True,
        "physmem_pinnable_ratio": 1.5,
    }


def test_nonsense_is_told_once_with_its_place() -> None:
    environ = {"GASNET_GNI_MEM_CONSISTENCY": "loose", "GASNET_GNI_NUM_PD": "many"}
    with pytest.raises(UsageError) as caught:
        registry(environ).check_settings()
    consistency, descriptors = sorted(caught.value.problems)
    assert consistency == (
        "environment variable GASNET_GNI_MEM_CONSISTENCY: GASNET_GNI_MEM_CONSISTENCY cannot be "
        "'loose': not one of strict, relaxed, default"
    )
    assert descriptors.startswith("environment variable GASNET_GNI_NUM_PD: ")
    assert "not a whole number" in descriptors


def test_one_conduits_own_name_wins_over_the_variable() -> None:
    environ = {"GASNET_GNI_NUM_PD": "64", "OMPY_MCA_conduit_aries_num_pd": "32"}
    made = registry(environ, [("GASNET_NETWORKDEPTH", "3")])
    assert made.value("conduit_gemini_num_pd") == 64
    assert made.value("conduit_aries_num_pd") == 32
    assert [made.value(f"conduit_{name}_networkdepth") for name in NAMES] == [3, 3]
    assert made.variable("conduit_gemini_num_pd").origin.place == (
        "environment variable GASNET_GNI_NUM_PD"
    )


def test_a_rank_has_what_the_launcher_resolved() -> None:
    snapshot = registry({"GASNET_GNI_NUM_PD": "64"}).snapshot()
    made = Registry.from_snapshot(CATALOG, json.loads(json.dumps(snapshot)))
    assert [made.value(f"conduit_{name}_num_pd") for name in NAMES] == [64, 64]


def test_unknown_variables_are_others_and_unknown_options_are_errors() -> None:
    environ = {"GASNET_ROOT": "/opt", "GASNET_GNI_NUMPD": "7", "GASNET_SSH_SERVERS": "a b"}
    made = registry({**environ, "GASNET_PHYSICS": "1"})
    made.check_settings()
    assert made.notices() == [
        "environment variable GASNET_GNI_NUMPD sets nothing; did you mean GASNET_GNI_NUM_PD?",
        "environment variable GASNET_SSH_SERVERS is GASNet's, and has no meaning here",
    ]
    with pytest.raises(UsageError, match=r"GASNET_GNI_NUMPD; did you mean GASNET_GNI_NUM_PD"):
        registry(command_line=[("GASNET_GNI_NUMPD", "7")]).check_settings()


def test_names_of_before_are_deprecated_and_what_the_job_provides_is_not_set() -> None:
    made = registry({"GASNETC_GNI_MEMREG": "2", "PMI_GNI_COOKIE": "7"})
    assert made.value("conduit_gemini_memreg") == 2
    assert made.value("conduit_gemini_pmi_gni_cookie") == ""
    told = "\n".join(made.notices())
    assert len(made.notices()) == 2
    assert "GASNETC_GNI_MEMREG is deprecated; its name is GASNET_GNI_MEMREG now" in told
    assert "PMI_GNI_COOKIE tells something and cannot be set; this is ignored" in told


def test_what_does_not_go_together() -> None:
    assert contradiction(values()) == ""
    assert contradiction(values(bounce_size=8192)) == ""
    assert "bounce_size is 8191 bytes" in contradiction(values(bounce_size=8191))
    larger = values(bounce_size=16384, get_bounce_register_cutover=32768)
    assert "not one bounce buffer of 32768 bytes" in contradiction(larger)
    assert "exittimeout_min" in contradiction(values(exittimeout_min=200.0))


@pytest.mark.parametrize("word", Ordering)
def test_memory_consistency_is_an_ordering_of_the_nic(word: Ordering) -> None:
    assert ordering(values(mem_consistency=word.value)) is word


def refusal(conduit: str, name: str, value: str) -> str:
    """What is said of a value of an environment variable; empty if it may be."""
    full = f"conduit_{conduit}_{name}"
    try:
        made = registry({f"OMPY_MCA_{full}": value})
        made.check_settings()
    except UsageError as problem:
        return str(problem)
    assert made.value(full) == value
    return ""


@BOTH
def test_segment_modes(conduit: str) -> None:
    """FAST and LARGE are one; EVERYTHING was never there."""
    assert refusal(conduit, "segment_mode", "fast") == ""
    assert refusal(conduit, "segment_mode", "large") == ""
    assert "put and get want a segment" in refusal(conduit, "segment_mode", "everything")


@BOTH
@pytest.mark.parametrize("name", ["tracemask", "statsmask"])
def test_letters_of_masks(conduit: str, name: str) -> None:
    assert refusal(conduit, name, "GPA") == ""
    assert "Zp is none of G" in refusal(conduit, name, "GpZ")


def test_files_of_text_are_named_as_in_gasnet() -> None:
    names = ("TRACEFILE", "TRACEMASK", "STATSFILE", "STATSMASK")
    made = registry({f"GASNET_{name}": "P" for name in names})
    made.check_settings()
    for conduit in NAMES:
        found = [made.value(f"conduit_{conduit}_{name.lower()}") for name in names]
        assert found == ["P"] * 4
