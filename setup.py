"""Which folders and files a wheel holds; all else is in pyproject.toml.

Methods, datasets, seasons and examples lie beside the package in a checkout and inside
of it in a wheel, and so do committed results: nothing named `datasets` or `methods`
comes to be on anybody's import path. Of results there is what verdicts need, without
first answers and samples.
"""

from setuptools import find_packages, setup

SEASONS = (  # the ready-made ones: others that lie in seasons/ are their user's
    "ablations",
    "all",
    "demo",
    "flickr8k",
    "flickr8k_glove",
    "flickr8k_strong",
    "localisation",
    "papers",
    "persons",
)
DATASETS = (  # those of their results
    "few",
    "flickr8k",
    "flickr8k_folds",
    "people",
    "persons",
    "scenes",
    "shapes",
)
INSIDE = {
    "benchmark.methods": "methods",
    "benchmark.datasets": "datasets",
    "benchmark.seasons": "seasons",
    "benchmark.examples": "examples",
    "benchmark.results": "results",
    "benchmark.reports": "reports",
    "benchmark.data.cards": "data/cards",
}
OF_EACH = {  # folders -> files of each
    "benchmark.seasons": (SEASONS, ("season.yaml", "tuning.csv")),
    "benchmark.results": (SEASONS, ("*/records.json", "*/costs.json", "*/ranks.zip")),
    "benchmark.reports": (SEASONS, ("metrics.json",)),
    "benchmark.data.cards": (DATASETS, ("card.json", "queries.npz")),
}
FILES = {
    "": ["*.yaml", "*.j2"],  # of all packages
    "benchmark.commands": ["site_files/*"],
    "rematch": ["py.typed"],
    "benchmark.papers": ["fidelity/*.yaml"],
    "benchmark.report": ["templates/*.j2"],
    "benchmark.examples": ["**/*"],
}
for package, (folders, names) in OF_EACH.items():
    FILES[package] = [f"{folder}/{name}" for folder in folders for name in names]

setup(
    py_modules=["rematch_pytest"],
    packages=[*find_packages(include=["benchmark*", "rematch"]), *INSIDE],
    package_dir=INSIDE,
    package_data=FILES,
)
