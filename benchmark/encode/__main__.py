"""Stage encode: one feature set of the active season, written to its feature folder.

    python -m benchmark.encode FEATURE_SET

Each kind of features is a module beside this one, which offers
`encode(params, feature_set, data)`. It is loaded by name, so that a changed kind makes only its own
folders stale.
"""

import argparse
from importlib import import_module

from benchmark.core.command_line import run_stage
from benchmark.data import prepared_tables
from benchmark.data.raw_files import raw_dataset
from benchmark.data.raw_state import check_unchanged
from benchmark.season.parameter_files import entry, read_shared
from benchmark.season.parameters import FeatureSet, Params


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("feature_set", help="a file of seasons/shared/feature_sets/, without .yaml")


def main(arguments: argparse.Namespace) -> None:
    params = read_shared()
    encode(params, entry(params.feature_sets, arguments.feature_set, "feature set"))


def encode(params: Params, feature_set: FeatureSet) -> None:
    """Write the folder of one feature set."""
    if feature_set.image or feature_set.proposals:  # pictures must be those that were prepared
        check_unchanged(raw_dataset(params, feature_set.dataset))
    kind = import_module(f"benchmark.encode.{feature_set.kind}")
    kind.encode(params, feature_set, prepared_tables.read(feature_set.dataset))


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
