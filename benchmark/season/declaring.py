"""From a season file to the names of its cells: which presets it runs on which dataset
and fold, with which seeds.

This is all that is needed to read results. The inputs of the cells are found in
`resolving`, which imports method files, and torch with them.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from benchmark.contracts import datasets as dataset_files
from benchmark.core.errors import UserError, suggested
from benchmark.core.names import (
    checked_name,
    fold_of,
    folder_of,
    folds_of,
    is_reserved,
    prefix_of,
)
from benchmark.features import text_encoders
from benchmark.papers.training_data import corpora
from benchmark.scoring.metrics import METRICS
from benchmark.season import plugins
from benchmark.season.parameters import (
    CELLS,
    Brought,
    DatasetSettings,
    Declaration,
    Declared,
    Fused,
    Option,
    Season,
    key_of,
)
from benchmark.season.plugins import Known

Value = TypeVar("Value")
MOST_LISTED = 30  # valid names in an error
CellName = tuple[str, str, int]  # dataset, preset and seed


def declare(
    name: str, season: Season, brought: Mapping[str, Brought] | None = None
) -> Declaration:
    """The season with the name of every cell. `brought` are rows that `score` added.
    Raises UserError for the first name that fits nothing."""
    names = SeasonNames.of(name, season, brought=brought)
    cells: dict[str, Declared] = {}
    fusions: dict[str, Fused] = {}
    for dataset, preset, seed in names.cells():
        cell = Declared(dataset=dataset, preset=preset, seed=seed)
        names.check_key(cell, {**cells, **fusions})
        members = names.members(dataset, preset, seed)
        if members:
            fusions[cell.key] = Fused(**dict(cell), members=members)
        else:
            cells[cell.key] = cell
    return Declaration(cells=cells, fusions=fusions, **names.facts)


@dataclass(frozen=True, kw_only=True)
class SeasonNames:
    """The presets, datasets and folds of a season, all of which are known."""

    name: str
    season: Season  # with the presets that others need, and settings of each fold
    known: Known  # with own presets, and corrected ones
    brought: Mapping[str, Brought]  # rows that `score` added

    @classmethod
    def of(
        cls,
        name: str,
        season: Season,
        known: Known | None = None,
        brought: Mapping[str, Brought] | None = None,
    ) -> "SeasonNames":
        """Raises UserError for the first name that fits nothing."""
        brought = brought or {}
        known = dict(plugins.presets() if known is None else known)
        known |= plugins.own_presets(season.methods)
        plugins.check_corrections(season.corrections, known)
        corrected = plugins.corrected_presets(season.corrections, known)
        named = list(known) if season.presets == "all" else list(season.presets)
        named += corrected
        known |= corrected
        needed = dict.fromkeys(named)  # unknown ones stay
        for preset in named:
            if preset in known:
                needed |= dict.fromkeys(plugins.needs(preset, known))
        whole = season.model_copy(update={"presets": list(needed)})
        rows = {row.preset for row in brought.values()}
        _check_names(name, whole, known, rows)
        with_folds = season.datasets | _fold_settings(name, season)
        declared = whole.model_copy(update={"datasets": with_folds})
        return cls(name=name, season=declared, known=known, brought=brought)

    @property
    def facts(self) -> dict:
        """What declared and resolved seasons have in common."""
        season = self.season
        datasets = {}
        folds = {}
        for dataset, settings in season.datasets.items():
            if fold_of(dataset):
                continue
            reader = settings.reader or dataset
            datasets[dataset] = settings.model_copy(update={"reader": reader})
            if settings.folds:
                folds[dataset] = settings.folds
        return {
            "season": self.name,
            "title": season.title,
            "datasets": datasets,
            "folds": folds,
            "methods": season.methods,
            "corrections": season.corrections,
            "claims": season.claims,
            "trained_on": season.trained_on,
            "brought": dict(self.brought),
        }

    def cells(self, only: str | None = None) -> list[CellName]:
        """All cells of the preset that `only` names, by itself or by one of its cells,
        and of the presets that it needs; every cell if `only` names none."""
        cells = []
        for dataset in self.season.datasets:
            for preset in self.presets[dataset]:
                seeds = self.seeds(dataset, preset)
                cells += [(dataset, preset, seed) for seed in seeds]
        wanted: set[str] = set()
        for dataset, preset, seed in cells:
            if only in (preset, key_of(dataset, preset, seed)):
                wanted.update(plugins.needs(preset, self.known))
        if not wanted:
            return cells
        return [cell for cell in cells if cell[1] in wanted]

    @cached_property
    def presets(self) -> dict[str, list[str]]:
        """Dataset -> those of the season that are run on it; a correction where its
        preset is."""
        presets = {}
        for dataset, settings in self.season.datasets.items():
            run = self._chosen_by(settings.presets, self.season.presets)
            if fold_of(dataset):
                run = self._chosen_by(settings.fold_presets, run)
            presets[dataset] = run
        return presets

    def _chosen_by(self, patterns: list[str], presets: list[str]) -> list[str]:
        wanted, unwanted = [], []
        for pattern in patterns:
            if pattern.startswith("!"):
                unwanted.append(pattern[1:])
            else:
                wanted.append(pattern)
        run = []
        for preset in presets:
            corrected = self._corrects(preset)
            if fits(corrected, wanted or ["*"]) and not fits(corrected, unwanted):
                run.append(preset)
        return run

    def seeds(self, dataset: str, preset: str) -> list[int]:
        if fold_of(dataset):
            return self.season.datasets[dataset].fold_seeds
        own = self.set_for(self._corrects(preset), self.season.seeds_of)
        return own[-1] if own else self.season.seeds

    def _corrects(self, preset: str) -> str:
        """The preset that a correction is of; itself, if it is none."""
        fuse = self.known[preset][1].fuse
        if fuse and fuse.how in self.season.corrections:
            return preset.removesuffix(f"_{fuse.how}")
        return preset

    def set_for(self, preset: str, values: Mapping[str, Value]) -> list[Value]:
        """What is set for a preset: for its method, then for patterns, in their
        order."""
        method = called(self.season, self.known[preset][0])
        fitting = [values[method]] if method in values else []
        for key, value in values.items():
            if key != method and fnmatchcase(preset, key):
                fitting.append(value)
        return fitting

    def options(
        self, preset: str, values: Mapping[str, Mapping[str, Option]]
    ) -> dict[str, Option]:
        options: dict[str, Option] = {}
        for each in self.set_for(preset, values):
            options |= each
        return options

    def folder(self, dataset: str, preset: str, seed: int) -> str:
        """Of what the evaluation of a cell leaves."""
        kept_as = f"{prefix_of(dataset)}{preset}/{seed}"
        return f"{CELLS}/{self.name}/{folder_of(dataset)}/{kept_as}"

    def members(self, dataset: str, preset: str, seed: int) -> list[str]:
        """The folders of the cells that a fusion is of; of others none. Raises
        UserError for one that the season does not run."""
        fuse = self.known[preset][1].fuse
        folders = []
        for member, _ in fuse.members if fuse else ():
            self.check_run(dataset, preset, member, seed)
            folders.append(self.folder(dataset, member, seed))
        return folders

    def check_run(self, dataset: str, preset: str, other: str, seed: int) -> None:
        """Raise UserError unless the season runs `other`, which the preset fuses or
        starts from, with this seed."""
        if other not in self.presets[dataset] or seed not in self.seeds(dataset, other):
            where = f"season {self.name}: {preset}"
            expected = f"{other}, which it needs, on {dataset} with seed {seed}"
            advice = "correct `presets`, `seeds` or `seeds_of`"
            if fold_of(dataset):
                advice = "correct `fold_presets`"
            raise UserError(where, expected=expected, found="no such cell", do=advice)

    def check_key(self, cell: Declared, known: Collection[str]) -> None:
        """Raise UserError if two cells have the same key, which can happen since keys
        join names with hyphens and names may contain hyphens."""
        if cell.key in known:
            raise UserError(
                f"season {self.name}: {cell.preset} on {cell.dataset}",
                expected="names that give each cell a key of its own",
                found=f"{cell.key}, which another cell has, too",
                do="rename one of them, without a hyphen",
            )


def _fold_settings(name: str, season: Season) -> dict[str, DatasetSettings]:
    """The settings of each fold: those of its dataset. Raises UserError for a dataset
    that has the name of a fold or of their folder."""
    by_fold = {}
    for dataset, settings in season.datasets.items():
        where = f"season {name}: datasets.{dataset}"
        if is_reserved(dataset):
            raise UserError(
                where,
                expected="a name that does not end as those of folds, in _fold1 or _folds",
                found="one that does",
                do="rename the dataset",
            )
        of_fold = settings.model_copy(update={"reader": settings.reader or dataset})
        for fold in folds_of(dataset, settings.folds or 0):
            by_fold[checked_name(fold.name, where)] = of_fold
    return by_fold


# Names --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Named:
    """Something that a season file or a preset names."""

    where: str  # key of the season file
    word: str
    valid: Collection[str]


def _check_names(
    season_name: str, season: Season, known: Known, rows: set[str]
) -> None:
    """Raises UserError for the first name that fits nothing, and for a preset that has
    the name of an external row."""
    for named in _names(season, known, rows):
        if named.word not in named.valid:
            expected = "a known name"
            if len(named.valid) <= MOST_LISTED:
                expected = f"one of {', '.join(sorted(named.valid))}"
            advice = "correct the season file; see: rematch list presets"
            if named.where == "presets":
                advice += "; a method of your own stands in `methods:`, as in "
                advice += "methods: {mine: path/to/mine.py}"
            raise UserError(
                f"season {season_name}: {named.where}",
                expected=expected,
                found=suggested(named.word, named.valid),
                do=advice,
            )
    taken = rows.intersection(season.presets)
    if taken:
        raise UserError(
            f"season {season_name}: preset {min(taken)}",
            expected="a name that no external row has",
            found="one",
            do="rename the preset",
        )


def _names(season: Season, known: Known, rows: set[str]) -> Iterator[_Named]:
    """Every name in a season file and its presets, with the names that are valid in
    its place."""
    for preset in season.presets:
        yield _Named("presets", preset, known)
    for number, claim in enumerate(season.claims, 1):
        where = f"claims: number {number}"
        for preset in (claim.better, claim.than):
            yield _Named(where, preset, {*season.presets, *rows})
        yield _Named(where, claim.metric, METRICS)
    captions = corpora() | {*dataset_files.names(), *season.datasets}
    for weights, trained_on in season.trained_on.items():
        yield _Named("trained_on", weights, _weights(season) | rows)
        for corpus in trained_on:
            yield _Named(f"trained_on.{weights}", corpus, captions)
    keyed = {}
    for dataset, settings in season.datasets.items():
        keyed[f"datasets.{dataset}.changes"] = settings.changes
        for field in ("presets", "fold_presets"):
            for pattern in getattr(settings, field):
                word = pattern.removeprefix("!")
                if known and not any(fnmatchcase(preset, word) for preset in known):
                    yield _Named(f"datasets.{dataset}.{field}", word, known)
    for field in ("options", "seeds_of", "sentence_of", "pages", "answers"):
        keyed[field] = getattr(season, field)
    methods = {called(season, method) for method, _ in known.values()}
    for field, keys in keyed.items():
        for key in keys:
            if not any(fnmatchcase(preset, key) for preset in known):
                yield _Named(f"{field}.{key}", key, {*methods, *known})
    valid = text_encoders()
    for where, encoder in _encoders(season, known):
        yield _Named(where, encoder, valid)


def _encoders(season: Season, known: Known) -> Iterator[tuple[str, str]]:
    """Where a text encoder is named, and which."""
    for key, encoder in season.sentence_of.items():
        yield f"sentence_of.{key}", encoder
    for preset, (_, row) in known.items():
        if row.sentence:
            yield f"preset {preset}", row.sentence
    for dataset, settings in season.datasets.items():
        for encoder in settings.sentence:
            yield f"datasets.{dataset}.sentence.{encoder}", encoder
        for encoder in settings.phrases:
            yield f"datasets.{dataset}.phrases.{encoder}", encoder


def _weights(season: Season) -> set[str]:
    """The folders and files of the weights of its text encoders, as records name
    them."""
    named = set()
    for settings in season.datasets.values():
        for encoder in (*settings.sentence.values(), *settings.phrases.values()):
            if encoder.weights:
                named.add(Path(encoder.weights).name)
    return named


def called(season: Season, method: str) -> str:
    """What a season calls a method: its name, or the one that it gives to a file."""
    for name, file in season.methods.items():
        if file == method:
            return name
    return method


def fits(preset: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(preset, pattern) for pattern in patterns)
