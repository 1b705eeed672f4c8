"""Speed as ratios to a plain reference in one process: `pytest benchmark/`.

Absolute times differ from machine to machine and from minute to minute; the ratio of
the fastest of interleaved runs, in the processor's time of one thread, does not. Of
commands, what they import is counted.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, thread_time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmark.contracts.methods import Batch, Captions, Encoding, Sizes, scan
from benchmark.core import numerics
from benchmark.core.devices import begin, peak_memory

ROOT = Path(__file__).parents[2]
TIMES_FASTER = {"t2i": 4.0, "i2t": 15.0}  # 7 and 33 were measured on an AMD EPYC
ON_A_GPU = 3.0
MEBIBYTES = 950
# of the evaluation: captions of an image, numbers of both
IMAGES, EACH, EMBEDDING = 5000, 5, 256

REGIONS, FEATURES, SIZE, BATCH = 36, 2048, 1024, 128  # SCAN's paper, appendices A and B
SHORTEST, LONGEST, WORDS = 8, 17, 8481  # of Flickr30K's captions, and its vocabulary
MARGIN = 0.2  # of SCAN, appendix A

# The plain ways to compute losses, at the sizes of their papers. What is measured
# against must not change with what is measured.


def captions_of(rows: int) -> Captions:
    """Made-up captions (rows, LONGEST) of the lengths of Flickr30K's."""
    lengths = torch.randint(SHORTEST, LONGEST + 1, (rows,))
    values = torch.randint(4, WORDS, (rows, LONGEST)) * (
        torch.arange(LONGEST) < lengths[:, None]
    )
    return Captions(values=values, lengths=lengths)


def scan_model(direction: str) -> scan.Model:
    return scan.Model(
        scan.Config(direction=direction), Sizes(image=FEATURES, text=WORDS)
    )


def scan_scores(direction: str, regions: Tensor, captions: Encoding) -> Tensor:
    """S (I, C) in the authors' way: a loop over captions that builds every attended
    vector."""
    columns = []
    for vectors, length in zip(*captions, strict=True):
        e_nD = vectors[:length]
        s_Ikn = (regions @ e_nD.T).relu()  # Eq. 1, of unit vectors
        if direction == "t2i":
            weights = (
                9 * s_Ikn / s_Ikn.norm(dim=2, keepdim=True).clamp_min(1e-8)
            ).softmax(1)
            attended = weights.transpose(1, 2) @ regions  # Eqs. 2 and 3
            # Eq. 4
            relevance = torch.cosine_similarity(
                attended, e_nD.expand_as(attended), dim=-1
            )
        else:
            weights = (
                9 * s_Ikn / s_Ikn.norm(dim=1, keepdim=True).clamp_min(1e-8)
            ).softmax(2)
            relevance = torch.cosine_similarity(weights @ e_nD, regions, dim=-1)
        columns.append(relevance.mean(1))  # Eqs. 6 and 8
    return torch.stack(columns, 1)


def scan_loss(direction: str, regions: Tensor, captions: Encoding) -> Tensor:
    """Eq. 12 from the scores of all pairs; pair b is image b with caption b."""
    scores = scan_scores(direction, regions, captions)
    is_pair = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    wrong = scores.masked_fill(is_pair, -torch.inf)
    hinge = MARGIN - scores.diagonal()
    return ((hinge + wrong.amax(1)).relu() + (hinge + wrong.amax(0)).relu()).sum()


# Time ---------------------------------------------------------------------------------


def fastest(
    *functions: Callable[[], object],
    rounds: int,
    clock: Callable[[], float] = thread_time,
) -> list[float]:
    """Seconds of the fastest run of each function, of rounds with one run of each."""

    def timed(function: Callable[[], object]) -> float:
        started = clock()
        function()
        return clock() - started

    seconds = [np.inf] * len(functions)
    for _ in range(rounds):
        for number, function in enumerate(functions):
            seconds[number] = min(seconds[number], timed(function))
    return seconds


