"""Which module of benchmark/encoders/ provides an image network."""

DRAWN = "drawn_cnn"  # the one network that is not torchvision's
DETECTORS = "faster_rcnn"


def module_of(network: str) -> str:
    """The module that provides an image network, by the network's name."""
    if network == DRAWN:
        return DRAWN
    return DETECTORS if network.startswith("fasterrcnn") else "torchvision_cnn"
