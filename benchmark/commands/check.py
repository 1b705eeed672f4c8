"""Try a method file on small made-up data: what holds of what a method promises (the contract).

    rematch check path/to/mine.py

Every preset beside the file is tried, and its defaults; of a method by name, all its presets. No
season and no dataset is needed.

Mistakes are found, not intent. Not seen: what the method reads from disk, such as captions
of the test split; a generator with a seed of its own; whether its loss is a paper's; what it
does with larger data only. Read the code of a method that you do not know.
"""

import argparse
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from time import perf_counter
from types import ModuleType

import numpy as np
import torch
import torch._dynamo  # it replaces functions of torch where it is first used
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from benchmark.commands.learning import Pairing, Training, learned, pairing_of, side_names
from benchmark.commands.trials import PAIRS, VECTORS, WORDS, BrokenError, Ended, Trial
from benchmark.contracts.methods import Captions, Inputs, Phase
from benchmark.core.devices import make_deterministic
from benchmark.core.errors import suggested, unfit
from benchmark.core.names import checked_name
from benchmark.features import text_encoders
from benchmark.scoring import model_scores, score_checks
from benchmark.scoring.inputs import SplitInputs
from benchmark.scoring.ranking import Tile
from benchmark.scoring.score_checks import Groups
from benchmark.season.plugins import configured, method_of, own_presets, presets
from benchmark.train.resumable_loop import begun, optimiser_of, seed_all

IMAGES, CAPTIONS = 40, 110  # that are scored
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
MARKS = {True: "ok  ", False: "FAIL", None: "    "}
SHOWN = 3  # names of parameters in a message
NOT_SEEN = (
    "not seen: what it reads from disk, such as captions of the test split; a generator with "
    "a seed of its own; whether its loss is a paper's"
)


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
    print(NOT_SEEN)
    failed = f"{broken} promise{'s' * (broken != 1)} broken"
    print(f"{arguments.method}: {failed if broken else 'keeps the contract'}")
    print(f"presets tried: {len(trials)}, in {perf_counter() - started:.0f} s")
    return int(broken > 0)


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
        _check_no_seed("Model", trial.built)
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
    what = "a score follows from its image and its text alone, in any order, batch and tile"
    with trial.promise(what):
        _check_no_seed("scoring", lambda: pairing_of(trial, model))
        _check_again(trial, model)
    if takes.text not in VECTORS:
        with trial.promise("padding changes no score, and captions without words do no harm"):
            captions, whole = trial.captions(CAPTIONS), _scored(trial, model)
            behind = (0, 9) if captions.values.dim() == 2 else (0, 0, 0, 9)
            wider = torch.nn.functional.pad(captions.values, behind)
            again = _scored(trial, model, Captions(values=wider, lengths=captions.lengths))
            _check_equal(again, whole, "scores of wider captions")
            captions.values[3], captions.lengths[3] = 0, 1
            _scored(trial, model, captions)
            if phases := trial.module.recipe(trial.config):
                batch = trial.batch(list(range(PAIRS)), phases)
                batch.captions.values[3], batch.captions.lengths[3] = 0, 1
                model = trial.model().train()
                _check_gradients(model, model.loss(batch))
    with trial.promise("what inputs declares beside, the Model has"), torch.no_grad():
        texts = trial.captions(CAPTIONS)
        images, encoded = model.encode_images(trial.images(IMAGES)), model.encode_captions(texts)
        if takes.scores:
            parts = _called(model, "scores", images, encoded)
            _check(tuple(parts) == takes.scores, f"scores are {tuple(parts)}, not {takes.scores}")
        if takes.caption_similarity:
            shape = tuple(_called(model, "caption_similarity", encoded, encoded).shape)
            _check(shape == (CAPTIONS, CAPTIONS), f"caption_similarity gives {shape}")
        if takes.attention:
            texts = trial.captions(IMAGES)
            weights = _called(model, "attention", images, model.encode_captions(texts))
            _check(len(weights) == IMAGES, "attention: not one row per pair")
            for row, length in zip(weights, texts.lengths, strict=True):
                sums = row[:length].sum(1)
                _check_equal(sums, torch.ones_like(sums), "attention of a word, and a sum of 1,")


