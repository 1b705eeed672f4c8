"""Fills the templates of the pages: Markdown, with the filters of markdown.py and `table`."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmark.report.markdown import code, escaped, inside
from benchmark.report.tables import as_markdown

TEMPLATES = Path(__file__).parents[1] / "templates"


def filled(template: str, **values: object) -> str:
    """The template of this file name with its values; raises jinja2.UndefinedError if one is
    missing."""
    return _environment().get_template(template).render(**values)


@cache  # with the templates that it has read
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown, not HTML: templates pass text from elsewhere to `escaped`
    )
    environment.filters |= {"escaped": escaped, "inside": inside, "code": code}
    environment.filters["table"] = as_markdown
    return environment
