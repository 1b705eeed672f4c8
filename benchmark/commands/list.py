"""List what there is to run: methods, presets, datasets or seasons."""

import argparse
import contextlib
import json
import re
from dataclasses import fields

from benchmark.papers.printed_tables import as_printed, printed
from benchmark.season.plugins import PACKAGE_ROOT, presets


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=LISTS)
    parser.add_argument("--json", action="store_true", help="for scripts")


def main(arguments: argparse.Namespace) -> None:
    rows = LISTS[arguments.what]()
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        print(f"{row['name']:{width}}  {row['title']}")
        # table, place, and numbers with their names
        for reported in row.get("reported", []):
            numbers = [
                f"{key} {as_printed(v, key)}" for key, v in reported["numbers"].items()
            ]
            where = f"{reported['table']}, {reported['place']}"
            print(f"{'':{width}}    {where}: {' '.join(numbers)}")


def _presets() -> list[dict]:
    """Without a look at plug-ins: they import torch, which takes a second."""
    rows, shown = [], {"title", "family", "options", "start", "fuse", "note"}
    for name, (method, preset) in presets().items():
        reported = []
        for table, place, _, numbers in printed(name):
            numbers.pop("rsum", None)  # a sum, which no table prints
            reported.append({"table": table, "place": place, "numbers": numbers})
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

    cards = {name: datasets.load(name).card() for name in datasets.names()}
    shown = ("title", "split", "licence", "source")
    return [
        {"name": n} | {key: getattr(card, key) for key in shown}
        for n, card in cards.items()
    ]


def _seasons() -> list[dict]:
    from benchmark.season.parameter_files import read_season, season_names
    from benchmark.season.resolving import resolve

    rows = []
    for name in season_names():
        # a season names methods of its own from there
        with contextlib.chdir(PACKAGE_ROOT):
            params = resolve(name, read_season(name))
        row = {"name": name, "title": params.title, "datasets": sorted(params.datasets)}
        rows.append(row | {"cells": len(params.everything)})
    return rows


LISTS = {
    "methods": _methods,
    "presets": _presets,
    "datasets": _datasets,
    "seasons": _seasons,
}
