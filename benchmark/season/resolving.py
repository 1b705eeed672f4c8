"""From a season file to its cells: which presets are run, with which options and
features."""

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from benchmark.contracts import datasets as dataset_files
from benchmark.contracts import methods as contract
from benchmark.contracts.methods import Inputs
from benchmark.core.errors import UserError, suggested
from benchmark.core.files import sha256
from benchmark.core.folds import fold_of, folder_of, folds_of, is_reserved, prefix_of
from benchmark.core.names import checked_name
from benchmark.features import text_encoders
from benchmark.papers.training_data import corpora
from benchmark.scoring.metrics import METRICS
from benchmark.season import plugins
from benchmark.season.parameters import (
    AS_IN_PAPER,
    CELLS,
    RETRIEVED,
    SAMPLES,
    TRANSFORMER,
    Brought,
    Cell,
    DatasetSettings,
    FeatureSet,
    Fusion,
    Option,
    Params,
    Season,
    SentenceEncoder,
    key_of,
    module_of,
)
from benchmark.season.plugins import Known, Preset

Value = TypeVar("Value")
MOST_LISTED = 30  # valid names in an error
# What a method takes -> kind of features.
VECTORS = {"sentence": "sentences", "phrase": "phrases", "contextual": "contexts"}
# of kinds of features
SETTINGS = {"pictures": "image", "words": "words", "proposals": "proposals"}


def resolve(
    name: str,
    season: Season,
    known: Known | None = None,
    brought: dict[str, Brought] | None = None,
    remembered: dict[str, dict] | None = None,
    only: str | None = None,
) -> Params:
    """The season with every cell spelt out. `name` becomes a folder of results/ and
    reports/.

    `known` maps presets to their method and content; by default those of methods/.
    `brought` are the rows that `score` added. `remembered` is what methods take, by
    their code and options, so that those that did not change, and torch, need no
    import; what is found is added. `only` names a cell or a preset: there are its cells
    then, with those that it needs, and no other method file is imported. Where it names
    nothing, there are all. Raises UserError for the first name that fits nothing.
    """
    known = dict(plugins.presets() if known is None else known)
    known |= plugins.own_presets(season.methods)
    corrected = plugins.corrected_presets(season.corrections, known)
    named = list(known) if season.presets == "all" else list(season.presets)
    named += corrected
    known |= corrected
    season = season.model_copy(update={"presets": _with_needs(named, known)})
    rows = {row.preset for row in (brought or {}).values()}
    _check_names(name, season, known, rows)
    with_folds = season.datasets | _fold_settings(name, season)
    declared = season.model_copy(update={"datasets": with_folds})
    takes = {} if remembered is None else remembered
    resolver = _Resolver(name, declared, known, takes)
    for cell in _chosen(resolver, only):
        resolver.add(*cell)
    datasets = {}
    folds = {}
    for dataset, settings in season.datasets.items():
        reader = settings.reader or dataset
        datasets[dataset] = settings.model_copy(update={"reader": reader})
        if settings.folds:
            folds[dataset] = settings.folds
    return Params(
        season=name,
        title=season.title,
        device=season.device,
        datasets=datasets,
        folds=folds,
        feature_sets=resolver.feature_sets,
        cells=resolver.cells,
        fusions=resolver.fusions,
        methods=season.methods,
        corrections=season.corrections,
        claims=season.claims,
        trained_on=season.trained_on,
        brought=brought or {},
    )


def _with_needs(presets: list[str], known: Known) -> list[str]:
    """Presets, and after them what they are made of; unknown ones stay."""
    needed = dict.fromkeys(presets)
    for preset in presets:
        if preset in known:
            needed |= dict.fromkeys(plugins.needs(preset, known))
    return list(needed)


