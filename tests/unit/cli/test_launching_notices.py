"""What `ompy-run` says of settings that are valid and do not do what they seem to."""

from __future__ import annotations

import pytest
from ompy.cli.launch.launching import resolve

from tests.support.installed import Installed


def test_each_is_a_warning_before_the_job(
    installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [("mca_base_override_param_file", "x"), ("btl_dove_flock", "4"), ("btl", "^raven")]
    registry, _ = resolve(pairs)
    registry.close()
    assert capsys.readouterr().err.splitlines() == [
        "ompy-run: warning: --mca mca_base_override_param_file x: mca_base_override_param_file "
        "tells something and cannot be set; this is ignored",
        "ompy-run: warning: --mca btl_dove_flock 4: btl_dove_flock is deprecated; its name is "
        "btl_pigeon_flock now",
    ]


@pytest.mark.usefixtures("installed")
def test_variables_of_open_mpi_set_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose names mean nothing here are no concern of ours."""
    monkeypatch.setenv("OMPI_MCA_btl", "self,raven")
    monkeypatch.setenv("OMPI_MCA_orte_keep_fqdn_hostnames", "t")
    registry, _ = resolve([])
    registry.close()
    assert capsys.readouterr().err.splitlines() == [
        "ompy-run: warning: OMPI_MCA_btl is Open MPI's and sets nothing here: ompy reads "
        "OMPY_MCA_btl"
    ]
