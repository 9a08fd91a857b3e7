"""Pods of a manifest as processes of a laboratory's hosts: what a kubelet and the controller of
indexed jobs do with them, as far as a job can see it.

A pod is a process number 1 in namespaces of its own, with the pod's name, its /etc/hosts, /dev/shm
and secrets, its variables, and command and arguments as Kubernetes expands them. What this is not:
an image, a scheduler, a cluster's DNS or network.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
PATIENCE = 90.0  # s; far beyond what anything here takes, beside many others too
# as kubelets do it: mounts first, then the name, then the command in place of this shell
SET_UP = """
set -e
mount --make-rprivate /
mount --bind "$POD_HOSTS" /etc/hosts
mount -t tmpfs -o "size=$POD_SHM" tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mkdir -p "$POD_SECRETS"
printf %s "$POD_KEY" | base64 -d > "$POD_SECRETS/key"
chown 0:"$POD_GROUP" "$POD_SECRETS/key"
chmod "$POD_MODE" "$POD_SECRETS/key"
mount -t proc proc /proc
hostname "$POD_NAME"
unset POD_HOSTS POD_SHM POD_SECRETS POD_KEY POD_GROUP POD_MODE POD_NAME OLDPWD
exec "$@"
"""


def expanded(word: str, variables: dict[str, str]) -> str:
    """Kubernetes' rule for commands, arguments and variables, written down from its documents."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return variables.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", value, word)


class Pod:
    """One that has been started."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self.process = process
        self.name = name
        self._killed = False

    def first_process(self) -> int:
        """The container's process 1, by its number out here."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
            with contextlib.suppress(OSError):
                if found := Path(children).read_text().split():
                    return int(found[0])
            time.sleep(0.01)
        raise AssertionError(self.name)

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.first_process(), number)
            self._killed = self._killed or number == signal.SIGKILL

    @property
    def code(self) -> int | None:
        """As Kubernetes shows it; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        # unshare ends with 1 when its child was killed
        return 128 + signal.SIGKILL if self._killed and code in (1, -signal.SIGKILL) else code


class IndexedJob:
    """The pods of a manifest; the controller is `finish`."""

    def __init__(self, lab: Any, objects: dict[str, Any], folder: Path) -> None:
        kinds = {item["kind"]: item for item in objects["items"]}
        self._key = kinds["Secret"]["data"]["key"]
        assert len(base64.b64decode(self._key)) == 32
        if "JobSet" in kinds:
            (replicated,) = kinds["JobSet"]["spec"]["replicatedJobs"]
            self._spec = replicated["template"]["spec"]
            name = f"{kinds['JobSet']['metadata']['name']}-{replicated['name']}-0"
            service = kinds["JobSet"]["spec"]["network"]["subdomain"]
        else:
            self._spec = kinds["Job"]["spec"]
            name = kinds["Job"]["metadata"]["name"]
            service = self._spec["template"]["spec"]["subdomain"]
            selector = kinds["Service"]["spec"]["selector"]
            assert service == kinds["Service"]["metadata"]["name"]
            assert selector.items() <= self._spec["template"]["metadata"]["labels"].items()
        assert self._spec["completionMode"] == "Indexed"
        count = self._spec["completions"]
        assert count == self._spec["parallelism"] <= len(lab.hosts)
        self._folder = folder
        self._lab = lab
        names = [f"{name}-{index}" for index in range(count)]
        hosts = folder / "hosts"
        lines = [f"10.99.0.{n} {pod}.{service} {pod}" for n, pod in enumerate(names, 1)]
        hosts.write_text("127.0.0.1 localhost\n" + "\n".join(lines) + "\n")
        self._began = time.monotonic()
        self.pods = [self._start(index, pod, hosts) for index, pod in enumerate(names)]

    def _start(self, index: int, name: str, hosts: Path) -> Pod:
        template = self._spec["template"]["spec"]
        (container,) = template["containers"]
        volumes = {volume["name"]: volume for volume in template["volumes"]}
        shared, secret = volumes["shm"]["emptyDir"], volumes["key"]["secret"]
        assert shared["medium"] == "Memory"
        folders = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        variables = {"JOB_COMPLETION_INDEX": str(index)}
        for one in container["env"]:
            variables[one["name"]] = expanded(one["value"], variables)
        words = [*container["command"], *container["args"]]
        environment = {
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self._folder),
            **variables,
            "POD_HOSTS": str(hosts),
            "POD_SHM": shared.get("sizeLimit", "100%").replace("Mi", "m").replace("Gi", "g"),
            "POD_SECRETS": folders["key"],
            "POD_KEY": self._key,
            "POD_GROUP": str(template["securityContext"]["fsGroup"]),
            "POD_MODE": f"{secret['defaultMode']:o}",
            "POD_NAME": name,
        }
        space = f"--net=/run/netns/{self._lab.name}-{self._lab.hosts[index]}"
        own = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child")
        log = (self._folder / f"{name}.log").open("w")
        # one process: nsenter becomes unshare, whose only child is the pod's first process
        process = subprocess.Popen(
            ["nsenter", space, *own, "sh", "-c", SET_UP, "sh"]
            + [expanded(word, variables) for word in words],
            env=environment, cwd=container.get("workingDir", self._folder),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True,
        )  # fmt: skip
        log.close()
        return Pod(process, name)

    def log(self, index: int) -> str:
        return (self._folder / f"{self.pods[index].name}.log").read_text()

    def wait_for(self, text: str) -> None:
        """Until the first pod has said it."""
        until = time.monotonic() + PATIENCE
        while text not in self.log(0):
            assert time.monotonic() < until, [self.log(index) for index in range(len(self.pods))]
            assert self.pods[0].code is None, self.log(0)
            time.sleep(0.02)

    def finish(self) -> str:
        """Be the controller until no pod runs: what becomes of the job, in Kubernetes' words."""
        assert self._spec["backoffLimit"] == 0
        deadline = self._spec.get("activeDeadlineSeconds", PATIENCE)
        condition, told = "", 0.0
        while any(pod.code is None for pod in self.pods):
            now = time.monotonic()
            late = now - self._began > deadline
            if not told and (late or any(pod.code for pod in self.pods)):
                condition, told = "Failed: DeadlineExceeded" if late else "Failed", now
                self._terminate(signal.SIGTERM)
            grace = self._spec["template"]["spec"]["terminationGracePeriodSeconds"]
            if told and now - told > grace:
                self._terminate(signal.SIGKILL)
            time.sleep(0.02)
        failed = any(pod.code for pod in self.pods)
        return condition or ("Failed" if failed else "Complete")

    def _terminate(self, number: int) -> None:
        for pod in self.pods:
            if pod.code is None:
                pod.signal(number)

    def close(self) -> None:
        """Whatever a test has left."""
        for pod in self.pods:
            if pod.process.poll() is None:
                pod.process.kill()  # and by --kill-child all of it
            pod.process.wait()
