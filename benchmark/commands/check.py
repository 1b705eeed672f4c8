"""Try a method file on small made-up data: what holds of what methods/__init__.py asks for.

    python -m benchmark check path/to/mine.py

Every preset beside the file is tried, and its defaults. No season and no dataset is needed.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from types import ModuleType

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

import methods
from benchmark.commands.made_up_batches import SIZES, VECTORS, MadeUp
from benchmark.core.devices import make_deterministic
from benchmark.core.errors import UserError
from benchmark.core.names import checked_name
from benchmark.core.suggestions import suggested
from benchmark.matching import scoring
from benchmark.season.method_options import configured, inputs_of, method_of, spelt_out
from benchmark.season.presets import own_presets
from benchmark.season.season_keys import sentence_encoders
from benchmark.train.resumable_loop import optimiser_of
from methods import Captions

IMAGES, CAPTIONS = 6, 11
EIGHT = list(range(8))
STEPS, RATE, LOWER = 60, 0.005, 0.7  # of a training on eight pairs; what its loss must fall to
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


class BrokenError(Exception):
    """A promise that the method does not keep, in a few words."""


@dataclass
class Trial:
    """A method with the options of one preset."""

    module: ModuleType
    options: dict
    sentence: str | None = None  # the encoder that the preset names
    lines: list[str] = field(default_factory=list)

    @property
    def config(self) -> object:
        return configured(self.module, self.options, "preset")

    @property
    def takes(self) -> methods.Inputs:
        return inputs_of(self.module, self.options, "preset")

    @property
    def data(self) -> MadeUp:
        return MadeUp(self.takes)

    def phases(self) -> list[methods.Phase]:
        return self.module.recipe(self.config)

    def model(self, seed: int = 0) -> nn.Module:
        torch.manual_seed(seed)
        model = self.module.Model(self.config, SIZES, **self.data.parts())
        if self.takes.fit:
            model.fit([(self.data.images(64), self.data.captions(64))])
        return model


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", help="the path of a .py file, or a method of methods/")


def main(arguments: argparse.Namespace) -> int:
    make_deterministic()
    started = perf_counter()
    name = checked_name(Path(arguments.method).stem, "check")
    module = method_of(arguments.method)
    is_own = arguments.method.endswith(".py")
    presets = own_presets({name: arguments.method}) if is_own else {}
    rows = {key: row for key, (_, row) in presets.items() if not row.fuse}
    trials = {key: Trial(module, row.options, row.sentence) for key, row in rows.items()}
    trials = trials or {name: Trial(module, {})}
    broken = 0
    for preset, trial in trials.items():
        print(f"{preset}:")
        broken += check(trial)
    seconds = f"{perf_counter() - started:.0f} s"
    failed = f"{broken} promise{'s' * (broken != 1)} broken"
    print(f"{arguments.method}: {failed if broken else 'keeps the contract'}")
    print(f"{len(trials)} preset{'s' * (len(trials) != 1)} tried in {seconds}")
    return 1 if broken else 0


def check(trial: Trial) -> int:
    """Try every promise and print how it ended; how many are broken. Without a model that can be
    built, the rest is not tried."""
    broken = 0
    for promise in PROMISES:
        try:
            note = promise(trial)
        except (Exception, SystemExit) as error:
            broken += 1
            print(f"  FAIL  {_titled(promise)}: {_reason(trial.module, error)}")
            if promise in NEEDED:
                print("        the rest was not tried")
                break
        else:
            print(f"  ok    {_titled(promise)}{f': {note}' if note else ''}")
    return broken


def _titled(promise: Callable) -> str:
    return promise.__doc__


def _reason(module: ModuleType, error: BaseException) -> str:
    """What is wrong, and in which line of the method."""
    text = " ".join(str(error).split())[:300]
    if isinstance(error, BrokenError | UserError):
        return text
    own = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == module.__file__]
    place = f" (line {own[-1]})" if own else ""
    return f"{type(error).__name__}: {text}{place}"


# Promises: the docstring of each is its line ------------------------------------------------------


def _config(trial: Trial) -> str:
    """the options are of Config, and inputs says what it takes"""
    config, takes = trial.config, trial.takes
    if not type(config).__dataclass_params__.frozen:
        raise BrokenError("Config is not frozen: @dataclass(frozen=True)")
    _check_defaults(trial)
    _check_inputs(takes)
    encoders = sentence_encoders()
    if trial.sentence not in (None, *encoders):
        expected, found = ", ".join(encoders), suggested(trial.sentence, encoders)
        raise BrokenError(f"the preset's sentence: expected one of {expected}, found {found}")
    return f"{takes.image} and {takes.text} for {takes.task}"


def _recipe(trial: Trial) -> str:
    """the recipe is a list of phases with one learning rate per epoch"""
    phases = trial.phases()
    for number, phase in enumerate(phases, 1):
        if not isinstance(phase, methods.Phase):
            raise BrokenError(f"phase {number} is {phase!r:.60}")
        if phase.epochs != len(phase.learning_rates):
            rates = len(phase.learning_rates)
            raise BrokenError(f"phase {number}: {phase.epochs} epochs, {rates} learning rates")
        if phase.batch_size < 2 or phase.epochs < 1:
            raise BrokenError(f"phase {number}: less than an epoch, or than two rows a batch")
    if not phases and not trial.takes.fit:
        raise BrokenError("it has no phase, and nothing is fitted")
    epochs = sum(phase.epochs for phase in phases)
    plural = "s" * (len(phases) != 1), "s" * (epochs != 1)
    return f"{len(phases)} phase{plural[0]}, {epochs} epoch{plural[1]}"


def _model(trial: Trial) -> str:
    """the Model can be built, and its phases find its parameters"""
    model = trial.model()
    names = [name for name, _ in model.named_parameters()]
    for phase in trial.phases():
        optimiser_of(model, phase)
        for start, _ in phase.rates:
            if not any(name.startswith(start) for name in names):
                raise BrokenError(f"rates: no parameter begins with {start!r}")
    return f"{sum(x.numel() for x in model.parameters()):,} parameters with made-up sizes"


def _scores(trial: Trial) -> str:
    """it gives one finite score per pair"""
    scores = _scored(trial.model().eval(), trial)
    _check_scores(scores)
    if scores.std() == 0:
        raise BrokenError("all scores are equal")
    return f"{float(scores.min()):.3g} to {float(scores.max()):.3g}"


def _alone(trial: Trial) -> None:
    """a score follows from its picture and its text alone, in any order, batch and tile"""
    model, data = trial.model().eval(), trial.data
    whole = _scored(model, trial)
    rows, columns = torch.arange(IMAGES).flip(0)[1:4], torch.arange(CAPTIONS).flip(0)[2:7]
    with torch.no_grad():
        images = model.encode_images(data.images(IMAGES)[rows])
        captions = model.encode_captions(_at(data.captions(CAPTIONS), columns))
        again = scoring.score_pairs(model.similarity, images, captions, tile=(1, 2))
    _equal(again, whole[rows][:, columns], "scores of the same pairs in another batch")


def _padding(trial: Trial) -> None:
    """padding behind a caption changes no score"""
    if trial.takes.text in VECTORS:
        return
    model, data = trial.model().eval(), trial.data
    captions = data.captions(CAPTIONS)
    wider = torch.nn.functional.pad(captions.values, (0, 9))
    with torch.no_grad():
        images = model.encode_images(data.images(IMAGES))
        padded = Captions(values=wider, lengths=captions.lengths)
        again = model.similarity(images, model.encode_captions(padded))
    _equal(again, _scored(model, trial), "scores of wider captions")


def _declared(trial: Trial) -> None:
    """what inputs declares beside, the Model has"""
    model, takes = trial.model().eval(), trial.takes
    data = trial.data
    with torch.no_grad():
        images = model.encode_images(data.images(IMAGES))
        captions = model.encode_captions(data.captions(IMAGES))
        if takes.scores:
            parts = model.scores(images, captions)
            if tuple(parts) != takes.scores:
                raise BrokenError(f"scores are {', '.join(parts)}, not {', '.join(takes.scores)}")
        if takes.caption_similarity:
            _check_shape(model.caption_similarity(captions, captions), (IMAGES, IMAGES))
        if takes.attention and len(model.attention(images, captions)) != IMAGES:
            raise BrokenError("attention: not one row per pair")


def _loss(trial: Trial) -> str:
    """the loss is named, finite numbers with a gradient"""
    if not trial.phases():
        return "nothing is trained"
    model = trial.model()
    terms = model.loss(trial.data.batch([0, 1, 2, 3, 0, 1, 2, 3], trial.phases()))
    if not isinstance(terms, dict) or not terms:
        raise BrokenError(f"found {type(terms).__name__}, not a dict of terms")
    for name, term in terms.items():
        if term.dim() or not term.isfinite():
            raise BrokenError(f"{name} is {term!r:.60}")
    sum(terms.values()).backward()
    silent = [n for n, x in model.named_parameters() if x.requires_grad and x.grad is None]
    if len(silent) == len(list(model.parameters())):
        raise BrokenError("no parameter gets a gradient")
    _check_gradients(model)
    wanted = {term for phase in trial.phases() for term in phase.terms}
    if wanted - set(terms):
        raise BrokenError(f"a phase counts {', '.join(wanted - set(terms))}, which it lacks")
    return ", ".join(terms) + (f"; without gradient: {', '.join(silent)[:200]}" if silent else "")


def _one_group(trial: Trial) -> None:
    """a batch of one image's captions alone does no harm"""
    if trial.phases():
        model = trial.model()
        sum(model.loss(trial.data.batch([0, 0, 0], trial.phases())).values()).backward()
        _check_gradients(model)


