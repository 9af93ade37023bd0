#!/usr/bin/env python3
"""Command line of the control plane."""

from hami_web.command import main

if __name__ == "__main__":
    main()
