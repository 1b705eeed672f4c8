"""The raw files of a dataset of the active season, and the module that reads them."""

import inspect
from dataclasses import dataclass
from pathlib import Path

import datasets
from benchmark.core.errors import UserError
from benchmark.season.parameter_files import PARAMS, entry
from benchmark.season.parameters import Option, Params


@dataclass(frozen=True, kw_only=True)
class RawDataset:
    """A dataset as the season sets it: its reader with the options bound."""

    name: str
    reader: str
    options: dict[str, Option]
    source: str | None  # folder the season takes the raw files from
    module: datasets.Dataset

    @property
    def folder(self) -> Path:
        """Where the raw files are: a real folder, or a link to the user's own."""
        return Path("data/raw") / self.name

    @property
    def manifest(self) -> Path:
        """Names, sizes and checksums of the raw files, written by fetch."""
        return Path("data/manifests") / f"{self.name}.json"

    @property
    def card(self) -> datasets.Card:
        return self.module.card(**self.options)

    def inventory(self) -> list[Path]:
        return self.module.inventory(self.folder, **self.options)

    def read(self) -> datasets.Tables:
        return self.module.read(self.folder, **self.options)

    def pictures(self) -> datasets.OpenPicture:
        return self.module.pictures(self.folder, **self.options)


def raw_dataset(params: Params, name: str) -> RawDataset:
    """A dataset of a season; an option its reader does not know is a `UserError`."""
    settings = entry(params.datasets, name, "dataset")
    reader = settings.reader or name
    module = datasets.load(reader)
    known = list(inspect.signature(module.read).parameters)[1:]
    for option in settings.options:
        if option not in known:
            raise UserError(
                f"{PARAMS}: datasets.{name}.options: the reader {reader} has no option "
                f"{option!r}; expected one of {', '.join(known) or '(none)'}"
            )
    return RawDataset(
        name=name,
        reader=reader,
        options=dict(settings.options),
        source=settings.source,
        module=module,
    )