def _chosen(resolver: "_Resolver", only: str | None) -> list[tuple[str, str, int]]:
    """Dataset, preset and seed of each cell that is asked for, and of those that it
    needs; of all, where `only` names nothing."""
    cells = []
    for dataset in resolver.season.datasets:
        for preset in resolver.presets(dataset):
            seeds = resolver.seeds(dataset, preset)
            cells += [(dataset, preset, seed) for seed in seeds]
    wanted: set[str] = set()
    for dataset, preset, seed in cells:
        if only in (preset, key_of(dataset, preset, seed)):
            wanted.update(plugins.needs(preset, resolver.known))
    if not wanted:
        return cells
    return [cell for cell in cells if cell[1] in wanted]


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
            raise UserError(
                f"season {season_name}: {named.where}",
                expected=expected,
                found=suggested(named.word, named.valid),
                do="correct the season file; see: rematch list presets",
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
    """All of them, with those that are valid there."""
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


# Cells --------------------------------------------------------------------------------


class _Resolver:
    """Cells, fusions and feature sets of a season, in the order in which they are asked
    for."""

    def __init__(
        self, name: str, season: Season, known: Known, remembered: dict
    ) -> None:
        self.name = name
        self.season = season
        self.known = known
        self.remembered = remembered
        self.contract = sha256(Path(contract.__file__))
        self.code: dict[str, str] = {}  # of methods, by name or file
        self.feature_sets: dict[str, FeatureSet] = {}
        self.cells: dict[str, Cell] = {}
        self.fusions: dict[str, Fusion] = {}

    def presets(self, dataset: str) -> list[str]:
        """Those of the season that are run on a dataset; a correction where its preset
        is."""
        settings = self.season.datasets[dataset]
        run = self._chosen_by(settings.presets, self.season.presets)
        if fold_of(dataset):
            run = self._chosen_by(settings.fold_presets, run)
        return run

    def _chosen_by(self, patterns: list[str], presets: list[str]) -> list[str]:
        wanted = []
        unwanted = []
        for pattern in patterns:
            if pattern.startswith("!"):
                unwanted.append(pattern[1:])
            else:
                wanted.append(pattern)
        run = []
        for preset in presets:
            corrected = self._corrects(preset)
            if _fits(corrected, wanted or ["*"]) and not _fits(corrected, unwanted):
                run.append(preset)
        return run

    def seeds(self, dataset: str, preset: str) -> list[int]:
        if fold_of(dataset):
            return self.season.datasets[dataset].fold_seeds
        own = self._set_for(self._corrects(preset), self.season.seeds_of)
        return own[-1] if own else self.season.seeds

    def _corrects(self, preset: str) -> str:
        """The preset that a correction is of; itself, if it is none."""
        fuse = self.known[preset][1].fuse
        if fuse and fuse.how in self.season.corrections:
            return preset.removesuffix(f"_{fuse.how}")
        return preset

    def _set_for(self, preset: str, values: dict[str, Value]) -> list[Value]:
        """What is set for a preset: for its method, then for patterns, in their
        order."""
        method = called(self.season, self.known[preset][0])
        fitting = [values[method]] if method in values else []
        for key, value in values.items():
            if key != method and fnmatchcase(preset, key):
                fitting.append(value)
        return fitting

    def _options(
        self, preset: str, values: dict[str, dict[str, Option]]
    ) -> dict[str, Option]:
        options: dict[str, Option] = {}
        for each in self._set_for(preset, values):
            options |= each
        return options

    def _takes(self, dataset: str, preset: str) -> tuple[dict[str, Option], Inputs]:
        """The options of a preset, and what its method takes and offers with them. An
        option that is none is refused here, not hours later."""
        method, row = self.known[preset]
        changes = self._options(preset, self.season.datasets[dataset].changes)
        options = row.options | changes | self._options(preset, self.season.options)
        if method not in self.code:
            self.code[method] = ""
            with suppress(Exception):  # of a file that is no Python: `method_of` tells
                self.code[method] = plugins.method_digest(method)
        settings = json.dumps(options, sort_keys=True)
        key = f"{self.contract} {self.code[method]} {settings}"
        if key not in self.remembered:
            module = plugins.method_of(method)
            where = f"preset {preset}"
            self.remembered[key] = asdict(plugins.inputs_of(module, options, where))
        facts = self.remembered[key]
        return options, Inputs(**facts | {"scores": tuple(facts["scores"])})

    def add(self, dataset: str, preset: str, seed: int) -> None:
        """Raises UserError where names that have hyphens, as keys do, make two keys
        equal."""
        season = self.season
        row = self.known[preset][1]
        keeps = []
        seeds = self.seeds(dataset, preset)
        is_whole = not fold_of(dataset)
        if is_whole and _fits(preset, season.pages) and seed == seeds[0]:
            keeps.append(SAMPLES)
        if is_whole and _fits(preset, season.answers):
            keeps.append(RETRIEVED)
        facts = {
            "dataset": dataset,
            "preset": preset,
            "seed": seed,
            "folder": self._folder(dataset, preset, seed),
            "precision": season.precision,
            "numerics": season.numerics,
            "threads": season.threads,
            "keeps": tuple(keeps),
        }
        if row.fuse:
            cell = Fusion(**facts, **self._fused(dataset, preset, seed))
        else:
            cell = Cell(**facts, **self._trained(dataset, preset, seed))
        if cell.key in self.cells or cell.key in self.fusions:
            raise UserError(
                f"season {self.name}: {preset} on {dataset}",
                expected="names that give each cell a key of its own",
                found=f"{cell.key}, which another cell has, too",
                do="rename one of them, without a hyphen",
            )
        (self.fusions if row.fuse else self.cells)[cell.key] = cell

    def _folder(self, dataset: str, preset: str, seed: int) -> str:
        kept_as = f"{prefix_of(dataset)}{preset}/{seed}"
        return f"{CELLS}/{self.name}/{folder_of(dataset)}/{kept_as}"

    def _trained(self, dataset: str, preset: str, seed: int) -> dict:
        """What is a cell's own."""
        method, row = self.known[preset]
        options, takes = self._takes(dataset, preset)
        settings = self.season.datasets[dataset]
        backbone = start = words = texts = None
        if takes.image == "pixels":
            backbone = module_of(self._network(dataset, settings.image.network, row))
        if row.start:
            self._check_run(dataset, preset, row.start, seed)
            folder = self._folder(dataset, row.start, seed)
            start = f"data/checkpoints/{folder.removeprefix(f'{CELLS}/')}.pt"
        if takes.text == "words":
            words = self._encoding(dataset, "words", "word2vec", settings.words)
        if takes.text in VECTORS:
            encoder = row.sentence or "mean_words"
            chosen = self._set_for(preset, self.season.sentence_of)
            if chosen:
                encoder = chosen[-1]
            if takes.text == "contextual":
                encoder = TRANSFORMER
            texts = self._vectors(dataset, VECTORS[takes.text], encoder)
        return {
            "method": method,
            "family": row.family,
            "options": options,
            "scaled": sorted(self._options(preset, self.season.options)),
            "validation_images": self.season.validation_images,
            "network": row.network,
            "words": words,
            "texts": texts,
            "images": self._images(dataset, row, takes.image),
            "backbone": backbone,
            "start": start,
        }

    def _fused(self, dataset: str, preset: str, seed: int) -> dict:
        """What is a fusion's own. Scores of retrieval can be averaged; "weighted" mixes
        them with those of localisation. A named part is a score that the member's
        method declares."""
        fuse = self.known[preset][1].fuse
        where = f"season {self.name}: {preset}"
        advice = "correct `fuse` of the preset"
        for name, _ in fuse.members:
            self._check_run(dataset, preset, name, seed)
        takes = [self._takes(dataset, name)[1] for name, _ in fuse.members]
        tasks = [each.task for each in takes]
        weighted = ["retrieval", "localisation"]
        expected = weighted if fuse.how == "weighted" else ["retrieval"] * len(takes)
        if tasks != expected:
            raise UserError(
                where,
                expected=f"presets of {', '.join(expected)} for how: {fuse.how}",
                found=f"presets of {', '.join(tasks)}",
                do=advice,
            )
        for (name, part), member in zip(fuse.members, takes, strict=True):
            if part and part not in member.scores:
                scores = ", ".join(member.scores) or "(none is named)"
                raise UserError(
                    where,
                    expected=f"a score of {name}: {scores}",
                    found=part,
                    do=advice,
                )
        return {
            "how": fuse.how,
            "members": [self._folder(dataset, name, seed) for name, _ in fuse.members],
            "parts": [part for _, part in fuse.members],
        }

    def _check_run(self, dataset: str, preset: str, other: str, seed: int) -> None:
        """The season runs what a preset fuses or starts from, with this seed."""
        if other not in self.presets(dataset) or seed not in self.seeds(dataset, other):
            where = f"season {self.name}: {preset}"
            expected = f"{other}, which it needs, on {dataset} with seed {seed}"
            advice = "correct `presets`, `seeds` or `seeds_of`"
            if fold_of(dataset):
                advice = "correct `fold_presets`"
            raise UserError(
                where,
                expected=expected,
                found="no such cell",
                do=advice,
            )

    # Feature sets, by the folders that cells read -------------------------------------

    def _images(self, dataset: str, row: Preset, kind: str) -> str:
        chosen = self.season.datasets[dataset]
        settings = chosen.proposals if kind == "proposals" else chosen.image
        network = self._network(dataset, settings.network, row)
        changed: dict[str, object] = {"network": network}
        if kind != "proposals":
            kind = "pictures"
            own = settings.features if network == settings.network else None
            changed["features"] = chosen.features.get(network, own)
            if changed["features"]:
                changed["pixels"] = 0
            elif row.grid:
                changed["grid"] = row.grid
        settings = settings.model_copy(update=changed)
        return self._encoding(dataset, kind, module_of(network), settings)

    def _network(self, dataset: str, chosen: str, row: Preset) -> str:
        """The network of a preset: the season's, or the paper's where the season says
        so."""
        if chosen != AS_IN_PAPER:
            return chosen
        if row.network is None:
            raise UserError(
                f"season {self.name}: datasets.{dataset}: network: {AS_IN_PAPER}",
                expected=f"a network of the preset {row.title}",
                found="none",
                do="name a network for the dataset",
            )
        return row.network

    def _vectors(self, dataset: str, kind: str, encoder: str) -> str:
        """Of captions, of their tokens, or of phrases."""
        chosen = self.season.datasets[dataset]
        by_encoder = chosen.phrases if kind == "phrases" else chosen.sentence
        settings = by_encoder.get(encoder, SentenceEncoder())
        source = last = ""
        if encoder != TRANSFORMER:
            words = settings.words or chosen.words
            source = self._encoding(dataset, "words", "word2vec", words)
            last = words.slug
        elif not settings.weights:
            raise UserError(
                f"season {self.name}: datasets.{dataset}: {encoder} for {kind}",
                expected="the folder of its weights",
                found="none",
                do=f"add `{encoder}: {{weights: FOLDER}}` to its sentence encoders",
            )
        elif kind == "contexts":
            settings = SentenceEncoder(weights=settings.weights)
            last = "tokens"
        marks = [encoder, settings.slug, last]
        if kind == "phrases":
            marks.insert(0, "phrases")
        slug = "_".join(filter(None, marks))
        return self._encoding(dataset, kind, encoder, settings, slug, source)

    def _encoding(
        self,
        dataset: str,
        kind: str,
        encoder: str,
        settings: Any,
        slug: str = "",
        source: str = "",
    ) -> str:
        """The folder of a feature set. What is fitted to nothing is computed once, for
        the whole dataset, and taken from there for its folds."""
        slug = slug or settings.slug
        fold = fold_of(dataset)
        folder = f"data/features/{dataset}/{slug}"
        is_fixed = kind in ("pictures", "proposals") or encoder == TRANSFORMER
        if fold and is_fixed:
            whole = fold.dataset
            source = self._encoding(whole, kind, encoder, settings, slug)
        self.feature_sets[f"{dataset}-{slug}"] = FeatureSet(
            dataset=dataset,
            reader=self.season.datasets[dataset].reader or dataset,
            kind=kind,
            encoder=encoder,
            folder=folder,
            source=source or f"data/prepared/{dataset}",
            **{SETTINGS.get(kind, "sentence"): settings},
        )
        return folder


def _fits(preset: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(preset, pattern) for pattern in patterns)
