"""Try a method file on small made-up data: what holds of what a method promises (the contract).

    rematch check path/to/mine.py

Every preset beside the file is tried, and its defaults; of a method by name, all its presets. No
season and no dataset is needed.
"""

import argparse
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from types import ModuleType

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from benchmark.contracts.methods import Batch, Captions, Inputs, Phase, RegionBatch, Sizes
from benchmark.core.devices import make_deterministic
from benchmark.core.errors import UserError, suggested, unfit
from benchmark.core.names import checked_name
from benchmark.features import drawn_cnn, text_encoders
from benchmark.scoring import model_scores, score_checks
from benchmark.scoring.inputs import SplitInputs
from benchmark.scoring.ranking import RefusedError, Tile
from benchmark.scoring.score_checks import Groups
from benchmark.season.plugins import Preset, configured, inputs_of, method_of, own_presets, presets
from benchmark.train.resumable_loop import begun, optimiser_of, seed_all

SIZES = Sizes(image=24, text=40, classes=8)  # of the made-up data; the same in every run
REGIONS, WORDS, SIDE, POOL, PROPOSALS, VECTOR = 64, 7, 64, 5, 6, 300
VECTORS = ("sentence", "phrase")  # text that comes as ready-made vectors
IMAGES, CAPTIONS, PAIRS = 40, 110, 8  # the pairs are those of a training
STEPS, RATE, LOWER = 60, 0.005, 0.7  # of a training on eight pairs; what its loss must fall to
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
MARKS = {True: "ok  ", False: "FAIL", None: "    "}
Ended = tuple[str, bool | None, str]  # a promise, whether it is kept (None: not tried), and a note


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", help="the path of a .py file, or a method of methods/")