def _whole_batch(trial: Trial) -> str:
    """a step can be made with a batch of the recipe's size"""
    rows = []
    for phase in trial.phases():
        model = trial.model().train()
        optimiser = optimiser_of(model, phase)
        terms = model.loss(trial.data.batch_of(phase))
        sum(term for name, term in terms.items() if name in (phase.terms or terms)).backward()
        _check_gradients(model)
        optimiser.step()
        rows.append(f"{phase.batch_size * phase.captions_per_image}")
    return f"{', '.join(dict.fromkeys(rows))} rows" if rows else "nothing is trained"


def _learns(trial: Trial) -> str:
    """it learns: its loss on eight pairs falls"""
    if not trial.phases():
        return "nothing is trained"
    losses = _trained(trial, STEPS)
    told = f"from {losses[0]:.3g} to {losses[-1]:.3g} in {len(losses)} steps of Adam"
    if not _is_lower(losses):
        raise BrokenError(told)
    return told


def _repeats(trial: Trial) -> None:
    """the same seed gives the same training"""
    if trial.phases() and _trained(trial, 2) != _trained(trial, 2):
        raise BrokenError("two trainings with one seed differ")


PROMISES = (_config, _recipe, _model, _scores, _alone, _padding, _declared, _loss, _one_group)
PROMISES += (_whole_batch, _learns, _repeats)
NEEDED = (_config, _recipe, _model, _scores)


