"""From a season file to its cells: with which options and features each is run."""

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmark.contracts import methods as contract
from benchmark.contracts.methods import Inputs
from benchmark.core.errors import UserError
from benchmark.core.files import sha256
from benchmark.core.names import fold_of
from benchmark.season import plugins
from benchmark.season.declaring import SeasonNames, fits
from benchmark.season.parameters import (
    AS_IN_PAPER,
    CELLS,
    RETRIEVED,
    SAMPLES,
    TRANSFORMER,
    Brought,
    Cell,
    FeatureSet,
    Fusion,
    Option,
    Params,
    Season,
    SentenceEncoder,
    module_of,
)
from benchmark.season.plugins import Known, Preset

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
    their code and options, so that neither unchanged methods nor torch are imported;
    what is found is added to it. `only` names a cell or a preset: the result then has
    its cells and those that these need, and no other method file is imported; all cells
    if it names nothing. Raises UserError for the first name that fits nothing.
    """
    names = SeasonNames.of(name, season, known, brought)
    resolver = _Resolver(names, {} if remembered is None else remembered)
    for cell in names.cells(only):
        resolver.add(*cell)
    return Params(
        device=season.device,
        feature_sets=resolver.feature_sets,
        cells=resolver.cells,
        fusions=resolver.fusions,
        **names.facts,
    )


class _Resolver:
    """Cells, fusions and feature sets of a season, in the order in which they are asked
    for."""

    def __init__(self, names: SeasonNames, remembered: dict) -> None:
        self.names, self.name = names, names.name
        self.season = names.season
        self.known = names.known
        self.remembered = remembered
        self.contract = sha256(Path(contract.__file__))
        self.code: dict[str, str] = {}  # of methods, by name or file
        self.feature_sets: dict[str, FeatureSet] = {}
        self.cells: dict[str, Cell] = {}
        self.fusions: dict[str, Fusion] = {}

    def _options_and_takes(
        self, dataset: str, preset: str
    ) -> tuple[dict[str, Option], Inputs]:
        """The options of a preset, and what its method takes and offers with them. An
        option that is none is refused here, not hours later."""
        method, row = self.known[preset]
        of_dataset = self.names.options(preset, self.season.datasets[dataset].changes)
        of_season = self.names.options(preset, self.season.options)
        options = row.options | of_dataset | of_season
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
        """Add a cell or a fusion. Raises UserError if its key is taken: names may have
        hyphens, which also separate the parts of keys."""
        season = self.season
        _, row = self.known[preset]
        keeps = []
        seeds = self.names.seeds(dataset, preset)
        is_whole = not fold_of(dataset)
        if is_whole and fits(preset, season.pages) and seed == seeds[0]:
            keeps.append(SAMPLES)
        if is_whole and fits(preset, season.answers):
            keeps.append(RETRIEVED)
        facts = {
            "dataset": dataset,
            "preset": preset,
            "seed": seed,
            "folder": self.names.folder(dataset, preset, seed),
            "precision": season.precision,
            "numerics": season.numerics,
            "threads": season.threads,
            "keeps": tuple(keeps),
        }
        if row.fuse:
            cell = Fusion(**facts, **self._fused(dataset, preset, seed))
        else:
            cell = Cell(**facts, **self._trained(dataset, preset, seed))
        self.names.check_key(cell, {**self.cells, **self.fusions})
        if row.fuse:
            self.fusions[cell.key] = cell
        else:
            self.cells[cell.key] = cell

    def _trained(self, dataset: str, preset: str, seed: int) -> dict:
        """What is a cell's own."""
        method, row = self.known[preset]
        options, takes = self._options_and_takes(dataset, preset)
        settings = self.season.datasets[dataset]
        backbone = start = words = texts = None
        if takes.image == "pixels":
            backbone = module_of(self._network(dataset, settings.image.network, row))
        if row.start:
            self.names.check_run(dataset, preset, row.start, seed)
            folder = self.names.folder(dataset, row.start, seed)
            start = f"data/checkpoints/{folder.removeprefix(f'{CELLS}/')}.pt"
        if takes.text == "words":
            words = self._encoding(dataset, "words", "word2vec", settings.words)
        if takes.text in VECTORS:
            encoder = row.sentence or "mean_words"
            chosen = self.names.set_for(preset, self.season.sentence_of)
            if chosen:
                encoder = chosen[-1]
            if takes.text == "contextual":
                encoder = TRANSFORMER
            texts = self._vectors(dataset, VECTORS[takes.text], encoder)
        return {
            "method": method,
            "family": row.family,
            "options": options,
            "scaled": sorted(self.names.options(preset, self.season.options)),
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
        where, advice = f"season {self.name}: {preset}", "correct `fuse` of the preset"
        members = self.names.members(dataset, preset, seed)
        takes = [self._options_and_takes(dataset, name)[1] for name, _ in fuse.members]
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
            "members": members,
            "parts": [part for _, part in fuse.members],
        }

    # Feature sets, by the folders that cells read -------------------------------------

    def _images(self, dataset: str, row: Preset, kind: str) -> str:
        chosen = self.season.datasets[dataset]
        settings = chosen.proposals if kind == "proposals" else chosen.image
        network = self._network(dataset, settings.network, row)
        changed: dict[str, object] = {"network": network}
        if kind != "proposals":
            kind = "pictures"
            # features of `image` are of its own network; of others, see `features`
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
        """Add a feature set, and return its folder. Features that are fitted to no data
        are computed once, for the whole dataset, and its folds take them from there."""
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
