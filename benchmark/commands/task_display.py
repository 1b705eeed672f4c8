"""What people see while tasks are played: how far each running one is, and when all are done."""

import sys
import time
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

from tqdm import tqdm

from benchmark.core import progress_bars

PROGRESS = Path(".scratch/progress")
PAUSE = 2  # seconds between two looks at running tasks, on a terminal
LONG_PAUSE = 60  # the same where each look writes lines


class Display(ExitStack):
    """A line for each running task and one for all; elsewhere than on a terminal, each minute."""

    def __init__(self, tasks: Collection[str], jobs: int) -> None:
        super().__init__()
        self.jobs = jobs
        self.ahead = set(tasks)
        self.total = len(tasks)
        self.began: dict[str, float] = {}
        self.times: dict[str, list[float]] = {}  # seconds of ended tasks, by their kind
        self.is_terminal = sys.stderr.isatty()
        self.pause = PAUSE if self.is_terminal else LONG_PAUSE
        self.last = time.monotonic()
        self.lines = [self._line(position) for position in range(jobs + 1)]

    def begun(self, name: str) -> None:
        self.began[name] = time.monotonic()

    def ended(self, name: str, reason: str) -> None:
        """Say that a task was played, or why it failed; of what was up to date, nothing."""
        self.ahead.discard(name)
        began = self.began.pop(name, None)
        if reason:
            self.say(f"{name}: failed: {reason}")
        elif began is not None:
            seconds = time.monotonic() - began
            self.times.setdefault(_kind(name), []).append(seconds)
            self.say(f"{name}: done in {seconds:.0f} s; {self._how_far()}")

    def given_up(self, names: Collection[str]) -> None:
        """Say how many tasks are not begun, as what failed last is needed."""
        self.ahead.difference_update(names)
        if names:
            self.say(waiting(len(names)))

    def show(self, running: list[str]) -> None:
        """How far the running tasks are."""
        if not self.is_terminal and time.monotonic() - self.last < LONG_PAUSE:
            return
        self.last = time.monotonic()
        said = [progress_bars.read(file_of(name))[0] or f"{name}: running" for name in running]
        if self.is_terminal:
            said += [""] * (self.jobs - len(said)) + [self._how_far()]
            for line, text in zip(self.lines, said, strict=True):
                line.set_description_str(text)
        else:
            self.say("\n".join([*said, self._how_far()]))

    def say(self, line: str) -> None:
        tqdm.write(line, file=sys.stderr)

    def _line(self, position: int) -> tqdm:
        is_off = not self.is_terminal
        bar = tqdm(bar_format="{desc}", position=position, leave=False, disable=is_off)
        return self.enter_context(bar)

    def _how_far(self) -> str:
        seconds = self._seconds_left()
        left = "" if seconds is None else f", about {_duration(seconds)} left"
        return f"{self.total - len(self.ahead)} of {self.total}{left}"

    def _seconds_left(self) -> float | None:
        """As long as tasks of the same kind took, on all workers; None where that is not known."""
        means = {kind: sum(times) / len(times) for kind, times in self.times.items()}
        seconds = 0.0
        for name in self.ahead:
            known = progress_bars.read(file_of(name))[1] if name in self.began else None
            if known is None and _kind(name) not in means:
                return None
            seconds += means[_kind(name)] if known is None else known
        return seconds / self.jobs


def counted(count: int, what: str) -> str:
    """1 stage, 2 stages."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def waiting(count: int, causes: int = 1) -> str:
    """So many stages are not begun, because of as many others that failed."""
    verb, cause = "waits" if count == 1 else "wait", "it" if causes == 1 else "them"
    return f"{counted(count, 'stage')} {verb} for {cause}"


def file_of(name: str) -> Path:
    """Where the worker that plays a task says how far it is."""
    return PROGRESS / f"{slug(name)}.json"


def slug(name: str) -> str:
    """The name of a task as that of a file."""
    return name.replace("/", "-").replace(" ", "-")


def _kind(name: str) -> str:
    """Tasks of one kind take about as long: trainings, say."""
    return name.split()[0] if " " in name else ""


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
