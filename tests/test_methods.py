"""What every method of methods/ promises: `check`, for every preset at a tiny size; and
how a split is fed to it. Recipes, inputs, options and sizes of full networks, as the
papers and codes print them."""

from dataclasses import asdict, fields

import pytest
import torch

from benchmark.commands import check
from benchmark.commands.check import Trial
from benchmark.contracts import methods
from benchmark.contracts.methods import Inputs, Sizes, vse_infinity
from benchmark.scoring import model_scores
from benchmark.scoring.inputs import SplitInputs
from benchmark.season.plugins import method_of, presets

PRESETS = presets()
ROWS = {name: row for name, (_, row) in PRESETS.items() if not row.fuse}
TINY = {
    "dropout": 0.0,
    "regions": 3,
    "blocks": "1,1,1,1",
    "text_width": 1 / 64,
    "text_length": 12,
}
# On a CPU these start from an approximation by the processor: see
# benchmark/core/numerics.py.
APPROXIMATED = {
    "sqrt",
    "sqrt_",
    "acos",
    "asin",
    "atan",
    "tan",
    "log2",
    "_cdist_forward",
}
# What is printed of a phase -----------------------------------------------------------

RATES = "learning_rates"
OF_SCAN = {"optimiser": "adam", "batch_size": 128, "clip_norm": 2.0}
# SCAN's Appendix A; VSE++'s code
VSE = OF_SCAN | {RATES: [0.0002] * 15 + [0.00002] * 15}
# VSE-infinity's code
WARM_UP = OF_SCAN | {RATES: [0.0005], "terms": vse_infinity.WARM_UP}
REST = OF_SCAN | {RATES: [0.0005] * 14 + [0.00005] * 10, "terms": vse_infinity.REST}
SGD = {"optimiser": "sgd", "momentum": 0.9}
# Section 6.4.1
CYCLEMATCH = SGD | {"weight_decay": 0.0005, "batch_size": 500, "draws": "captions"}


def tiny(method: str, row: object = None) -> Trial:
    """A method with the options of a preset; every size of a layer is small, whatever
    it says."""
    module = method_of(method)
    names = [field.name for field in fields(module.Config)]
    # word vectors have the size that they have
    kept = ("batch_size", "pool_size", "word_size")
    sizes = {n: 16 for n in names if n.endswith("_size") and n not in kept}
    small = sizes | {n: value for n, value in TINY.items() if n in names}
    return Trial(module, (row.options if row else {}) | small, row)


def trials() -> dict[str, Trial]:
    """One per preset; presets that only differ in sizes and in numbers that are not 0
    are one."""
    by_kind: dict[object, tuple[str, Trial]] = {}
    for name, row in ROWS.items():
        trial = tiny(PRESETS[name][0], row)
        values = asdict(trial.config).values()
        kind = tuple(
            value if isinstance(value, str | bool) else bool(value) for value in values
        )
        by_kind.setdefault((trial.module, kind), (name, trial))
    return dict(by_kind.values())


TRIALS = trials()
# as others, with more options
LARGEST = ("dual_path_official_2", "dual_path_official_rank_1")
each = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LARGEST)) for n in TRIALS]
)


@each
def test_a_preset_keeps_the_contract(name):
    ended = check.check(TRIALS[name])
    assert [promise for promise in ended if not promise.is_kept] == []
    assert len(ended) > 5


@each
def test_nothing_is_computed_that_processors_approximate(name):
    """Not within torch's own functions either: a batch norm of a transposed tensor
    takes one."""
    trial = TRIALS[name]
    model, phases = trial.model(), trial.module.recipe(trial.config)
    with torch.profiler.profile() as seen:
        if phases:
            sum(model.loss(trial.batch(list(range(8)), phases)).values()).backward()
        model.eval()
        images, captions = trial.images(6), trial.captions(11)
        model.similarity(model.encode_images(images), model.encode_captions(captions))
    names = {event.key.removeprefix("aten::") for event in seen.key_averages()}
    assert len(names) > 3 and names & APPROXIMATED == set()


