"""The keys of season files as Markdown: docs/season-file.md, made from what checks season files.

A key's meaning is the comment beside it in the code.
"""

import ast
import inspect
import io
import json
import tokenize
from collections.abc import Iterator
from typing import get_args

from pydantic import BaseModel

from benchmark.season import parameters
from benchmark.season.season_files import Season

MODELS = (
    Season,
    parameters.DatasetSettings,
    parameters.ImageEncoder,
    parameters.ProposalEncoder,
    parameters.WordVectors,
    parameters.SentenceEncoder,
    parameters.OwnClaim,
)
WHOLE = """\
<!-- Written by `python -m benchmark season --reference`. -->
# Season files

`seasons/NAME/season.yaml` says what is played: datasets, presets, seeds, budget. After a change,
run `python -m benchmark season NAME`. An unknown key is refused with the known ones beside it; a
known one that fits nothing which is played or made is a warning. Editors complete and check the
keys with [season.schema.json](season.schema.json):
`# yaml-language-server: $schema=../../docs/season.schema.json` in the first line.
"""
CONSTRAINTS = {"minimum": "{} or more", "exclusiveMinimum": "above {}", "maximum": "at most {}"}
CONSTRAINTS |= {"exclusiveMaximum": "below {}"}


def reference() -> str:
    """The page. One table for each kind of entry, in the order in which they hold each other."""
    return "\n".join([WHOLE, *(_section(model) for model in MODELS)])


def _section(model: type[BaseModel]) -> str:
    meanings = comments(model)
    schema = model.model_json_schema()
    rows = [
        f"| `{key}` | {_kind(facts)} | {_default(model, key)} | {meanings.get(key, '')} |"
        for key, facts in schema["properties"].items()
    ]
    about = " ".join((model.__doc__ or "").split()) if "__doc__" in vars(model) else ""
    head = f"## {model.__name__}\n\n" + (f"{about}\n\n" if about else "")
    return (
        head + "| key | value | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def comments(model: type[BaseModel]) -> dict[str, str]:
    """Field -> the comment on its lines in the code."""
    lines = inspect.getsource(model)
    notes = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(lines).readline)
        if token.type == tokenize.COMMENT
    }
    return {
        field.target.id: _cell(" ".join(notes[n] for n in _lines_of(field) if n in notes))
        for field in ast.parse(lines).body[0].body
        if isinstance(field, ast.AnnAssign)
    }


def _lines_of(field: ast.AnnAssign) -> Iterator[int]:
    yield from range(field.lineno, field.end_lineno + 1)


def _kind(facts: dict) -> str:
    """What a value may be, in words; entries of other tables are linked."""
    if "anyOf" in facts:
        if len(facts["anyOf"]) == len(get_args(parameters.Option)):
            return "a value"
        return " or ".join(dict.fromkeys(_kind(each) for each in facts["anyOf"]))
    if "$ref" in facts:
        name = facts["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in facts or "enum" in facts:
        values = facts.get("enum", [facts.get("const")])
        return " or ".join(f"`{value}`" for value in values)
    if facts.get("type") == "array":
        return f"list of {_kind(facts['items'])}"
    if facts.get("type") == "object":
        return f"mapping to {_kind(facts.get('additionalProperties', {}))}"
    limits = [text.format(facts[key]) for key, text in CONSTRAINTS.items() if key in facts]
    kind = {"null": "nothing"}.get(facts.get("type", "value"), facts.get("type", "value"))
    return f"{kind}, {' and '.join(limits)}" if limits else kind


def _default(model: type[BaseModel], key: str) -> str:
    field = model.model_fields[key]
    if field.is_required():
        return "**needed**"
    if isinstance(field.default, BaseModel):
        return "its defaults"
    text = json.dumps(field.default)
    return "" if text in ("{}", "[]", '""', "null") else f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
