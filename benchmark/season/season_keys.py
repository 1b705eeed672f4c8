"""The keys of a season file that name methods, presets, encoders and networks."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from benchmark.core.errors import UserError
from benchmark.core.suggestions import suggested
from benchmark.season.parameters import Params
from benchmark.season.presets import PACKAGE_ROOT, Preset
from benchmark.season.season_files import Season


def unused_keys(season: Season, params: Params) -> list[str]:
    """Keys of a season file that change nothing: of methods and presets that it does not play, of
    encoders that no preset reads, and of networks that describe no pictures."""
    cells = [*params.cells.values(), *params.fusions.values()]
    presets = {cell.preset for cell in cells}
    played = presets | {called(season, cell.method) for cell in params.cells.values()}
    return [
        f"{field}.{key}"
        for field, keys in _keyed(season).items()
        for key in keys
        if key not in played and not any(fnmatchcase(preset, key) for preset in presets)
    ] + _unused_features(season, params)


def _unused_features(season: Season, params: Params) -> list[str]:
    """The keys below `sentence`, `phrases` and `features` that no feature folder is made with."""
    made = {(each.dataset, each.kind, each.encoder) for each in params.feature_sets.values()}
    images = {(s.dataset, s.image.network) for s in params.feature_sets.values() if s.image}
    kinds = {"sentence": "sentences", "phrases": "phrases"}
    unused = []
    for name, settings in season.datasets.items():
        for field, kind in kinds.items():
            keys = [key for key in getattr(settings, field) if (name, kind, key) not in made]
            unused += [f"datasets.{name}.{field}.{key}" for key in keys]
        networks = [key for key in settings.features if (name, key) not in images]
        unused += [f"datasets.{name}.features.{key}" for key in networks]
    return unused


def _keyed(season: Season) -> dict[str, Iterable[str]]:
    """The parts of a season file whose keys are methods, or patterns of presets."""
    changes = {f"datasets.{name}.changes": s.changes for name, s in season.datasets.items()}
    of_presets = {"seeds_of": season.seeds_of, "sentence_of": season.sentence_of}
    return {"options": season.options} | of_presets | changes


def check_keys(name: str, season: Season, known: dict[str, tuple[str, Preset]]) -> None:
    """Keys fit a method or a preset that there is, played or not."""
    methods = {called(season, method) for method, _ in known.values()}
    for field, keys in _keyed(season).items():
        for key in keys:
            if key not in methods and not any(fnmatchcase(preset, key) for preset in known):
                raise UserError(
                    f"season {name}: {field}.{key}",
                    f"a method, or a pattern that fits a preset: {', '.join(sorted(methods))}",
                    f"neither: {suggested(key, [*methods, *known])}",
                    "correct the key in the season file",
                )


def called(season: Season, method: str) -> str:
    """What a season calls a method: its name, or the one that it gives to a file."""
    return next((name for name, file in season.methods.items() if file == method), method)


def check_encoders(name: str, season: Season, known: dict[str, tuple[str, Preset]]) -> None:
    """Whatever names an encoder of sentences names one that there is."""
    encoders = sentence_encoders()
    named = {f"sentence_of.{key}": encoder for key, encoder in season.sentence_of.items()}
    named |= {f"preset {preset}: sentence": row.sentence for preset, (_, row) in known.items()}
    for dataset, settings in season.datasets.items():
        for field, keys in (("sentence", settings.sentence), ("phrases", settings.phrases)):
            named |= {f"datasets.{dataset}.{field}.{key}": key for key in keys}
    for field, encoder in named.items():
        if encoder and encoder not in encoders:
            found = suggested(encoder, encoders)
            expected = f"one of {', '.join(encoders)}"
            raise UserError(f"season {name}: {field}", expected, found, "correct the name")


def sentence_encoders() -> list[str]:
    """The modules of benchmark/encoders that encode texts: those with a function `encode`."""
    files = (PACKAGE_ROOT / "benchmark/encoders").glob("[!_]*.py")
    texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
    return sorted(name for name, text in texts.items() if "\ndef encode(" in text)
