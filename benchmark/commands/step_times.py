"""How long the trainings of a season take here: two steps of each preset, timed and multiplied out.

The steps are those of the training loop, on made-up data of the right shapes; validation is timed
on the same data. Encoding, evaluation and closed-form solutions are not counted.
"""

from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmark.commands.data_shapes import SeasonShapes, UnknownShapeError, structure
from benchmark.core.devices import begin, now, set_precision
from benchmark.core.progress_bars import ProgressBar
from benchmark.matching import scoring
from benchmark.matching.localisation_inputs import PhraseInputs
from benchmark.matching.retrieval_inputs import SplitInputs
from benchmark.season.method_options import configured, inputs_of, method_of
from benchmark.season.parameters import Cell, Params
from benchmark.train.resumable_loop import Run, optimiser_of
from methods import Batch, Captions, Phase, RegionBatch, Sizes

TIMED = 2  # steps of each phase; one more comes first, to warm up
FITTING = 3  # assumed: proposals that fit a phrase well; the others hardly do

Data = SplitInputs | PhraseInputs


class Rehearsal:
    """A cell's method, built for and fed with made-up data.

    Raises UnknownShapeError where the data's shapes are not known.
    """

    def __init__(self, shapes: SeasonShapes, cell: Cell) -> None:
        self.cell, self.method = cell, method_of(cell.method)
        where = f"preset {cell.preset}"
        self.config = configured(self.method, cell.options, where)
        self.takes = inputs_of(self.method, cell.options, where)
        self.size, self.images = shapes.dataset(cell.dataset), shapes.feature_set(cell.images)
        folders = [folder for folder in (cell.images, cell.texts, cell.words) if folder]
        self.arrays: dict[str, tuple[int, ...]] = {}
        for folder in folders:
            self.arrays |= shapes.arrays(shapes.feature_set(folder))
        self.is_vectors = self.takes.text in ("sentence", "phrase")
        self.sizes = Sizes(
            image=self._shape("pooled" if self.takes.image == "pixels" else self.takes.image)[-1],
            text=self._shape(self.takes.text)[-1] if self.is_vectors else self.size.words,
            classes=round(self.size.groups * (self.takes.clusters or 1)),
        )

    @property
    def phases(self) -> list[Phase]:
        return self.method.recipe(self.config)

    def steps(self, phase: Phase) -> float:
        """Steps of all epochs of a phase; the last batch of an epoch counts as far as it fills."""
        train = self.size.counts["train"]
        drawn = train["phrases" if self.takes.task == "localisation" else phase.draws]
        return phase.epochs * drawn / phase.batch_size

    def validation(self) -> dict[str, float]:
        """How many items of the validation split are scored after every epoch."""
        counts = self.size.counts.get("val", dict.fromkeys(("images", "captions", "phrases"), 0))
        share = min(1, (self.cell.validation_images or counts["images"]) / max(counts["images"], 1))
        return {items: share * count for items, count in counts.items()}

    def model(self) -> nn.Module:
        """With random weights, on torch's default device."""
        parts = {}
        if self.takes.word_vectors:
            parts["word_vectors"] = torch.zeros(self.sizes.text, self._shape("words")[-1])
        if self.takes.image == "pixels":
            parts["image_network"] = structure(self.images.encoder, self.images.image.network)
        return self.method.Model(self.config, self.sizes, **parts)

    def data(self, phase: Phase, device: torch.device) -> Data:
        """The rows of one batch, and of its pool where the phase has one."""
        owners = torch.arange(phase.batch_size).repeat_interleave(phase.captions_per_image)
        if self.takes.task == "localisation":
            return self._phrases(owners, device)
        owners = torch.cat([owners, torch.arange(phase.pool) % phase.batch_size])
        captions = self._captions(len(owners))
        groups = torch.arange(phase.batch_size)
        images = self._random(phase.batch_size, *self._shape(self.takes.image))
        is_pixels = self.takes.image == "pixels"
        return SplitInputs(
            images=images.to(torch.uint8) if is_pixels else images.to(device),
            captions=Captions(
                values=captions.values.to(device), lengths=captions.lengths.to(device)
            ),
            image_of_caption=owners.to(device),
            group_of_image=groups.to(device),
            class_of_image=(groups % max(self.sizes.classes, 1)).to(device),
            device=device,
        )

    def _phrases(self, owners: Tensor, device: torch.device) -> PhraseInputs:
        """Each phrase in an image of its own."""
        images, proposals = int(owners[-1]) + 1, self._shape("proposals")[0]
        ious = torch.where(torch.arange(proposals) < FITTING, 0.8, 0.1)
        return PhraseInputs(
            proposals=self._random(images, *self._shape("proposals")),
            truths=self._random(len(owners), self.sizes.image),
            boxes=torch.ones(images, proposals, 4),
            ious=ious.repeat(len(owners), 1),
            image_of_phrase=owners,
            chain_of_phrase=owners,
            vectors=self._random(len(owners), self.sizes.text),
            vector_of_phrase=torch.arange(len(owners)),
            device=device,
        )

    def _captions(self, rows: int) -> Captions:
        if self.is_vectors:
            values = self._random(rows, self.sizes.text).float()
            return Captions(values=values, lengths=torch.ones(rows, dtype=torch.int64))
        drawn = np.random.default_rng(0).choice(self.size.lengths, rows).clip(1)
        lengths = torch.from_numpy(drawn) + (2 if self.takes.text == "tokens" else 0)  # its frame
        words = torch.randint(1, self.sizes.text, (rows, int(lengths.max())))
        is_word = torch.arange(words.shape[1]) < lengths[:, None]
        return Captions(values=words * is_word, lengths=lengths)

    def _random(self, *shape: int) -> Tensor:
        return torch.randn(shape).half()

    def _shape(self, array: str) -> tuple[int, ...]:
        if array not in self.arrays:
            raise UnknownShapeError(f"{self.images.folder}: has no {array}")
        return self.arrays[array]


