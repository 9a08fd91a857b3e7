"""The objects of Kubernetes that are a job of ompy. Knows no file, clock or chance."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

Object = dict[str, Any]

KEY_FOLDER: Final = "/run/secrets/ompy"  # arbitrary: where images have nothing
KEY_FILE: Final = "key"
# root's file, which the pod's group may read: what ompy takes for secret (`credentials.py`)
KEY_MODE: Final = 0o440
GROUP: Final = 1000  # arbitrary: of the key, and of the image's user, whoever that is
REPLICATED: Final = "hosts"  # arbitrary: of the only replicated job of a JobSet
GRACE_S: Final = 30  # Kubernetes' own default, terminationGracePeriodSeconds
INDEX: Final = "JOB_COMPLETION_INDEX"  # Kubernetes, Job: completionMode Indexed
INDEX_LABEL: Final = "batch.kubernetes.io/job-completion-index"  # same
HOST_LABEL: Final = "kubernetes.io/hostname"  # Kubernetes, well-known labels
# the first host is the launcher's, all others wait to be called
START: Final = 'if [ "$JOB_COMPLETION_INDEX" = 0 ]; then exec "$@"; fi; exec ompy agent {waiting}'
_TO_ESCAPE: Final = re.compile(r"\$(?=[$(])")


class Resources(NamedTuple):
    """What a pod asks for, as Kubernetes writes quantities.

    Attributes:
        cpu: cores.
        memory: asked for, and the limit; empty for neither.
        shared_memory: most of /dev/shm; empty for as much as the node allows.
    """

    cpu: str
    memory: str = ""
    shared_memory: str = ""


class Wishes(NamedTuple):
    """A job, and how it is to run.

    Attributes:
        name: of all objects.
        namespace: of them; empty for that of whoever applies them.
        image: with ompy and the program.
        slots: how many ranks each host is meant for, by index.
        words: of ompy-run behind the hosts: options, and the program.
        port: where agents wait.
        patience_s: so many seconds the pods wait for each other.
        resources: of each pod.
        environment: variables of each container.
        directory: where the program starts; empty for the image's.
        user: number of the user; None for the image's.
        secret: name of a Secret that is there; empty for one of the job's own.
        key: of the job's own.
        deadline_s: Kubernetes ends the job after so many seconds; 0 for never.
        keep_s: Kubernetes removes what has ended after so many seconds; None for never.
        jobset: a JobSet in place of a Job and a Service.
    """

    name: str
    namespace: str
    image: str
    slots: tuple[int, ...]
    words: tuple[str, ...]
    port: int
    patience_s: int
    resources: Resources
    environment: tuple[tuple[str, str], ...] = ()
    directory: str = ""
    user: int | None = None
    secret: str = ""
    key: bytes = b""
    deadline_s: int = 0
    keep_s: int | None = None
    jobset: bool = False


def job_objects(wishes: Wishes) -> Object:
    """All objects of a job, as a list that `kubectl apply` takes."""
    items = [] if wishes.secret else [_secret(wishes)]
    items += [_jobset(wishes)] if wishes.jobset else [_service(wishes), _job(wishes)]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def host_names(wishes: Wishes) -> list[str]:
    """The names that pods have for each other, by index."""
    pods = f"{wishes.name}-{REPLICATED}-0" if wishes.jobset else wishes.name
    return [f"{pods}-{index}.{wishes.name}" for index in range(len(wishes.slots))]


def escaped(word: str) -> str:
    """A word of a container's command or environment that Kubernetes hands on as it is.

    It puts variables in the place of `$(NAME)`, and `$` in that of `$$`.
    """
    return _TO_ESCAPE.sub("$$", word)


def _meta(wishes: Wishes, name: str = "") -> Object:
    found: Object = {"name": name or wishes.name, "labels": _labels(wishes)}
    return {**found, "namespace": wishes.namespace} if wishes.namespace else found


def _labels(wishes: Wishes) -> Object:
    return {"app.kubernetes.io/name": wishes.name, "app.kubernetes.io/managed-by": "ompy"}


def _secret_name(wishes: Wishes) -> str:
    return wishes.secret or f"{wishes.name}-key"


def _secret(wishes: Wishes) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _meta(wishes, _secret_name(wishes)),
        "type": "Opaque",
        "immutable": True,
        "data": {KEY_FILE: base64.b64encode(wishes.key).decode()},
    }


def _service(wishes: Wishes) -> Object:
    """It gives the pods names, before they are ready, too: that is when they look for each other.

    It needs no ports: ranks choose theirs.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(wishes),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": _labels(wishes),
        },
    }


