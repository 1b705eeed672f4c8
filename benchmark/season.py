"""Seasons and presets: which cells are played, with which options, on which features.

A season file names datasets, presets, seeds and a budget. `resolve` spells every cell out, and
`python -m benchmark season NAME` writes the result to params.yaml.
"""

from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field

from benchmark.encoders import module_of
from benchmark.errors import UserError, checked
from benchmark.files import read_yaml, write_text
from benchmark.options import configured, method_of
from benchmark.params import PARAMS, Cell, DatasetSettings, Encoding, Fusion, Option, Params, Strict
from benchmark.presets import PACKAGE_ROOT, Preset, presets, shown


class Season(Strict):
    title: str
    datasets: dict[str, DatasetSettings]
    presets: list[str]
    seeds: list[int]
    device: str = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"
    validation_images: int | None = Field(None, ge=1)  # checkpoint selection sees the first n
    weights_dir: str | None = None  # folder of pretrained networks; None: torchvision's download
    options: dict[str, dict[str, Option]] = {}  # method or preset -> what the budget changes


def season_names() -> list[str]:
    """Every ready-made season, in alphabetical order."""
    return sorted(path.stem for path in (PACKAGE_ROOT / "seasons").glob("*.yaml"))


def read_season(name: str) -> Season:
    """A ready-made season by name, or any season file by path."""
    path = Path(name) if name.endswith(".yaml") else PACKAGE_ROOT / "seasons" / f"{name}.yaml"
    if not path.is_file():
        raise UserError(f"no season {name!r}; expected one of {', '.join(season_names())}")
    return checked(Season, read_yaml(path), shown(path))


def resolve(
    name: str, season: Season, known: dict[str, tuple[str, Preset]] | None = None
) -> Params:
    """The season with every cell spelt out. `name` becomes a folder of results/ and reports/.

    `known` maps presets to their method and content; by default those of methods/.
    """
    known = presets() if known is None else known
    unknown = [preset for preset in season.presets if preset not in known]
    if unknown:
        raise UserError(
            f"season {name}: no preset {unknown[0]!r}; expected some of {', '.join(sorted(known))}"
        )
    _check_option_keys(name, season, known)
    encodings: dict[str, Encoding] = {}
    cells: dict[str, Cell] = {}
    fusions: dict[str, Fusion] = {}
    for dataset, settings in season.datasets.items():
        for preset in season.presets:
            for seed in season.seeds:
                key = f"{dataset}-{preset}-{seed}"
                method, row = known[preset]
                if row.average:
                    fusions[key] = _fusion(name, season, dataset, preset, row, seed)
                    continue
                cell = _cell(name, season, dataset, preset, method, row, seed)
                cells[key] = cell
                encodings |= _encodings(dataset, settings, cell)
    shared = season.model_dump(include={"title", "device", "precision", "validation_images"})
    return Params(
        season=name,
        weights_dir=season.weights_dir,
        datasets={
            key: settings.model_copy(update={"reader": settings.reader or key})
            for key, settings in season.datasets.items()
        },
        encodings=encodings,
        cells=cells,
        fusions=fusions,
        **shared,
    )


def write_params(params: Params) -> None:
    """Make `params` the active season."""
    head = "# Written by `python -m benchmark season`: the active season, every cell spelt out.\n"
    body = yaml.safe_dump(params.model_dump(mode="json"), sort_keys=False, width=100)
    write_text(PARAMS, head + body)


def _check_option_keys(name: str, season: Season, known: dict) -> None:
    allowed = set(season.presets) | {known[preset][0] for preset in season.presets}
    for key in season.options:
        if key not in allowed:
            raise UserError(
                f"season {name}: options.{key}: neither a preset nor a method of this season; "
                f"expected one of {', '.join(sorted(allowed))}"
            )


def _result_folder(season: str, dataset: str, preset: str, seed: int) -> str:
    return f"results/{season}/{dataset}/{preset}/{seed}"


def _cell(
    name: str, season: Season, dataset: str, preset: str, method: str, row: Preset, seed: int
) -> Cell:
    settings = season.datasets[dataset]
    scaled = season.options.get(method, {}) | season.options.get(preset, {})
    module = method_of(method)
    configured(module, row.options | scaled, f"preset {preset}")  # refused now, not hours later
    reads_words = module.INPUTS.text == "tokens"
    return Cell(
        dataset=dataset,
        preset=preset,
        seed=seed,
        method=method,
        family=row.family,
        options=row.options | scaled,
        scaled=sorted(scaled),
        images=f"data/features/{dataset}/{settings.image.slug}",
        texts=(
            f"data/prepared/{dataset}/captions.parquet"
            if reads_words
            else f"data/features/{dataset}/{settings.sentence.slug}"
        ),
        folder=_result_folder(name, dataset, preset, seed),
    )


def _fusion(name: str, season: Season, dataset: str, preset: str, row: Preset, seed: int) -> Fusion:
    missing = [member for member in row.average if member not in season.presets]
    if missing:
        raise UserError(f"season {name}: {preset} averages {missing[0]!r}; add it to presets")
    left, right = (_result_folder(name, dataset, member, seed) for member in row.average)
    folder = _result_folder(name, dataset, preset, seed)
    return Fusion(dataset=dataset, preset=preset, seed=seed, left=left, right=right, folder=folder)


def _encodings(dataset: str, settings: DatasetSettings, cell: Cell) -> dict[str, Encoding]:
    image = Encoding(
        dataset=dataset,
        reader=settings.reader or dataset,
        kind="image",
        encoder=module_of(settings.image.network),
        folder=cell.images,
        image=settings.image,
    )
    asked = {f"{dataset}-{settings.image.slug}": image}
    if cell.texts.startswith("data/features/"):
        asked[f"{dataset}-{settings.sentence.slug}"] = Encoding(
            dataset=dataset,
            reader=settings.reader or dataset,
            kind="sentence",
            encoder=settings.sentence.encoder,
            folder=cell.texts,
            sentence=settings.sentence,
        )
    return asked
