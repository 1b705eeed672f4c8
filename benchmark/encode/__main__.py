"""Stage encode: one feature set of the active season, written to its feature folder.

rematch encode FEATURE_SET
"""

import argparse

from benchmark.core.command_line import run_stage
from benchmark.core.errors import entry
from benchmark.data import prepared_tables
from benchmark.data.raw_files import check_manifest, raw_dataset
from benchmark.encode import images, texts
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import FeatureSet, Params


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("feature_set", help="a file of seasons/shared/feature_sets/, without .yaml")


def main(arguments: argparse.Namespace) -> None:
    params = read_shared()
    encode(params, entry(params.feature_sets, arguments.feature_set, "feature set"))


def encode(params: Params, feature_set: FeatureSet) -> None:
    """Write the folder of one feature set. The function of its kind has the kind's name."""
    data = prepared_tables.read(feature_set.dataset)
    if feature_set.kind in ("pictures", "proposals"):
        check_manifest(raw_dataset(params, feature_set.dataset))  # the images that were prepared
        getattr(images, feature_set.kind)(params, feature_set, data)
    else:
        getattr(texts, feature_set.kind)(feature_set, data)


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