def main(arguments: argparse.Namespace) -> int:
    make_deterministic()
    started, name = perf_counter(), checked_name(Path(arguments.method).stem, "check")
    before = _state()
    module = method_of(arguments.method)
    changed = [what for what in _changed(before) if what in before]
    is_own = arguments.method.endswith(".py")
    known = own_presets({name: arguments.method}) if is_own else presets()
    trials = {
        key: Trial(module, row.options, row)
        for key, (method, row) in known.items()
        if method == arguments.method and not row.fuse
    } or {name: Trial(module, {})}
    broken = len(changed)
    for what in changed:
        print(f"FAIL  its import changes {what}, for all that this process computes")
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

    def built(self) -> nn.Module:
        given = {"word_vectors": _random(3, SIZES.text, VECTOR)} if self.takes.word_vectors else {}
        if self.takes.image == "pixels":
            given["image_network"] = drawn_cnn.Network(SIZES.image // 2)
        return self.module.Model(self.config, SIZES, **given)

    def model(self, seed: int = 0) -> nn.Module:
        seed_all(seed)
        model = self.built()
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
        """Vectors (C, F), or word ids (C, W) or vectors (C, W, F) of 2 to W words."""
        if self.takes.text in VECTORS:
            values = _random(2, count, SIZES.text)
            return Captions(values=values, lengths=torch.ones(count, dtype=torch.int64))
        generator = torch.Generator().manual_seed(2)
        lengths = torch.randint(2, WORDS + 1, (count,), generator=generator)
        lengths[0] = WORDS
        is_word = torch.arange(WORDS) < lengths[:, None]
        if self.takes.text == "contextual":
            values = _random(2, count, WORDS, SIZES.text) * is_word[:, :, None]
            return Captions(values=values, lengths=lengths)
        values = torch.randint(1, SIZES.text, (count, WORDS), generator=generator)
        return Captions(values=values * is_word, lengths=lengths)

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
            if not isinstance(error, BrokenError | RefusedError | UserError):
                frames = extract_tb(error.__traceback__)
                lines = [f.lineno for f in frames if f.filename == self.module.__file__]
                told = f"{type(error).__name__}: {told}"
                told += f" (line {lines[-1]})" if lines else ""
            self.ended.append((what, False, told))


def check(trial: Trial) -> list[Ended]:
    """Try every promise. Without a model that can be built and scores, the rest is not tried."""
    before = _state()
    _try_parts(trial)
    if all(is_kept for _, is_kept, _ in trial.ended):
        _try_scores(trial)
        _try_training(trial)
    else:
        trial.ended.append(("the rest was not tried", None, ""))
    with trial.promise("it leaves no file, thread or setting behind"):
        left = [what for what in _changed(before) if not what.endswith(" seed")]
        _check(not left, f"found {', '.join(left[:5])}: another model would meet them")
    return trial.ended


def _try_parts(trial: Trial) -> None:
    with trial.promise("the options are of Config, and inputs says what it takes") as notes:
        config, takes = trial.config, trial.takes
        _check(type(config).__dataclass_params__.frozen, "Config is not frozen: add frozen=True")
        configured(trial.module, asdict(config), "Config")  # defaults are in their ranges, too
        try:
            TypeAdapter(Inputs).validate_python(vars(takes))
        except ValidationError as error:
            raise unfit(error, "inputs", []) from error
        sentence, known = trial.row and trial.row.sentence, text_encoders()
        told = f"expected one of {', '.join(known)}, found {suggested(sentence, known)}"
        _check(sentence in (None, *known), f"the preset's sentence: {told}")
        notes.append(f"{takes.image} and {takes.text} for {takes.task}")
    with trial.promise("the recipe is a list of phases with one learning rate per epoch") as notes:
        phases = trial.module.recipe(trial.config)
        for number, phase in enumerate(phases, 1):
            _check(isinstance(phase, Phase), f"phase {number} is {phase!r:.60}")
            told, rates = f"phase {number}", len(phase.learning_rates)
            _check(phase.epochs == rates, f"{told}: {phase.epochs} epochs, {rates} learning rates")
            _check(any(phase.learning_rates), f"{told}: all its learning rates are 0")
            is_long_enough = phase.batch_size > 1 and phase.epochs > 0
            _check(is_long_enough, f"{told}: less than an epoch, or than two rows a batch")
        is_given = trial.takes.fit or (trial.row and trial.row.start)
        _check(phases or is_given, "it has no phase, and nothing is fitted")
        notes.append(f"phases: {len(phases)}, epochs: {sum(phase.epochs for phase in phases)}")
    with trial.promise("the Model can be built, and its phases find its parameters") as notes:
        model, is_one = begun(trial.built, 0)
        _check(not is_one, "every seed starts from the same weights: it sets a seed itself")
        lost = list(_unregistered(model))
        _check(not lost, f"{lost} is never trained or saved: use nn.ModuleList, nn.Parameter")
        for phase in trial.module.recipe(trial.config):
            optimiser_of(model, phase)
        notes.append(f"{sum(x.numel() for x in model.parameters()):,} parameters")
    with trial.promise("it gives one finite score per pair") as notes:
        scores = _scored(trial, trial.model())
        _check(scores.std() > 0, "all scores are equal")
        is_fine = scores.dtype in (torch.float32, torch.float64)
        _check(is_fine, f"scores are {scores.dtype}: equal ones count against it; use float32")
        notes.append(f"{float(scores.min()):.3g} to {float(scores.max()):.3g}")


def _try_scores(trial: Trial) -> None:
    model, takes = trial.model().eval(), trial.takes
    captions, whole = trial.captions(CAPTIONS), _scored(trial, model)
    what = "a score follows from its image and its text alone, in any order, batch and tile"
    with trial.promise(what):
        _check_again(trial, model)
    if takes.text not in VECTORS:
        with trial.promise("padding changes no score, and a caption without words does no harm"):
            behind = (0, 9) if captions.values.dim() == 2 else (0, 0, 0, 9)
            wider = torch.nn.functional.pad(captions.values, behind)
            again = _scored(trial, model, Captions(values=wider, lengths=captions.lengths))
            _check_equal(again, whole, "scores of wider captions")
            captions.values[3], captions.lengths[3] = 0, 1
            _scored(trial, model, captions)
    with trial.promise("what inputs declares beside, the Model has"), torch.no_grad():
        texts = trial.captions(CAPTIONS)
        images, encoded = model.encode_images(trial.images(IMAGES)), model.encode_captions(texts)
        if takes.scores:
            parts = model.scores(images, encoded)
            _check(tuple(parts) == takes.scores, f"scores are {tuple(parts)}, not {takes.scores}")
        if takes.caption_similarity:
            shape = tuple(model.caption_similarity(encoded, encoded).shape)
            _check(shape == (CAPTIONS, CAPTIONS), f"caption_similarity gives {shape}")
        if takes.attention:
            texts = trial.captions(IMAGES)
            weights = model.attention(images, model.encode_captions(texts))
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
        model, losses = _trained(trial, phases, STEPS)
        told = f"from {losses[0]:.3g} to {losses[-1]:.3g} in {len(losses)} steps of Adam"
        _check(losses[-1] <= max(LOWER * losses[0], 1e-3), told)
        notes.append(told)
        trained = [(name, x) for name, x in model.named_parameters() if x.requires_grad]
        lacking = [name for name, x in trained if x.grad is None]
        notes += [f"no gradient for {', '.join(lacking)}"] * bool(lacking)
    if trial.takes.task == "retrieval":
        with trial.promise("pairs that it learned do not score below others: the greatest is best"):
            # Learned to the end: no loss with the wrong sign, no distance as a score.
            model = _trained(trial, phases, STEPS, lower=0.0)[0].eval()
            with torch.no_grad():
                texts = model.encode_captions(trial.captions(PAIRS))
                scores = model.similarity(model.encode_images(trial.images(PAIRS)), texts)
            own, is_own = scores.diagonal().mean(), torch.eye(PAIRS, dtype=torch.bool)
            other = scores[~is_own].mean()
            told = f"its pairs score {float(own):.3g} on average, others {float(other):.3g}"
            is_reversed = own < other - scores.std() / 2  # what is hardly learned is about equal
            _check(not is_reversed, f"{told}: is the sign of the loss or of the score wrong?")
    with trial.promise("what it learned is in its parameters and buffers"):
        _check_again(trial, _trained(trial, phases, 3)[0].eval())
    with trial.promise("the same seed gives the same training"):
        is_same = _trained(trial, phases, 2)[1] == _trained(trial, phases, 2)[1]
        _check(is_same, "two trainings with one seed differ")


def _random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _scored(trial: Trial, model: nn.Module, captions: Captions | None = None) -> Tensor:
    """Scores (I, C) of made-up items by a model that is put into evaluation mode."""
    model.eval()
    with torch.no_grad():
        given, captions = trial.images(IMAGES), captions or trial.captions(CAPTIONS)
        before = given.clone(), captions.values.clone()
        images, texts = model.encode_images(given), model.encode_captions(captions)
        is_left = given.equal(before[0]) and captions.values.equal(before[1])
        _check(is_left, "it changes the numbers that it is given: copy them first")
        for encoding, count in ((images, IMAGES), (texts, CAPTIONS)):
            kind = type(encoding).__name__
            _check(isinstance(encoding, tuple), f"an encoding is {kind}, not a tuple of tensors")
            kinds = {type(x).__name__ for x in encoding if not isinstance(x, Tensor)}
            _check(not kinds, f"an encoding has {', '.join(kinds)} beside tensors")
            sizes = {len(x) for x in encoding}
            _check(sizes == {count}, f"an encoding of {count} items has {sizes}")
        scores = model.similarity(images, texts)
    shape = tuple(scores.shape)
    _check(shape == (IMAGES, CAPTIONS), f"{shape} scores for {IMAGES} x {CAPTIONS} pairs")
    _check(scores.isfinite().all(), f"{int((~scores.isfinite()).sum())} are NaN or infinite")
    return scores


def _trained(
    trial: Trial, phases: list[Phase], steps: int, lower: float = LOWER
) -> tuple[nn.Module, list[float]]:
    """A model, and the losses of its steps on eight pairs, until they are `lower` than the first by
    this factor; of the terms that the first phase counts."""
    model, batch = trial.model(seed=5).train(), trial.batch(list(range(PAIRS)), phases)
    optimiser = torch.optim.Adam([x for x in model.parameters() if x.requires_grad], lr=RATE)
    losses: list[float] = []
    while len(losses) < steps and (len(losses) < 2 or losses[-1] > lower * losses[0]):
        terms = model.loss(batch)
        loss = sum(terms[name] for name in phases[0].terms or terms)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return model, losses


def _check_again(trial: Trial, model: nn.Module) -> None:
    """Score a made-up split, and again as `evaluate` does: by a model with the same weights, of a
    file that is loaded anew, in other batches and another order."""
    other = Trial(method_of(trial.module.__file__), trial.options, trial.row).model(seed=7)
    other.load_state_dict(model.state_dict())
    captions, contexts = trial.captions(CAPTIONS), None
    if trial.takes.text == "contextual":
        contexts = captions.values.flatten(0, 1)
        captions = replace(captions, values=torch.arange(len(contexts)).view(CAPTIONS, WORDS))
    inputs = SplitInputs(
        images=trial.images(IMAGES),
        captions=captions,
        contexts=contexts,
        image_of_caption=torch.arange(CAPTIONS) % IMAGES,
        group_of_image=torch.arange(IMAGES),
        device=torch.device("cpu"),
    )
    encoded = model_scores.encoded(model, inputs, parts := (*trial.takes.scores, ""))
    found = encoded.scores(slice(None), slice(None))
    for part, scores in zip(parts, found, strict=True):
        first = Groups(IMAGES, CAPTIONS)
        first.add(Tile(encoded.image_order, encoded.caption_order, {}), scores)
        score_checks.check_retrieval(other.eval(), inputs, part, first)
    if trial.takes.caption_similarity:
        first = Groups(CAPTIONS, CAPTIONS)
        for rows, scores in model_scores.sentence_scores(model, inputs):
            first.add(Tile(rows.numpy(), np.arange(CAPTIONS), {}), scores.numpy())
        score_checks.check_sentences(other, inputs, first)


def _unregistered(model: nn.Module) -> Iterator[str]:
    """Names of lists and dicts with parameters or modules that torch does not know of."""
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            inside = value.values() if isinstance(value, dict) else value
            is_some = isinstance(value, list | tuple | dict) and not name.startswith("_")
            if is_some and any(isinstance(x, nn.Module | nn.Parameter) for x in inside):
                yield f"{prefix}.{name}".removeprefix(".")
            if isinstance(value, Tensor) and value.requires_grad:
                yield f"{prefix}.{name}".removeprefix(".")


def _state() -> dict[str, object]:
    """What a file or a model can change for all that this process computes: settings and seeds,
    threads, files of the working folder with their times, and names of libraries."""
    owners = (torch, Tensor, nn, nn.functional, nn.init, torch.optim, np)
    state = {
        "torch's default dtype": torch.get_default_dtype(),
        "torch's default device": torch.get_default_device(),
        "torch's threads": torch.get_num_threads(),
        "torch's deterministic mode": torch.are_deterministic_algorithms_enabled(),
        "whether torch keeps gradients": torch.is_grad_enabled(),
        "torch's seed": torch.get_rng_state().tolist(),
        "numpy's seed": np.random.get_state()[1:3],
        "Python's seed": random.getstate(),
        "the working folder": Path.cwd(),
    }
    state |= {f"the thread {x.name}": True for x in threading.enumerate() if not x.daemon}
    state |= {f"the file {path}": path.stat().st_mtime_ns for path in Path().glob("[!.]*.*")}
    return {what: str(value) for what, value in state.items()} | {
        f"{owner.__name__}.{name}": value
        for owner in owners
        for name, value in vars(owner).items()
        if not isinstance(value, ModuleType)
    }


def _changed(before: dict[str, object]) -> list[str]:
    """What is there now and was not, or was another: texts by what they say."""
    return [
        what
        for what, value in _state().items()
        if before.get(what) is not value
        and not (isinstance(value, str) and before.get(what) == value)
    ]


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
