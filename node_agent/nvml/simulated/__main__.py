"""Run the command."""

from __future__ import annotations

import sys

from node_agent.nvml.simulated.command import main

sys.exit(main())
