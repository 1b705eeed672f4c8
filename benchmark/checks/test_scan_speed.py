"""SCAN's speed at the sizes of its paper, as ratios in one process: `pytest benchmark/`.

In scoring, its time over that of the bare region-word product; in training, how many times faster a
step is than in the authors' way, and its time over that of its own products. Both measured against
are in scan_references.py.
"""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from benchmark.checks.interleaved_runs import fastest
from benchmark.checks.scan_references import (
    BATCH,
    FEATURES,
    REGIONS,
    bare_product,
    by_caption,
    kept_words,
    scan_model,
    words,
)
from benchmark.core import numerics
from benchmark.core.numerics import NATIVE, Numerics

ROOT = Path(__file__).parents[2]
SCORED = 32  # images with the captions of a batch, so that a run is short: a neighbour on the
# machine disturbs many short runs less than few long ones
OVER_PRODUCT = 1.4
STEP_OVER_PRODUCTS = 1.5
# Whole steps: the aim was 6 and 10. Neither can be had: four fifths of a step are the encoders that
# both ways share, and if the rest took no time at all, on an AMD EPYC a step would be 4.7 and 9.4
# times faster (4.0 and 7.9 measured). How fast the authors' way is hangs on the state of the memory
# allocator, by half. So what counts is the rest, without the encoders: 20 and 40 times measured.
TIMES_FASTER = {"t2i": 3.0, "i2t": 6.0}
TIMES_FASTER_BEYOND = {"t2i": 10.0, "i2t": 25.0}


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_scan_scores_in_little_more_than_its_product(direction, benchmark, one_thread):
    model, pixels = scan_model(direction), torch.randn(SCORED, REGIONS, FEATURES)
    with torch.inference_mode():
        images, captions = model.encode_images(pixels), model.encode_captions(words(BATCH))
        kept = kept_words(captions)
        score = partial(model.similarity, images, captions)
        loop = partial(by_caption, direction, images[0], captions)
        torch.testing.assert_close(score(), loop(), atol=1e-5, rtol=1e-4)
        own, bare = fastest(score, partial(bare_product, images[0], kept))
        benchmark.pedantic(score)
    benchmark.extra_info["over_product"] = round(own / bare, 2)
    assert own < OVER_PRODUCT * bare


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_scan_trains_faster_than_the_authors_way(direction, benchmark):
    def steps() -> dict[str, float]:
        command = [sys.executable, "-m", "benchmark.checks.scan_steps", direction]
        with numerics.of_children(Numerics(NATIVE, threads=1)):
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    measured = benchmark.pedantic(steps, rounds=1)
    benchmark.extra_info |= measured
    assert measured["numerics"] == NATIVE
    assert measured["times_faster"] > TIMES_FASTER[direction]
    assert measured["times_faster_beyond"] > TIMES_FASTER_BEYOND[direction]
    assert measured["over_products"] < STEP_OVER_PRODUCTS
