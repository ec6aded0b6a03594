"""Translation of transforms of torchvision, timm and open_clip into steps of shardtool.

``translate.py`` goes through a pipeline. ``of_torchvision.py`` and ``of_timm.py`` know the single transforms. Nothing
here imports torch, torchvision or timm: transforms are recognised by their module and class, and read by their
attributes.
"""

from .translate import is_foreign, steps_from

__all__ = ["is_foreign", "steps_from"]
