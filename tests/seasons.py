"""A small active season for tests of single stages."""

from benchmark.season.parameters import Params


def params_of(**fields: object) -> Params:
    """A season on this machine's processor without cells; fields go over that."""
    empty = {"datasets": {}, "feature_sets": {}, "cells": {}, "fusions": {}}
    machine = {"device": "cpu", "weights_dir": None}
    return Params(**{"season": "try", "title": "Try"} | empty | machine | fields)
