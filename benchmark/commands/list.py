"""List what can be played: methods, presets, datasets or seasons."""

import argparse
import contextlib
import json
import re
from dataclasses import fields

import datasets
import methods
from benchmark.papers.printed_tables import Printed, as_printed, printed
from benchmark.season import resolving, season_files
from benchmark.season.presets import PACKAGE_ROOT, presets

WHAT = ("methods", "presets", "datasets", "seasons")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--json", action="store_true", help="for scripts")


def main(arguments: argparse.Namespace) -> None:
    lists = {"methods": _methods, "presets": _presets, "datasets": _datasets, "seasons": _seasons}
    rows = lists[arguments.what]()
    print(json.dumps(rows, indent=2) if arguments.json else _lines(rows))


def _methods() -> list[dict]:
    rows = []
    for name in methods.names():
        module = methods.load(name)
        title = re.sub(r"\s+", " ", module.__doc__.split("\n\n")[0])
        takes = module.inputs(module.Config())
        options = {field.name: field.default for field in fields(module.Config)}
        row = {"name": name, "title": title, "image": takes.image, "text": takes.text}
        rows.append(row | {"options": options})
    return rows


def _presets() -> list[dict]:
    return [
        {
            "name": name,
            "title": preset.title,
            "method": method,
            "family": preset.family,
            "options": preset.options,
            "start": preset.start,
            "fuse": preset.fuse.model_dump() if preset.fuse else None,
            "reported": [_reported(row) for row in printed(name)],
            "note": preset.note,
        }
        for name, (method, preset) in presets().items()
    ]


def _datasets() -> list[dict]:
    rows = []
    for name in datasets.names():
        card = datasets.load(name).card()
        facts = {"split": card.split, "licence": card.licence, "source": card.source}
        rows.append({"name": name, "title": card.title, **facts})
    return rows


def _seasons() -> list[dict]:
    rows = []
    for name in season_files.season_names():
        with contextlib.chdir(PACKAGE_ROOT):  # a season names methods of its own from there
            params = resolving.resolve(name, season_files.read_season(name))
        cells = len(params.cells) + len(params.fusions)
        facts = {"datasets": sorted(params.datasets), "cells": cells}
        rows.append({"name": name, "title": params.title, **facts})
    return rows


def _lines(rows: list[dict]) -> str:
    width = max((len(row["name"]) for row in rows), default=0)
    lines = []
    for row in rows:
        lines.append(f"{row['name']:{width}}  {row['title']}")
        lines += [f"{'':{width}}    {_line(reported)}" for reported in row.get("reported", [])]
    return "\n".join(lines)


def _reported(row: Printed) -> dict:
    numbers = {metric: value for metric, value in row.numbers.items() if value is not None}
    return {"table": row.table, "place": row.place, "numbers": numbers}


def _line(reported: dict) -> str:
    """A reported row as one line: table, dataset and split, and the numbers with their names."""
    numbers = [f"{key} {as_printed(value, key)}" for key, value in reported["numbers"].items()]
    return f"{reported['table']}, {reported['place']}: {' '.join(numbers)}"
