"""What every method of methods/ promises, whatever it does inside; and how it is configured."""

from dataclasses import FrozenInstanceError, fields, is_dataclass
from types import ModuleType

import numpy as np
import pytest
import torch

import methods
from benchmark import protocol, scoring
from benchmark.errors import UserError
from benchmark.inputs import SplitInputs
from benchmark.options import configured, spelt_out
from benchmark.presets import presets
from benchmark.train import optimiser_of
from methods import Batch, Captions, Sizes

TINY = {"embedding_size": 16, "hidden_size": 16, "word_size": 8, "dropout": 0.0}
SIZES = Sizes(image=12, text=20)  # feature size; words, or size of a sentence vector
REGIONS, WORDS = 3, 7
ROWS = {name: row for name, (_, row) in presets().items() if not row.average}
CASES = [(method, name) for name, (method, row) in presets().items() if not row.average]
WORD_CASES = [case for case in CASES if methods.load(case[0]).INPUTS.text == "tokens"]


def model_of(method: ModuleType, options: dict | None = None, seed: int = 0) -> torch.nn.Module:
    known = {field.name for field in fields(method.Config)}
    tiny = {key: value for key, value in TINY.items() if key in known}
    torch.manual_seed(seed)
    return method.Model(method.Config(**tiny | (options or {})), SIZES)


def images_of(takes: methods.Inputs, count: int, seed: int = 1) -> torch.Tensor:
    shape = (count, SIZES.image) if takes.image == "pooled" else (count, REGIONS, SIZES.image)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def captions_of(takes: methods.Inputs, count: int, seed: int = 2) -> Captions:
    generator = torch.Generator().manual_seed(seed)
    if takes.text == "sentence":
        values = torch.randn(count, SIZES.text, generator=generator)
        return Captions(values=values, lengths=torch.ones(count, dtype=torch.int64))
    lengths = torch.randint(2, WORDS + 1, (count,), generator=generator)
    lengths[0] = WORDS
    values = torch.randint(1, SIZES.text, (count, WORDS), generator=generator)
    return Captions(values=values * (torch.arange(WORDS) < lengths[:, None]), lengths=lengths)


def at(captions: Captions, rows) -> Captions:
    return Captions(values=captions.values[rows], lengths=captions.lengths[rows])


def encoded(model, takes, images=6, captions=11):
    with torch.no_grad():
        return (
            model.encode_images(images_of(takes, images)),
            model.encode_captions(captions_of(takes, captions)),
        )


def eight_pairs(method: ModuleType) -> Batch:
    return Batch(
        images=images_of(method.INPUTS, 8),
        captions=captions_of(method.INPUTS, 8),
        image_ids=torch.arange(8),
    )


def trained(method: ModuleType, options: dict, steps: int, seed: int = 0) -> torch.nn.Module:
    """A tiny model after some steps on eight pairs, by the method's own loss."""
    model, batch = model_of(method, options, seed), eight_pairs(method)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        sum(model.loss(batch).values()).backward()
        optimiser.step()
    return model


@pytest.fixture(params=methods.names())
def method(request) -> ModuleType:
    return methods.load(request.param)


@pytest.fixture(params=CASES, ids=lambda case: case[1])
def case(request) -> tuple[ModuleType, dict]:
    """A method with the options of one of its presets."""
    name, preset = request.param
    return methods.load(name), ROWS[preset].options


def test_there_are_methods():
    assert {"scan", "two_branch_embedding"} <= set(methods.names())
    assert not set(methods.names()) & set(methods.SHARED)
    assert {method for method, _ in CASES} == set(methods.names()), "a method without a preset"


def test_module_offers_the_contract(method):
    assert isinstance(method.INPUTS, methods.Inputs)
    assert is_dataclass(method.Config)
    with pytest.raises(FrozenInstanceError):
        method.Config().batch_size = 1
    phases = method.recipe(method.Config())
    assert all(isinstance(phase, methods.Phase) for phase in phases)
    assert all(phase.epochs == len(phase.learning_rates) >= 1 for phase in phases)
    assert all(isinstance(optimiser_of(model_of(method), p), torch.optim.Optimizer) for p in phases)


