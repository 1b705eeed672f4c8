"""What to install where a library is missing. Knows no other library."""

NAME = "rematch-benchmark"
# libraries of the extra `run`, by the names of their packages
RUN = (
    "dvc",
    "gensim",
    "matplotlib",
    "requests",
    "safetensors",
    "seaborn",
    "skimage",
    "sklearn",
    "torch",
    "torchvision",
)
OF_DVC = ("networkx",)  # which brings it
ACTIVATE = "activate the environment (. .venv/bin/activate)"


def is_of_run(package: str) -> bool:
    return package in (*RUN, *OF_DVC)


def advice_on(error: ModuleNotFoundError) -> str:
    """One line on a package that is missing: the extra that brings it, or else that the
    environment is another one."""
    package = (error.name or "").partition(".")[0]
    if is_of_run(package):
        return f"no package {package}: run: pip install '{NAME}[run]'"
    return f"no package {package}: {ACTIVATE}"
