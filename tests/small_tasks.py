"""Functions for tests of tasks. Each worker imports this module, and nothing that takes long."""

import os
import signal
import sys
import time
from pathlib import Path

from benchmark.core import numerics


def touch(name: str, *others: str) -> None:
    assert all(Path(other).is_file() for other in others)
    Path(name).touch()


def write_down(name: str) -> None:
    with Path("played").open("a") as file:
        file.write(name)


def fail(reason: str) -> None:
    raise ValueError(reason)


def say_numerics() -> None:
    raise ValueError(f"{numerics.current().mode} {numerics.current().threads}")


def say_gpu(mark: str) -> None:
    Path(mark).touch()
    while len(list(Path().glob("gpu*"))) < 2:  # both run at once
        time.sleep(0.01)
    raise ValueError(os.environ.get("CUDA_VISIBLE_DEVICES"))


class Kept:
    """Tells when Python takes its process apart, as libraries do that leaked."""

    def __del__(self, make=os.mkdir) -> None:
        make("apart")


def keep() -> None:
    global kept
    kept = Kept()


def leave(status: str) -> None:
    sys.exit(status)


def rest(name: str, seconds: float) -> None:
    write_down(name)
    time.sleep(seconds)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_once() -> None:
    if not Path("died").is_file():
        Path("died").touch()
        die()
    Path("resumed").touch()
