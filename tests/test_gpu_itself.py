"""What a GPU computes agrees with the CPU, and with itself: pytest
tests/test_gpu_itself.py

Skipped where there is none. It needs no data, and less than four minutes with one.
"""

import copy
import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import test_golden as golden
import tiny_cells
import torch
from torch import Tensor, nn

from benchmark.contracts import methods
from benchmark.core.devices import begin, make_deterministic
from benchmark.core.records import read_record
from benchmark.evaluate import __main__ as evaluate
from benchmark.features import drawn_cnn
from benchmark.scoring.inputs import SplitInputs
from benchmark.season.plugins import presets
from benchmark.train import __main__ as train
from benchmark.train import resumable_loop
from benchmark.train.resumable_loop import Run, optimiser_of
from seasons import params_of

DEVICE = "cuda"
pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU in this machine"),
    pytest.mark.filterwarnings("default"),  # libraries may be of other versions there
]
PRESETS = [name for name, (_, row) in sorted(presets().items()) if not row.fuse]
FED = (  # presets whose rows lie on the device, one of each kind of loss
    *(
        "scan_t2i_avg",
        "scan_i2t_lse",
        "vse",
        "two_branch_constraints",
        "two_branch_similarity",
    ),
    *("cyclematch", "latentmatch", "dualmatch", "two_branch_lstm"),
)


def there(value: object) -> object:
    """A tensor, or those of a dataclass or tuple, on the GPU."""
    if isinstance(value, Tensor):
        return value.to(DEVICE)
    if isinstance(value, tuple):
        return tuple(map(there, value))
    if not dataclasses.is_dataclass(value):
        return value
    fields = {
        field.name: getattr(value, field.name) for field in dataclasses.fields(value)
    }
    sent = {n: v if n.endswith("on_host") else there(v) for n, v in fields.items()}
    return dataclasses.replace(value, **sent)


@pytest.fixture
def same_lots(monkeypatch):
    # generators of GPUs give other numbers
    def on_cpu(draw: Callable) -> Callable:
        return lambda *shape, device=None, **how: draw(*shape, **how).to(
            device or "cpu"
        )

    for name in ("rand", "randint"):
        monkeypatch.setattr(torch, name, on_cpu(getattr(torch, name)))


@pytest.mark.parametrize("name", PRESETS)
def test_steps_and_scores_agree_with_the_cpu(name, same_lots):
    """Three losses, their gradients, and all scores after the steps; then those of
    bfloat16.

    Where two negatives are equally hard but for rounding, the two sides may choose
    another one, and gradients of that step are those of different captions: it may
    happen in one step of the three.
    """
    begin(DEVICE)
    method, row = presets()[name]
    module = methods.load(method)
    config = golden.small_config(module, row.options)
    takes, phases = module.inputs(config), module.recipe(config)
    here = golden.small_model(module, config)
    gpu = copy.deepcopy(here).to(DEVICE)
    apart = []  # by step: parameters whose gradients disagree, and by how much
    for number in range(3 * bool(phases)):
        batch = golden.batch_of(takes, phases[0], number)
        terms, losses = [], []
        for model, of_device in ((here, batch), (gpu, there(batch))):
            torch.manual_seed(number)
            terms.append(model.loss(of_device))
            optimiser = optimiser_of(model, phases[0])
            for group in optimiser.param_groups:
                group["lr"] = 1e-4 * group["factor"]
            losses.append(sum(terms[-1].values()))
            losses[-1].backward()
            optimiser.step()
        for term, value in terms[0].items():
            assert terms[1][term].is_cuda == (DEVICE == "cuda")
            torch.testing.assert_close(
                terms[1][term].cpu(), value, rtol=1e-4, atol=1e-5
            )
        # In a layer before a normalisation some gradients are zero but for rounding, so
        # the largest one of the model is the scale.
        trained = [name for name, p in here.named_parameters() if p.grad is not None]
        mine, other = (dict(model.named_parameters()) for model in (here, gpu))
        largest = max(float(mine[name].grad.abs().max()) for name in trained)
        wrong = {
            n: float((other[n].grad.cpu() - mine[n].grad).abs().max()) for n in trained
        }
        apart += [
            {n: off / largest for n, off in wrong.items() if off > 1e-3 * largest}
        ]
        here.zero_grad()
        gpu.load_state_dict(here.state_dict())
        gpu.zero_grad()
    assert sum(map(bool, apart)) <= 1, apart
    images, captions = golden.images_of(takes, 5), golden.text_of(takes, 9)
    mine = scores_of(here.eval(), takes, images, captions)
    scores = scores_of(gpu.eval(), takes, there(images), there(captions))
    with torch.autocast(DEVICE, torch.bfloat16):
        rough = scores_of(gpu, takes, there(images), there(captions))
    for part, expected in mine.items():
        torch.testing.assert_close(scores[part].cpu(), expected, rtol=1e-4, atol=1e-5)
        assert rough[part].dtype == torch.float32
        largest = float(expected.abs().max())
        assert (rough[part].cpu() - expected).abs().max() <= 0.1 * largest, part