@pytest.mark.parametrize("name", methods.names())
@pytest.mark.parametrize("offer", ["fit", "scores", "caption_similarity", "attention"])
def test_what_a_model_offers_is_declared(name, offer):
    module = methods.load(name)
    of_method = [trial for trial in TRIALS.values() if trial.module is module]
    assert of_method
    declared = any(getattr(trial.takes, offer) for trial in of_method)
    assert declared == hasattr(module.Model, offer)


def test_parts_that_fusions_name_are_offered():
    for name, (_, row) in PRESETS.items():
        for member in row.fuse.of if row.fuse else []:
            preset, _, part = member.partition(":")
            if part:
                takes = tiny(PRESETS[preset][0], ROWS[preset]).takes
                assert part in takes.scores, f"{name}: {member}"


# Splits -------------------------------------------------------------------------------


def split_of(trial: Trial, images: int = 5, captions: int = 11) -> SplitInputs:
    return SplitInputs(
        images=trial.images(images).half(),
        captions=trial.captions(captions),
        image_of_caption=torch.arange(captions) % images,
        group_of_image=torch.arange(images),
        device=torch.device("cpu"),
    )


def test_a_split_is_scored_in_chunks_of_any_size_and_by_parts(monkeypatch):
    name = next(name for name, trial in TRIALS.items() if trial.takes.scores)
    model, inputs = TRIALS[name].model().eval(), split_of(TRIALS[name])
    with torch.no_grad():
        images = model.encode_images(inputs.images_at(slice(None)))
        captions = model.encode_captions(inputs.captions)
        whole, parts = (
            model.similarity(images, captions),
            model.scores(images, captions),
        )
    for chunk in (2, 5):
        monkeypatch.setattr(model_scores, "ENCODE_CHUNK", chunk)
        scores = model_scores.score(model, inputs)
        torch.testing.assert_close(scores, whole, rtol=1e-5, atol=1e-6)
    member = model_scores.encoded(model, inputs, (*parts, ""))
    found = map(torch.from_numpy, member.scores(slice(None), slice(None)))
    for matrix, expected in zip(found, (*parts.values(), whole), strict=True):
        expected = expected[member.image_order][:, member.caption_order]
        torch.testing.assert_close(matrix, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(KeyError, match="nothing"):
        model_scores.encoded(model, inputs, ("nothing",)).scores(
            slice(None), slice(None)
        )


# What papers print --------------------------------------------------------------------


CYCLEMATCH |= {RATES: [0.1] * 20 + [0.01] * 20 + [0.001] * 20}
# Section VI-B
DUAL_PATH = SGD | {"nesterov": False, "batch_size": 32, "draws": "images"}
DUAL_PATH |= {RATES: [0.001] * 240, "pool": 0, "rates": ()}
STAGE_2 = {"stage": 2, "lambda1": 1.0, "epochs": 60, "decay_after": 40}
POOL = {"lambda1": 1.0, "negatives": "pool"}
PROJECTION = {"optimiser": "adam", "batch_size": 256, RATES: [0.001] * 9 + [0.0001] * 3}
ADAM = {
    "optimiser": "adam",
    "weight_decay": 0.0,
    "clip_norm": None,
    "captions_per_image": 1,
}
SENTENCES = ADAM | {"batch_size": 500, RATES: [0.0001] * 20}  # Sections 5.1 and 5.3
PHRASES = ADAM | {"batch_size": 100, RATES: [0.001] * 8, "keeps": "last"}  # Section 4.3
SAMPLING = {"neighbourhood_sampling": True}
CONSTRAINTS = SAMPLING | {"lambda3": 0.1, "lambda4": 0.1}
PAIRS = {"captions_per_image": 2, "keeps": "last"}
ANCHORS = {
    "epochs": 8,
    "captions_per_image": 2,
    "terms": ("phrase_anchor", "image_anchor"),
}

RECIPES = [  # method, options, phases
    ("scan", {}, [VSE]),
    ("vse", {}, [VSE]),
    ("vse_infinity", {}, [WARM_UP, REST]),
    ("vse_infinity", {"warm_up_epochs": 0}, [OF_SCAN | {"epochs": 25}]),
    ("vse_infinity", {"epochs": 1}, [OF_SCAN | {"epochs": 1}]),
    ("cyclematch", {}, [CYCLEMATCH]),
    ("dual_path", {}, [DUAL_PATH]),
    ("dual_path", STAGE_2, [{RATES: [0.001] * 40 + [0.0001] * 20}]),
    ("dual_path", POOL, [{"pool": 256}]),
    ("dual_path", {"nesterov": True}, [{"nesterov": True}]),
    ("projection", {}, [PROJECTION]),
    ("two_branch_embedding", {}, [SENTENCES]),
    ("two_branch_embedding", SAMPLING, [{"captions_per_image": 2}]),
    ("two_branch_similarity", {}, [SENTENCES]),
    ("two_branch_phrase_embedding", {}, [PHRASES]),
    ("two_branch_phrase_embedding", SAMPLING, [PAIRS]),
    # Neighbourhoods count in two more epochs; the last of 8 + 2 is kept.
    (
        "two_branch_phrase_embedding",
        CONSTRAINTS,
        [ANCHORS, PAIRS | {"epochs": 2, "terms": ()}],
    ),
    ("two_branch_phrase_similarity", {}, [PHRASES]),
]


@pytest.mark.parametrize(("method", "options", "expected"), RECIPES)
def test_recipes_are_those_of_the_papers(method, options, expected):
    module = methods.load(method)
    for phase, facts in zip(
        module.recipe(module.Config(**options)), expected, strict=True
    ):
        for name, value in facts.items():
            found = getattr(phase, name)
            assert found == (pytest.approx(value) if name == RATES else value), name


def test_options_of_two_branch_networks():
    config = methods.load("two_branch_embedding").Config()
    assert (config.margin, config.lambda1, config.lambda2) == (0.05, 1.0, 1.5)
    assert (config.top_k, config.dropout) == (10, 0.5)
    config = methods.load("two_branch_phrase_embedding").Config()
    assert (config.lambda1, config.lambda2, config.lambda3, config.lambda4) == (
        1,
        4,
        0,
        0,
    )
    assert (config.top_k, config.positive_iou, config.negative_iou) == (30, 0.7, 0.3)


PHRASE = {"task": "localisation", "image": "proposals", "text": "phrase"}
WORDS = {"text": "tokens", "min_count": 4, "caption_similarity": True}
INPUTS = {
    "projection": {"image": "pooled", "text": "sentence", "caption_similarity": True},
    "two_branch_similarity": {"image": "pooled", "text": "sentence"},
    "two_branch_phrase_embedding": PHRASE,
    "two_branch_phrase_similarity": PHRASE,
    "vse": {"image": "pooled"} | WORDS,
    "vse_infinity": {"image": "regions"} | WORDS,
}


@pytest.mark.parametrize("method", INPUTS)
def test_inputs_are_those_of_the_papers(method):
    module = methods.load(method)
    assert module.inputs(module.Config()) == Inputs(**INPUTS[method])


# Parameters ---------------------------------------------------------------------------


def fc(into: int, out: int) -> int:
    """A fully connected layer with bias."""
    return into * out + out


def norm_parameters(size: int) -> int:
    return 2 * size


def block(into: int, middle: int, out: int) -> int:
    """Of the text CNN: convolutions without bias, each with a batch norm."""
    convolutions = into * middle + 2 * middle * middle + middle * out
    return (
        convolutions
        + norm_parameters(middle)
        + norm_parameters(middle)
        + norm_parameters(out)
    )


def text_cnn() -> int:
    """Figure 2 of the dual-path CNN: blocks, input, middle and output width of each
    stage."""
    total = 0
    for depth, into, middle, out in (
        *((3, 300, 128, 256), (4, 256, 512, 512)),
        *((6, 512, 1024, 1024), (3, 1024, 2048, 2048)),
    ):
        total += block(into, middle, out) + into * out + norm_parameters(out)
        total += (depth - 1) * block(out, out // 4, out)
    return total


GRU = 3 * 1024 * (300 + 1024 + 2)  # three gates; PyTorch's two biases each
OF_WORDS = fc(2048, 1024) + 8481 * 300
# second and third layer of CycleMatch
LATENT = 2048 * 512 + norm_parameters(512) + 512 * 512 + norm_parameters(512)
CYCLE = fc(2048, 2048) + fc(4096, 2048) + 2 * LATENT  # with both first layers
BRANCHES = fc(4096, 2048) + fc(6000, 2048) + 2 * (fc(2048, 512) + norm_parameters(512))
FIRST = fc(4096, 1024) + fc(6000, 1024)  # of phrases
LAST = fc(512, 256) + fc(256, 1)
HEAD = 2048 * 2048 + norm_parameters(2048) + 2048 * 2048
GPO = 2 * 3 * 32 * (32 + 32 + 2) + 32
REGIONS = fc(2048, 1024) + fc(2048, 512) + fc(512, 1024) + norm_parameters(512)
TEXT_CNN = 20_075 * 300 + norm_parameters(300) + text_cnn()
SECOND = 2 * (
    fc(1024, 512) + norm_parameters(512)
)  # of phrases, after the first layers
JOINT = fc(512, 512) + LAST
FOURTH = 512 * 6144 + norm_parameters(
    6144
)  # the last layers of both mappings of a cycle
TOKENS, VECTORS = (2048, 8481), (4096, 6000)

COUNTS = [  # method, options, sizes of image, text and classes, parameters
    ("scan", {}, TOKENS, OF_WORDS + 2 * GRU),
    ("scan", {"bidirectional": False}, TOKENS, OF_WORDS + GRU),
    ("vse", {}, TOKENS, OF_WORDS + 2 * GRU),
    ("vse", {"bidirectional": False}, TOKENS, OF_WORDS + GRU),
    # The code has a batch norm of 1,024 numbers beside, which it never applies.
    (
        "vse_infinity",
        {"text": "contextual"},
        (2048, 768),
        REGIONS + fc(768, 1024) + 2 * GPO,
    ),
    ("cyclematch", {"variant": "latent"}, (2048, 4096), CYCLE),
    *(
        ("cyclematch", {"variant": variant}, (2048, 4096), CYCLE + FOURTH)
        for variant in ("cycle", "i2t2i", "t2i2t", "without_latent", "dual")
    ),
    ("dual_path", {}, (2048, 20_075, 29_783), TEXT_CNN + 2 * HEAD + 2048 * 29_783),
    ("two_branch_embedding", {}, VECTORS, BRANCHES),
    ("two_branch_similarity", {}, VECTORS, BRANCHES + JOINT),
    ("two_branch_similarity", {"joint_layers": 2}, VECTORS, BRANCHES + LAST),
    ("two_branch_similarity", {"joint_layers": 1}, VECTORS, BRANCHES + fc(512, 1)),
    ("two_branch_phrase_embedding", {}, VECTORS, FIRST + SECOND),
    ("two_branch_phrase_embedding", {"nonlinear": False}, VECTORS, FIRST),
    ("two_branch_phrase_similarity", {}, VECTORS, FIRST + SECOND + JOINT),
    (
        "two_branch_phrase_similarity",
        {"joint_layers": 2},
        VECTORS,
        FIRST + SECOND + LAST,
    ),
    (
        "two_branch_phrase_similarity",
        {"joint_layers": 1},
        VECTORS,
        FIRST + SECOND + fc(512, 1),
    ),
    (
        *("two_branch_phrase_similarity", {"nonlinear": False}, VECTORS),
        FIRST + fc(1024, 512) + LAST,
    ),
]


@pytest.mark.parametrize(("method", "options", "sizes", "expected"), COUNTS)
def test_full_size_networks_have_the_papers_parameters(
    method, options, sizes, expected
):
    module = methods.load(method)
    given = dict(zip(("image", "text", "classes"), sizes, strict=False))
    with torch.device("meta"):
        model = module.Model(module.Config(**options), Sizes(**given))
    assert sum(x.numel() for x in model.parameters() if x.requires_grad) == expected
