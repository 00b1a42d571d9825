"""``python -m asynccommit``: the command without its script."""

import sys

from asynccommit.cli import main

if __name__ == "__main__":
    sys.exit(main())