@torch.no_grad()
def scores_of(
    model: nn.Module, takes: methods.Inputs, images, captions
) -> dict[str, Tensor]:
    first, second = model.encode_images(images), model.encode_captions(captions)
    scores = {"": model.similarity(first, second)}
    if takes.scores:
        scores |= model.scores(first, second)
    if takes.caption_similarity:
        scores["sentences"] = model.caption_similarity(second, second)
    return scores


def test_features_of_images_agree_with_the_cpu():
    network = drawn_cnn.Network(width=16).eval()
    golden.fill(network)
    pixels = torch.from_numpy(np.abs(golden.numbers(0, 4, 3, 96, 96)))
    begin(DEVICE)
    with torch.inference_mode():
        expected = network(pixels)
        for mine, other in zip(
            expected, network.to(DEVICE)(there(pixels)), strict=True
        ):
            torch.testing.assert_close(other.cpu(), mine, rtol=1e-4, atol=1e-5)


# The loop -----------------------------------------------------------------------------


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("name", FED)
def test_a_step_waits_for_nothing(name, autocast, tmp_path):
    begin(DEVICE)
    method, row = presets()[name]
    module = methods.load(method)
    config = golden.small_config(module, row.options)
    takes, phases = module.inputs(config), module.recipe(config)
    text, ids = golden.text_of(takes, 8), torch.arange(8)
    run = Run(
        model=golden.small_model(module, config).to(DEVICE).train(),
        phases=phases,
        train=SplitInputs(
            images=there(golden.images_of(takes, 8).half()),
            captions=there(dataclasses.replace(text, lengths_on_host=text.lengths)),
            image_of_caption=there(ids),
            group_of_image=there(ids),
            class_of_image=there(ids),
            device=torch.device(DEVICE),
        ),
        validate=lambda model: {},
        seed=0,
        autocast=autocast,
        scratch=tmp_path,
        name="gpu",
    )
    run.optimiser = optimiser_of(run.model, phases[0])
    rows, pool = np.arange(8), np.arange(5) if phases[0].pool else None
    batches = run.train.batches([rows] * 3, [pool] * 3)
    run.step(next(batches), phases[0])
    torch.cuda.set_sync_debug_mode("error")
    try:
        for batch in batches:
            run.step(batch, phases[0])
    finally:
        torch.cuda.set_sync_debug_mode("default")
        make_deterministic()


def played(kind: str, device: str = DEVICE) -> tuple[str, dict]:
    history, metrics = tiny_cells.ended_on(device, tiny_cells.cell_of(kind))
    return history.to_csv(), metrics


@pytest.fixture
def tiny_season(tmp_path, monkeypatch):
    tiny_cells.enter(tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", tiny_cells.KINDS)
def test_same_seed_same_bytes_also_after_a_kill(kind, tiny_season, monkeypatch):
    whole = played(kind)
    Path(tiny_cells.cell_of(kind).checkpoint).unlink()
    save = resumable_loop.Run._save

    def saved(run: Run) -> None:
        save(run)
        if run.progress.epoch == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(resumable_loop.Run, "_save", saved)
        with pytest.raises(KeyboardInterrupt):
            played(kind)
    assert played(kind) == whole


@pytest.mark.parametrize("kind", ["scan", "two_branch"])
def test_weights_of_the_cpu_rank_alike_on_a_gpu(kind, tiny_season):
    cell = tiny_cells.cell_of(kind)
    train.train_cell(params_of(device="cpu"), cell)
    metrics = []
    for device in ("cpu", DEVICE):
        evaluate.evaluate_cell(
            params_of(device=device, cells={cell.folder: cell}), cell
        )
        metrics.append(read_record(Path(cell.folder)).metrics)
    for name in ("i2t_r1", "t2i_r1", "rsum"):
        assert metrics[0][name] == metrics[1][name]