def preset_times(params: Params, shapes: SeasonShapes) -> list[dict]:
    """One row per dataset and preset that is not trained yet: how many trainings, the steps of one,
    and the hours of all, the fewest and the most; else the reason why they are not known."""
    device, rows = begin(params.device), []
    left = [cell for cell in params.cells.values() if not _is_trained(cell)]
    groups = [list(same) for _, same in groupby(left, lambda cell: (cell.dataset, cell.preset))]
    title = "timing steps (doctor --quick does not)"
    for same in ProgressBar(groups, desc=title, unit="preset", leave=False):
        cell = same[0]
        set_precision(cell.precision)
        row = {"dataset": cell.dataset, "preset": cell.preset, "trainings": len(same)}
        try:
            steps, low, high = _total(Rehearsal(shapes, cell), device)
            hours = [len(same) * seconds / 3600 for seconds in (low, high)]
            rows.append(row | {"steps": round(steps), "hours": hours})
        except Exception as error:  # a method is anyone's code and may raise anything
            rows.append(row | {"reason": reason_of(error)})
    return rows


def reason_of(error: Exception) -> str:
    """Why something is not known, as one line."""
    if isinstance(error, UnknownShapeError):
        return str(error)
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _is_trained(cell: Cell) -> bool:
    return (Path(cell.folder) / "training/cost.json").is_file()


def _total(rehearsal: Rehearsal, device: torch.device) -> tuple[float, ...]:
    """Steps of a training, and the fewest and the most seconds that it takes."""
    if not rehearsal.phases:
        reason = "solved in closed form" if rehearsal.takes.fit else "its weights stay as they are"
        raise UnknownShapeError(f"no training steps: {reason}")
    model, totals = rehearsal.model().to(device), np.zeros(3)
    for phase in rehearsal.phases:
        data = rehearsal.data(phase, device)
        steps, seconds = rehearsal.steps(phase), _step_seconds(model, phase, data, rehearsal.cell)
        after = phase.epochs * _validation_seconds(model, data, rehearsal.validation())
        totals += steps, steps * min(seconds) + after, steps * max(seconds) + after
    return tuple(totals.tolist())


def _step_seconds(model: nn.Module, phase: Phase, data: Data, cell: Cell) -> list[float]:
    """Of each timed step of a phase."""
    run, ends = run_of(model, phase, data, cell), [now(data.device)]
    for _ in range(1 + TIMED):
        run.step(batch_of(data, phase), phase)
        ends.append(now(data.device))
    return np.diff(ends)[1:].tolist()


def run_of(model: nn.Module, phase: Phase, data: Data, cell: Cell) -> Run:
    """A training that is about to play a step of a phase. Nothing is written."""
    run = Run(
        model=model.train(),
        phases=[phase],
        train=data,
        validate=lambda model: {},
        seed=0,
        autocast=cell.precision == "bfloat16",
        scratch=Path(".scratch/doctor"),
        name="doctor",
    )
    run.optimiser = optimiser_of(model, phase)
    return run


def batch_of(data: Data, phase: Phase) -> Batch | RegionBatch:
    """All rows, of which the last ones are the pool where the phase has one."""
    drawn, pool = np.split(np.arange(len(data.owners)), [len(data.owners) - phase.pool])
    return data.batch(drawn, pool if phase.pool else None)


def _validation_seconds(model: nn.Module, data: Data, counts: dict[str, float]) -> float:
    """Of scoring a validation split of so many items, from scoring the made-up rows."""
    model.eval()
    if isinstance(data, PhraseInputs):
        started = now(data.device)
        scoring.score_proposals(model, data)
        return (now(data.device) - started) * counts["phrases"] / len(data.owners)
    images, captions = counts["images"], counts["captions"]
    split = scoring.encoded(model, data)
    started = now(data.device)
    scoring.score_pairs(model.similarity, split.images, split.captions)
    per_pair = (now(data.device) - started) / split.size
    return (
        split.seconds["per_image"] * images
        + split.seconds["per_caption"] * captions
        + per_pair * images * captions
    )
