"""Parameters as the registry resolves and checks them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ompy.frameworks.catalog import CATALOG
from ompy.mca.errors import UsageError
from ompy.mca.parameters.settings import DEFAULT, Origin, Setting, gather_settings
from ompy.mca.plugins.parts_elsewhere import (
    COMPONENTS,
    FRAMEWORKS,
    PARAMETERS,
    component_elsewhere,
    parameter_elsewhere,
)
from ompy.mca.registry import Registry

TCP_PARAMETERS = """(
    Parameter("eager_limit", "size_t", 65536, "Eager.", level=4, unit="bytes", minimum=128),
    Parameter("if_include", "string", "", "Which.", level=1),
    Parameter("priority", "int", 20, "Rank.", level=5),
)"""


def problems(registry: Registry) -> list[str]:
    with pytest.raises(UsageError) as caught:
        registry.check_settings()
    return list(caught.value.problems)


def test_defaults(site) -> None:
    site.component("tcp", parameters=TCP_PARAMETERS)
    registry = site.registry()
    assert registry.value("wire_tcp_eager_limit") == 65536
    assert registry.variable("wire_tcp_eager_limit").origin == DEFAULT
    assert registry.value("wire") == ""
    assert registry.value("wire_base_verbose") == 0
    assert registry.value("mca_base_param_files").startswith("~/.ompy/mca-params.conf,")
    assert vars(registry.values("clock")) == {"tick": 5, "kind": "auto"}
    assert vars(registry.values("wire")) == {"verbose": 0, "lanes": 2}
    assert registry.values("mca").param_files == registry.value("mca_base_param_files")


def test_a_variable_knows_value_origin_and_what_it_shadowed(site, tmp_path: Path, catalog) -> None:
    site.component("tcp", parameters=TCP_PARAMETERS)
    path = tmp_path / "a.conf"
    path.write_text("wire_tcp_eager_limit = 1k\nwire_tcp_eager_limit = 2k\n")
    environ = {"OMPY_MCA_wire_tcp_eager_limit": "3k"}
    registry = Registry(catalog, gather_settings([("wire_tcp_eager_limit", "4k")], environ, [path]))
    registry.check_settings()
    variable = registry.variable("wire_tcp_eager_limit")
    assert variable.value == 4096
    assert variable.origin == Origin("command line", "--mca wire_tcp_eager_limit 4k")
    assert [(setting.raw, setting.origin.detail) for setting in variable.shadowed] == [
        ("3k", "OMPY_MCA_wire_tcp_eager_limit"),
        ("2k", f"{path}:2"),
        ("1k", f"{path}:1"),
    ]
    assert (variable.framework, variable.component) == ("wire", "tcp")


def test_all_problems_are_told_at_once_with_place_and_nearest_name(site, tmp_path: Path, catalog):
    site.component("tcp", parameters=TCP_PARAMETERS)
    path = tmp_path / "a.conf"
    path.write_text("wire_tcp_if_includ = eth0\nclock_base_tick = 0 # least\n")
    mca = [("wire_tcp_eager_limit", "12xyz"), ("match", "obi")]
    environ = {"OMPY_MCA_wire_tpc_eager_limit": "1", "OMPY_MCA_clock_base_kind": "slow"}
    registry = Registry(catalog, gather_settings(mca, environ, [path]))
    assert problems(registry) == [
        "--mca match obi: there is no match component obi (there are none)",
        "--mca wire_tcp_eager_limit 12xyz: wire_tcp_eager_limit cannot be '12xyz': not a whole "
        "number (decimal, 0x hexadecimal or 0 octal, with k, m or g for 1024, 1024^2 or 1024^3)",
        "environment variable OMPY_MCA_clock_base_kind: clock_base_kind cannot be 'slow': "
        "not one of auto, fast",
        "environment variable OMPY_MCA_wire_tpc_eager_limit: there is no parameter "
        "wire_tpc_eager_limit; did you mean wire_tcp_eager_limit?",
        f"{path}:1: there is no parameter wire_tcp_if_includ; did you mean wire_tcp_if_include?",
        f"{path}:2: clock_base_tick cannot be '0 # least': not a whole number (decimal, 0x "
        "hexadecimal or 0 octal, with k, m or g for 1024, 1024^2 or 1024^3) "
        "(in a file a comment has a line of its own)",
    ]


def test_a_name_that_is_like_nothing_has_no_suggestion(site) -> None:
    assert problems(site.registry(("qqqqq", "1"))) == ["--mca qqqqq 1: there is no parameter qqqqq"]


def test_an_unknown_name_is_told_for_each_place_it_is_set_at(site) -> None:
    registry = site.registry(("wir", "x"), environ={"OMPY_MCA_wir": "x"})
    assert [problem.partition(":")[0] for problem in problems(registry)] == [
        "--mca wir x",
        "environment variable OMPY_MCA_wir",
    ]


def test_selections_are_checked(site) -> None:
    site.component("tcp")
    site.component("sm")
    registry = site.registry(("wire", "tpc,smm,tcp"))
    assert problems(registry) == [
        f"--mca wire tpc,smm,tcp: there is no wire component {wrong}; did you mean {right}? "
        "(there are sm, tcp)"
        for wrong, right in [("tpc", "tcp"), ("smm", "sm")]
    ]
    assert problems(site.registry(("wire", "tcp,^sm"))) == [
        "--mca wire tcp,^sm: wire cannot be 'tcp,^sm': ^ negates the whole list and stands once, "
        "in front of it"
    ]


def test_what_only_open_mpi_has_is_to_be_left_out(site) -> None:
    about = "; it is Open MPI's, and ompy needs none: leave"
    assert component_elsewhere("pml", "ucx", alone=True) == f"{about} it out"
    assert component_elsewhere("btl", "uct", alone=False) == f"{about} uct out"
    assert not component_elsewhere("pml", "ob2", alone=True)
    for name in ("mtl_ofi_tag_mode", "pml_ucx_tls", "oob_tcp_if_include", "btl_sm_fbox_max"):
        assert problems(site.registry((name, "1"))) == [
            f"--mca {name} 1: there is no parameter {name}; it is Open MPI's, and has no meaning "
            "here: leave it out"
        ]
    assert not parameter_elsewhere("mtlx")


def test_what_we_have_too_is_not_said_to_be_another_ones() -> None:
    registry = Registry(CATALOG, gather_settings([], {}, []))
    for framework, names in COMPONENTS.items():
        offered = [record.name for record in registry.records_of(framework)]
        assert offered
        assert set(names).isdisjoint(offered)
    assert set(FRAMEWORKS).isdisjoint(framework.name for framework in CATALOG)
    for name in PARAMETERS:
        with pytest.raises(UsageError):
            registry.value(name)


def test_excluded_names_need_not_exist(site) -> None:
    site.registry(("wire", "^nothing,such")).check_settings()


def test_parameters_of_components_that_cannot_be_asked_are_not_checked(site) -> None:
    tcp = site.component("tcp", parameters=TCP_PARAMETERS)
    site.broken("awful", "raise RuntimeError('no')")
    mca = ("wire", "^tcp"), ("wire_tcp_anything", "x"), ("wire_awful_anything", "x")
    site.registry(*mca).check_settings()
    assert tcp not in sys.modules


def test_a_component_asked_for_by_name_has_to_be_importable(site) -> None:
    site.broken("awful", "import no_such_module_anywhere")
    (problem,) = problems(site.registry(("wire", "awful")))
    assert problem.startswith(
        "component wire:awful (asked for by --mca wire awful) cannot be used: "
        "ModuleNotFoundError: No module named 'no_such_module_anywhere'\nTraceback"
    )
    assert "import no_such_module_anywhere" in problem
    assert "importlib" not in problem


def test_a_duplicate_does_not_excuse_a_misspelt_name(site) -> None:
    site.component("tcp", parameters=TCP_PARAMETERS)
    site.component("tcp", distribution="zzz")
    assert problems(site.registry(("wire_tcp_eager_limti", "1"))) == [
        "--mca wire_tcp_eager_limti 1: there is no parameter wire_tcp_eager_limti; "
        "did you mean wire_tcp_eager_limit?"
    ]


OLD_AND_NEW = """(
    Parameter("eager_limit", "size_t", 65536, "Eager.", level=4, unit="bytes",
              synonyms=(Synonym("wire_vader_eager_limit", Flag.DEPRECATED),)),
    Parameter("include", "string", "", "Which.", level=1),
    Parameter("exclude", "string", "lo", "Which not.", level=1),
)
    exclusive = (("include", "exclude"),)
