"""Workers of a Ray cluster that play tasks. The project's folder is shared by all nodes.

Needs the extra `cluster`: `pip install -e '.[cluster]'`.
"""

import os
import socket
from concurrent.futures import Future
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from benchmark.commands.local_workers import played
from benchmark.commands.task_queue import DIED, Task
from benchmark.core import numerics
from benchmark.core.errors import UserError
from benchmark.core.numerics import Numerics


class Cluster(ExitStack):
    """As many workers as the cluster has CPUs, or `jobs`; they share its GPUs evenly."""

    def __init__(self, address: str, jobs: int | None = None) -> None:
        super().__init__()
        self.ray = _ray()
        self.enter_context(_Connected(self.ray, address))
        has = self.ray.cluster_resources()
        self.jobs = jobs or int(has.get("CPU", 1))
        self.gpus = min(1.0, has.get("GPU", 0) / self.jobs)  # of each worker

    def submit(self, name: str, task: Task) -> Future:
        worker = self.ray.remote(_played_in).options(
            num_cpus=task.numerics.threads,
            num_gpus=self.gpus,
            max_retries=0,  # the caller counts the attempts
            runtime_env={"env_vars": _environment(task.numerics)},
        )
        return worker.remote(str(Path.cwd()), name, task).future()

    def reason(self, future: Future, task: Task) -> str:
        try:
            return future.result()
        except self.ray.exceptions.RayTaskError as error:  # before the task began: no code, say
            return str(error).strip().splitlines()[-1]
        except self.ray.exceptions.RayError:
            return DIED

    def stop(self) -> None:
        """Ray ends the tasks of a driver that leaves."""


class _Connected(ExitStack):
    def __init__(self, ray, address: str) -> None:
        super().__init__()
        try:
            _require_answer(address)
            ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise UserError(
                "--address",
                "the address of a Ray cluster, as HOST:6379 or auto",
                f"{address!r} ({' '.join(str(error).split())[:200]})",
                "begin one with `ray start --head`",
            ) from error
        self.callback(ray.shutdown)


def _require_answer(address: str) -> None:
    """Ray itself waits for minutes. Raises OSError or ValueError."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port)), timeout=5).close()


def _ray():
    if find_spec("ray") is None:
        raise UserError(
            "--address", "Ray", "no package of that name", "run pip install -e '.[cluster]'"
        )
    return import_module("ray")


def _environment(wanted: Numerics) -> dict[str, str]:
    """Of a worker: it computes in this way, with the code of this folder."""
    return numerics.environment_of(wanted) | {"PYTHONPATH": _search_path()}


def _search_path() -> str:
    """Where Python looks for code: first in the folder that the nodes share."""
    return os.pathsep.join([str(Path.cwd()), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])


def _played_in(folder: str, name: str, task: Task) -> str:
    os.chdir(folder)
    return played(name, task)
