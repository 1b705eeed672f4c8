"""What a method raises fails its own cell, and nothing else.

What the machine or the user's files are to blame for does not: the stage then ends with one line,
and the cell is run again once that is corrected.
"""

import sys
from pathlib import Path
from traceback import extract_tb, format_exception

import torch

from benchmark.contracts.methods import NotApplicableError
from benchmark.core.errors import UserError
from benchmark.core.files import write_text
from benchmark.core.progress_bars import ProgressBar
from benchmark.scoring.relevance import RefusedError

OF_THE_MACHINE = (UserError, OSError, MemoryError)
OF_A_METHOD = (Exception, SystemExit)  # caught after those of the machine
CPU_ALLOCATOR = "DefaultCPUAllocator"  # in the message of a RuntimeError
LONGEST = 300  # characters of a message


class DivergedError(ArithmeticError):
    """The loss, or a validation score, is no longer finite."""


def outcome(error: BaseException, folder: str) -> dict[str, str]:
    """Status and reason of a cell that ended with this error. What the machine or the user's files
    are to blame for is raised again."""
    if isinstance(error, OF_THE_MACHINE):
        raise error
    if isinstance(error, NotApplicableError):
        return {"status": "not_applicable", "reason": str(error)}
    is_known = isinstance(error, RefusedError | DivergedError)
    return {"status": "failed", "reason": str(error) if is_known else reason(error, folder)}


def reason(error: BaseException, folder: str) -> str:
    """One line: the error and the place in the code that raised it. The traceback is kept for who
    wrote the method; `folder` is that of the cell's results. Raises MemoryError where torch found
    too little memory, for which it has no type on the CPU."""
    line = " ".join(str(error).split())[:LONGEST]
    if isinstance(error, torch.OutOfMemoryError) or CPU_ALLOCATOR in line:
        raise MemoryError(f"{folder}: {line}") from error
    write_text(Path(".scratch/failed", f"{folder}.txt"), "".join(format_exception(error)))
    frames = extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {line}{place}"


def tell(name: str, status: str, why: str) -> None:
    """A line in the log when a cell ends without a result."""
    if status != "ok":
        ProgressBar.write(f"{name}: {status}: {why}", file=sys.stderr)
