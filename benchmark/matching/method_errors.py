"""What a method raises fails its own cell, and nothing else.

What the machine or the user's files are to blame for does not: the stage then ends with one line,
and the cell is played again once that is corrected.
"""

import sys
from pathlib import Path
from traceback import extract_tb, format_exception

import torch

from benchmark.core.files import write_text
from benchmark.core.progress_bars import ProgressBar
from datasets import DataError

OF_THE_MACHINE = (DataError, OSError, MemoryError)
OF_A_METHOD = (Exception, SystemExit)  # caught after those of the machine
TRACEBACKS = Path(".scratch/failed")
CPU_ALLOCATOR = "DefaultCPUAllocator"  # in the message of a RuntimeError
LONGEST = 300  # characters of a message


def reason(error: BaseException, folder: str) -> str:
    """One line: the error and the place in the code that raised it. The traceback is kept for who
    wrote the method; `folder` is that of the cell's results. Raises MemoryError where torch found
    too little memory, for which it has no type on the CPU."""
    if isinstance(error, torch.OutOfMemoryError) or CPU_ALLOCATOR in str(error):
        raise MemoryError(f"{folder}: {_line_of(error)}") from error
    trace = TRACEBACKS / f"{folder}.txt"
    write_text(trace, "".join(format_exception(error)))
    frames = extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {_line_of(error)}{place}"


def _line_of(error: BaseException) -> str:
    return " ".join(str(error).split())[:LONGEST]


def tell(name: str, status: str, why: str) -> None:
    """A line in the log when a cell ends without a result."""
    if status != "ok":
        ProgressBar.write(f"{name}: {status}: {why}", file=sys.stderr)
