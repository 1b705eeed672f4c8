"""Try a method file on small made-up data: what holds of what a method promises (the contract).

    rematch check path/to/mine.py

Every preset beside the file is tried, and its defaults; of a method by name, all its presets. No
season and no dataset is needed.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from types import ModuleType

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from benchmark.contracts.methods import Batch, Captions, Inputs, Phase, RegionBatch, Sizes
from benchmark.core.devices import make_deterministic
from benchmark.core.errors import UserError, suggested
from benchmark.core.names import checked_name
from benchmark.features import drawn_cnn, text_encoders
from benchmark.scoring import model_scores
from benchmark.season.method_options import configured, inputs_of, method_of
from benchmark.season.presets import Preset, own_presets, presets
from benchmark.train.resumable_loop import optimiser_of

SIZES = Sizes(image=24, text=40, classes=8)  # of the made-up data; the same in every run
REGIONS, WORDS, SIDE, POOL, PROPOSALS, VECTOR = 64, 7, 64, 5, 6, 300
VECTORS = ("sentence", "phrase")  # text that comes as ready-made vectors
IMAGES, CAPTIONS = 6, 11
STEPS, RATE, LOWER = 60, 0.005, 0.7  # of a training on eight pairs; what its loss must fall to
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
MARKS = {True: "ok  ", False: "FAIL", None: "    "}
Ended = tuple[str, bool | None, str]  # a promise, whether it is kept (None: not tried), and a note


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", help="the path of a .py file, or a method of methods/")


def main(arguments: argparse.Namespace) -> int:
    make_deterministic()
    started, name = perf_counter(), checked_name(Path(arguments.method).stem, "check")
    module = method_of(arguments.method)
    is_own = arguments.method.endswith(".py")
    known = own_presets({name: arguments.method}) if is_own else presets()
    of_method = {key: row for key, (method, row) in known.items() if method == arguments.method}
    rows = {key: row for key, row in of_method.items() if not row.fuse}
    trials = {key: Trial(module, row.options, row) for key, row in rows.items()}
    trials, broken = trials or {name: Trial(module, {})}, 0
    for preset, trial in trials.items():
        print(f"{preset}:")
        for promise, is_kept, note in check(trial):
            broken += is_kept is False
            print(f"  {MARKS[is_kept]}  {promise}{f': {note}' if note else ''}")
    failed = f"{broken} promise{'s' * (broken != 1)} broken"
    print(f"{arguments.method}: {failed if broken else 'keeps the contract'}")
    print(f"presets tried: {len(trials)}, in {perf_counter() - started:.0f} s")
    return int(broken > 0)


class BrokenError(Exception):
    """A promise that the method does not keep, in a few words."""


@dataclass
class Trial:
    """A method with the options of one preset, and how its promises ended."""

    module: ModuleType
    options: dict
    row: Preset | None = None
    ended: list[Ended] = field(default_factory=list)

    @cached_property
    def config(self) -> object:
        return configured(self.module, self.options, "preset")

    @cached_property
    def takes(self) -> Inputs:
        return inputs_of(self.module, self.options, "preset")

    def model(self, seed: int = 0) -> nn.Module:
        torch.manual_seed(seed)
        given = {"word_vectors": _random(3, SIZES.text, VECTOR)} if self.takes.word_vectors else {}
        if self.takes.image == "pixels":
            given["image_network"] = drawn_cnn.Network(SIZES.image // 2)
        model = self.module.Model(self.config, SIZES, **given)
        if self.takes.fit:
            model.fit([(self.images(64), self.captions(64))])
        return model

    def images(self, count: int) -> Tensor:
        """(I, F), (I, R, F) or (I, 3, S, S); regions of localisation are (I, F)."""
        if self.takes.image == "pixels":
            pixels = torch.rand(count, 3, 1, 1, generator=torch.Generator().manual_seed(1))
            return (255 * pixels).to(torch.uint8).repeat(1, 1, SIDE, SIDE)
        shape = (REGIONS, SIZES.image) if self.takes.image == "regions" else (SIZES.image,)
        return _random(1, count, *shape)

    def captions(self, count: int) -> Captions:
        """Vectors (C, F), or word ids (C, W) of 2 to W words."""
        if self.takes.text in VECTORS:
            values = _random(2, count, SIZES.text)
            return Captions(values=values, lengths=torch.ones(count, dtype=torch.int64))
        generator = torch.Generator().manual_seed(2)
        lengths = torch.randint(2, WORDS + 1, (count,), generator=generator)
        lengths[0] = WORDS
        values = torch.randint(1, SIZES.text, (count, WORDS), generator=generator)
        return Captions(values=values * (torch.arange(WORDS) < lengths[:, None]), lengths=lengths)

    def batch(self, groups: list[int], phases: list[Phase]) -> Batch | RegionBatch:
        """Rows of these groups, each a class, with a pool where a phase asks for one. Of regions,
        every chain is in an image of its own, with two proposals that fit; the last image lacks its
        last proposal."""
        ids = torch.tensor(groups)
        if self.takes.task == "retrieval":
            pool = {"pool": self.captions(POOL), "pool_ids": torch.arange(POOL)}
            return Batch(
                images=self.images(int(ids.max()) + 1)[ids],
                captions=self.captions(len(ids)),
                group_ids=ids,
                class_ids=ids % SIZES.classes,
                **(pool if any(phase.pool for phase in phases) else {}),
            )
        ids = ids.repeat_interleave(max((p.captions_per_image for p in phases), default=1))
        count = int(ids.max()) + 1
        ious = torch.where(torch.arange(PROPOSALS) < 2, 0.8, 0.1).repeat(len(ids), 1)
        ious[ids == count - 1, -1] = torch.nan
        proposals = _random(4, count, PROPOSALS, SIZES.image)
        proposals[-1, -1] = 0.0
        phrases = self.captions(count)
        return RegionBatch(
            regions=self.images(count)[ids],
            phrases=Captions(values=phrases.values[ids], lengths=phrases.lengths[ids]),
            proposals=proposals,
            image_of_row=ids,
            ious=ious,
            chain_ids=ids,
        )

    @contextmanager
    def promise(self, what: str) -> Iterator[list[str]]:
        """Notes to fill; an error inside is a broken promise, and where the method raised it."""
        notes: list[str] = []
        try:
            yield notes
            self.ended.append((what, True, "; ".join(notes)))
        except (Exception, SystemExit) as error:
            told = " ".join(str(error).split())[:300]
            if not isinstance(error, BrokenError | UserError):
                frames = extract_tb(error.__traceback__)
                lines = [f.lineno for f in frames if f.filename == self.module.__file__]
                told = f"{type(error).__name__}: {told}"
                told += f" (line {lines[-1]})" if lines else ""
            self.ended.append((what, False, told))


def check(trial: Trial) -> list[Ended]:
    """Try every promise. Without a model that can be built and scores, the rest is not tried."""
    _try_parts(trial)
    if all(is_kept for _, is_kept, _ in trial.ended):
        _try_scores(trial)
        _try_training(trial)
    else:
        trial.ended.append(("the rest was not tried", None, ""))
    return trial.ended


def _try_parts(trial: Trial) -> None:
    with trial.promise("the options are of Config, and inputs says what it takes") as notes:
        config, takes = trial.config, trial.takes
        _check(type(config).__dataclass_params__.frozen, "Config is not frozen: add frozen=True")
        configured(trial.module, asdict(config), "Config")  # defaults are in their ranges, too
        try:
            TypeAdapter(Inputs).validate_python(vars(takes))
        except ValidationError as error:
            first = error.errors()[0]
            expected = first["msg"].removeprefix("Input should be ")
            told = f"inputs: {first['loc'][0]}: expected {expected}, found {first['input']!r}"
            raise BrokenError(told) from error
        sentence, known = trial.row and trial.row.sentence, text_encoders()
        if sentence not in (None, *known):
            told = f"the preset's sentence: expected one of {', '.join(known)}"
            raise BrokenError(f"{told}, found {suggested(sentence, known)}")
        notes.append(f"{takes.image} and {takes.text} for {takes.task}")
    with trial.promise("the recipe is a list of phases with one learning rate per epoch") as notes:
        phases = trial.module.recipe(trial.config)
        for number, phase in enumerate(phases, 1):
            _check(isinstance(phase, Phase), f"phase {number} is {phase!r:.60}")
            told, rates = f"phase {number}", len(phase.learning_rates)
            _check(phase.epochs == rates, f"{told}: {phase.epochs} epochs, {rates} learning rates")
            is_long_enough = phase.batch_size > 1 and phase.epochs > 0
            _check(is_long_enough, f"{told}: less than an epoch, or than two rows a batch")
        is_given = trial.takes.fit or (trial.row and trial.row.start)
        _check(phases or is_given, "it has no phase, and nothing is fitted")
        notes.append(f"phases: {len(phases)}, epochs: {sum(phase.epochs for phase in phases)}")
    with trial.promise("the Model can be built, and its phases find its parameters") as notes:
        model = trial.model()
        names = [name for name, _ in model.named_parameters()]
        for phase in trial.module.recipe(trial.config):
            optimiser_of(model, phase)
            starts = [start for start, _ in phase.rates]
            unused = [s for s in starts if not any(name.startswith(s) for name in names)]
            _check(not unused or unused != starts, f"rates: no parameter begins with {unused}")
            notes += [f"no parameter begins with {start!r}" for start in unused]
        notes.append(f"{sum(x.numel() for x in model.parameters()):,} parameters")
    with trial.promise("it gives one finite score per pair") as notes:
        scores = _scored(trial, trial.model())
        _check(scores.std() > 0, "all scores are equal")
        notes.append(f"{float(scores.min()):.3g} to {float(scores.max()):.3g}")


def _try_scores(trial: Trial) -> None:
    model, takes = trial.model().eval(), trial.takes
    captions, whole = trial.captions(CAPTIONS), _scored(trial, model)
    what = "a score follows from its image and its text alone, in any order, batch and tile"
    with trial.promise(what), torch.no_grad():
        rows, columns = torch.arange(IMAGES).flip(0)[1:4], torch.arange(CAPTIONS).flip(0)[2:7]
        some = Captions(values=captions.values[columns], lengths=captions.lengths[columns])
        images, texts = model.encode_images(trial.images(IMAGES)[rows]), model.encode_captions(some)
        again = model_scores.score_pairs(model.similarity, images, texts, tile=(1, 2))
        _check_equal(again, whole[rows][:, columns], "scores of the same pairs in another batch")
    if takes.text not in VECTORS:
        with trial.promise("padding changes no score, and a caption without words does no harm"):
            wider = torch.nn.functional.pad(captions.values, (0, 9))
            again = _scored(trial, model, Captions(values=wider, lengths=captions.lengths))
            _check_equal(again, whole, "scores of wider captions")
            captions.values[3], captions.lengths[3] = 0, 1
            _scored(trial, model, captions)
    with trial.promise("what inputs declares beside, the Model has"), torch.no_grad():
        texts = trial.captions(IMAGES)
        images, encoded = model.encode_images(trial.images(IMAGES)), model.encode_captions(texts)
        if takes.scores:
            parts = model.scores(images, encoded)
            _check(tuple(parts) == takes.scores, f"scores are {tuple(parts)}, not {takes.scores}")
            few = model.scores(tuple(x[2:4] for x in images), tuple(x[1:] for x in encoded))
            for name, scores in parts.items():
                _check_equal(few[name], scores[2:4, 1:], f"scores {name} of fewer items")
        if takes.caption_similarity:
            shape = tuple(model.caption_similarity(encoded, encoded).shape)
            _check(shape == (IMAGES, IMAGES), f"caption_similarity gives {shape}")
        if takes.attention:
            weights = model.attention(images, encoded)
            _check(len(weights) == IMAGES, "attention: not one row per pair")
            for row, length in zip(weights, texts.lengths, strict=True):
                sums = row[:length].sum(1)
                _check_equal(sums, torch.ones_like(sums), "attention of a word, and a sum of 1,")


def _try_training(trial: Trial) -> None:
    phases = trial.module.recipe(trial.config)
    if not phases:
        return
    with trial.promise("the loss is named, finite numbers with a gradient, in half precision too"):
        model, batch = trial.model(), trial.batch([0, 1, 2, 3, 0, 1, 2, 3], phases)
        terms = model.loss(batch)
        _check(isinstance(terms, dict), f"found {type(terms).__name__}, not a dict of terms")
        for name, term in terms.items():
            _check(not term.dim() and term.isfinite(), f"{name} is {term!r:.60}")
        _check_gradients(model, terms)  # of which there must be some
        lacking = {term for phase in phases for term in phase.terms} - set(terms)
        _check(not lacking, f"a phase counts {', '.join(lacking)}, which it lacks")
        with torch.autocast("cpu", torch.bfloat16):
            terms = model.loss(batch)
            _scored(trial, model)
        _check_gradients(model, terms)
    with trial.promise("a batch of one image's captions alone does no harm"):
        model = trial.model()
        _check_gradients(model, model.loss(trial.batch([0, 0, 0], phases)))
    with trial.promise("a step can be made with a batch of the recipe's size"):
        for phase in phases:
            model, drawn = trial.model().train(), torch.arange(phase.batch_size)
            if trial.takes.task == "retrieval":
                drawn = drawn.repeat_interleave(phase.captions_per_image)
            optimiser = optimiser_of(model, phase)
            terms = model.loss(trial.batch(drawn.tolist(), [phase]))
            _check_gradients(model, {name: terms[name] for name in phase.terms or terms})
            optimiser.step()
    with trial.promise("it learns: its loss on eight pairs falls") as notes:
        losses = _trained(trial, phases, STEPS)
        told = f"from {losses[0]:.3g} to {losses[-1]:.3g} in {len(losses)} steps of Adam"
        _check(losses[-1] <= max(LOWER * losses[0], 1e-3), told)
        notes.append(told)
    with trial.promise("the same seed gives the same training"):
        is_same = _trained(trial, phases, 2) == _trained(trial, phases, 2)
        _check(is_same, "two trainings with one seed differ")


def _random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _scored(trial: Trial, model: nn.Module, captions: Captions | None = None) -> Tensor:
    """Scores (I, C) of made-up items by a model that is put into evaluation mode."""
    model.eval()
    with torch.no_grad():
        images = model.encode_images(trial.images(IMAGES))
        texts = model.encode_captions(captions or trial.captions(CAPTIONS))
        for encoding, count in ((images, IMAGES), (texts, CAPTIONS)):
            kind = type(encoding).__name__
            _check(isinstance(encoding, tuple), f"an encoding is {kind}, not a tuple of tensors")
            sizes = {len(x) for x in encoding}
            _check(sizes == {count}, f"an encoding of {count} items has {sizes}")
        scores = model.similarity(images, texts)
    shape = tuple(scores.shape)
    _check(shape == (IMAGES, CAPTIONS), f"{shape} scores for {IMAGES} x {CAPTIONS} pairs")
    _check(scores.isfinite().all(), f"{int((~scores.isfinite()).sum())} are NaN or infinite")
    return scores


def _trained(trial: Trial, phases: list[Phase], steps: int) -> list[float]:
    """The losses of steps on eight pairs, until they are lower; of the terms that the first phase
    counts."""
    model, batch = trial.model(seed=5).train(), trial.batch(list(range(8)), phases)
    optimiser = torch.optim.Adam([x for x in model.parameters() if x.requires_grad], lr=RATE)
    losses: list[float] = []
    while len(losses) < steps and (len(losses) < 2 or losses[-1] > LOWER * losses[0]):
        terms = model.loss(batch)
        loss = sum(terms[name] for name in phases[0].terms or terms)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


def _check(holds: object, told: str) -> None:
    if not holds:
        raise BrokenError(told)


def _check_gradients(model: nn.Module, terms: dict[str, Tensor]) -> None:
    sum(terms.values()).backward()
    gradients = {name: x.grad for name, x in model.named_parameters() if x.grad is not None}
    _check(gradients, "no parameter gets a gradient")
    for name, gradient in gradients.items():
        _check(gradient.isfinite().all(), f"the gradient of {name} is not finite")


def _check_equal(found: Tensor, expected: Tensor, what: str) -> None:
    is_equal = torch.allclose(found, expected, **CLOSE)
    _check(is_equal, f"{what} differ by up to {float((found - expected).abs().max()):.3g}")
