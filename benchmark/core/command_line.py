"""What every verb does around its work: read the command line, end with a status.

A stage module offers `configure(parser)` and `main(arguments)` and ends with

    if __name__ == "__main__":
        raise SystemExit(run_stage(__doc__, configure, main))
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmark.core import disk_space
from datasets import DataError

BROKEN_PIPE = 141  # as a shell has it for a program that the signal of a closed pipe ends
Configure = Callable[[argparse.ArgumentParser], None]
Main = Callable[[argparse.Namespace], int | None]  # an exit status; None: 0


def add_season(parser: argparse.ArgumentParser) -> None:
    """The option that names a season."""
    parser.add_argument("--season", metavar="NAME", help="default: the active one")


def run_stage(
    description: str, configure: Configure, main: Main, argv: Sequence[str] | None = None
) -> int:
    """Run a stage; its exit status: 0 done, 2 a mistake the user can correct, 130 interrupted."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    configure(parser)
    return guarded(main, parser.parse_args(argv))


def guarded(main: Main, arguments: argparse.Namespace) -> int:
    """Run `main`; what the user can correct becomes one line on stderr."""
    try:
        status = main(arguments) or 0
        sys.stdout.flush()  # here, where a reader that has gone is told from a full disk
        return status
    except DataError as error:
        return _told(" ".join(str(error).splitlines()))
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        return _told(_of_disk(error))
    except MemoryError as error:
        return _told(f"out of memory: {error or 'a smaller batch, or another machine'}")
    except KeyboardInterrupt:
        print("rematch: interrupted", file=sys.stderr)
        return 130


def _told(line: str) -> int:
    print("rematch:", line, file=sys.stderr)
    return 2


def _of_disk(error: OSError) -> str:
    """Which path could not be read or written, why, and the space that is left there."""
    path = Path(error.filename) if error.filename else Path.cwd()
    free = disk_space.free_below(path) / disk_space.GB
    return f"{path}: {error.strerror or error}; {free:.2f} GB are free there; correct it, run again"