def test_scores_are_one_a_pair(case):
    model = model_of(*case).eval()
    images, captions = encoded(model, case[0].INPUTS)
    scores = model.similarity(images, captions)
    assert scores.shape == (6, 11)
    assert scores.isfinite().all()
    assert scores.std() > 1e-4
    assert all(len(x) == 6 for x in images) and all(len(x) == 11 for x in captions)


@pytest.mark.parametrize("case", WORD_CASES, indirect=True, ids=lambda case: case[1])
def test_padding_changes_no_score(case):
    method, options = case
    model = model_of(method, options).eval()
    captions = captions_of(method.INPUTS, 11)
    images = model.encode_images(images_of(method.INPUTS, 6))
    together = model.similarity(images, model.encode_captions(captions))
    wider = Captions(
        values=torch.nn.functional.pad(captions.values, (0, 9)), lengths=captions.lengths
    )
    torch.testing.assert_close(model.similarity(images, model.encode_captions(wider)), together)
    for c, length in enumerate(captions.lengths):
        bare = Captions(values=captions.values[[c], :length], lengths=length[None])
        alone = model.similarity(images, model.encode_captions(bare))
        torch.testing.assert_close(alone, together[:, [c]])


@pytest.mark.parametrize("tile", [(1, 1), (2, 3), (4, 11), (100, 100)])
def test_tiles_change_no_score(case, tile):
    model = model_of(*case).eval()
    images, captions = encoded(model, case[0].INPUTS)
    with torch.inference_mode():
        whole = model.similarity(images, captions)
        found = scoring.score_pairs(model, images, captions, quiet=True, tile=tile)
    torch.testing.assert_close(found, whole, rtol=1e-5, atol=1e-6)


def test_order_and_company_of_items_change_no_score(case):
    method, options = case
    model = model_of(method, options).eval()
    images, captions = images_of(method.INPUTS, 6), captions_of(method.INPUTS, 11)
    generator = torch.Generator().manual_seed(3)
    rows, columns = (torch.randperm(n, generator=generator) for n in (6, 11))
    with torch.no_grad():
        whole = model.similarity(model.encode_images(images), model.encode_captions(captions))
        for kept in (slice(None), slice(2, 4)):
            i, c = rows[kept], columns[kept]
            found = model.similarity(
                model.encode_images(images[i]), model.encode_captions(at(captions, c))
            )
            torch.testing.assert_close(found, whole[i][:, c], rtol=1e-5, atol=1e-6)


def test_every_parameter_receives_a_gradient(case):
    method, options = case
    model = model_of(method, options)
    takes, ids = method.INPUTS, torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])
    captions = captions_of(takes, 8)
    if takes.text == "tokens":  # every word occurs, so that every embedding can learn
        words = torch.arange(8 * WORDS).view(8, WORDS) % (SIZES.text - 1) + 1
        captions = Captions(values=words, lengths=torch.full((8,), WORDS))
    batch = Batch(images=images_of(takes, 4)[ids], captions=captions, image_ids=ids)
    terms = model.loss(batch)
    assert all(term.dim() == 0 and term.isfinite() for term in terms.values())
    sum(terms.values()).backward()
    silent = [
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and (parameter.grad is None or not parameter.grad.any())
    ]
    # Batch norm takes the mean away again, so a bias before it has no effect.
    before_norm = [f"{side}_branch.3.bias" for side in ("image", "text")]
    assert not set(silent) - set(before_norm)


def test_eight_pairs_can_be_memorised(case):
    method, options = case
    model = trained(method, options, steps=150).eval()
    terms = set(model.loss(eight_pairs(method)))
    with torch.no_grad():
        images = model.encode_images(images_of(method.INPUTS, 8))
        captions = model.encode_captions(captions_of(method.INPUTS, 8))
        scores = model.similarity(images, captions).numpy()
    ranks = protocol.both_ways(scores, np.eye(8, dtype=bool))
    metrics = protocol.retrieval_metrics(ranks)
    assert metrics["i2t_r1"] == 100
    # A loss of image anchors alone asks nothing of the other direction.
    assert metrics["t2i_r1"] == 100 or terms == {"image_anchor"}


