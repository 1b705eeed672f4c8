"""How far long work is: a bar on a terminal; elsewhere a line every 15 s, with the time left.

Work that another process waits for, inside of `told_to`, says it in a file instead.
"""

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

LINE_EVERY = 15  # seconds
FILE_EVERY = 1  # seconds


class ProgressBar(tqdm):
    """tqdm's bar, which writes lines where there is no terminal. Short work writes none."""

    monitor_interval = 0  # no thread beside the work
    file_of_task: Path | None = None

    def __init__(self, iterable=None, **options) -> None:
        self.is_bar = sys.stderr.isatty() and ProgressBar.file_of_task is None
        self.last_line = 0.0
        if not self.is_bar:
            options |= {"mininterval": FILE_EVERY, "delay": FILE_EVERY, "leave": False}
            options |= {"ascii": True, "ncols": 79, "file": io.StringIO()}
        super().__init__(iterable, miniters=0, **options)

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        if self.is_bar:
            return super().display(msg, pos)
        if msg == "":  # how tqdm removes a bar
            return True
        seconds = self.format_dict["elapsed"]
        if ProgressBar.file_of_task:
            _write(ProgressBar.file_of_task, str(self), self._seconds_left(seconds))
        elif seconds - self.last_line >= LINE_EVERY:
            self.last_line = seconds
            print(self, file=sys.stderr, flush=True)
        return True

    def _seconds_left(self, seconds: float) -> float | None:
        done = self.n - self.initial
        return seconds * (self.total - self.n) / done if self.total and done > 0 else None


@contextmanager
def told_to(file: Path) -> Iterator[None]:
    """What is done inside says in `file` how far it is; the file is gone afterwards."""
    file.parent.mkdir(parents=True, exist_ok=True)
    ProgressBar.file_of_task = file
    try:
        yield
    finally:
        ProgressBar.file_of_task = None
        file.unlink(missing_ok=True)


def read(file: Path) -> tuple[str, float | None]:
    """How far the work is, in a line, and the seconds left, where they are known."""
    try:
        state = json.loads(file.read_text())
    except FileNotFoundError:
        return "", None
    return state["line"], state["seconds_left"]


def _write(file: Path, line: str, seconds_left: float | None) -> None:
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"line": line, "seconds_left": seconds_left}))
    os.replace(part, file)  # readers see the old state or the new one
