"""A GPU that the CPU plays, for machines without one.

While `pretended()` is open, what is made on "cuda" or sent to it is an `OnCuda`: a
tensor of the CPU that says that its device is cuda:0. Values, gradients and optimisers
are the CPU's. Every call of torch is looked at, and raises

    WrongDeviceError  where tensors of both devices meet
    HostReadError     where the host needs a value of the device, or a shape that
                      follows from values
    Float64Error      where the device computes in float64

Not seen: CUDA's kernels and its lists for autocast (the CPU's count), other threads,
copies to the device that the host waits for, and devices in Python code that runs in
`backward`. What reads values on a CPU and not on a GPU (one_hot) counts as a read.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from benchmark.scoring import inputs
from benchmark.train.resumable_loop import LossLog, Run

CPU, CUDA = torch.device("cpu"), torch.device("cuda:0")
READING_TAGS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
READING_METHODS = ("numpy", "__array__", "tolist", "__repr__", "__format__")
TAKES_BOTH = ("__getitem__", "__setitem__", "index_put_", "copy_")  # indices, copies
PACKING = ("_pack_padded_sequence", "_pad_packed_sequence")
LENGTHS_AT_1 = (*PACKING, "gru", "lstm")  # argument 1 of these belongs on the host


class WrongDeviceError(RuntimeError):
    pass


class HostReadError(RuntimeError):
    pass


class Float64Error(RuntimeError):
    pass


class OnCuda(Tensor):
    """A tensor of the pretended device."""

    device = property(lambda self: CUDA)
    is_cuda = property(lambda self: True)


class Device(TorchFunctionMode):
    """Torch's calls in Python code; faults are raised, or listed."""

    def __init__(self) -> None:
        super().__init__()
        self.raises, self.faults = True, []
        self.is_computing, self.host_arguments = False, []  # of the present call

    def report(self, fault: RuntimeError) -> None:
        if self.raises:
            raise fault
        self.faults.append(fault)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name, kwargs = function.__name__, dict(kwargs or {})
        if function is Tensor.pin_memory:
            return args[0]
        if function in (Tensor.to, Tensor.cuda, Tensor.cpu):
            return self._moved(function, *args, **kwargs)
        tensors = list(_tensors((*args, *kwargs.values())))
        self.host_arguments = [x for x in tensors if not isinstance(x, OnCuda)]
        is_given_cuda = is_on_cuda = len(self.host_arguments) < len(tensors)
        if kwargs.get("device") is not None:
            is_on_cuda = _is_cuda(kwargs["device"])
            kwargs["device"] = CPU if is_on_cuda else kwargs["device"]
        if is_given_cuda:
            self._check_arguments(name, args)
            if name in READING_METHODS or not is_on_cuda:
                self.report(HostReadError(name))
        self.is_computing = is_on_cuda
        result = function(*args, **kwargs)
        self.is_computing = False
        if name in PACKING:
            return result[0], _placed(result[1], False)
        return _placed(result, is_on_cuda) if isinstance(result, Tensor) else result

    def _check_arguments(self, name: str, args: tuple) -> None:
        lengths = args[1] if name in LENGTHS_AT_1 else None
        # numbers may come from the host, and indices; lengths of sentences must
        strangers = [x for x in self.host_arguments if x.dim() and x is not lengths]
        if isinstance(lengths, OnCuda) or (strangers and name not in TAKES_BOTH):
            raise WrongDeviceError(name)
        if name == "copy_" and not isinstance(args[0], OnCuda):
            self.report(HostReadError(name))

    def _moved(self, function, tensor: Tensor, *args, **kwargs) -> Tensor:
        """What `to`, `cuda` and `cpu` give."""
        was_on_cuda, dtype = isinstance(tensor, OnCuda), None
        is_copy = kwargs.pop("copy", False)
        others = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        if function is not Tensor.to:
            device = CUDA if function is Tensor.cuda else CPU
        elif others:
            device, dtype = others[0].device, others[0].dtype
        else:
            device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
        is_on_cuda = was_on_cuda if device is None else _is_cuda(device)
        if was_on_cuda and not is_on_cuda:
            self.report(HostReadError(function.__name__))
        self.is_computing, self.host_arguments = is_on_cuda, []
        is_copy = is_copy or is_on_cuda != was_on_cuda
        result = Tensor.to(tensor, dtype=dtype or tensor.dtype, copy=is_copy)
        return _placed(result, is_on_cuda)