def _check_defaults(trial: Trial) -> None:
    """The defaults of a Config are in the ranges of their types, which only what is set must be."""
    try:
        configured(trial.module, spelt_out(trial.config), "Config")
    except UserError as error:
        told = f"{error.where}: expected {error.expected}, found {error.found}"
        raise BrokenError(told) from error


def _check_inputs(takes: methods.Inputs) -> None:
    try:
        TypeAdapter(methods.Inputs).validate_python(vars(takes))
    except ValidationError as error:
        first = error.errors()[0]
        expected = first["msg"].removeprefix("Input should be ")
        told = f"inputs: {first['loc'][0]}: expected {expected}, found {first['input']!r}"
        raise BrokenError(told) from error


def _is_lower(losses: list[float]) -> bool:
    return losses[-1] < max(LOWER * losses[0], 1e-3)


def _trained(trial: Trial, steps: int) -> list[float]:
    """The losses of steps on eight pairs, until they are lower; of the terms that the first phase
    counts."""
    model, batch = trial.model(seed=5).train(), trial.data.batch(EIGHT, trial.phases())
    counted = trial.phases()[0].terms
    optimiser = torch.optim.Adam([x for x in model.parameters() if x.requires_grad], lr=RATE)
    losses: list[float] = []
    while len(losses) < steps and not (losses and _is_lower(losses)):
        terms = model.loss(batch)
        loss = sum(term for name, term in terms.items() if not counted or name in counted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


def _scored(model: nn.Module, trial: Trial) -> Tensor:
    """Scores (I, C) of made-up items."""
    with torch.no_grad():
        images = model.encode_images(trial.data.images(IMAGES))
        captions = model.encode_captions(trial.data.captions(CAPTIONS))
        _check_encoding(images, IMAGES, "encode_images")
        _check_encoding(captions, CAPTIONS, "encode_captions")
        scores = model.similarity(images, captions)
    _check_shape(scores, (IMAGES, CAPTIONS))
    return scores


def _check_encoding(encoding: object, count: int, what: str) -> None:
    if not isinstance(encoding, tuple) or not all(isinstance(x, Tensor) for x in encoding):
        raise BrokenError(f"{what} gives {type(encoding).__name__}, not a tuple of tensors")
    for number, tensor in enumerate(encoding):
        if not tensor.dim() or len(tensor) != count:
            raise BrokenError(f"{what}: tensor {number} is {tuple(tensor.shape)} of {count} items")


def _check_shape(scores: Tensor, shape: tuple[int, int]) -> None:
    if tuple(scores.shape) != shape:
        raise BrokenError(f"{tuple(scores.shape)} scores for {shape[0]} x {shape[1]} pairs")


def _check_scores(scores: Tensor) -> None:
    if not scores.isfinite().all():
        raise BrokenError(f"{int((~scores.isfinite()).sum())} are NaN or infinite")


def _check_gradients(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not parameter.grad.isfinite().all():
            raise BrokenError(f"the gradient of {name} is not finite")


def _equal(found: Tensor, expected: Tensor, what: str) -> None:
    if not torch.allclose(found, expected, **CLOSE):
        largest = float((found - expected).abs().max())
        raise BrokenError(f"{what} differ by up to {largest:.3g}")


def _at(captions: Captions, rows: Tensor) -> Captions:
    return Captions(values=captions.values[rows], lengths=captions.lengths[rows])