"""


def test_a_synonym_may_have_a_name_of_another_component(site) -> None:
    site.component("tcp", parameters=OLD_AND_NEW)
    registry = site.registry(("wire_vader_eager_limit", "4k"))
    registry.check_settings()
    assert registry.value("wire_tcp_eager_limit") == 4096
    assert registry.variable("wire_vader_eager_limit").name == "wire_tcp_eager_limit"
    assert registry.notices() == [
        "--mca wire_vader_eager_limit 4k: wire_vader_eager_limit is deprecated; its name is "
        "wire_tcp_eager_limit now"
    ]


def test_a_component_and_its_parameters_go_by_an_alias_too(site, catalog) -> None:
    site.write_module("fake_sm", ALIASED)
    site.distribution(
        "ompy-sm", {"ompy.wire": {"sm": "fake_sm:COMPONENT"}, "ompy.wire.aliases": {"vader": "sm"}}
    )
    for selection, state in [("vader", "opened"), ("sm", "opened"), ("^vader", "blocked")]:
        registry = site.registry(("wire", selection), ("wire_vader_limit", "4k"))
        registry.check_settings()
        copied = Registry.from_snapshot(catalog, json.loads(json.dumps(registry.snapshot())))
        copied.open("wire")
        assert [record.state.value for record in copied.records] == [state]
        if state == "opened":
            assert copied.value("wire_sm_limit") == copied.value("wire_vader_limit") == 4096
    assert problems(site.registry(("wire", "vader"), ("wire_vader_lmit", "4k"))) == [
        "--mca wire_vader_lmit 4k: there is no parameter wire_vader_lmit; did you mean "
        "wire_vader_limit?"
    ]
    assert problems(site.registry(("wire", "vadre"))) == [
        "--mca wire vadre: there is no wire component vadre; did you mean vader? (there are sm)"
    ]


ALIASED = """
from ompy.mca.component import Component
from ompy.mca.parameter import Parameter
class Fake(Component):
    framework, name, version, api = "wire", "sm", "1.0", (3, 0)
    parameters = (Parameter("limit", "size_t", 1, "Limit.", level=1, unit="bytes"),)
