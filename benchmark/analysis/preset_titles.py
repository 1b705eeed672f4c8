"""The names of presets that a season may lack: those of methods/. Knows no torch."""

from functools import cache

from benchmark.season.presets import presets


def title_of(preset: str) -> str:
    """The preset's title; its id if it is of no file of methods/."""
    return _titles().get(preset, preset)


@cache
def _titles() -> dict[str, str]:
    return {name: row.title for name, (_, row) in presets().items()}
