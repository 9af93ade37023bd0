"""Node agent: makes, hands over and takes away the GPU instances that the scheduler reserved."""
