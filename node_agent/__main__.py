"""``python -m node_agent``."""

import sys

from node_agent.bootstrap import main

if __name__ == "__main__":
    sys.exit(main())