def _try_training(trial: Trial) -> None:
    phases = trial.module.recipe(trial.config)
    if not phases:
        if trial.takes.fit:
            with trial.promise("pairs that it was fitted to score higher than others"):
                _check_learned(pairing_of(trial, trial.model().eval()))
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
    with trial.promise("a loss leaves modes, seeds, frozen parameters and its batch as they were"):
        _check_loss_leaves(trial, phases)
    with trial.promise("a batch of one image's captions alone does no harm"):
        model = trial.model()
        _check_gradients(model, model.loss(trial.batch([0, 0, 0], phases)))
    moved: set[str] = set()  # parameters that a step of some phase changes
    with trial.promise("a step can be made with a batch of the recipe's size"):
        for phase in phases:
            model, drawn = trial.model().train(), torch.arange(phase.batch_size)
            if trial.takes.task == "retrieval":
                drawn = drawn.repeat_interleave(phase.captions_per_image)
            optimiser = optimiser_of(model, phase)
            terms = model.loss(trial.batch(drawn.tolist(), [phase]))
            _check_gradients(model, {name: terms[name] for name in phase.terms or terms})
            for name, parameter in model.named_parameters():
                if parameter.grad is not None and parameter.grad.any():
                    moved.add(name)
            optimiser.step()
    _try_learning(trial, phases, moved)
    with trial.promise("what it learned is in its parameters and buffers"):
        _check_again(trial, _trained(trial, phases, 3).model.eval())
    with trial.promise("the same seed gives the same training"):
        is_same = _trained(trial, phases, 2).losses == _trained(trial, phases, 2).losses
        _check(is_same, "two trainings with one seed differ")


def _try_learning(trial: Trial, phases: list[Phase], moved: set[str]) -> None:
    """A loss that falls may still teach wrong pairs, or one side alone."""
    training = None
    with trial.promise("it learns: its loss on eight pairs falls") as notes:
        training, pairing = learned(trial, phases)
        _check(training.falls, training.note)
        notes.append(training.note)
        trained = [(n, x) for n, x in training.model.named_parameters() if x.requires_grad]
        lacking = [name for name, x in trained if x.grad is None]
        if lacking:
            notes.append(f"no gradient for {', '.join(lacking)}")
    if training is None:
        return
    with trial.promise("its loss follows from images and captions, and trains what encodes them"):
        _check_sides(trial, phases, training, moved | training.moved())
    if training.falls:  # else nothing was learned
        with trial.promise("the pairs that it learned score higher than others"):
            _check_learned(pairing)


def _check_learned(pairing: Pairing) -> None:
    _check(pairing.is_learned, pairing.mistake)


def _check_sides(
    trial: Trial,
    phases: list[Phase],
    training: Training,
    moved: set[str],
) -> None:
    """Raises BrokenError for a loss that one side has no part in, and where no step moves
    what encodes a side, though that is not frozen."""
    model, batch = training.model, training.batch
    counted = {term for phase in phases for term in phase.terms}
    if not all(phase.terms for phase in phases):
        counted = set(model.loss(batch))
    names_of_side = side_names(model, trial.images(PAIRS), trial.captions(PAIRS))
    for side, names in names_of_side.items():
        losses = []
        for given in (batch, trial.with_other(batch, side)):
            seed_all(0)
            terms = model.loss(given)
            losses.append(float(sum(terms[name].detach() for name in counted)))
        message = f"with other {side} the loss is the same, {losses[0]:.3g}"
        _check(losses[0] != losses[1], message)
        message = (
            f"no step changes what encode_{side} alone uses ({_few(names)}): is there a "
            f"detach or no_grad? Freeze by requires_grad_(False) what is to stay"
        )
        _check(not names or names & moved, message)


def _check_loss_leaves(trial: Trial, phases: list[Phase]) -> None:
    """Raises BrokenError for a loss that changes more than gradients and buffers."""
    model = trial.model()
    frozen = _frozen(model)
    for mode in (True, False, True):
        model.train(mode)
        _check_frozen(f"train({mode})", frozen, model)
    batch = trial.batch(list(range(PAIRS)), phases)
    _called(model, "loss", batch)
    _check_no_seed("loss", lambda: model.loss(batch))


