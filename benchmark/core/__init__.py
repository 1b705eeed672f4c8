"""What every room stands on: errors, files, devices, records and where they came
from."""
