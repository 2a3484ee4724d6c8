#!/usr/bin/python3
"""Starts the simulated nvidia-smi with the NVML bindings that came with it."""

import sys

sys.path.insert(0, "/usr/lib/nvidia-smi")

from nvidia_smi.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
