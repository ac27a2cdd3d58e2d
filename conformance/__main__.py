"""`python -m conformance` is `atomic-conformance`."""

import sys

from conformance.start import main

if __name__ == "__main__":
    sys.exit(main())
