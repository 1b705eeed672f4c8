"""Processes that have the libraries of this one, torch among them, and import this project anew.

A fork takes a hundredth of a second, where a new interpreter imports for seconds. It is no new
process to what is decided when Python or a library starts: numerics, the seed of hashes."""

import importlib
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PACKAGES = ("benchmark", "methods", "datasets")


class Ended(NamedTuple):
    status: int
    said: str  # on both streams


def python(code: str, folder: Path, *arguments: str) -> Ended:
    """As `python -c CODE ARGUMENTS` in `folder`, with the packages that lie there."""
    program = compile(code, "-c", "exec")
    return run(lambda: exec(program, {"__name__": "__main__"}), folder, arguments)


def run(
    action: Callable[[], object],
    folder: Path,
    arguments: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
) -> Ended:
    """Play `action` in a fork whose working folder is `folder`; its packages are imported anew."""

    def played() -> None:
        os.chdir(folder)
        os.environ.update(environment or {})
        sys.argv[1:] = arguments
        _forget_project()
        sys.path.insert(0, str(folder))
        action()

    with tempfile.TemporaryFile("w+") as said:
        status = os.waitstatus_to_exitcode(os.waitpid(begun(lambda: _into(said, played)), 0)[1])
        said.seek(0)
        return Ended(status, said.read())


def begun(play: Callable[[], object]) -> int:
    """A process that plays this, by its number; its status is 0 if `play` returns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: those of pytest's workers hold no lock here
        process = os.fork()
    if process == 0:
        status = 1
        try:
            play()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return process


def _into(file, play: Callable[[], object]) -> None:
    """What is said goes to a file, with the error that ends it."""
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, closefd=False)
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    try:
        play()
    except Exception:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()


def _forget_project() -> None:
    """Modules of the project and of its tests are found again where the path begins."""
    for name, module in list(sys.modules.items()):
        file = vars(module).get("__file__") or ""
        if name.partition(".")[0] in PACKAGES or Path(file).is_relative_to(TESTS):
            del sys.modules[name]
    importlib.invalidate_caches()
