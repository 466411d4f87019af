"""OpenAI-compatible servers as samplers: chat and completions, over HTTP."""

from ramify.models.endpoint.endpoint import Endpoint, Timeouts
from ramify.models.endpoint.flow import Aimd, Retry
from ramify.models.endpoint.interface import BOXED, Interface

__all__ = ["BOXED", "Aimd", "Endpoint", "Interface", "Retry", "Timeouts"]