def test_same_seed_same_bits(case):
    first, again, other = (trained(*case, steps=3, seed=seed).state_dict() for seed in (5, 5, 6))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_whole_batches_of_one_image_are_harmless(case):
    method, options = case
    model = model_of(method, options)
    ids = torch.zeros(3, dtype=torch.int64)
    batch = Batch(
        images=images_of(method.INPUTS, 1)[ids],
        captions=captions_of(method.INPUTS, 3),
        image_ids=ids,
    )
    sum(model.loss(batch).values()).backward()
    assert all(x.grad is None or x.grad.isfinite().all() for x in model.parameters())


@pytest.mark.parametrize("name", ROWS)
def test_presets_are_accepted_by_their_config(name):
    method = methods.load(presets()[name][0])
    config = configured(method, ROWS[name].options, f"preset {name}")
    assert spelt_out(config) == spelt_out(method.Config()) | ROWS[name].options
    assert method.recipe(config)


def test_unknown_option_is_refused_with_the_valid_ones(method):
    with pytest.raises(UserError, match=r"^preset mine: no option 'lamda2'; expected one of ") as e:
        configured(method, {"lamda2": 1.0}, "preset mine")
    assert all(field.name in str(e.value) for field in fields(method.Config))


def test_wrong_values_are_refused_with_their_place():
    scan, two_branch = methods.load("scan"), methods.load("two_branch_embedding")
    with pytest.raises(UserError, match=r"^preset p: margin: .*found 'wide'"):
        configured(scan, {"margin": "wide"}, "preset p")
    with pytest.raises(UserError, match=r"^preset p: .*expected t2i or i2t, found 'up'"):
        configured(scan, {"direction": "up"}, "preset p")
    with pytest.raises(UserError, match=r"^preset p: .*lambda4.*need neighbourhood_sampling"):
        configured(two_branch, {"lambda4": 0.05}, "preset p")


def split_of(takes: methods.Inputs, images: int, captions: int) -> SplitInputs:
    return SplitInputs(
        images=images_of(takes, images).half(),
        captions=captions_of(takes, captions),
        image_of_caption=torch.arange(captions) % images,
        device=torch.device("cpu"),
    )


def test_a_batch_is_captions_with_their_images():
    inputs = split_of(methods.load("scan").INPUTS, 5, 11)
    rows = np.array([3, 7, 1])
    batch = inputs.batch(rows)
    assert batch.image_ids.tolist() == [3, 2, 1]
    assert torch.equal(batch.images, inputs.images[[3, 2, 1]].float())
    width = int(inputs.captions.lengths[rows].max())
    assert torch.equal(batch.captions.values, inputs.captions.values[rows][:, :width])
    assert torch.equal(batch.captions.lengths, inputs.captions.lengths[rows])


@pytest.mark.parametrize("chunk", [2, 5])
def test_a_split_is_scored_in_chunks_of_any_size(case, chunk, monkeypatch):
    method, options = case
    model, inputs = model_of(method, options).eval(), split_of(method.INPUTS, 5, 11)
    with torch.no_grad():
        whole = model.similarity(
            model.encode_images(inputs.images.float()), model.encode_captions(inputs.captions)
        )
    monkeypatch.setattr(scoring, "ENCODE_CHUNK", chunk)
    found = scoring.score(model, inputs, quiet=True).matrix
    torch.testing.assert_close(found, whole, rtol=1e-5, atol=1e-6)


def test_names_are_checked():
    for name in ("nothing", "scan/../x", "losses", "__init__"):
        with pytest.raises(ValueError, match="no method .*expected one of .*scan"):
            methods.load(name)


OUTSIDE = '''
"""A method of one's own."""

{future}
from dataclasses import dataclass

from methods import Inputs

INPUTS = Inputs(image="pooled", text="sentence")


@dataclass(frozen=True, kw_only=True)
class Config:
    size: int = 3
'''


@pytest.mark.parametrize("future", ["", "from __future__ import annotations"])
def test_a_file_outside_of_the_package_is_a_method(tmp_path, future):
    (tmp_path / "mine.py").write_text(OUTSIDE.format(future=future))
    method = methods.load(str(tmp_path / "mine.py"))
    assert method.INPUTS.image == "pooled"
    assert configured(method, {"size": 7}, "preset mine").size == 7
    with pytest.raises(ValueError, match="other.py: no such method file"):
        methods.load(str(tmp_path / "other.py"))
