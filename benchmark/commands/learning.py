"""What a method learns of a few made-up pairs: whether they score highest, or others
do.

Shape legend: B = pairs, N = proposals that do not fit.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from benchmark.commands.trials import FITTED, PAIRS, Trial
from benchmark.contracts.methods import Captions, Phase

RATES = 0.005, 0.0005  # of Adam; the second where the first teaches nothing
STEPS, LOOK_EVERY = 240, 20  # of a phase at most; between two looks at the scores
LOWER, SMALL = 0.7, 1e-3  # of its first value, what the loss must fall to, or to this
LEAD = 0.25  # of true pairs over every other pairing, in standard deviations of scores
REGION_LEAD = 1.0  # of true regions over proposals that do not fit
FITS = 0.5  # intersection over union of a proposal that may be as good as the truth
SHOWN = 3  # wrong pairs that a message names


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Mean scores of the true pairs, and of the best pairs that are not true."""

    true: float
    other: float
    spread: float  # standard deviation of all scores
    lead: float  # that is enough, in such deviations
    # of each image the caption in the best other pairing
    partners: tuple[int, ...] = ()

    @property
    def is_learned(self) -> bool:
        """Whether the true pairs lead; not where a score is not finite."""
        return self.true - self.other > self.lead * self.spread

    @property
    def mistake(self) -> str:
        """What is wrong where they do not."""
        if not self.partners:
            return (
                f"true regions score {self.true:.3g} on average, proposals that do not "
                f"fit {self.other:.3g}: is a target of the loss wrong?"
            )
        pairs = []
        for image, caption in enumerate(self.partners[:SHOWN]):
            pairs.append(f"image {image + 1} with caption {caption + 1}")
        return (
            f"true pairs score {self.true:.3g} on average, others up to "
            f"{self.other:.3g}, as {', '.join(pairs)}: is a target of the loss, its "
            f"sign or that of the score wrong?"
        )


class Training:
    """A training on one batch of made-up pairs."""

    def __init__(
        self, trial: Trial, phases: list[Phase], rate: float = RATES[0]
    ) -> None:
        self.trial = trial
        self.model = trial.model(seed=5).train()
        self.batch = trial.batch(list(range(PAIRS)), phases)
        self.trained = [x for x in self.model.parameters() if x.requires_grad]
        self.start = [x.detach().clone() for x in self.trained]
        self.optimiser = torch.optim.Adam(self.trained, lr=rate)
        self.losses: list[float] = []  # of the steps of the present phase
        self.falls = False  # whether the loss of a phase fell to `LOWER` of its first
        self.note = ""  # how far it fell

    def step(self, phase: Phase) -> None:
        """One step with the terms that the phase counts."""
        terms = self.model.loss(self.batch)
        loss = sum(terms[name] for name in phase.terms or terms)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.losses.append(float(loss.detach()))
        if len(self.losses) > 1 and not self.falls:
            first = self.losses[0]
            last = self.losses[-1]
            self.falls = last <= max(LOWER * first, SMALL)
            steps = f"{len(self.losses)} steps of Adam"
            self.note = f"from {first:.3g} to {last:.3g} in {steps}"

    def pairing(self) -> Pairing:
        """How the model scores the pairs of the batch now."""
        self.model.eval()
        pairing = pairing_of(self.trial, self.model)
        self.model.train()
        return pairing

    def moved(self) -> set[str]:
        """Names of the parameters that are no longer as they began."""
        name_of = {x: name for name, x in self.model.named_parameters()}
        moved = set()
        for parameter, start in zip(self.trained, self.start, strict=True):
            if not parameter.equal(start):
                moved.add(name_of[parameter])
        return moved


def learned(trial: Trial, phases: list[Phase]) -> tuple[Training, Pairing]:
    """A training that lasts until the loss has fallen and the true pairs lead; or one
    that did not get there, through all phases and with each rate."""
    for rate in RATES:
        training = Training(trial, phases, rate)
        for phase in phases:
            training.losses = []
            while len(training.losses) < STEPS:
                for _ in range(LOOK_EVERY):
                    training.step(phase)
                pairing = training.pairing()
                if training.falls and pairing.is_learned:
                    return training, pairing
    return training, pairing


@torch.no_grad()
def pairing_of(trial: Trial, model: nn.Module) -> Pairing:
    """How a model in evaluation mode scores the pairs that it was trained on or fitted
    to."""
    if trial.takes.task == "localisation" and not trial.takes.fit:
        return _pairing_of_regions(trial, model)
    count = FITTED if trial.takes.fit else PAIRS
    images = model.encode_images(trial.images(count)[:PAIRS])
    first_captions = _rows(trial.captions(count), slice(PAIRS))
    captions = model.encode_captions(first_captions)
    scores_BB = model.similarity(images, captions).double().cpu()
    if not scores_BB.isfinite().all():
        return Pairing(true=np.nan, other=np.nan, spread=np.nan, lead=LEAD)
    others_BB = scores_BB.clone().fill_diagonal_(-torch.inf)
    rows_B, partners_B = linear_sum_assignment(others_BB.numpy(), maximize=True)
    return Pairing(
        true=float(scores_BB.diagonal().mean()),
        other=float(scores_BB[rows_B, partners_B].mean()),
        spread=float(scores_BB.std()),
        lead=LEAD,
        partners=tuple(partners_B.tolist()),
    )


def _pairing_of_regions(trial: Trial, model: nn.Module) -> Pairing:
    """Each phrase with its true region, and with proposals of its image that do not
    fit."""
    batch = trial.batch(list(range(PAIRS)), [])
    true = []
    others = []
    for row, image in enumerate(batch.image_of_row.tolist()):
        this_row = slice(row, row + 1)
        elsewhere = batch.proposals[image][batch.ious[row] < FITS]
        regions = torch.cat([batch.regions[this_row], elsewhere])
        phrase = model.encode_captions(_rows(batch.phrases, this_row))
        encoded = model.encode_images(regions)
        scores = model.similarity(encoded, phrase).double()[:, 0]
        true.append(scores[:1])
        others.append(scores[1:])
    true_B = torch.cat(true)
    others_N = torch.cat(others)
    return Pairing(
        true=float(true_B.mean()),
        other=float(others_N.mean()),
        spread=float(torch.cat([true_B, others_N]).std()),
        lead=REGION_LEAD,
    )


def _rows(captions: Captions, rows: slice) -> Captions:
    values = captions.values[rows]
    lengths = captions.lengths[rows]
    return replace(captions, values=values, lengths=lengths)


def side_names(
    model: nn.Module, images: Tensor, captions: Captions
) -> dict[str, set[str]]:
    """Names of the trained parameters that encodings of images alone follow from, and
    those that encodings of captions do. Empty where encodings carry no gradient."""
    of_images = _parameters_behind(model, model.encode_images(images))
    of_captions = _parameters_behind(model, model.encode_captions(captions))
    return {"images": of_images - of_captions, "captions": of_captions - of_images}


def _parameters_behind(model: nn.Module, encoding: tuple[Tensor, ...]) -> set[str]:
    trained = {name: x for name, x in model.named_parameters() if x.requires_grad}
    ends = [x.float().sum() for x in encoding if x.requires_grad]
    if not ends or not trained:
        return set()
    parameters = list(trained.values())
    gradients = torch.autograd.grad(sum(ends), parameters, allow_unused=True)
    behind = set()
    for name, gradient in zip(trained, gradients, strict=True):
        if gradient is not None:
            behind.add(name)
    return behind
