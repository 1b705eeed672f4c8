"""The metrics of a record in the terminal, one a line."""

from benchmark.protocol import METRICS, table_metrics

DIRECTIONS = ("i2t", "t2i", "p2r")
OF_QUERIES = [name for d in DIRECTIONS for name in table_metrics(d) if METRICS[name].of_queries]
SHOWN = (*OF_QUERIES, "p2r_bound", "alpha", "rsum", "overlap_s")  # those that a record has


def print_metrics(metrics: dict) -> None:
    for key in (key for key in SHOWN if key in metrics):
        print(f"{key:10} {metrics[key]:.2f}")
