"""A CUDA device that the CPU plays, for machines without one.

Tensors say that they are on "cuda:0", and their values are computed on the CPU. So torch takes the
ways that it takes on a GPU (autocast has the lists of CUDA), an operation of mixed devices fails as
it would there, and what makes a GPU wait is counted. Only forward passes: the autograd engine asks
the driver for its streams.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_map_only

CUDA = torch.device("cuda:0")
VALUES = ("_local_scalar_dense", "equal", "is_nonzero")  # operations that read a value
SHAPES = ("nonzero", "_unique2", "unique_consecutive", "masked_select", "repeat_interleave.Tensor")
FREE = (  # no kernel: views, and what only names memory
    *("view", "_unsafe_view", "reshape", "expand", "t", "transpose", "permute", "slice", "select"),
    *("unsqueeze", "squeeze", "split", "split_with_sizes", "chunk", "detach", "alias", "unbind"),
    *("as_strided", "diagonal", "empty", "empty_like", "new_empty", "unfold", "lift_fresh"),
    *("_nested_tensor_size", "sym_size", "is_same_size", "set_", "resize_", "empty_strided"),
)


class OnCuda(Tensor):
    """A tensor whose values lie in `inner`, on the CPU."""

    @staticmethod
    def __new__(cls, real: Tensor, requires_grad: bool = False):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            real.shape,
            strides=real.stride(),
            storage_offset=real.storage_offset(),
            dtype=real.dtype,
            device=CUDA,
            requires_grad=requires_grad,
        )

    def __init__(self, real: Tensor, requires_grad: bool = False) -> None:
        self.inner = real

    def __repr__(self) -> str:
        return f"OnCuda({self.inner!r})"

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return OnCuda(inner["inner"])

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return _played(function, args, kwargs or {})


class Log:
    """What happened on the device."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.waits: list[str] = []  # operations that the host waits for, and copies either way
        self.launches: Counter[str] = Counter()
        self.written: list[str] = []  # writes at an index


_LOG = Log()


def _played(function, args, kwargs):
    name = function._schema.name.removeprefix("aten::")
    _check_devices(name, args, kwargs)
    _note(function, name, args)
    if name == "_local_scalar_dense":
        return function(args[0].inner)
    target = torch.device(kwargs["device"]) if kwargs.get("device") is not None else CUDA
    real_kwargs = kwargs | ({"device": "cpu"} if kwargs.get("device") is not None else {})
    real_kwargs.pop("pin_memory", None)
    real_args, real_kwargs = tree_map_only(OnCuda, lambda x: x.inner, (args, real_kwargs))
    out = function(*real_args, **real_kwargs)
    if name == "copy_":
        return args[0]
    if target.type == "cpu":
        return out
    out = tree_map_only(Tensor, lambda x: x if isinstance(x, OnCuda) else OnCuda(x), out)
    return return_and_correct_aliasing(function, args, kwargs, out)


