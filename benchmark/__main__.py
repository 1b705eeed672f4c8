"""Rematch runs published image-text matching methods under one protocol.

Choose a season, run it, read reports/<season>/README.md:

    rematch season demo
    rematch play

`python -m benchmark VERB` is the same as `rematch VERB`.
"""

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from textwrap import shorten

from benchmark.core.extras import NAME, advice_on

STAGES = ("fetch", "prepare", "encode", "train", "evaluate", "collect", "report")
GROUPS = {  # of commands, by what they are for
    "Run": ("init", "season", "doctor", "play", "verify", "run", "tune", "check"),
    "Conclude": ("score", "judge", "board", "plan", "printed", "audit", "overlap"),
    "Look": ("list", "query", "compare", "export", "site"),
    "Maintain": ("ledger",),
}
COMMANDS = tuple(chain.from_iterable(GROUPS.values()))
VERBS = (*COMMANDS, *STAGES)
WIDTH = 90  # characters of what help says of a verb
QUOTES = '"""'  # before and after the docstring that a module begins with


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; its exit status: 0 done, 2 a mistake the user can correct, 130
    interrupted."""
    argv = list(sys.argv[1:] if argv is None else argv)
    # Only the verb that is asked for is imported, and what all verbs need with it:
    # --help needs no library at all.
    if argv and argv[0] in VERBS:
        try:
            from benchmark.core.command_line import run_stage

            verb = import_module(_module(argv[0]))
        except ModuleNotFoundError as error:
            sys.exit(f"rematch {argv[0]}: {advice_on(error)}")
        except KeyboardInterrupt:  # libraries take seconds
            print("rematch: interrupted", file=sys.stderr)
            return 130
        program = f"rematch {argv[0]}"
        return run_stage(verb.__doc__, verb.configure, verb.main, argv[1:], program)
    parser = argparse.ArgumentParser(
        prog="rematch",
        usage="rematch VERB ...",
        description=f"{__doc__}\n{_all_verbs()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if not argv:
        parser.print_help()
        return 0
    if argv[0] == "--version":
        print(f"rematch {version(NAME)}")
        return 0
    if argv[0].startswith("-"):
        parser.add_argument("--version", action="store_true", help="print it")
        about = "rematch VERB --help says more"
        parser.add_argument("verb", metavar="VERB", nargs="?", help=about)
        parser.parse_args(argv)
    near = get_close_matches(argv[0], VERBS, n=1)
    advice = f"did you mean {near[0]}?" if near else "rematch --help lists all"
    print(f"rematch: unknown verb {argv[0]!r}: {advice}", file=sys.stderr)
    return 2


def _all_verbs() -> str:
    """A line for each verb: the first of its module, which is read and not imported."""
    lines = []
    for group, verbs in (GROUPS | {"Stages, which DVC runs": STAGES}).items():
        lines += [f"{group}:", *map(_line, verbs), ""]
    return "\n".join(lines).rstrip()


def _line(verb: str) -> str:
    path = Path(__file__).parent.parent / f"{_module(verb).replace('.', '/')}.py"
    _, docstring, _ = path.read_text(encoding="utf-8").split(QUOTES, 2)
    about, _, _ = docstring.partition("\n\n")
    sentence = " ".join(about.split()).partition(". ")[0].rstrip(".")
    return f"  {verb:9}{shorten(sentence, WIDTH, placeholder=' ...')}"


def _module(verb: str) -> str:
    if verb in COMMANDS:
        return f"benchmark.commands.{verb}"
    return f"benchmark.{verb}.__main__"


if __name__ == "__main__":
    raise SystemExit(main())
