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

from benchmark.core import files
from benchmark.core.errors import UserError

BROKEN_PIPE = 141  # as a shell has it for a program that the signal of a closed pipe ends
Configure = Callable[[argparse.ArgumentParser], None]
Main = Callable[[argparse.Namespace], int | None]  # an exit status; None: 0


def add_season(parser: argparse.ArgumentParser) -> None:
    """The option that names a season."""
    parser.add_argument("--season", metavar="NAME", help="default: the active one")


def run_stage(
    description: str,
    configure: Configure,
    main: Main,
    argv: Sequence[str] | None = None,
    program: str | None = None,
) -> int:
    """Run a verb; its exit status: 0 done, 2 a mistake the user can correct, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog=program,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    configure(parser)
    return guarded(main, parser.parse_args(argv))


def guarded(main: Main, arguments: argparse.Namespace) -> int:
    """Run `main`; what the user can correct becomes one line on stderr."""
    try:
        status = main(arguments) or 0
        sys.stdout.flush()  # here, where a reader that has gone is told from a full disk
        return status
    except UserError as error:
        line = " ".join(str(error).splitlines())
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        path = Path(error.filename) if error.filename else Path.cwd()
        free = f"{files.free_below(path) / files.GB:.2f} GB are free there"
        line = f"{path}: {error.strerror or error}; {free}; correct it, run again"
    except MemoryError as error:
        line = f"out of memory: {error or 'a smaller batch, or another machine'}"
    except KeyboardInterrupt:
        print("rematch: interrupted", file=sys.stderr)
        return 130
    print("rematch:", line, file=sys.stderr)
    return 2