def _check_devices(name: str, args, kwargs) -> None:
    if name in ("copy_", "_to_copy"):
        return
    flat = [x for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    strangers = [x for x in flat if not isinstance(x, OnCuda) and x.dim() > 0]
    if strangers and name in ("index", "index_put", "index_put_", "_index_put_impl_"):
        _LOG.waits.append(f"{name} with an index on the host")
    elif strangers:
        raise RuntimeError(f"{name}: expected all tensors on one device, found cuda:0 and cpu")


def _note(function, name: str, args) -> None:
    overload = f"{name}.{function._overloadname}"
    if name in VALUES or name in SHAPES or overload in SHAPES:
        _LOG.waits.append(name)
    if name.startswith("index") and len(args) > 1 and isinstance(args[1], list | tuple):
        if any(isinstance(x, Tensor) and x.dtype in (torch.bool, torch.uint8) for x in args[1]):
            _LOG.waits.append(f"{name} by a mask")
    if name.startswith("index_put") or name in ("_index_put_impl_", "scatter_"):
        _LOG.written.append(name)
    if name not in FREE:
        _LOG.launches[name] += 1


class _Factories(TorchFunctionMode):
    """What asks for a device of the name "cuda" gets this one; copies from it and to it."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in (torch.Tensor.cpu,):
            args, kwargs = (args[0],), {"device": "cpu"}
            function = torch.Tensor.to
        if function is torch.Tensor.cuda:
            args, kwargs, function = (args[0],), {"device": CUDA}, torch.Tensor.to
        if function is torch.Tensor.numpy and isinstance(args[0], OnCuda):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if function is torch.Tensor.pin_memory:
            return args[0]
        if function is torch.Tensor.tolist and isinstance(args[0], OnCuda):
            _LOG.waits.append("tolist")
            return args[0].inner.tolist()
        if function is torch.Tensor.to:
            return _moved(args, kwargs)
        if function is F.batch_norm and isinstance(args[0], OnCuda):
            return _batch_norm(*args, **kwargs)
        if function is F.cosine_similarity and isinstance(args[0], OnCuda):
            return _cosine(*args)
        if function.__name__ in ("_pack_padded_sequence", "_pad_packed_sequence"):
            return _packing(function, args)
        if function.__name__ in ("gru", "lstm") and isinstance(args[0], OnCuda):
            return _recurrence(function, args)
        if _asks(kwargs.get("device")) and function is not torch.Tensor.to:
            is_method = args and isinstance(args[0], OnCuda)
            if not is_method:
                kwargs["device"] = "cpu"
                kwargs.pop("pin_memory", None)
                if function in (torch.tensor, torch.as_tensor):
                    _LOG.waits.append("tensor of host values")
                else:
                    _LOG.launches[function.__name__] += 1
                return OnCuda(function(*args, **kwargs))
        return function(*args, **kwargs)


def _batch_norm(x, mean, variance, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """The way to cuDNN asks for the driver."""
    return torch.ops.aten.native_batch_norm(
        x, weight, bias, mean, variance, training, momentum, eps
    )[0]


def _cosine(x: Tensor, y: Tensor) -> Tensor:
    """In float32, as on the list of autocast; torch's asks for the driver, too."""
    x, y = (v.float() / v.float().norm(dim=1, keepdim=True).clamp_min(1e-8) for v in (x, y))
    return (x * y).sum(1)


def _packing(function, args):
    """The words of sentences, and how many there are at each place: these stay on the host."""
    out = function(*tree_map_only(OnCuda, lambda x: x.inner.detach(), args))
    _LOG.launches[function.__name__] += 1
    return OnCuda(out[0]), out[1]


def _recurrence(function, args):
    """As cuDNN's: one operation, in half precision under autocast. No gradients."""
    _LOG.launches[function.__name__] += 1
    half = torch.is_autocast_enabled("cuda")
    inner = tree_map_only(Tensor, lambda x: _rounded(_inner(x), half), args)
    out = function(*inner)
    return tree_map_only(Tensor, lambda x: OnCuda(x.bfloat16() if half else x), out)


def _inner(x):
    return x.inner if isinstance(x, OnCuda) else x.detach()


def _rounded(x: Tensor, half: bool) -> Tensor:
    return x.bfloat16().float() if half and x.is_floating_point() else x


def _asks(device) -> bool:
    return device is not None and torch.device(device).type == "cuda"


def _moved(args, kwargs):
    tensor, rest = args[0], list(args[1:])
    device = kwargs.pop("device", None)
    dtype = kwargs.get("dtype")
    for value in rest:
        if isinstance(value, torch.device | str):
            device = value
        elif isinstance(value, torch.dtype):
            dtype = value
        elif isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
    on_cuda = isinstance(tensor, OnCuda)
    wanted = on_cuda if device is None else _asks(device)
    if dtype is not None and dtype != tensor.dtype and on_cuda:
        tensor = torch.ops.aten._to_copy.default(tensor, dtype=dtype)
    elif dtype is not None:
        tensor = tensor.to(dtype)
    if on_cuda and not wanted:
        _LOG.waits.append("copy to the host")
        return tensor.detach().inner.clone()
    if wanted and not on_cuda:
        _LOG.waits.append("copy to the device")
        moved = OnCuda(tensor.detach().clone())
        return moved.requires_grad_() if tensor.requires_grad else moved
    return tensor


@contextmanager
def pretended(autocast: bool = False) -> Iterator[Log]:
    """Inside, "cuda" is this device; with `autocast`, as under CUDA's autocast to bfloat16."""
    global _LOG
    torch._C._ensureCUDADeviceGuardSet()  # as FakeTensorMode does where there is no GPU
    before, _LOG = _LOG, Log()
    enabled, dtype = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    cudnn = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = False  # its kernels ask for the driver
    torch.set_autocast_enabled("cuda", autocast)
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        with _Factories():
            yield _LOG
    finally:
        torch.set_autocast_enabled("cuda", enabled)
        torch.set_autocast_dtype("cuda", dtype)
        torch.clear_autocast_cache()
        torch.backends.cudnn.enabled = cudnn
        _LOG = before


def on_cuda(module: nn.Module) -> nn.Module:
    """The module with its weights on the device."""
    for owner in module.modules():
        for name, value in list(owner._parameters.items()):
            if value is not None:
                wrapped = OnCuda(value.detach().clone())
                owner._parameters[name] = nn.Parameter(wrapped, requires_grad=value.requires_grad)
        for name, value in list(owner._buffers.items()):
            if value is not None:
                owner._buffers[name] = OnCuda(value.detach().clone())
    return module
