"""What every verb does around its work: read the command line, keep others out, say how
far it is, end with a status.

A stage module offers `configure(parser)` and `main(arguments)` and ends with

    if __name__ == "__main__":
        raise SystemExit(run_stage(__doc__, configure, main))
"""

import argparse
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NoReturn

from tqdm import tqdm
from zc.lockfile import LockError, SimpleLockFile

from benchmark.core import extras, files
from benchmark.core.errors import UserError, printable, suggested

# as a shell has it for a program that the signal of a closed pipe ends
BROKEN_PIPE = 141
MISTAKE = 2  # which the user can correct
CHECK = "--check"  # of a verb whose status is its answer: 0, 1 or 2
NO_ANSWER = 3  # the status of such a verb that has none
TEXT, JSON = "text", "json"  # what a verb prints: sentences, or facts for programs
# of progress where there is no terminal: seconds, and characters of a line
LINE_EVERY, LOOK_EVERY, COLUMNS = 15, 1, 79
Configure = Callable[[argparse.ArgumentParser], None]
Main = Callable[[argparse.Namespace], int | None]  # an exit status; None: 0


def add_season(parser: argparse.ArgumentParser) -> None:
    """The option that names a season."""
    parser.add_argument("--season", metavar="NAME", help="default: the active one")


def add_season_first(parser: argparse.ArgumentParser) -> None:
    """The same as the first word, of verbs that are about a season: `rematch play
    flickr8k`. The option means the same there, and is not given beside the word."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "season",
        nargs="?",
        default=argparse.SUPPRESS,  # so that the option counts where no word is
        help="default: the active one",
    )
    either.add_argument("--season", metavar="NAME", help="the season, as an option")


def add_format(
    parser: argparse.ArgumentParser, about: str = "of what is printed"
) -> None:
    """The option for the same facts as sentences or as JSON; `--json` is short."""
    parser.add_argument("--format", choices=(TEXT, JSON), default=TEXT, help=about)
    short = {"action": "store_const", "const": JSON, "dest": "format"}
    parser.add_argument("--json", **short, help=f"the same as --format {JSON}")


class OneLineParser(argparse.ArgumentParser):
    """A parser whose mistakes are one line, as all others of a verb are."""

    def error(self, message: str) -> NoReturn:
        self.exit(MISTAKE, f"{self.prog}: {message}; see: {self.prog} --help\n")

    def similar(self, word: str) -> str:
        """An unknown word as messages show it, with the option that is most like it."""
        options = [name for action in self._actions for name in action.option_strings]
        return suggested(word, options)


def run_stage(
    description: str,
    configure: Configure,
    main: Main,
    argv: Sequence[str] | None = None,
    program: str | None = None,
) -> int:
    """Run a verb; its exit status: 0 done, 2 a mistake the user can correct, 130
    interrupted. With --check the status is the answer of the verb, and 3 where it has
    none."""
    parser = OneLineParser(
        prog=program,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    configure(parser)
    words = sys.argv[1:] if argv is None else argv
    try:
        arguments, unknown = parser.parse_known_args(words)
        if unknown:
            parser.error(f"unknown argument {parser.similar(unknown[0])}")
    except SystemExit as end:
        if end.code == MISTAKE and CHECK in words:
            return NO_ANSWER
        raise
    return guarded(main, arguments)


def guarded(main: Main, arguments: argparse.Namespace) -> int:
    """Run `main`; what the user can correct becomes one line on stderr."""
    is_check = getattr(arguments, "check", False)
    try:
        status = main(arguments) or 0
        # here, where a reader that has gone is told from a full disk
        sys.stdout.flush()
        return status
    except UserError as error:
        line = " ".join(str(error).splitlines())
    except ModuleNotFoundError as error:
        if not extras.is_of_run((error.name or "").partition(".")[0]):
            raise
        line = extras.advice_on(error)
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        path = Path(error.filename) if error.filename else Path.cwd()
        free = f"{files.free_below(path) / files.GB:.2f} GB free there"
        line = f"{path}: {error.strerror or error} ({free}); correct it and run again"
    except MemoryError as error:
        line = f"out of memory: {error or 'use a smaller batch, or another machine'}"
    except KeyboardInterrupt:
        print("rematch: interrupted", file=sys.stderr)
        return 130
    except Exception:
        if not is_check:
            raise
        traceback.print_exc()  # whose status, 1, would be an answer
        return NO_ANSWER
    print("rematch:", printable(line), file=sys.stderr)
    return NO_ANSWER if is_check else MISTAKE


def lock_of(folder: str) -> Path:
    """The lock of what writes a folder, by its path from the root."""
    return Path(".scratch") / f"{folder}.lock"


@contextmanager
def alone(lock_file: Path, verb: str) -> Iterator[None]:
    """Two at once would write the same files. A process gives its lock back when it
    ends, however that is. Raises UserError while another one has it. Nothing is
    written, as the disk may be full. Where the file system knows no locks, as on some
    clusters, nobody is refused."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            held.enter_context(closing(SimpleLockFile(str(lock_file))))
        except LockError as error:
            if isinstance(error.__context__, BlockingIOError):
                raise UserError(
                    verb,
                    expected="no other rematch process in this folder",
                    found="one",
                    do="wait until it ends",
                ) from error
        yield


class ProgressBar(tqdm):
    """How far long work is: tqdm's bar on a terminal; elsewhere a line every 15 s, with
    the time left. Short work writes none."""

    monitor_interval = 0  # no thread beside the work
    last_line = 0.0

    def __init__(self, iterable=None, **options) -> None:
        self.is_bar = sys.stderr.isatty()
        if not self.is_bar:
            options |= {"mininterval": LOOK_EVERY, "delay": LOOK_EVERY, "leave": False}
            options |= {"ascii": True, "ncols": COLUMNS, "file": io.StringIO()}
        super().__init__(iterable, miniters=0, **options)

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        if self.is_bar:
            return super().display(msg, pos)
        seconds = self.format_dict["elapsed"]
        # An empty message is how tqdm removes a bar.
        if msg != "" and seconds - self.last_line >= LINE_EVERY:
            self.last_line = seconds
            print(self, file=sys.stderr, flush=True)
        return True