def _scored(trial: Trial, model: nn.Module, captions: Captions | None = None) -> Tensor:
    """Scores (I, C) of made-up items by a model that is put into evaluation mode."""
    model.eval()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    with torch.no_grad():
        captions = captions or trial.captions(CAPTIONS)
        images = _called(model, "encode_images", trial.images(IMAGES))
        texts = _called(model, "encode_captions", captions)
        for encoding, count in ((images, IMAGES), (texts, CAPTIONS)):
            kind = type(encoding).__name__
            _check(isinstance(encoding, tuple), f"an encoding is {kind}, not a tuple of tensors")
            kinds = {type(x).__name__ for x in encoding if not isinstance(x, Tensor)}
            _check(not kinds, f"an encoding has {', '.join(kinds)} beside tensors")
            sizes = {len(x) for x in encoding}
            _check(sizes == {count}, f"an encoding of {count} items has {sizes}")
        scores = _called(model, "similarity", images, texts)
    shape = tuple(scores.shape)
    _check(shape == (IMAGES, CAPTIONS), f"{shape} scores for {IMAGES} x {CAPTIONS} pairs")
    _check(scores.isfinite().all(), f"{int((~scores.isfinite()).sum())} are NaN or infinite")
    state = model.state_dict()
    changed = {name for name, x in state.items() if not x.equal(before[name])}
    message = f"scoring changes {_few(changed)}: a later score may follow from earlier ones"
    _check(not changed, message)
    return scores


def _called(model: nn.Module, name: str, *given: object) -> object:
    """What a method of the model gives. Raises BrokenError where the call leaves another
    mode, other frozen parameters or other numbers in what it is given."""
    modes = {part: module.training for part, module in model.named_modules()}
    frozen, tensors = _frozen(model), list(_tensors(given))
    copies = [x.clone() for x in tensors]
    result = getattr(model, name)(*given)
    for part, module in model.named_modules():
        mode = "training" if module.training else "evaluation"
        is_left = modes.get(part, module.training) == module.training
        _check(is_left, f"{name} leaves {part or 'the Model'} in {mode} mode: set it back")
    _check_frozen(name, frozen, model)
    for x, copy in zip(tensors, copies, strict=True):
        is_left = x.nan_to_num(nan=torch.inf).equal(copy.nan_to_num(nan=torch.inf))
        _check(is_left, f"{name} changes the numbers that it is given: copy them first")
    return result


def _tensors(given: object) -> Iterator[Tensor]:
    """All tensors of a tuple, of Captions or of a batch."""
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, tuple):
        for part in given:
            yield from _tensors(part)
    elif is_dataclass(given):
        for entry in fields(given):
            yield from _tensors(getattr(given, entry.name))


def _frozen(model: nn.Module) -> set[str]:
    return {name for name, x in model.named_parameters() if not x.requires_grad}


def _check_frozen(name: str, before: set[str], model: nn.Module) -> None:
    changed = before ^ _frozen(model)
    message = (
        f"{name} changes whether {_few(changed)} is frozen: "
        f"what requires_grad_(False) freezes stays so"
    )
    _check(not changed, message)


def _few(names: set[str]) -> str:
    """Some names, the first in alphabetical order."""
    ellipsis = ", ..." if len(names) > SHOWN else ""
    return ", ".join(sorted(names)[:SHOWN]) + ellipsis


def _check_no_seed(name: str, call: Callable[[], object]) -> None:
    """Raises BrokenError where a generator is at the same place after a call, whatever seed
    was there before it."""
    places = []
    for seed in (1, 2):
        seed_all(seed)
        call()
        places.append(
            {
                "torch": torch.get_rng_state().numpy().tobytes(),
                "numpy": np.random.get_state()[1].tobytes(),
                "Python": str(random.getstate()),
            }
        )
    for library, place in places[0].items():
        is_free = place != places[1][library]
        _check(is_free, f"{name} sets {library}'s seed: every training would have this one")


def _trained(trial: Trial, phases: list[Phase], steps: int) -> Training:
    """A training of some steps of the first phase."""
    training = Training(trial, phases)
    for _ in range(steps):
        training.step(phases[0])
    return training


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