class Operations(TorchDispatchMode):
    """What calls compute, in `backward` too."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if self.device.is_computing:
            name = operation._schema.name.removeprefix("aten::")
            is_of_host = any(args and args[0] is x for x in self.device.host_arguments)
            if _is_read_by_host(operation, name, args) and not is_of_host:
                self.device.report(HostReadError(name))
            if any(x.dtype == torch.float64 for x in _tensors((result,))):
                self.device.report(Float64Error(name))
        return result


def _is_read_by_host(operation, name: str, args: tuple) -> bool:
    if name not in ("index", "index_put", "index_put_", "_index_put_impl_"):
        return bool(READING_TAGS & set(operation.tags))
    kinds = [index.dtype for index in args[1] if index is not None]
    has_mask = torch.bool in kinds or torch.uint8 in kinds
    is_filled_by_one = len(args) > 2 and not args[2].dim()  # which needs no count
    return has_mask and not is_filled_by_one


def _tensors(values: Iterable) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _is_cuda(device: object) -> bool:
    return torch.device(device).type == "cuda"


def _placed(tensor: Tensor, is_on_cuda: bool) -> Tensor:
    is_there = isinstance(tensor, OnCuda) == is_on_cuda
    return tensor if is_there else tensor.as_subclass(OnCuda if is_on_cuda else Tensor)


@contextmanager
def pretended() -> Iterator[Device]:
    """Inside, "cuda" is this device."""
    real_autocast = torch.autocast
    real_groups = torch._C._group_tensors_by_device_and_dtype

    def autocast(device_type: str, *args, **options) -> torch.autocast:
        return real_autocast("cpu", *args, **options)

    def groups(lists: list[list[Tensor]], *args) -> dict:
        is_on_cuda = any(isinstance(x, OnCuda) for x in _tensors(lists))
        # optimisers and norms of gradients send numbers to the device of a group
        place = CUDA if is_on_cuda else CPU
        return {(place, key[1]): x for key, x in real_groups(lists, *args).items()}

    replacements = (
        (torch, "autocast", autocast),
        (torch.amp, "is_autocast_available", lambda device_type: True),
        # So that Module.to replaces parameters.
        (torch, "_has_compatible_shallow_copy_type", lambda *pair: False),
        (torch._C, "_group_tensors_by_device_and_dtype", groups),
        (torch.cuda, "device_count", lambda: 1),
        (torch.cuda, "get_device_name", lambda device: "pretended"),
        (torch.cuda, "mem_get_info", lambda device: (2**40, 2**40)),
        (torch.cuda, "max_memory_allocated", lambda device: 0),
        (torch.cuda, "max_memory_reserved", lambda device: 0),
        (torch.cuda, "reset_peak_memory_stats", lambda device: None),
        (torch.cuda, "synchronize", lambda device: None),
    )
    device = Device()
    with ExitStack() as stack:
        for replacement in replacements:
            stack.enter_context(mock.patch.object(*replacement))
        stack.callback(torch._C._set_cudnn_enabled, torch.backends.cudnn.enabled)
        torch._C._set_cudnn_enabled(False)  # it asks for the driver
        stack.enter_context(Operations(device))
        stack.enter_context(device)
        yield device


@contextmanager
def pretended_steps() -> Iterator[None]:
    """For whole stages: reads and float64 are raised from the first step of an epoch to
    the end of its last one, while batches are made too."""
    real_step, real_check = Run.step, LossLog._check

    def step(*arguments) -> dict[str, Tensor]:
        device.raises = True
        return real_step(*arguments)

    def check(log: LossLog) -> None:
        device.raises = False
        real_check(log)

    in_steps = mock.patch.object(Run, "step", step)
    until_losses = mock.patch.object(LossLog, "_check", check)
    in_one_thread = mock.patch.object(inputs, "ahead", map)
    with pretended() as device, in_steps, until_losses, in_one_thread:
        device.raises = False
        yield
