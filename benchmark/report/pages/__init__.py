"""The pages of the report, and their templates: Markdown with the filters of
markdown.py."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmark.report.markdown import code, escaped, inside
from benchmark.report.tables import as_markdown
from benchmark.stats import PERCENT

ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    # Markdown, not HTML: templates pass text from elsewhere to `escaped`
    autoescape=False,
)
ENVIRONMENT.filters |= {
    "escaped": escaped,
    "inside": inside,
    "code": code,
    "table": as_markdown,
}
ENVIRONMENT.globals["PERCENT"] = PERCENT
ENVIRONMENT.filters["folded"] = (
    "<details>\n<summary>{1}</summary>\n\n{0}</details>\n\n".format
)


def filled(template: str, **values: object) -> str:
    """The template of this file name with its values; raises jinja2.UndefinedError if
    one is missing."""
    return ENVIRONMENT.get_template(template).render(**values)
