"""Methods by name and path, and their options: what is accepted and what is refused."""

from dataclasses import fields

import pytest

from benchmark.contracts import methods
from benchmark.core.errors import UserError
from benchmark.season.plugins import configured, method_of


def test_unknown_option_is_refused_with_the_valid_ones():
    method = methods.load("vse")
    with pytest.raises(UserError) as error:
        configured(method, {"lamda2": 1.0}, "preset mine")
    assert error.value.where == "preset mine: option 'lamda2'"
    assert all(field.name in error.value.expected for field in fields(method.Config))


@pytest.mark.parametrize(
    ("method", "options", "option", "expected", "found"),
    [
        ("scan", {"margin": "wide"}, "margin", "a valid number", "'wide'"),
        ("scan", {"direction": "up"}, "direction", "t2i or i2t", "'up'"),
        ("dual_path", {"stage": 3}, "stage", "1 or 2", "3"),
        ("two_branch_embedding", {"lambda4": 0.05}, "lambda4", "neighbourhood_sampling", "0.05"),
        ("cyclematch", {"scaling": "none"}, "scaling", "one of common, component", "'none'"),
        ("vse_infinity", {"position_size": 5}, "position_size", "an even number", "5"),
    ],
)
def test_wrong_values_are_refused_with_their_option(method, options, option, expected, found):
    with pytest.raises(UserError) as error:
        configured(methods.load(method), options, "preset p")
    assert error.value.where == f"preset p: {option}"
    assert expected in error.value.expected and error.value.found == found


def test_names_are_checked():
    for name in ("nothing", "scan/../x", "shared", "losses", "__init__"):
        with pytest.raises(ValueError, match="no method .*expected one of .*scan"):
            methods.load(name)
        with pytest.raises(UserError) as error:
            method_of(name)
        assert error.value.where == f"method {name!r}" and "scan" in error.value.expected
