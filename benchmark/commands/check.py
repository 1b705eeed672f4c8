"""Test a method file on small made-up data: does it do what a method must?

    rematch check path/to/mine.py

Every preset beside the file is tried, and its defaults; of a method by name, all its
presets. No season and no dataset is needed.

Mistakes are found, not intent. Not seen: what the method reads from disk, such as
captions of the test split; a generator with a seed of its own; whether its loss is a
paper's; what it does with larger data only. Read the code of a method that you do not
know.
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

from benchmark.commands.trials import (
    PAIRS,
    VECTORS,
    WORDS,
    BrokenError,
    Promise,
    Training,
    Trial,
    learned,
    pairing_of,
    side_names,
)
from benchmark.contracts import methods
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
from benchmark.train.resumable_loop import optimiser_of, seed_all, seeded_model

IMAGES, CAPTIONS = 40, 110  # that are scored
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
MARKS = {True: "ok  ", False: "FAIL", None: "    "}
SHOWN = 3  # names of parameters in a message
# steps of single precision by which a deep network rounds otherwise in other batches
# (dual-path: 6)
STEPS_OF_DEPTH = 8
NOT_SEEN = (
    "not seen: what it reads from disk, such as captions of the test split; a generator with "
    "a seed of its own; whether its loss is a paper's"
)


def configure(parser: argparse.ArgumentParser) -> None:
    method = "the path of a .py file, or a method of methods/"
    parser.add_argument("method", help=method)


def main(arguments: argparse.Namespace) -> int:
    make_deterministic()
    started = perf_counter()
    method = arguments.method
    path = Path(method)
    if path.suffix == ".py" and path.resolve().parent == methods.FOLDER.resolve():
        method = path.stem  # one of this project
    name = checked_name(Path(method).stem, "check")
    before = _state()
    module = method_of(method)
    changed = [what for what in _changed(before) if what in before]
    broken = len(changed)
    for what in changed:
        print(f"FAIL  its import changes {what}, process-wide")
    trials = trials_of(method, name, module)
    for preset, trial in trials.items():
        print(f"{preset}:")
        for promise in check(trial):
            if promise.is_kept is False:  # None: not tried
                broken += 1
            note = f": {promise.note}" if promise.note else ""
            print(f"  {MARKS[promise.is_kept]}  {promise.what}{note}")
    print(NOT_SEEN)
    verdict = "keeps the contract"
    if broken == 1:
        verdict = "1 promise broken"
    elif broken:
        verdict = f"{broken} promises broken"
    spent = perf_counter() - started
    print(f"{arguments.method}: {verdict}")
    print(f"presets tried: {len(trials)}, in {spent:.0f} s")
    return int(broken > 0)


def trials_of(method: str, name: str, module: ModuleType) -> dict[str, Trial]:
    """A method with the options of each of its presets; with its defaults where it has
    none."""
    known = own_presets({name: method}) if method.endswith(".py") else presets()
    trials = {}
    for preset, (its_method, row) in known.items():
        if its_method == method and not row.fuse:
            trials[preset] = Trial(module, row.options, row)
    return trials or {name: Trial(module, {})}


def check(trial: Trial) -> list[Promise]:
    """Try every promise. Without a model that can be built and scores, the rest is not
    tried."""
    before = _state()
    _try_parts(trial)
    if all(promise.is_kept for promise in trial.promises):
        _try_scores(trial)
        _try_training(trial)
    else:
        trial.promises.append(Promise("the rest was not tried", None))
    with trial.promise("it leaves no file, thread or setting behind"):
        kept = [what for what in _changed(before) if not what.endswith(" seed")]
        names = ", ".join(kept[:5])
        _check(not kept, f"it changed {names}, which would affect the next model")
    return trial.promises


def _try_parts(trial: Trial) -> None:
    """Those without which no other promise can be tried."""
    with trial.promise(
        "the options are of Config, and inputs says what it takes"
    ) as notes:
        config = trial.config
        is_frozen = type(config).__dataclass_params__.frozen
        _check(is_frozen, "Config is not frozen: add frozen=True")
        # defaults are in their ranges, too
        configured(trial.module, asdict(config), "Config")
        takes = trial.takes
        try:
            TypeAdapter(Inputs).validate_python(vars(takes))
        except ValidationError as error:
            raise unfit(error, "inputs", []) from error
        if trial.row and trial.row.sentence:
            encoder, known = trial.row.sentence, text_encoders()
            message = (
                f"the preset's sentence: expected one of {', '.join(known)}, "
                f"found {suggested(encoder, known)}"
            )
            _check(encoder in known, message)
        notes.append(f"{takes.image} and {takes.text} for {takes.task}")
    with trial.promise(
        "the recipe is a list of phases with one learning rate per epoch"
    ) as notes:
        phases = _checked_phases(trial)
        epochs = sum(phase.epochs for phase in phases)
        notes.append(f"phases: {len(phases)}, epochs: {epochs}")
    with trial.promise(
        "the Model can be built, and its phases find its parameters"
    ) as notes:
        model, starts_alike = seeded_model(trial.built, 0)
        message = "every seed starts from the same weights: it sets a seed itself"
        _check(not starts_alike, message)
        _check_no_seed("Model", trial.built)
        lost = list(_unregistered(model))
        message = f"{lost} is never trained or saved: use nn.ModuleList, nn.Parameter"
        _check(not lost, message)
        for phase in trial.module.recipe(trial.config):
            optimiser_of(model, phase)
        count = sum(parameter.numel() for parameter in model.parameters())
        notes.append(f"{count:,} parameters")
    with trial.promise("it gives one finite score per pair") as notes:
        scores = _scored(trial, trial.model())
        _check(scores.std() > 0, "all scores are equal")
        is_fine = scores.dtype in (torch.float32, torch.float64)
        message = f"scores are {scores.dtype}: ties count as misses; use float32"
        _check(is_fine, message)
        notes.append(f"{float(scores.min()):.3g} to {float(scores.max()):.3g}")


def _checked_phases(trial: Trial) -> list[Phase]:
    phases = trial.module.recipe(trial.config)
    for number, phase in enumerate(phases, 1):
        name = f"phase {number}"
        _check(isinstance(phase, Phase), f"{name} is {phase!r:.60}")
        epochs = phase.epochs
        rates = len(phase.learning_rates)
        _check(epochs == rates, f"{name}: {epochs} epochs, {rates} learning rates")
        _check(any(phase.learning_rates), f"{name}: all its learning rates are 0")
        _check(epochs > 0, f"{name}: less than one epoch")
        _check(phase.batch_size > 1, f"{name}: less than two rows a batch")
    is_given = trial.takes.fit or (trial.row and trial.row.start)
    _check(phases or is_given, "it has no phase, and nothing is fitted")
    return phases


def _try_scores(trial: Trial) -> None:
    model = trial.model().eval()
    what = "a score follows from its image and its text alone, in any order, batch and tile"
    with trial.promise(what) as notes:
        _check_no_seed("scoring", lambda: pairing_of(trial, model))
        notes += _check_again(trial, model)
        _check_no_memory(trial, model)
    if trial.takes.text not in VECTORS:
        with trial.promise(
            "padding changes no score, and captions without words do no harm"
        ):
            captions = trial.captions(CAPTIONS)
            whole = _scored(trial, model)
            # nine more words behind those of each caption
            added = (0, 9) if captions.values.dim() == 2 else (0, 0, 0, 9)
            wider = torch.nn.functional.pad(captions.values, added)
            padded = Captions(values=wider, lengths=captions.lengths)
            again = _scored(trial, model, padded)
            _check_equal(again, whole, "scores of wider captions")
            captions = trial.captions(CAPTIONS)
            captions.values[3], captions.lengths[3] = 0, 1  # a caption without words
            _scored(trial, model, captions)
            phases = trial.module.recipe(trial.config)
            if phases:
                batch = trial.batch(list(range(PAIRS)), phases)
                batch.captions.values[3], batch.captions.lengths[3] = 0, 1
                trained = trial.model().train()
                _check_gradients(trained, trained.loss(batch))
    with trial.promise("what inputs declares beside, the Model has"), torch.no_grad():
        _check_declared(trial, model)


def _check_declared(trial: Trial, model: nn.Module) -> None:
    """Scores, similarity of captions and attention, where inputs declares them."""
    takes = trial.takes
    images = model.encode_images(trial.images(IMAGES))
    encoded = model.encode_captions(trial.captions(CAPTIONS))
    if takes.scores:
        parts = tuple(_called(model, "scores", images, encoded))
        _check(parts == takes.scores, f"scores are {parts}, not {takes.scores}")
    if takes.caption_similarity:
        shape = tuple(_called(model, "caption_similarity", encoded, encoded).shape)
        _check(shape == (CAPTIONS, CAPTIONS), f"caption_similarity gives {shape}")
    if takes.attention:
        texts = trial.captions(IMAGES)
        weights = _called(model, "attention", images, model.encode_captions(texts))
        _check(len(weights) == IMAGES, "attention: not one row per pair")
        for row, length in zip(weights, texts.lengths, strict=True):
            sums = row[:length].sum(1)
            what = "attention of a word, and a sum of 1,"
            _check_equal(sums, torch.ones_like(sums), what)


def _try_training(trial: Trial) -> None:
    phases = trial.module.recipe(trial.config)
    if not phases:
        if trial.takes.fit:
            with trial.promise("pairs that it was fitted to score higher than others"):
                pairing = pairing_of(trial, trial.model().eval())
                _check(pairing.is_learned, pairing.mistake)
        return
    terms = None
    with trial.promise(
        "the loss is named, finite numbers with a gradient, in half precision too"
    ):
        model = trial.model()
        batch = trial.batch([0, 1, 2, 3, 0, 1, 2, 3], phases)
        terms = model.loss(batch)
        kind = type(terms).__name__
        _check(isinstance(terms, dict), f"found {kind}, not a dict of terms")
        for name, term in terms.items():
            _check(not term.dim() and term.isfinite(), f"{name} is {term!r:.60}")
        _check_gradients(model, terms)  # of which there must be some
        lacking = _counted(phases) - set(terms)
        _check(not lacking, f"a phase counts {', '.join(lacking)}, which it lacks")
        with torch.autocast("cpu", torch.bfloat16):
            terms = model.loss(batch)
            _scored(trial, model)
        _check_gradients(model, terms)
    if not isinstance(terms, dict):  # nothing can be trained by it
        trial.promises.append(Promise("the rest was not tried", None))
        return
    with trial.promise(
        "a loss leaves modes, seeds, frozen parameters and its batch as they were"
    ):
        model = trial.model()
        frozen = _frozen(model)
        for mode in (True, False, True):
            model.train(mode)
            _check_frozen(f"train({mode})", frozen, model)
        batch = trial.batch(list(range(PAIRS)), phases)
        _called(model, "loss", batch)
        _check_no_seed("loss", lambda: model.loss(batch))
    with trial.promise("a batch of one image's captions alone does no harm"):
        model = trial.model()
        _check_gradients(model, model.loss(trial.batch([0, 0, 0], phases)))
    moved: set[str] = set()  # parameters that a step of some phase changes
    with trial.promise("a step can be made with a batch of the recipe's size"):
        for phase in phases:
            moved |= _moved_by_a_step(trial, phase)
    _try_learning(trial, phases, moved)
    with trial.promise("what it learned is in its parameters and buffers") as notes:
        notes += _check_again(trial, _trained(trial, phases, 3).model.eval())
    with trial.promise("the same seed gives the same training"):
        first = _trained(trial, phases, 2)
        second = _trained(trial, phases, 2)
        _check(first.losses == second.losses, "two trainings with one seed differ")


def _counted(phases: list[Phase]) -> set[str]:
    """Terms of the loss that phases name."""
    counted: set[str] = set()
    for phase in phases:
        counted.update(phase.terms)
    return counted


def _moved_by_a_step(trial: Trial, phase: Phase) -> set[str]:
    """Make a step of a phase. Returns the names of the parameters that had a gradient
    in it."""
    model = trial.model().train()
    drawn = torch.arange(phase.batch_size)
    if trial.takes.task == "retrieval":
        drawn = drawn.repeat_interleave(phase.captions_per_image)
    optimiser = optimiser_of(model, phase)
    terms = model.loss(trial.batch(drawn.tolist(), [phase]))
    _check_gradients(model, {name: terms[name] for name in phase.terms or terms})
    moved = set()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and parameter.grad.any():
            moved.add(name)
    optimiser.step()
    return moved


def _try_learning(trial: Trial, phases: list[Phase], moved: set[str]) -> None:
    """A loss that falls may still teach wrong pairs, or one side alone."""
    training = None
    with trial.promise("it learns: its loss on eight pairs falls") as notes:
        training, pairing = learned(trial, phases)
        _check(training.has_fallen, training.note)
        notes.append(training.note)
        lacking = []
        for name, parameter in training.model.named_parameters():
            if parameter.requires_grad and parameter.grad is None:
                lacking.append(name)
        if lacking:
            notes.append(f"no gradient for {', '.join(lacking)}")
    if training is None:
        return
    with trial.promise(
        "its loss follows from images and captions, and trains what encodes them"
    ):
        model, batch = training.model, training.batch
        moved = moved | training.moved()
        counted = _counted(phases)
        if not all(phase.terms for phase in phases):
            counted = set(model.loss(batch))
        sides = side_names(model, trial.images(PAIRS), trial.captions(PAIRS))
        for side, names in sides.items():
            losses = []
            for given in (batch, trial.with_other(batch, side)):
                seed_all(0)
                terms = model.loss(given)
                losses.append(float(sum(terms[name].detach() for name in counted)))
            own, other = losses
            message = f"with other {side} the loss is the same, {own:.3g}"
            _check(own != other, message)
            message = (
                f"no step changes what encode_{side} alone uses ({_first_names(names)}): "
                f"is there a detach or no_grad? Freeze by requires_grad_(False) what is "
                f"to stay"
            )
            _check(not names or names & moved, message)
    if training.has_fallen:  # else nothing was learned
        with trial.promise("the pairs that it learned score higher than others"):
            _check(pairing.is_learned, pairing.mistake)


def _scored(trial: Trial, model: nn.Module, captions: Captions | None = None) -> Tensor:
    """Scores (I, C) of made-up items by a model that is put into evaluation mode."""
    model.eval()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    with torch.no_grad():
        captions = captions or trial.captions(CAPTIONS)
        images = _called(model, "encode_images", trial.images(IMAGES))
        texts = _called(model, "encode_captions", captions)
        _check_encoding(images, IMAGES)
        _check_encoding(texts, CAPTIONS)
        scores = _called(model, "similarity", images, texts)
    shape = tuple(scores.shape)
    message = f"{shape} scores for {IMAGES} x {CAPTIONS} pairs"
    _check(shape == (IMAGES, CAPTIONS), message)
    lost = int((~scores.isfinite()).sum())
    _check(not lost, f"{lost} are NaN or infinite")
    state = model.state_dict()
    changed = {name for name, x in state.items() if not x.equal(before[name])}
    message = f"scoring changes {_first_names(changed)}: later scores may follow from earlier ones"
    _check(not changed, message)
    return scores


def _check_encoding(encoding: object, count: int) -> None:
    """Raises BrokenError for what is no tuple of tensors with a row per item."""
    kind = type(encoding).__name__
    message = f"an encoding is {kind}, not a tuple of tensors"
    _check(isinstance(encoding, tuple), message)
    kinds = {type(x).__name__ for x in encoding if not isinstance(x, Tensor)}
    _check(not kinds, f"an encoding has {', '.join(kinds)} beside tensors")
    sizes = {len(x) for x in encoding}
    _check(sizes == {count}, f"an encoding of {count} items has {sizes}")


def _called(model: nn.Module, name: str, *given: object) -> object:
    """What a method of the model gives. Raises BrokenError where the call leaves
    another mode, other frozen parameters or other numbers in what it is given."""
    modes = {part: module.training for part, module in model.named_modules()}
    frozen = _frozen(model)
    tensors = list(_tensors(given))
    copies = [x.clone() for x in tensors]
    result = getattr(model, name)(*given)
    for part, module in model.named_modules():
        mode = "training" if module.training else "evaluation"
        is_same = modes.get(part, module.training) == module.training
        message = f"{name} leaves {part or 'the Model'} in {mode} mode: set it back"
        _check(is_same, message)
    _check_frozen(name, frozen, model)
    for x, copy in zip(tensors, copies, strict=True):
        before = copy.nan_to_num(nan=torch.inf)
        is_same = x.nan_to_num(nan=torch.inf).equal(before)
        _check(is_same, f"{name} changes the numbers that it is given: copy them first")
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
        f"{name} changes whether {_first_names(changed)} is frozen: "
        f"what requires_grad_(False) freezes stays so"
    )
    _check(not changed, message)


def _first_names(names: set[str]) -> str:
    """Some names, the first in alphabetical order."""
    ellipsis = ", ..." if len(names) > SHOWN else ""
    return ", ".join(sorted(names)[:SHOWN]) + ellipsis


def _check_no_seed(name: str, call: Callable[[], object]) -> None:
    """Raises BrokenError where a generator is at the same place after a call, whatever
    seed was there before it."""
    places = []
    for seed in (1, 2):
        seed_all(seed)
        call()
        place = {
            "torch": torch.get_rng_state().numpy().tobytes(),
            "numpy": np.random.get_state()[1].tobytes(),
            "Python": str(random.getstate()),
        }
        places.append(place)
    first, second = places
    for library in first:
        is_free = first[library] != second[library]
        message = f"{name} sets {library}'s seed: every training would have this one"
        _check(is_free, message)


def _trained(trial: Trial, phases: list[Phase], steps: int) -> Training:
    """A training of some steps of the first phase."""
    training = Training(trial, phases)
    for _ in range(steps):
        training.step(phases[0])
    return training


def _check_again(trial: Trial, model: nn.Module) -> list[str]:
    """Score a made-up split, and again as `evaluate` does: by a model with the same
    weights, of a file that is loaded anew, in other batches and another order. Returns
    a note on what that cannot tell."""
    module = method_of(trial.module.__file__)
    other = Trial(module, trial.options, trial.row).model(seed=7)
    other.load_state_dict(model.state_dict())
    captions = trial.captions(CAPTIONS)
    contexts = None
    if trial.takes.text == "contextual":
        contexts = captions.values.flatten(0, 1)
        rows = torch.arange(len(contexts)).view(CAPTIONS, WORDS)
        captions = replace(captions, values=rows)
    inputs = SplitInputs(
        images=trial.images(IMAGES),
        captions=captions,
        contexts=contexts,
        image_of_caption=torch.arange(CAPTIONS) % IMAGES,
        group_of_image=torch.arange(IMAGES),
        device=torch.device("cpu"),
    )
    parts = (*trial.takes.scores, "")
    encoded = model_scores.encoded(model, inputs, parts)
    scores_of_parts = encoded.scores(slice(None), slice(None))
    for part, scores in zip(parts, scores_of_parts, strict=True):
        first = Groups(IMAGES, CAPTIONS)
        first.add(Tile(encoded.image_order, encoded.caption_order, {}), scores)
        score_checks.check_retrieval(other.eval(), inputs, part, first)
    if trial.takes.caption_similarity:
        first = Groups(CAPTIONS, CAPTIONS)
        for rows, scores in model_scores.sentence_scores(model, inputs):
            first.add(Tile(rows.numpy(), np.arange(CAPTIONS), {}), scores.numpy())
        if _are_alike(first.scores):
            return ["not seen of similarities of captions: all are alike so early"]
        score_checks.check_sentences(other.eval(), inputs, first)
    return []


def _are_alike(scores: np.ndarray) -> bool:
    """Whether scores, NaN where there is none, spread so little that rounding in other
    batches changes them by more than the check allows. The scores of a deep network do
    while its running statistics have seen few batches."""
    step = np.finfo(np.float32).eps * np.nanmax(np.abs(scores))
    allowed = score_checks.OF_SPREAD[torch.float32] * np.nanstd(scores)
    return bool(allowed < STEPS_OF_DEPTH * step)


@torch.no_grad()
def _check_no_memory(trial: Trial, model: nn.Module) -> None:
    """Score other items in the same tensors, as when memory is used again: a score
    follows from the numbers, not from the tensor that holds them."""
    other = trial.model()
    other.load_state_dict(model.state_dict())
    other.eval()
    images = trial.images(IMAGES)
    captions = trial.captions(CAPTIONS)
    model.encode_images(images)
    model.encode_captions(captions)
    for tensor in (images, captions.values, captions.lengths):
        tensor.copy_(tensor.flip(0))
    scores = []
    for each in (model, other):
        encoded = each.encode_images(images), each.encode_captions(captions)
        scores.append(each.similarity(*encoded).float())
    _check_equal(*scores, "scores of other items in the same tensor")


def _unregistered(model: nn.Module) -> Iterator[str]:
    """Names of lists and dicts with parameters or modules that torch does not know
    of."""
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                is_lost = value.requires_grad
            elif isinstance(value, list | tuple | dict) and not name.startswith("_"):
                inside = value.values() if isinstance(value, dict) else value
                is_lost = any(isinstance(x, nn.Module | nn.Parameter) for x in inside)
            else:
                is_lost = False
            if is_lost:
                yield f"{prefix}.{name}".removeprefix(".")


def _state() -> dict[str, object]:
    """What a file or a model can change process-wide: settings and seeds, threads,
    files of the working folder with their times, its folders, and names of
    libraries."""
    settings = {
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
    for thread in threading.enumerate():
        if not thread.daemon:
            settings[f"the thread {thread.name}"] = True
    for path in Path().glob("[!._]*"):
        if path.is_dir():  # its time changes with its files
            settings[f"the folder {path}"] = True
        elif path.is_file():
            settings[f"the file {path}"] = path.stat().st_mtime_ns
    state: dict[str, object] = {what: str(value) for what, value in settings.items()}
    for owner in (torch, Tensor, nn, nn.functional, nn.init, torch.optim, np):
        for name, value in vars(owner).items():
            if not isinstance(value, ModuleType):
                state[f"{owner.__name__}.{name}"] = value
    return state


def _changed(before: dict[str, object]) -> list[str]:
    """What is new or changed; what is gone is not listed. Texts are compared by value,
    other things by identity."""
    changed = []
    for what, value in _state().items():
        is_same = before.get(what) is value
        if isinstance(value, str):
            is_same = before.get(what) == value
        if not is_same:
            changed.append(what)
    return changed


def _check(holds: object, message: str) -> None:
    if not holds:
        raise BrokenError(message)


def _check_gradients(model: nn.Module, terms: dict[str, Tensor]) -> None:
    sum(terms.values()).backward()
    count = 0
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            count += 1
            is_finite = parameter.grad.isfinite().all()
            _check(is_finite, f"the gradient of {name} is not finite")
    _check(count, "no parameter gets a gradient")


def _check_equal(values: Tensor, expected: Tensor, what: str) -> None:
    is_equal = torch.allclose(values, expected, **CLOSE)
    distance = float((values - expected).abs().max())
    _check(is_equal, f"{what} differ by up to {distance:.3g}")
