"""`python -m scanline` is `scanline`."""

import sys

from .cli import main

sys.exit(main())