COMPONENT = Fake()
"""


def test_two_names_of_a_variable_cannot_have_two_values_on_the_command_line(site) -> None:
    site.component("tcp", parameters=OLD_AND_NEW)
    both = ("wire_vader_eager_limit", "4k"), ("wire_tcp_eager_limit", "8k")
    assert problems(site.registry(*both)) == [
        "--mca wire_vader_eager_limit 4k and --mca wire_tcp_eager_limit 8k: wire_tcp_eager_limit "
        "can have one value on the command line"
    ]


def test_parameters_that_exclude_each_other(site) -> None:
    site.component("tcp", parameters=OLD_AND_NEW)
    registry = site.registry(("wire_tcp_include", "a"), environ={"OMPY_MCA_wire_tcp_exclude": "b"})
    assert problems(registry) == [
        "--mca wire_tcp_include a and environment variable OMPY_MCA_wire_tcp_exclude: only one "
        "of wire_tcp_include and wire_tcp_exclude may be set"
    ]
    (record,) = site.registry(("wire_tcp_include", "a")).load("wire")
    assert record.state.value == "loaded"


def test_what_is_set_of_excluded_components_is_noticed(site, catalog, tmp_path: Path) -> None:
    site.component("tcp", parameters=TCP_PARAMETERS)
    path = tmp_path / "a.conf"
    path.write_text("wire_tcp_if_include = eth0\n")
    settings = gather_settings([("wire", "^tcp"), ("wire_tcp_nonsense", "1")], {}, [path])
    registry = Registry(catalog, settings)
    registry.check_settings()
    assert registry.notices() == [
        "--mca wire_tcp_nonsense 1: wire_tcp_nonsense has no effect: wire:tcp is excluded by "
        "wire = ^tcp (--mca wire ^tcp)"
    ]


def test_misspelt_names_of_our_own_excluded_components_are_told() -> None:
    from ompy.frameworks.catalog import CATALOG

    mca = ("btl", "^sm"), ("btl_sm_eager_limt", "4k"), ("btl_vader_eager_limit", "4k")
    registry = Registry(CATALOG, gather_settings(mca, {}, []))
    assert problems(registry) == [
        "--mca btl_sm_eager_limt 4k: there is no parameter btl_sm_eager_limt; did you mean "
        "btl_sm_eager_limit?"
    ]


def test_what_may_be_set_at_run_time(site, catalog) -> None:
    site.component("tcp", parameters=TCP_PARAMETERS)
    registry = site.registry(("wire_base_verbose", "warn"))
    variable = registry.set("wire_base_verbose", "info")
    assert (variable.value, str(variable.origin)) == (40, "set")
    assert [str(setting.origin) for setting in variable.shadowed] == [
        "command line (--mca wire_base_verbose warn)"
    ]
    assert Registry.from_snapshot(catalog, registry.snapshot()).value("wire_base_verbose") == 40
    with pytest.raises(UsageError, match="wire_tcp_eager_limit cannot be set now: it is read-only"):
        registry.set("wire_tcp_eager_limit", "4k")
    with pytest.raises(UsageError, match="set: wire_base_verbose cannot be 'loud'"):
        registry.set("wire_base_verbose", "loud")
    assert registry.is_writeable(variable)
    registry.open("wire")
    assert not registry.is_writeable(variable)
    with pytest.raises(UsageError, match="wire_base_verbose cannot be set now"):
        registry.set("wire_base_verbose", "info")


def test_components_tell_their_version_as_parameters(site) -> None:
    site.component("tcp")
    registry = site.registry()
    registry.load("wire")
    versions = [
        registry.value(f"wire_tcp_{part}_version") for part in ("major", "minor", "release")
    ]
    assert versions == [7, 1, 0]
    registry = site.registry(("wire_tcp_major_version", "9"))
    registry.check_settings()
    assert registry.value("wire_tcp_major_version") == 7
    assert registry.notices() == [
        "--mca wire_tcp_major_version 9: wire_tcp_major_version tells something and cannot be "
        "set; this is ignored"
    ]


def test_what_has_no_meaning_here_is_taken_and_said(site) -> None:
    declared = 'Parameter("rcache", "string", "", "None.", level=9, flags=Flag.WITHOUT_MEANING)'
    site.component("tcp", parameters=f"({declared},)")
    registry = site.registry(("wire_tcp_rcache", "grdma"))
    registry.check_settings()
    assert registry.value("wire_tcp_rcache") == "grdma"
    assert registry.notices() == [
        "--mca wire_tcp_rcache grdma: wire_tcp_rcache is Open MPI's, and has no meaning here"
    ]
    assert site.registry().notices() == []


def test_no_strangers_are_wanted(site, states_of) -> None:
    site.component("tcp")
    registry = site.registry(("mca_base_component_disable_dlopen", "yes"))
    registry.load("wire")
    assert states_of(registry) == {"tcp": "blocked"}
    assert registry.records[0].reason == (
        "only ompy's own components are wanted (--mca mca_base_component_disable_dlopen yes)"
    )


def test_nothing_set_nothing_looked_for(catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    import ompy.mca.plugins.discovery

    monkeypatch.setattr(
        ompy.mca.plugins.discovery, "scan_entry_points", lambda _: pytest.fail("scanned")
    )
    Registry(catalog).check_settings()


def test_a_shadowed_value_need_not_be_valid(site) -> None:
    registry = site.registry(("clock_base_tick", "7"), environ={"OMPY_MCA_clock_base_tick": "x"})
    registry.check_settings()
    assert registry.value("clock_base_tick") == 7


def test_a_value_that_is_asked_for_unchecked_is_checked_then(site) -> None:
    registry = site.registry(("clock_base_tick", "0"))
    with pytest.raises(UsageError, match=r"--mca clock_base_tick 0: .*0 is less than 1"):
        registry.values("clock")
    with pytest.raises(
        UsageError, match="no parameter clock_base_tic; did you mean clock_base_tick"
    ):
        registry.value("clock_base_tic")


def test_components_with_underscores_do_not_get_in_each_others_way(site) -> None:
    one = '(Parameter("{}", "int", {}, "Help.", level=1),)'
    site.component("a", parameters=one.format("c", 1))
    site.component("a_b", parameters=one.format("c", 2))
    registry = site.registry(("wire_a_b_c", "9"), ("wire_a_c", "8"))
    registry.check_settings()
    assert registry.variable("wire_a_b_c").component == "a_b"
    assert (registry.value("wire_a_b_c"), registry.value("wire_a_c")) == (9, 8)


def test_two_parameters_with_one_full_name_make_the_later_component_incompatible(
    site, states_of
) -> None:
    one = '(Parameter("{}", "int", 1, "Help.", level=1),)'
    site.component("a", parameters=one.format("b_c"))
    site.component("a_b", parameters=one.format("c"))
    registry = site.registry()
    registry.load("wire")
    assert states_of(registry) == {"a": "loaded", "a_b": "incompatible"}
    assert registry.records_of("wire")[1].reason == (
        "its parameter wire_a_b_c is already one of wire:a"
    )


def test_a_snapshot_hands_on_values_origins_and_records(site, catalog) -> None:
    site.component("tcp", parameters=TCP_PARAMETERS)
    site.component("sm")
    site.component("sm", distribution="zzz")
    environ = {"OMPY_MCA_wire_tcp_eager_limit": "1k"}
    site.component("tcp", distribution="zzz-tcp")
    mca = ("wire", "^sm"), ("wire_base_verbose", "none"), ("wire_tcp_eager_limit", "4k")
    snapshot = json.loads(json.dumps(site.registry(*mca, environ=environ).snapshot()))
    registry = Registry.from_snapshot(catalog, snapshot)
    states = [record.state.value for record in registry.records]
    assert states == ["blocked", "found", "blocked", "shadowed"]
    assert registry.records[0].reason == "excluded by wire = ^sm (--mca wire ^sm)"
    variable = registry.variable("wire_tcp_eager_limit")
    assert (variable.value, variable.origin.source) == (4096, "command line")
    assert variable.shadowed == (
        Setting("wire_tcp_eager_limit", "1k", Origin("environment", next(iter(environ)))),
    )
    assert registry.value("wire_base_verbose") == -1
    assert [component.name for component in registry.open("wire")] == ["tcp"]


def test_a_snapshot_is_checked(site) -> None:
    with pytest.raises(UsageError, match="no parameter nonsense"):
        site.registry(("nonsense", "1")).snapshot()


def test_a_snapshot_of_another_version_is_refused(catalog) -> None:
    with pytest.raises(UsageError, match="different versions"):
        Registry.from_snapshot(catalog, {"format": 0})


LEAN = """
import json, sys
import ompy.mca.registry
from ompy.mca.component import Component
from ompy.mca.registry import Registry
from ompy.mca.hooks import hook_caller
sys.path.insert(0, sys.argv[1])
class Framework:
    name, help, api, parameters = "wire", "Carries.", (3, 1), ()
    contracts = (Component,)
