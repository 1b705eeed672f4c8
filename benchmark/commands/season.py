"""Make a season the active one: spell out every cell in params.yaml."""

import argparse
from pathlib import Path

from benchmark.core.errors import UserError
from benchmark.season.parameters import DatasetSettings, SentenceEncoder, WordVectors
from benchmark.season.resolving import Season, read_season, resolve, write_params


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="a season of seasons/, or the path of a season file")
    parser.add_argument("--weights-dir", help="folder of pretrained image networks (*.pth)")
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="DATASET=DIR",
        help="folder with the raw files of a dataset, or of all of a reader; may be given again",
    )


def main(arguments: argparse.Namespace) -> None:
    season = placed(read_season(arguments.name), arguments.weights_dir, arguments.source)
    params = resolve(Path(arguments.name).stem, season)
    write_params(params)
    trainings, fusions = len(params.cells), len(params.fusions)
    print(f"params.yaml: season {params.season}, {trainings} trainings, {fusions} fusions")
    print("next: dvc repro")


def placed(season: Season, weights_dir: str | None, sources: list[str]) -> Season:
    """The season with the folders of this machine filled in."""
    datasets = dict(season.datasets)
    for source in sources:
        name, _, folder = source.partition("=")
        named = [one for one, known in datasets.items() if name in (one, known.reader)]
        if not named or not folder:
            readers = {known.reader for known in datasets.values() if known.reader}
            raise UserError(
                f"--source: expected DATASET=DIR with a dataset of "
                f"{', '.join(sorted({*datasets, *readers}))}, found {source!r}"
            )
        datasets |= {one: _at(datasets[one], folder) for one in named}
    if weights_dir is None:
        return season.model_copy(update={"datasets": datasets})
    datasets = {name: _weighed(settings, Path(weights_dir)) for name, settings in datasets.items()}
    return season.model_copy(update={"datasets": datasets, "weights_dir": weights_dir})


def _at(settings: DatasetSettings, folder: str) -> DatasetSettings:
    return settings.model_copy(update={"source": folder})


def _weighed(settings: DatasetSettings, folder: Path) -> DatasetSettings:
    """The settings with the files of word vectors and text encoders in the folder of weights."""
    texts = {
        kind: {name: _text_weights(one, folder) for name, one in getattr(settings, kind).items()}
        for kind in ("sentence", "phrases")
    }
    return settings.model_copy(update={"words": _vectors(settings.words, folder), **texts})


def _text_weights(settings: SentenceEncoder, folder: Path) -> SentenceEncoder:
    words = settings.words and _vectors(settings.words, folder)
    weights = settings.weights and str(folder / settings.weights)
    return settings.model_copy(update={"words": words, "weights": weights})


def _vectors(settings: WordVectors, folder: Path) -> WordVectors:
    vectors = settings.vectors and str(folder / settings.vectors)
    return settings.model_copy(update={"vectors": vectors})
