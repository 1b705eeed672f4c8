"""The raw files of a dataset of the active season, and the module that reads them."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

from pydantic import TypeAdapter, ValidationError

import datasets
from benchmark.core.errors import UserError
from benchmark.core.suggestions import suggested
from benchmark.season.parameter_files import entry
from benchmark.season.parameters import Option, Params


@dataclass(frozen=True, kw_only=True)
class RawDataset:
    """A dataset as the season sets it."""

    name: str
    reader: str
    options: dict[str, Option]  # those that the season sets
    source: str | None  # folder the season takes the raw files from
    module: datasets.Dataset

    @property
    def folder(self) -> Path:
        """Where the raw files are: a real folder, or a link to the user's own."""
        return Path("data/raw") / self.name

    @property
    def origin(self) -> Path:
        """Where the raw files come from: the folder that fetch links, if the season names one."""
        return Path(self.source).expanduser() if self.source else self.folder

    @property
    def manifest(self) -> Path:
        """Names, sizes and checksums of the raw files, written by fetch."""
        return Path("data/manifests") / f"{self.name}.json"

    @property
    def reader_options(self) -> object:
        """The module's `Options` with those that the season sets."""
        return _reader_options(self.module, self.options, f"dataset {self.name}: options")

    @property
    def card(self) -> datasets.Card:
        return self.module.card(self.reader_options)

    def inventory(self) -> list[Path]:
        return self.module.inventory(self.folder, self.reader_options)

    def read(self) -> datasets.Tables:
        return self.module.read(self.folder, self.reader_options)

    def pictures(self) -> datasets.OpenPicture:
        return self.module.pictures(self.folder, self.reader_options)


def raw_dataset(params: Params, name: str) -> RawDataset:
    """A dataset of a season. Raises DataError for an option that its reader cannot use."""
    settings = entry(params.datasets, name, "dataset")
    reader = settings.reader or name
    module = datasets.load(reader)
    _reader_options(module, settings.options, f"dataset {name}: options")
    return RawDataset(
        name=name,
        reader=reader,
        options=dict(settings.options),
        source=settings.source,
        module=module,
    )


def _reader_options(module: datasets.Dataset, options: dict[str, Option], where: str) -> object:
    """`module.Options` with `options` over its defaults, checked for unknown keys and types."""
    kinds = get_type_hints(module.Options)
    for key, value in options.items():
        if key not in kinds:
            expected = f"one of {', '.join(kinds) or '(none)'}, the options of the reader"
            raise UserError(where, expected, suggested(key, kinds), "correct the season")
        try:
            TypeAdapter(kinds[key]).validate_python(value, strict=True)
        except ValidationError as error:
            kind = kinds[key].__name__ if isinstance(kinds[key], type) else str(kinds[key])
            raise UserError(f"{where}.{key}", kind, repr(value), "correct the season") from error
    return module.Options(**options)
