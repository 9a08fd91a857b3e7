"""`ompy k8s manifest`: what it writes is what Kubernetes takes, and says what was asked for."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from click.testing import CliRunner
from ompy.cli.kubernetes.manifest import escaped
from ompy.cli.main import main
from ompy.runtime.connections.credentials import SECRET_MIN

from tests.support.pods import expanded

LEAST = ("-n", "1", "--image", "registry/image:1", "--", "python", "app.py")
ALL = (
    "-n", "9", "--hosts", "4", "--image", "registry/image:1", "--name", "my-job",
    "--namespace", "mine", "--mca", "pml", "bfo", "--env", "A=$(B)$$", "--workdir", "/work",
    "--cpus", "1500m", "--memory", "4Gi", "--shm", "1Gi", "--user", "1000",
    "--start-timeout", "30", "--deadline", "3600", "--keep", "0",
    "--", "--tag-output", "python", "app.py", "-n", "$(X)",
)  # fmt: skip
LINES = {
    "least": LEAST,
    "all": ALL,
    "a Secret that is there": ("--secret", "kept", *LEAST),
    "JobSet, least": ("--jobset", *LEAST),
    "JobSet, all": ("--jobset", *ALL),
}
VERSIONS = ("1.28", "1.31", "latest")  # of Kubernetes; 1.28: pods have the label of their index


def written(*words: str) -> dict[str, Any]:
    """The objects by kind, and the list under its own."""
    made = CliRunner().invoke(main, ["k8s", "manifest", *words])
    assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    return {"List": found} | {item["kind"]: item for item in found["items"]}


def schemas() -> Any:
    return pytest.importorskip("kubernetes_validate", reason="there is no kubernetes-validate")


def pod_of(objects: dict[str, Any]) -> dict[str, Any]:
    if "JobSet" in objects:
        (replicated,) = objects["JobSet"]["spec"]["replicatedJobs"]
        found: dict[str, Any] = replicated["template"]["spec"]["template"]["spec"]
        return found
    pod: dict[str, Any] = objects["Job"]["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_schema_takes_it(line: tuple[str, ...], version: str) -> None:
    """Strictly: what the schema does not name is an error."""
    kubernetes = pytest.importorskip(
        "kubernetes_validate", reason="there is no kubernetes-validate"
    )
    chosen = kubernetes.latest_version() if version == "latest" else version
    for item in written(*line)["List"]["items"]:
        if item["kind"] == "JobSet":  # of an extension; but what it is a template of is known
            (replicated,) = item["spec"]["replicatedJobs"]
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}}
            item = {**job, **replicated["template"]}
        kubernetes.validate(item, chosen, strict=True)


def test_the_schema_would_find_a_slip_of_the_pen() -> None:
    kubernetes = pytest.importorskip(
        "kubernetes_validate", reason="there is no kubernetes-validate"
    )
    job = written(*LEAST)["Job"]
    job["spec"]["completionsMode"] = job["spec"].pop("completionMode")
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(job, "1.31", strict=True)


@pytest.mark.parametrize("line", ["JobSet, least", "JobSet, all"])
def test_the_model_of_jobset_takes_it(line: str) -> None:
    """What the model does not name is dropped by it."""
    models = pytest.importorskip(
        "kubeflow_trainer_api.models", reason="there is no kubeflow-trainer-api"
    )
    jobset = written(*LINES[line])["JobSet"]
    read = models.JobsetV1alpha2JobSet.from_dict(jobset)
    assert json.loads(read.to_json()) == jobset
    jobset["spec"]["networks"] = jobset["spec"].pop("network")
    assert json.loads(models.JobsetV1alpha2JobSet.from_dict(jobset).to_json()) != jobset


def test_everything_that_was_asked_for() -> None:
    objects = written(*ALL)
    spec, pod = objects["Job"]["spec"], pod_of(objects)
    (container,) = pod["containers"]
    assert {item["metadata"]["namespace"] for item in objects["List"]["items"]} == {"mine"}
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (4, 4, 0)
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (3600, 0)
    assert (container["image"], container["workingDir"]) == ("registry/image:1", "/work")
    assert container["resources"] == {
        "requests": {"cpu": "1500m", "memory": "4Gi"},
        "limits": {"memory": "4Gi"},
    }
    assert pod["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}
    assert pod["securityContext"] == {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000}
    hosts = ",".join(f"my-job-{n}.my-job:{slots}" for n, slots in enumerate((3, 2, 2, 2)))
    words = [expanded(word, {}) for word in container["args"]]
    assert words[:5] == ["ompy-run", "-n", "9", "--host", hosts]
    assert words[-8:] == ["--mca", "pml", "bfo", *ALL[-5:]]
    (value,) = [one["value"] for one in container["env"] if one["name"] == "A"]
    assert expanded(value, {"B": "wrong"}) == "$(B)$$"
    assert container["command"][2].endswith("ompy agent --port 27177 --patience 30")


def test_keys_are_of_one_job_each_and_in_no_word_of_a_command() -> None:
    first, second = written(*LEAST), written(*LEAST)
    keys = [base64.b64decode(one["Secret"]["data"]["key"]) for one in (first, second)]
    assert keys[0] != keys[1]
    assert min(map(len, keys)) >= SECRET_MIN
    assert first["Secret"]["data"]["key"] not in json.dumps(first["Job"])
    kept = written("--secret", "kept", *LEAST)
    assert "Secret" not in kept
    assert pod_of(kept)["volumes"][1]["secret"]["secretName"] == "kept"


@pytest.mark.parametrize(
    "word", ["", "$", "$$", "$$$", "$(A)", "$$(A)", "a$b", "$(", "$A", "$$A$(A)$", "é$("]
)
def test_words_reach_the_container_as_they_are(word: str) -> None:
    assert expanded(escaped(word), {"A": "wrong"}) == word


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-n", "3", "--hosts", "4"), "too few for --hosts 4"),
        (("-n", "0"), "'-n'"),
        (("-n", "8", "--hosts", "5001"), "'--hosts'"),
        (("-n", "1", "--name", "Capital"), "no name"),
        (("-n", "1", "--name", "1st"), "no name"),
        (("-n", "1", "--name", "a" * 51), "50 characters at most"),
        (("-n", "1", "--namespace", "a_b"), "no name"),
        (("-n", "1", "--memory", "4GB"), "no amount"),
        (("-n", "1", "--env", "A"), "NAME=VALUE"),
        (("-n", "1", "--env", "1A=b"), "NAME=VALUE"),
        (("-n", "1", "--image", ""), "empty"),
        (("-n", "1", "--tag-output"), "No such option"),
    ],
)
def test_what_cannot_be_is_refused(words: tuple[str, ...], said: str) -> None:
    line = ["k8s", "manifest", "--image", "x", *words, "python", "app.py"]
    made = CliRunner().invoke(main, line)
    assert (made.exit_code, made.stdout) == (2, ""), made.output
    assert said in made.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-n", "4"), "-n behind `--`"),
        (("--mca", "pml", "bfo", "-np", "4"), "-n before `--`"),
        (("--host", "a"), "--hosts before `--`"),
        (("--hostfile", "f"), "--hosts before `--`"),
        (("--npernode", "2"), "-n and --hosts"),
        (("--wdir", "/x"), "--workdir"),
        (("--no-such-option",), "No such option"),
    ],
)
def test_words_of_ompy_run_are_looked_at(words: tuple[str, ...], said: str) -> None:
    line = ["k8s", "manifest", "--image", "x", "-n", "2", "--", *words, "python", "app.py"]
    made = CliRunner().invoke(main, line)
    assert (made.exit_code, made.stdout) == (2, ""), made.output
    assert said in made.stderr


def test_options_of_the_program_are_its_own() -> None:
    words = ["--tag-output", "python", "app.py", "-n", "9", "--host", "a"]
    made = CliRunner().invoke(main, ["k8s", "manifest", "--image", "x", "-n", "2", "--", *words])
    assert made.exit_code == 0, made.output


def test_without_a_program() -> None:
    made = CliRunner().invoke(main, ["k8s", "manifest", "-n", "1", "--image", "x"])
    assert made.exit_code == 2
    assert "WORDS" in made.stderr
