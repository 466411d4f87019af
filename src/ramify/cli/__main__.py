"""``python -m ramify.cli``."""

import sys

from ramify.cli import main

if __name__ == "__main__":
    sys.exit(main())
