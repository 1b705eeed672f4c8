"""docs/speed.md: what is measured, what was measured, and what follows for a million pictures.

    python -m benchmark.checks.extrapolation

writes the tables of docs/speed.md anew from the files that the other modules write. Rates of GPUs
are published peaks; what is assumed beside them stands on the page.
"""

from pathlib import Path

from tabulate import tabulate

from benchmark.checks import evaluation_sizes, step_products
from benchmark.checks.scan_references import LONGEST, REGIONS, SHORTEST, SIZE
from benchmark.core.files import read_json

PAGE = Path(__file__).parents[2] / "docs/speed.md"
BEGIN, END = "<!-- {}: written by benchmark.checks.extrapolation -->\n", "<!-- end -->\n"
PICTURES, CAPTIONS = 1_000_000, 5_000_000
GPUS = (1, 64)
# Published peaks of an H200 SXM (NVIDIA's data sheet): float32 outside of tensor
# cores, and PCIe 5.0 in one direction.
PEAK, LINK = 67e12, 64e9  # operations and bytes per second
# Assumed: the share of the peak that large products reach, and the cores beside each GPU.
SHARE, CORES = 0.7, 16
PASSES = 2  # the scores fit neither into memory nor on the disk: each pass computes them again
HOUR = 3600
WORDS = (SHORTEST + LONGEST) / 2  # of a caption


def marked(name: str, text: str, table: str) -> str:
    """The page with another table after the mark of that name. Raises ValueError without it."""
    before, mark, rest = text.partition(BEGIN.format(name))
    if not mark:
        raise ValueError(f"{PAGE.name}: expected a mark {mark!r}, found none")
    return f"{before}{mark}\n{table}\n\n{END}{rest.partition(END)[2]}"


def sizes_table(rows: list[dict]) -> str:
    columns = ("images", "captions", "product_seconds", "seconds", "over_product", "megabytes")
    heads = ["images", "captions", "product, s", "evaluation, s", "ratio", "MB"]
    cells = [[f"{row[name]:,}" for name in columns] for row in rows]
    return table_of(heads, cells)


def steps_table(presets: dict[str, dict]) -> str:
    rows = [[name, row["over_products"]] for name, row in presets.items() if "over_products" in row]
    return table_of(["preset", "step over products"], sorted(rows, key=lambda row: -row[1]))


def hours(sizes: list[dict], gpus: int) -> dict[str, float]:
    """Hours of each part of one evaluation with as many GPUs.

    What follows the product runs on the host: seconds per pair are those of the largest size that
    was measured, without its product; its scores were on the disk for the second pass.
    """
    pairs, largest = PICTURES * CAPTIONS, sizes[-1]
    of_pair = largest["seconds"] - largest["product_seconds"]
    of_pair /= largest["images"] * largest["captions"]
    embedding = PASSES * pairs * 2 * evaluation_sizes.SIZE
    region_word = PASSES * pairs * 2 * REGIONS * WORDS * SIZE
    seconds = {
        "product of 256 numbers": embedding / (PEAK * SHARE),
        "SCAN's region-word product": region_word / (PEAK * SHARE),
        "scores to the host": PASSES * pairs * 4 / LINK,
        "what follows, on the host": pairs * of_pair / CORES,
    }
    return {name: value / gpus / HOUR for name, value in seconds.items()}


def extrapolated_table(sizes: list[dict]) -> str:
    columns = [hours(sizes, gpus) for gpus in GPUS]
    rows = [[name, *(f"{column[name]:.2g} h" for column in columns)] for name in columns[0]]
    return table_of(["part", *(f"{count} GPU{'s' * (count > 1)}" for count in GPUS)], rows)


def table_of(heads: list[str], rows: list[list]) -> str:
    align = ("left", *("right",) * (len(heads) - 1))
    return tabulate(rows, heads, tablefmt="github", colalign=align, disable_numparse=True)


def page(text: str) -> str:
    """The page with the tables of what was measured."""
    sizes = read_json(evaluation_sizes.TABLE)["sizes"]
    steps = read_json(step_products.TABLE)["presets"]
    text = marked("sizes", text, sizes_table(sizes))
    text = marked("steps", text, steps_table(steps))
    return marked("extrapolation", text, extrapolated_table(sizes))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
