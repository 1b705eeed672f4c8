"""List what there is to run: methods, presets, datasets or seasons."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import fields

from benchmark.core.command_line import JSON, add_format
from benchmark.core.files import json_text
from benchmark.papers.printed_tables import as_printed, printed
from benchmark.scoring.metrics import ALL, METRICS, RECALLED_K
from benchmark.season.plugins import presets


def configure(parser: argparse.ArgumentParser) -> None:
    what = f"{', '.join(LISTS)}; default: list these words"
    parser.add_argument("what", nargs="?", choices=LISTS, help=what)
    add_format(parser)


def main(arguments: argparse.Namespace) -> None:
    if arguments.what is None:
        words = list(LISTS)
        shown = (
            json_text(words) if arguments.format == JSON else "\n".join(words) + "\n"
        )
        print(shown, end="")
        return
    rows = LISTS[arguments.what]()
    if arguments.format == JSON:
        print(json_text(rows), end="")
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        print(f"{row['name']:{width}}  {row['title']}")
        for reported in row.get("reported", []):
            place = f"{reported['table']}, {reported['place']}"
            print(f"{'':{width}}    {place}: {_in_short(reported['numbers'])}")


def _in_short(numbers: Mapping[str, float]) -> str:
    """The recalls of a direction together, then others: "i2t R@1/5/10
    36.5/62.2/73.3"."""
    others = {name: as_printed(value, name) for name, value in numbers.items()}
    parts = []
    for way in ALL:
        cuts, values = [], []
        for cut in RECALLED_K:
            value = others.pop(f"{way}_r{cut}", None)
            if value is not None:
                cuts.append(str(cut))
                values.append(value)
        if cuts:
            parts.append(f"{way} R@{'/'.join(cuts)} {'/'.join(values)}")
    parts += [f"{METRICS[name].heading} {value}" for name, value in others.items()]
    return ", ".join(parts)


def _presets() -> list[dict]:
    """Without a look at plug-ins: they import torch, which takes a second."""
    rows = []
    shown = {"title", "family", "options", "start", "fuse", "note"}
    for name, (method, preset) in presets().items():
        reported = []
        for line in printed(name):
            numbers = dict(line.numbers)
            numbers.pop("rsum", None)  # a sum, which no table prints
            place = {"table": line.table, "place": line.place}
            reported.append(place | {"numbers": numbers})
        row = {"name": name, "method": method, "reported": reported}
        rows.append(row | preset.model_dump(include=shown))
    return rows


def _methods() -> list[dict]:
    from benchmark.contracts import methods

    rows = []
    for name in methods.names():
        module = methods.load(name)
        title = re.sub(r"\s+", " ", module.__doc__.split("\n\n")[0])
        takes = module.inputs(module.Config())
        options = {field.name: field.default for field in fields(module.Config)}
        row = {"name": name, "title": title, "image": takes.image, "text": takes.text}
        rows.append(row | {"options": options})
    return rows


def _datasets() -> list[dict]:
    from benchmark.contracts import datasets

    rows = []
    for name in datasets.names():
        card = datasets.load(name).card()
        row = {"name": name, "title": card.title, "split": card.split}
        rows.append(row | {"licence": card.licence, "source": card.source})
    return rows


def _seasons() -> list[dict]:
    from benchmark.season.declaring import declare
    from benchmark.season.parameter_files import read_season, season_names

    rows = []
    for name in season_names():
        season = declare(name, read_season(name))
        row = {"name": name, "title": season.title, "datasets": sorted(season.datasets)}
        rows.append(row | {"cells": len(season.everything)})
    return rows


LISTS = {
    "methods": _methods,
    "presets": _presets,
    "datasets": _datasets,
    "seasons": _seasons,
}
