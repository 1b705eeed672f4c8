"""From a season file to its cells: which presets are played, with which options and features."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from benchmark.core.errors import UserError, checked
from benchmark.core.files import read_yaml
from benchmark.core.suggestions import suggested
from benchmark.season.method_options import inputs_of, method_of
from benchmark.season.networks import module_of
from benchmark.season.parameters import (
    AS_IN_PAPER,
    BROUGHT,
    Brought,
    Cell,
    FeatureSet,
    Fusion,
    Option,
    Params,
    SentenceEncoder,
    WordVectors,
)
from benchmark.season.presets import Fuse, Preset, needs, own_presets, presets
from benchmark.season.season_files import SEASONS, Season
from benchmark.season.season_keys import called, check_encoders, check_keys
from methods import Inputs

Value = TypeVar("Value")


def resolve(
    name: str, season: Season, known: dict[str, tuple[str, Preset]] | None = None
) -> Params:
    """The season with every cell spelt out. `name` becomes a folder of results/ and reports/.

    `known` maps presets to their method and content; by default those of methods/.
    """
    known = (presets() if known is None else known) | own_presets(season.methods)
    if season.presets == "all":
        season = season.model_copy(update={"presets": list(known)})
    season = season.model_copy(update={"presets": _with_needs(season.presets, known)})
    _check(name, season, known)
    resolver = _Resolver(name, season, known)
    for dataset in season.datasets:
        for preset in resolver.presets(dataset):
            for seed in resolver.seeds(preset):
                resolver.add(dataset, preset, seed)
    return Params(
        season=name,
        title=season.title,
        device=season.device,
        weights_dir=None,
        datasets={
            key: settings.model_copy(update={"reader": settings.reader or key})
            for key, settings in season.datasets.items()
        },
        feature_sets=resolver.feature_sets,
        cells=resolver.cells,
        fusions=resolver.fusions,
        methods=season.methods,
        claims=season.claims,
    )


def _with_needs(names: list[str], known: dict[str, tuple[str, Preset]]) -> list[str]:
    """The presets, and behind them what these are made of."""
    needed = [each for name in names if name in known for each in needs(name, known)]
    return list(dict.fromkeys([*names, *needed]))


def _check(name: str, season: Season, known: dict[str, tuple[str, Preset]]) -> None:
    """Every name of a season file is of something."""
    unknown = [preset for preset in season.presets if preset not in known]
    if unknown:
        raise UserError(
            f"season {name}: preset {unknown[0]!r}",
            f"one of {len(known)} presets",
            f"no such preset: {suggested(unknown[0], known)}",
            "correct `presets` of the season file; see: python -m benchmark list presets",
        )
    _check_rows(name, season)
    _check_claims(name, season, known)
    check_keys(name, season, known)
    check_encoders(name, season, known)


def _check_claims(name: str, season: Season, known: dict[str, tuple[str, Preset]]) -> None:
    """Own claims are on presets that the season plays, or on rows that `score` added."""
    played = {*season.presets, *_brought(name)}
    for number, claim in enumerate(season.claims, 1):
        for field, preset in (("better", claim.better), ("than", claim.than)):
            if preset not in played:
                where = f"season {name}: claims: number {number}: {field}"
                expected = f"one of {', '.join(sorted(played))}"
                found = suggested(preset, played)
                raise UserError(where, expected, found, "correct it, or play it")


def _check_rows(name: str, season: Season) -> None:
    """A preset does not take the name, and so the folder, of a row that `score` added."""
    rows = _brought(name)
    for preset in season.presets:
        if preset in rows:
            do = f"call the preset otherwise, or delete {rows[preset]} and its results"
            expected, found = "a name that no row has which was brought along", "one"
            raise UserError(f"season {name}: preset {preset}", expected, found, do)


def _brought(name: str) -> dict[str, Path]:
    """The rows that `score` added to a season, with the file of one of their seeds."""
    files = sorted((SEASONS / name / BROUGHT).glob("*.yaml"))
    return {checked(Brought, read_yaml(path), str(path)).preset: path for path in files}


class _Resolver:
    """Cells, fusions and feature_sets of a season, in the order they are asked for."""

    def __init__(self, name: str, season: Season, known: dict[str, tuple[str, Preset]]) -> None:
        self.name, self.season, self.known = name, season, known
        self.feature_sets: dict[str, FeatureSet] = {}
        self.cells: dict[str, Cell] = {}
        self.fusions: dict[str, Fusion] = {}

    def presets(self, dataset: str) -> list[str]:
        """Those of the season that are played on a dataset."""
        patterns = self.season.datasets[dataset].presets
        wanted = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
        unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
        return [
            preset
            for preset in self.season.presets
            if any(fnmatchcase(preset, pattern) for pattern in wanted)
            and not any(fnmatchcase(preset, pattern) for pattern in unwanted)
        ]

    def seeds(self, preset: str) -> list[int]:
        return self._set_for(preset, self.season.seeds_of) or self.season.seeds

    def _sentence_encoder(self, preset: str) -> str:
        row = self.known[preset][1]
        return self._set_for(preset, self.season.sentence_of) or row.sentence or "mean_words"

    def _set_for(self, preset: str, values: dict[str, Value]) -> Value | None:
        """That of the last key that fits the preset, a method counting before patterns; or None."""
        method = called(self.season, self.known[preset][0])
        fitting = [values[key] for key in values if key != method and fnmatchcase(preset, key)]
        return fitting[-1] if fitting else values.get(method)

    def add(self, dataset: str, preset: str, seed: int) -> None:
        key = f"{dataset}-{preset}-{seed}"
        self._check_key(key, dataset, preset)
        if self.known[preset][1].fuse:
            self.fusions[key] = self._fusion(dataset, preset, seed)
        else:
            self.cells[key] = self._cell(dataset, preset, seed)

    def _check_key(self, key: str, dataset: str, preset: str) -> None:
        """Names may have hyphens, as keys do between their parts."""
        other = self.cells.get(key) or self.fusions.get(key)
        if other and (other.dataset, other.preset) != (dataset, preset):
            raise UserError(
                f"season {self.name}: {preset} on {dataset}",
                "names that give each cell a key of its own",
                f"{key}, which is {other.preset} on {other.dataset}, too",
                "call one of them otherwise, without a hyphen",
            )

    def _folder(self, dataset: str, preset: str, seed: int) -> str:
        return f"results/{self.name}/{dataset}/{preset}/{seed}"

    def _cell(self, dataset: str, preset: str, seed: int) -> Cell:
        method, row = self.known[preset]
        settings = self.season.datasets[dataset]
        options, scaled = self._options(dataset, preset)
        takes = self._inputs(dataset, preset)
        texts = words = backbone = None
        if takes.text == "words":
            words = self._words(dataset)
        elif takes.text == "sentence":
            texts = self._sentence(dataset, self._sentence_encoder(preset))
        elif takes.text == "phrase":
            texts = self._phrases(dataset, self._sentence_encoder(preset))
        if takes.image == "pixels":
            backbone = module_of(self._network(dataset, settings.image.network, row))
        return Cell(
            dataset=dataset,
            preset=preset,
            seed=seed,
            method=method,
            family=row.family,
            options=options,
            scaled=sorted(scaled),
            precision=self.season.precision,
            numerics=self.season.numerics,
            threads=self.season.threads,
            validation_images=self.season.validation_images,
            network=row.network,
            images=self._images(dataset, row, takes.image),
            backbone=backbone,
            texts=texts,
            words=words,
            start=self._start(dataset, preset, row, seed),
            folder=self._folder(dataset, preset, seed),
        )

    def _start(self, dataset: str, preset: str, row: Preset, seed: int) -> str | None:
        if row.start is None:
            return None
        self._check_played(dataset, preset, "starts from", row.start, seed)
        return f"data/checkpoints/{self.name}/{dataset}/{row.start}/{seed}.pt"

    def _fusion(self, dataset: str, preset: str, seed: int) -> Fusion:
        fuse = self.known[preset][1].fuse
        names, parts = zip(*(_name_and_part(member) for member in fuse.of), strict=True)
        for member in names:
            self._check_played(dataset, preset, "fuses", member, seed)
        self._check_members(dataset, preset, fuse, names, parts)
        folders = [self._folder(dataset, member, seed) for member in names]
        return Fusion(
            dataset=dataset,
            preset=preset,
            seed=seed,
            how=fuse.how,
            members=folders,
            parts=list(parts),
            precision=self.season.precision,
            numerics=self.season.numerics,
            threads=self.season.threads,
            folder=self._folder(dataset, preset, seed),
        )

    def _check_members(
        self,
        dataset: str,
        preset: str,
        fuse: Fuse,
        names: tuple[str, ...],
        parts: tuple[str, ...],
    ) -> None:
        """Scores of retrieval can be averaged; "weighted" mixes them with those of localisation. A
        named part is a score that the member's method declares."""
        takes = [self._inputs(dataset, member) for member in names]
        expected = ["retrieval"] * len(names)
        if fuse.how == "weighted":
            expected = ["retrieval", "localisation"]
        if [member.task for member in takes] != expected:
            raise UserError(
                f"season {self.name}: {preset}: how: {fuse.how}",
                f"presets of {', '.join(expected)}",
                f"{', '.join(names)}, of {', '.join(member.task for member in takes)}",
                "correct `fuse` of the preset",
            )
        for name, part, member in zip(names, parts, takes, strict=True):
            if part and part not in member.scores:
                raise UserError(
                    f"season {self.name}: {preset}: {name}:{part}",
                    f"a score of {name}: {', '.join(member.scores) or '(none is named)'}",
                    "no such score",
                    "correct `fuse` of the preset",
                )

    def _options(self, dataset: str, preset: str) -> tuple[dict[str, Option], dict[str, Option]]:
        """Those of a preset on a dataset, and of these what the season sets to fit its budget."""
        method, row = self.known[preset]
        name, changes = called(self.season, method), self.season.datasets[dataset].changes
        scaled = _chosen(self.season.options, name, preset)
        return row.options | _chosen(changes, name, preset) | scaled, scaled

    def _inputs(self, dataset: str, preset: str) -> Inputs:
        """What the method of a preset takes and offers. An option that is none is refused here, not
        hours later."""
        options, _ = self._options(dataset, preset)
        return inputs_of(method_of(self.known[preset][0]), options, f"preset {preset}")

    def _check_played(self, dataset: str, preset: str, verb: str, other: str, seed: int) -> None:
        if other not in self.presets(dataset):
            raise UserError(
                f"season {self.name}: {preset}",
                f"the preset that it {verb}, {other}",
                f"a season that does not play it on {dataset}",
                "add it to `presets`",
            )
        if seed not in self.seeds(other):
            raise UserError(
                f"season {self.name}: {preset}: seed {seed}",
                f"a seed of {other}, which it {verb}: {', '.join(map(str, self.seeds(other)))}",
                "no such seed",
                "correct `seeds` or `seeds_of`",
            )

    def _images(self, dataset: str, row: Preset, kind: str) -> str:
        """The folder of the image features that a preset is fed."""
        chosen = self.season.datasets[dataset]
        settings = chosen.proposals if kind == "proposals" else chosen.image
        network = self._network(dataset, settings.network, row)
        if kind == "proposals":
            settings = settings.model_copy(update={"network": network})
            return self._encoding(
                dataset, "proposals", module_of(network), settings.slug, proposals=settings
            )
        own = settings.features if network == settings.network else None
        changed = {"network": network, "features": chosen.features.get(network, own)}
        if changed["features"]:
            changed |= {"pixels": 0}
        elif row.grid:
            changed |= {"grid": row.grid}
        image = settings.model_copy(update=changed)
        return self._encoding(dataset, "pictures", module_of(network), image.slug, image=image)

    def _network(self, dataset: str, chosen: str, row: Preset) -> str:
        """The network of a preset: the season's, or the paper's where the season says so."""
        if chosen != AS_IN_PAPER:
            return chosen
        if row.network is None:
            raise UserError(
                f"season {self.name}: datasets.{dataset}: network: {AS_IN_PAPER}",
                f"a network of the preset {row.title}",
                "none",
                "name a network for the dataset",
            )
        return row.network

    def _words(self, dataset: str, settings: WordVectors | None = None) -> str:
        settings = settings or self.season.datasets[dataset].words
        return self._encoding(dataset, "words", "word2vec", settings.slug, words=settings)

    def _sentence(self, dataset: str, encoder: str) -> str:
        settings = self.season.datasets[dataset].sentence.get(encoder, SentenceEncoder())
        return self._vectors(dataset, "sentences", encoder, settings)

    def _phrases(self, dataset: str, encoder: str) -> str:
        settings = self.season.datasets[dataset].phrases.get(encoder, SentenceEncoder())
        return self._vectors(dataset, "phrases", encoder, settings)

    def _vectors(self, dataset: str, kind: str, encoder: str, settings: SentenceEncoder) -> str:
        words = settings.words or self.season.datasets[dataset].words
        marks = ["phrases"] * (kind == "phrases") + [encoder, settings.slug, words.slug]
        slug, source = "_".join(filter(None, marks)), self._words(dataset, words)
        return self._encoding(dataset, kind, encoder, slug, source, sentence=settings)

    def _encoding(
        self, dataset: str, kind: str, encoder: str, slug: str, source: str = "", **settings
    ) -> str:
        """The folder of an encoding, which the season now has."""
        folder = f"data/features/{dataset}/{slug}"
        self.feature_sets[f"{dataset}-{slug}"] = FeatureSet(
            dataset=dataset,
            reader=self.season.datasets[dataset].reader or dataset,
            kind=kind,
            encoder=encoder,
            folder=folder,
            source=source or f"data/prepared/{dataset}",
            **settings,
        )
        return folder


def _chosen(options: dict[str, dict[str, Option]], method: str, preset: str) -> dict[str, Option]:
    """What is set for a preset: the method's options, then those of patterns, in their order."""
    chosen = dict(options.get(method, {}))
    for key, values in options.items():
        if key != method and fnmatchcase(preset, key):
            chosen |= values
    return chosen


def _name_and_part(member: str) -> tuple[str, str]:
    """Preset and named score of a fusion's member, "preset" or "preset:score"."""
    name, _, part = member.partition(":")
    return name, part
