"""Tasks on a Ray cluster: two nodes of one CPU each, on this machine."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_tasks import say_numerics
from test_tasks import FAILED, ORDERED

from benchmark.commands import task_queue
from benchmark.commands.ray_workers import Cluster
from benchmark.commands.task_queue import Task

cluster_utils = pytest.importorskip("ray.cluster_utils", reason="Ray is an extra, `cluster`")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nodes() -> Iterator[cluster_utils.Cluster]:
    nodes = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=1)
    yield nodes
    nodes.shutdown()


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}")
    return tmp_path


def wait_for(path: str) -> None:
    ends = time.monotonic() + 120
    while not Path(path).is_file():
        assert time.monotonic() < ends, path
        time.sleep(0.01)


def processes() -> list[str]:
    """Of the tasks that were begun."""
    return Path("begun").read_text().split()


def begin_and_touch(name: str) -> None:
    """A task that outlives the node that is killed, unless it runs there."""
    with Path("begun").open("a") as begun:
        begun.write(f"{os.getpid()}\n")
    wait_for("killed")
    Path(name).touch()


def test_a_cluster_plays_as_this_machine_does(nodes, folder):
    with Cluster(nodes.address) as workers:
        assert workers.jobs == 2
        assert task_queue.play(ORDERED | {"numerics": Task(say_numerics, ())}, workers) == (
            FAILED | {"numerics": "ValueError: portable 1"}
        )


def test_a_node_that_is_killed_half_way_loses_no_task(nodes, folder):
    doomed = nodes.add_node(num_cpus=1)

    def kill() -> None:
        wait_for("begun")
        while len(processes()) < 3:  # one on each node
            time.sleep(0.01)
        nodes.remove_node(doomed, allow_graceful=False)
        while all(Path(f"/proc/{process}").exists() for process in processes()):
            time.sleep(0.01)  # a worker outlives its node for a while
        Path("killed").touch()

    killer = threading.Thread(target=kill)
    with Cluster(nodes.address) as workers:
        assert workers.jobs == 3
        killer.start()
        tasks = {f"task {i}": Task(begin_and_touch, (f"done{i}",)) for i in range(6)}
        assert task_queue.play(tasks, workers) == {}
    killer.join()
    assert len(list(folder.glob("done*"))) == 6
    assert len(processes()) == 7  # one of them twice
