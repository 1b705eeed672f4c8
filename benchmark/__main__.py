"""Rematch: plays published image-text matching methods against each other, under one protocol.

Choose a season, let DVC play it, read reports/<season>/README.md:

    python -m benchmark season demo
    dvc repro
"""

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

from benchmark.core.command_line import guarded

STAGES = ("fetch", "prepare", "encode", "train", "evaluate", "report")
COMMANDS = (
    "init",
    "list",
    "season",
    "doctor",
    "run",
    "play",
    "verify",
    "score",
    "compare",
    "export",
    "ledger",
    "check",
    "code",
)
VERBS = (*COMMANDS, *STAGES)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; its exit status: 0 done, 2 a mistake the user can correct, 130 interrupted."""
    argv = list(sys.argv[1:] if argv is None else argv)
    # Only the verb that is asked for is imported: torch takes a second that --help should not.
    if argv and argv[0] in VERBS:
        verb = import_module(_module(argv[0]))
        parser = argparse.ArgumentParser(
            prog=f"python -m benchmark {argv[0]}",
            description=verb.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.configure(parser)
        return guarded(verb.main, parser.parse_args(argv[1:]))
    parser = argparse.ArgumentParser(
        prog="python -m benchmark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if argv and argv[0] not in VERBS and (near := get_close_matches(argv[0], VERBS, n=1)):
        parser.error(f"no verb {argv[0]!r}: did you mean {near[0]}?")
    parser.add_argument("verb", choices=VERBS, help="what to do; VERB --help tells more")
    parser.parse_args(argv)
    return 0


def _module(verb: str) -> str:
    return f"benchmark.commands.{verb}" if verb in COMMANDS else f"benchmark.{verb}.__main__"


if __name__ == "__main__":
    raise SystemExit(main())
