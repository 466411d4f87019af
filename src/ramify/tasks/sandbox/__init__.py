"""Running programs that nobody trusts."""

from ramify.tasks.sandbox.box import CONTAINMENTS, Box, Ran, containment

__all__ = ["CONTAINMENTS", "Box", "Ran", "containment"]
