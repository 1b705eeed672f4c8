"""What several datasets share: readers of common file formats, checks of options, drawings."""
