"""ramify: test-time scaling of reasoning language models as one system."""

__version__ = "0.1.0"
