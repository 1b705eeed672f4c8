"""Write the digests of the code that decides what each stage writes: data/code/."""

import argparse

from benchmark.season.code_digests import DIGESTS, write_digests
from benchmark.season.presets import PACKAGE_ROOT


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def main(arguments: argparse.Namespace) -> None:
    write_digests(PACKAGE_ROOT)
    print(f"{DIGESTS}/")