registry = Registry.from_snapshot([Framework], json.loads(sys.argv[2]))
registry.check_settings()
hooks = hook_caller(registry)
hooks.ompy_rank_started(rank=0, size=1)
component, = registry.open("wire")
assert component.values.eager_limit == 4096, component.values.eager_limit
registry.select(component)
registry.close()
heavy = ["pluggy", "pydantic", "click", "structlog", "importlib.metadata", "inspect", "dataclasses"]
print([name for name in heavy if name in sys.modules])
"""


def test_a_rank_with_a_snapshot_imports_nothing_heavy(site) -> None:
    site.component("tcp", parameters=TCP_PARAMETERS)
    snapshot = site.registry(("wire_tcp_eager_limit", "4k"), ("wire", "tcp")).snapshot()
    done = subprocess.run(
        [sys.executable, "-c", LEAN, str(site.path), json.dumps(snapshot)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


ALONE = """
import sys
from ompy.mca.component import Component
from ompy.mca.registry import Registry
from ompy.mca.parameters.settings import gather_settings
sys.path.insert(0, sys.argv[1])
class Framework:
    name, help, api, parameters = "wire", "Carries.", (3, 1), ()
    contracts = (Component,)
environ = dict(pair.split("=") for pair in sys.argv[2:])
registry = Registry([Framework], gather_settings([], environ, []))
registry.check_settings()
component, = registry.open("wire")
loaded = [name in sys.modules for name in ("pydantic_core", "pydantic", "pluggy")]
print(component.values.eager_limit, *loaded)
"""


@pytest.mark.parametrize(
    ("environ", "output"),
    [
        ([], "65536 False False False"),
        (["OMPY_MCA_wire_tcp_eager_limit=4k"], "4096 True False False"),
    ],
)
def test_a_rank_started_by_hand_imports_pydantics_core_only_for_what_is_set(
    site, environ: list[str], output: str
) -> None:
    """It is its own launcher: nobody has validated what its environment says."""
    site.component("tcp", parameters=TCP_PARAMETERS)
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(site.path), *environ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == (output, "")
