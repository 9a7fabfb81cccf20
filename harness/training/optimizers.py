"""Optimisers, learning-rate schedules and groups of parameters, from settings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from harness.errors import Named
from harness.settings import TrainingSettings
from harness.training.lazy_updates import LazyAdam

Factor = Callable[[int], float]
NORMS = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.modules.batchnorm._BatchNorm)
TABLES = (nn.Embedding, nn.EmbeddingBag)


def optimizer(groups: list[dict[str, Any]], settings: TrainingSettings, lr: float) -> torch.optim.Optimizer:
    """The optimiser that the settings name, over parameter groups of :func:`parameter_groups`."""
    rate: dict[str, Any] = {"lr": lr, "weight_decay": settings.weight_decay}
    eps: dict[str, Any] = {} if settings.eps is None else {"eps": settings.eps}
    betas: dict[str, Any] = eps | ({} if settings.betas is None else {"betas": tuple(settings.betas)})
    rho: dict[str, Any] = {} if settings.rho is None else {"rho": settings.rho}
    alpha: dict[str, Any] = {} if settings.alpha is None else {"alpha": settings.alpha}
    makers: Named[Callable[[], torch.optim.Optimizer]] = Named(
        "optimiser",
        adam=lambda: LazyAdam(groups, **rate, **betas, fused=True),
        adamw=lambda: torch.optim.AdamW(groups, **rate, **betas, fused=True),
        adamax=lambda: torch.optim.Adamax(groups, **rate, **betas),
        adagrad=lambda: torch.optim.Adagrad(groups, **rate, **eps, initial_accumulator_value=settings.first_sum),
        adadelta=lambda: torch.optim.Adadelta(groups, **rate, **rho, **eps),
        rmsprop=lambda: torch.optim.RMSprop(groups, **rate, **alpha, **eps, momentum=settings.momentum),
        sgd=lambda: torch.optim.SGD(groups, **rate, momentum=settings.momentum),
    )
    return makers[settings.optimizer]()


def parameter_groups(
    parameters: Iterable[tuple[str, nn.Parameter]],
    settings: TrainingSettings,
    lr: float,
    exempt: frozenset[str],
    others: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Trained parameters in groups of one rate and one weight decay.

    ``parameters`` have their names in the model; those named in ``exempt`` (see :func:`exempt`)
    have no weight decay. A pattern of ``settings.groups`` that matches no parameter, and none of
    the ``others`` that another optimiser moves, raises ``ValueError``.
    """
    named = list(parameters)
    for pattern, _ in settings.groups:
        if not any(fnmatchcase(name, pattern) for name in (*(name for name, _ in named), *others)):
            raise ValueError(f"training.groups: no parameter is called {pattern!r}; there is {named[0][0]}, ...")
    trained = [(name, parameter) for name, parameter in named if parameter.requires_grad]
    layers = 1 + max((layer for name, _ in trained if (layer := _layer(name)) is not None), default=0)
    grouped: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in trained:
        factor = _group_factor(name, settings) * settings.layer_decay ** _depth(name, layers)
        decay = 0.0 if name in exempt else settings.weight_decay
        if factor:
            grouped.setdefault((factor, decay), []).append(parameter)
    if [*grouped] == [(1.0, settings.weight_decay)]:
        return [{"params": members} for members in grouped.values()]
    return [
        {"params": members, "lr": lr * factor, "weight_decay": decay} for (factor, decay), members in grouped.items()
    ]


def freeze(model: nn.Module, settings: TrainingSettings) -> None:
    """Take the gradient from parameters whose group has the factor 0."""
    for name, parameter in model.named_parameters():
        if not _group_factor(name, settings):
            parameter.requires_grad_(False)


def _group_factor(name: str, settings: TrainingSettings) -> float:
    """Factor on the rate of a parameter: that of the first pattern that matches its name."""
    return next((factor for pattern, factor in settings.groups if fnmatchcase(name, pattern)), 1.0)


def exempt(model: nn.Module, kinds: Iterable[str], called: str = "") -> frozenset[str]:
    """Names of the parameters that weight decay leaves out, by the kinds of
    :data:`harness.settings.EXEMPT`; they begin with what the model is ``called``."""
    names: set[str] = set()
    for prefix, module in model.named_modules(prefix=called):
        for name, _ in module.named_parameters(prefix, recurse=False):
            leaf = name.rpartition(".")[2]
            if (
                ("biases" in kinds and (leaf.startswith("bias") or leaf.endswith("_bias")))
                or ("norms" in kinds and isinstance(module, NORMS))
                or ("vectors" in kinds and isinstance(module, TABLES))
            ):
                names.add(name)
    return frozenset(names)


def _layer(name: str) -> int | None:
    """Number of an encoder's layer, from a parameter's name such as ``encoder.layers.3.weight``; a
    ``pooler`` stands behind all layers."""
    found = re.match(r"encoder\.(?!pooler\.)(?:[A-Za-z_]\w*\.)*?(\d+)\.", name)
    return int(found[1]) if found else None


def _depth(name: str, layers: int) -> int:
    """Layers between a parameter and the output: 0 for the head, most for the vectors."""
    if not name.startswith(("encoder.", "table.")):
        return 0
    layer = _layer(name)
    if layer is not None:
        return layers - layer
    return layers + 1 if name.startswith("table.") or "embed" in name else 0


def learning_rate_factor(settings: TrainingSettings, steps_per_epoch: int) -> Factor:
    """Factor on the learning rate at each step, warm-up included.

    ``plateau`` depends on dev scores: its factor is 1 here, see
    :class:`harness.training.fit_module.FitModule`.
    """
    epoch = max(1, steps_per_epoch)
    total = max(1, epoch * settings.epochs)
    warm = max(1, settings.warmup(total))

    def steps_down(step: int) -> float:
        passed = step / epoch - settings.step_start
        return settings.factor ** (0 if passed < 0 else 1 + math.floor(passed / settings.step_epochs))

    def triangle(step: int) -> float:
        share = (step + 1) / warm if step < warm else max(0.0, 1 - (step - warm) / max(1, total - warm))
        return settings.lowest + (1 - settings.lowest) * min(1.0, share)

    def cosine(step: int) -> float:
        passed = min(1.0, max(0, step - warm) / max(1, total - warm))
        return settings.lowest + (1 - settings.lowest) * (1 + math.cos(math.pi * passed)) / 2

    def rising(factor: Factor) -> Factor:
        return lambda step: min(1.0, (step + 1) / warm) * factor(step)

    schedules: Named[Factor] = Named(
        "schedule",
        constant=rising(lambda step: 1.0),
        linear=rising(lambda step: max(0.0, 1 - step / total)),
        warmup_inverse_sqrt=lambda step: min((step + 1) / warm, math.sqrt(warm / (step + 1))),
        inverse_epoch=rising(lambda step: 1 / (1 + settings.decay * (step // epoch))),
        step=rising(steps_down),
        plateau=rising(lambda step: 1.0),
        slanted_triangle=triangle,
        cosine=rising(cosine),
    )
    return schedules[settings.lr_schedule]


def set_gradients(losses: dict[str, Tensor], trained: dict[str, list[nn.Parameter]]) -> None:
    """Give every parameter the gradient of the loss that it minimises.

    ``trained`` has the parameters of each loss. Of several losses, each one's gradient is taken for
    its own parameters alone.
    """
    if len(trained) == 1:
        losses["loss"].backward()
        return
    for name, parameters in trained.items():
        gradients = torch.autograd.grad(losses[name], parameters, retain_graph=True, allow_unused=True)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = torch.zeros_like(parameter) if gradient is None else gradient
