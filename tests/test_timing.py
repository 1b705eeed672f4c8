"""In which settings times were measured."""

from builders import board, cost, outcome, standing

from benchmark.boards.timing import settings_of, time_settings


def test_settings_are_those_of_trainings_and_scorings():
    row = standing("a", [outcome("a", 0), outcome("a", 1)])
    (setting,) = time_settings(row)
    assert (setting.machine, setting.threads, setting.stages_at_once) == ("m", 1, 1)
    elsewhere = cost(machine="n", training=9.0)
    object.__setattr__(row.outcomes[1], "trainings", (elsewhere,))
    assert [setting.machine for setting in time_settings(row)] == ["m", "n"]


def test_stages_at_once_and_devices_make_settings_of_their_own():
    row = standing("a", [outcome("a", 0)])
    beside = cost(training=9.0).model_copy(update={"jobs": 2, "device": "cuda"})
    object.__setattr__(row.outcomes[0], "trainings", (beside,))
    alone, both = time_settings(row)
    if alone.stages_at_once > 1:
        alone, both = both, alone
    assert both.stages_at_once == 2 and "2 stages at once" in str(both)
    assert (both.threads, both.fingerprint) == (None, "")  # of a GPU


def test_external_rows_have_no_times():
    row = standing("a", [outcome("a", 0)])
    external = standing("b", [outcome("b", 0, family="brought")])
    assert settings_of(board(row, external)) == time_settings(row)
