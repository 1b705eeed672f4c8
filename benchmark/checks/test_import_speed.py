"""Importing features takes less than 1 GB of memory, however many there are: `pytest benchmark/`.

The folder has 36 x 2048 float32 features per image, as SCAN's, for a twentieth and then for a tenth
of Flickr30k's images: the memory of the process must not grow.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
REGIONS, CHANNELS = 36, 2048
IMAGES = {"train": 2900, "dev": 101, "test": 100}  # a tenth of Flickr30k
BLOCK = 50  # images made at once
MEBIBYTES, GROWTH = 954, 32  # limits: 1 GB, and the difference of two runs
# The peak memory of the stage, torch included. ru_maxrss counts that of the parent process as well,
# so the status file is read where there is one.
MEASURED = """
import json, resource, sys, time
from pathlib import Path
import pandas as pd
from benchmark.encode import pictures
from benchmark.season.parameters import FeatureSet, ImageEncoder
from benchmark.data.prepared_tables import TABLES, Prepared
from benchmark.data.raw_files import RawDataset
from datasets.shared import precomp
parts = precomp.layout(Path("data/raw/made/f30k_precomp"))
images = precomp.tables(parts, {}, []).images
settings = ImageEncoder(features="f30k_precomp", standardise=sys.argv[1] == "standardised")
feature_set = FeatureSet(
    dataset="made", reader="made", kind="pictures", encoder="torchvision_cnn", source="made",
    folder="data/features/made/imported", image=settings,
)
none, card = pd.DataFrame(), {"manifest": ""}
data = Prepared(images, none, none, card, Path("data/prepared/made"))
data.folder.mkdir(parents=True, exist_ok=True)
for table in TABLES:
    (data.folder / f"{table}.parquet").touch()
raw = RawDataset(name="made", reader="made", options={}, source=None, module=None)
started = time.perf_counter()
pictures.import_features(feature_set, data, raw)
seconds = time.perf_counter() - started
status = Path("/proc/self/status")
if status.exists():
    peak = int(status.read_text().partition("VmHWM:")[2].split()[0]) / 2**10
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS: bytes
print(json.dumps({"seconds": seconds, "mebibytes": peak}))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for gigabytes; it is removed, while pytest would keep it for two more runs."""
    monkeypatch.chdir(tmp_path)
    yield Path("data/raw/made/f30k_precomp")
    shutil.rmtree(tmp_path)


def generate(folder: Path, share: float) -> float:
    """Write `share` of the images of each split; gives the gigabytes of features."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rng, first = np.random.default_rng(0), 0
    for stem, images in IMAGES.items():
        count = int(images * share)
        ids = range(first, first + count)
        first += count
        (folder / f"{stem}_ids.txt").write_text("".join(f"{number}\n" for number in ids))
        (folder / f"{stem}_caps.txt").write_text("A caption .\n" * 5 * count)
        path, shape = folder / f"{stem}_ims.npy", (count, REGIONS, CHANNELS)
        with path.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for start in range(0, count, BLOCK):
                size = (min(BLOCK, count - start), *shape[1:])
                file.write(rng.random(size, np.float32).data)
    return sum(path.stat().st_size for path in folder.glob("*.npy")) / 1e9


def imported(how: str) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", MEASURED, how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("how", ["plain", "standardised"])
def test_an_import_of_twice_the_images_takes_the_same_memory(folder, benchmark, how):
    generate(folder, 0.5)
    half = imported(how)
    gigabytes = generate(folder, 1.0)
    whole = benchmark.pedantic(imported, args=(how,), rounds=1)
    measured = {
        "gigabytes": gigabytes,
        "seconds_per_gigabyte": whole["seconds"] / gigabytes,
        "peak_mebibytes": whole["mebibytes"],
        "peak_mebibytes_of_half": half["mebibytes"],
    }
    benchmark.extra_info |= {name: round(value, 2) for name, value in measured.items()}
    print(how, json.dumps(benchmark.extra_info))
    assert whole["mebibytes"] < MEBIBYTES
    assert whole["mebibytes"] < half["mebibytes"] + GROWTH
