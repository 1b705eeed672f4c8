"""The figures of a report, by theme. One function a figure: data in, a matplotlib Figure out."""
