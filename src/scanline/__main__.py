"""`python -m scanline` is `scanline`."""

import sys

from .cli import main

if __name__ == "__main__":  # worker processes import this module under another name
    sys.exit(main())
