"""Imports modules of users."""

import os
import sys
from importlib import import_module
from types import ModuleType


def load(name: str) -> ModuleType:
    """Imports a module; the working directory is importable meanwhile, as for `python -m`."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        return import_module(name)
    finally:
        sys.path.remove(folder)