def in_a_process(call: str, mode: str) -> dict[str, float]:
    """What a function of this file gives in a process that does nothing else."""
    program = f"import json; from benchmark.checks.test_speed import *; print(json.dumps({call}))"
    with numerics.of_children(numerics.Numerics(mode, threads=1)):
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# SCAN ---------------------------------------------------------------------------------


def scan_step(direction: str) -> dict[str, float]:
    """Seconds of SCAN's loss of 64 encoded pairs with its gradient, here and in the
    authors' way: the encoders before it are the same in both."""
    torch.manual_seed(0)
    model, captions = scan_model(direction), captions_of(64)
    regions = normalize(torch.randn(64, REGIONS, SIZE), dim=-1).requires_grad_()
    is_word = torch.arange(LONGEST) < captions.lengths[:, None]
    words = normalize(torch.randn(64, LONGEST, SIZE), dim=-1) * is_word[..., None]
    words.requires_grad_()
    model.encode_images = lambda images: (regions, torch.full((64,), REGIONS))
    model.encode_captions = lambda captions: (words, captions.lengths)
    batch = Batch(images=regions, captions=captions, group_ids=torch.arange(64))
    torch.testing.assert_close(
        sum(model.loss(batch).values()),
        scan_loss(direction, regions, (words, captions.lengths)),
    )
    own, slow = fastest(
        lambda: sum(model.loss(batch).values()).backward(),
        lambda: scan_loss(direction, regions, (words, captions.lengths)).backward(),
        rounds=4,
    )
    return {"own": own, "authors": slow}


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_scan_trains_faster_than_the_authors_way(direction):
    """With the fastest kernels of the machine: with the slow products of portable
    numerics nothing but products counts."""
    seconds = in_a_process(f"scan_step({direction!r})", numerics.NATIVE)
    assert seconds["authors"] > TIMES_FASTER[direction] * seconds["own"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU in this machine")
@pytest.mark.filterwarnings("default")  # libraries may be of other versions there
@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_a_step_on_a_gpu_is_faster_than_the_authors_way(direction):
    device = begin("cuda")
    torch.manual_seed(0)
    model, captions = scan_model(direction).to(device), captions_of(BATCH)
    lengths, ids = captions.lengths, torch.arange(BATCH)
    batch = Batch(
        images=torch.randn(BATCH, REGIONS, FEATURES).to(device),
        captions=Captions(
            values=captions.values.to(device),
            lengths=lengths.to(device),
            lengths_on_host=lengths,
        ),
        group_ids=ids.to(device),
        ids_on_host=ids,
    )

    def own() -> Tensor:
        return sum(model.loss(batch).values())

    def authors() -> Tensor:
        regions = model.encode_images(batch.images)[0]
        return scan_loss(
            direction, regions, (model.encode_captions(batch.captions)[0], lengths)
        )

    def step(loss: Callable[[], Tensor]) -> None:
        model.zero_grad(set_to_none=True)
        loss().backward()
        torch.cuda.synchronize()

    torch.testing.assert_close(own(), authors(), rtol=1e-4, atol=1e-5)
    seconds = fastest(
        partial(step, own), partial(step, authors), rounds=9, clock=perf_counter
    )
    assert seconds[1] > ON_A_GPU * seconds[0]


# Evaluation ---------------------------------------------------------------------------


def evaluation() -> dict[str, float]:
    """Seconds of an evaluation, seconds in which the scores of each query are computed
    and sorted, and MiB on top of the encodings."""
    from benchmark.scoring import fusion
    from benchmark.scoring.evaluation import of_retrieval
    from benchmark.scoring.model_scores import Encoded
    from benchmark.scoring.relevance import Relevance
    from benchmark.scoring.score_stream import STREAM_TILE, ScoreStream

    torch.manual_seed(0)
    owners = np.repeat(np.arange(IMAGES), EACH)
    relevance = Relevance.of(np.arange(IMAGES), owners)
    x = normalize(torch.randn(IMAGES, EMBEDDING), dim=1)
    y = normalize(
        0.3 * x[owners] + torch.randn(len(owners), EMBEDDING) / EMBEDDING**0.5, dim=1
    )
    rng = np.random.default_rng(0)
    orders = rng.permutation(IMAGES), rng.permutation(len(owners))
    model = SimpleNamespace(
        similarity=lambda images, captions: images[0] @ captions[0].T
    )
    different = [np.arange(len(order)) for order in orders]  # no two items are equal
    encoded = Encoded(model, (x[orders[0]],), (y[orders[1]],), *orders, *different)

    def sort() -> None:
        for queries, items in ((x, y), (y, x)):
            for block in queries.split(STREAM_TILE[0]):
                np.argsort((block @ items.T).numpy(), axis=1)

    def evaluate() -> None:
        of_retrieval(ScoreStream([encoded], fusion.mean), relevance)

    before = peak_memory()
    own, sorting = fastest(evaluate, sort, rounds=3)
    return {"own": own, "sorting": sorting, "mebibytes": peak_memory() - before}


@pytest.mark.skipif(
    not Path("/proc/self/status").is_file(), reason="memory is read on Linux"
)
def test_an_evaluation_takes_less_than_a_sort_of_its_scores_and_little_memory():
    """5,000 images and 25,000 captions in 256 dimensions, as MSCOCO 5K. Not over its
    product, which stays in cache: beside processes that fill the memory bus, that ratio
    goes from 2.7 to 4.6."""
    measured = in_a_process("evaluation()", numerics.PORTABLE)
    assert measured["own"] < measured["sorting"]
    assert measured["mebibytes"] < MEBIBYTES


# The command line ---------------------------------------------------------------------

HEAVY = {
    *("dvc", "gensim", "jinja2", "matplotlib", "numpy", "pandas", "pydantic"),
    *("pyarrow", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"),
    *("seaborn", "skimage", "sklearn", "timm", "torch", "torchvision", "transformers"),
    *("yaml", "zc.lockfile", "tqdm"),
}
FILES = {"numpy", "pydantic", "tqdm", "yaml", "zc.lockfile"}  # season files and papers
TABLES = FILES | {"jinja2", "pandas", "pyarrow"}
TABLES |= {"scipy.optimize", "scipy.sparse", "scipy.special"}
PLAN = "plan --difference 10 --sd-seeds 2.1 --se-images 3.5 --of-images 1000"
LOADED = {  # by a command, of the heavy ones; no others may join them
    "--help": set(),
    "list presets": FILES,
    "list seasons": FILES,
    PLAN: TABLES,
    "judge A.csv B.csv": TABLES,
    "judge flickr8k:vse flickr8k:cca": TABLES,
    "compare vse cca --season flickr8k": TABLES,
    "printed 58.6": TABLES,
    "export flickr8k/leaderboard --season flickr8k": TABLES,
}
MORE_MODULES = {"--help": "import argparse, numpy"}


def modules_of(*arguments: str) -> set[str]:
    """What a Python process imports: the same on a busy machine."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr.splitlines()[-1]
    lines = [
        line for line in done.stderr.splitlines() if line.startswith("import time:")
    ]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("command", LOADED)
def test_a_command_imports_little(command, tmp_path):
    rows = ["query,value", *(f"q{number},{number % 2}" for number in range(50))]
    for name in ("A.csv", "B.csv"):
        (tmp_path / name).write_text("\n".join(rows))
    words = []
    for word in command.split():
        words.append(str(tmp_path / word) if ".csv" in word else word)
    modules = modules_of("-m", "benchmark", *words)
    assert "benchmark.core" in modules
    assert modules & HEAVY <= LOADED[command]
    if command in MORE_MODULES:
        assert len(modules) < len(modules_of("-c", MORE_MODULES[command]))