def _job(wishes: Wishes) -> Object:
    spec = _job_spec(wishes)
    if wishes.keep_s is not None:
        spec["ttlSecondsAfterFinished"] = wishes.keep_s
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _meta(wishes), "spec": spec}


def _jobset(wishes: Wishes) -> Object:
    """It makes the service itself, under its own name, and ends with its only job."""
    replicated = {
        "name": REPLICATED,
        "replicas": 1,
        "template": {"spec": _job_spec(wishes)},
    }
    spec: Object = {
        "network": {
            "enableDNSHostnames": True,
            "publishNotReadyAddresses": True,
            "subdomain": wishes.name,
        },
        "failurePolicy": {"maxRestarts": 0},
        "replicatedJobs": [replicated],
    }
    if wishes.keep_s is not None:
        spec["ttlSecondsAfterFinished"] = wishes.keep_s
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _meta(wishes),
        "spec": spec,
    }


def _job_spec(wishes: Wishes) -> Object:
    """Nothing is tried again: a rank cannot come back into a job that others have begun."""
    hosts = len(wishes.slots)
    spec: Object = {
        "completionMode": "Indexed",
        "completions": hosts,
        "parallelism": hosts,
        "backoffLimit": 0,
        "template": {"metadata": {"labels": _labels(wishes)}, "spec": _pod(wishes)},
    }
    if wishes.deadline_s:
        spec["activeDeadlineSeconds"] = wishes.deadline_s
    return spec


def _pod(wishes: Wishes) -> Object:
    """Hosts of one job go to different nodes where there are enough."""
    shared: Object = {"medium": "Memory"}
    if wishes.resources.shared_memory:
        shared["sizeLimit"] = wishes.resources.shared_memory
    pod: Object = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_S,
        # variables of other services: one of the name `ompy` would be taken for ours
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": HOST_LABEL,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _labels(wishes)},
            }
        ],
        "containers": [_container(wishes)],
        "volumes": [
            {"name": "shm", "emptyDir": shared},
            {
                "name": "key",
                "secret": {
                    "secretName": _secret_name(wishes),
                    "defaultMode": KEY_MODE,
                    "items": [{"key": KEY_FILE, "path": KEY_FILE}],
                },
            },
        ],
    }
    if not wishes.jobset:  # which sets it itself
        pod["subdomain"] = wishes.name
    group = GROUP if wishes.user is None else wishes.user
    pod["securityContext"] = {"fsGroup": group}
    if wishes.user is not None:
        pod["securityContext"] |= {"runAsUser": wishes.user, "runAsGroup": group}
    return pod


def _container(wishes: Wishes) -> Object:
    asked = {"cpu": wishes.resources.cpu}
    resources: Object = {"requests": asked}
    if wishes.resources.memory:
        asked["memory"] = wishes.resources.memory
        resources["limits"] = {"memory": wishes.resources.memory}
    waiting = f"--port {wishes.port} --patience {wishes.patience_s}"
    variables = {"OMPY_SECRET_FILE": f"{KEY_FOLDER}/{KEY_FILE}", **dict(wishes.environment)}
    found: Object = {
        "name": "host",
        "image": wishes.image,
        "command": ["sh", "-c", START.format(waiting=waiting), "sh"],
        "args": [escaped(word) for word in launch_words(wishes)],
        "env": _variables(variables),
        "resources": resources,
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - where programs look for it
            {"name": "key", "mountPath": KEY_FOLDER, "readOnly": True},
        ],
    }
    return {**found, "workingDir": wishes.directory} if wishes.directory else found


def _variables(values: Mapping[str, str]) -> Sequence[Object]:
    return [{"name": name, "value": escaped(value)} for name, value in values.items()]


def launch_words(wishes: Wishes) -> list[str]:
    """What the first host runs."""
    named = zip(host_names(wishes), wishes.slots, strict=True)
    hosts = ",".join(f"{name}:{slots}" for name, slots in named)
    parameters = {
        "plm_dial_port": str(wishes.port),
        "plm_base_start_timeout_ms": str(wishes.patience_s * 1000),
    }
    found = ["ompy-run", "-n", str(sum(wishes.slots)), "--host", hosts]
    for name, value in parameters.items():
        found += ["--mca", name, value]
    return [*found, *wishes.words]
