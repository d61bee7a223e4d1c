"""Model profiles: what a model can do, so that prompts, limits and transport follow from the profile alone."""

from suture.models.profiles.model_profile import ModelProfile, find_profile

__all__ = ["ModelProfile", "find_profile"]
