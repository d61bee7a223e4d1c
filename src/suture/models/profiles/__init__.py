"""Model profiles: what a model can do, so that prompts, limits and transport follow from the profile alone.

This package reads names, settings and the data of installed packages. It never asks a provider.
"""

from suture.models.profiles.model_profile import ModelProfile, ProfileOrigin, find_profile

__all__ = ["ModelProfile", "ProfileOrigin", "find_profile"]
