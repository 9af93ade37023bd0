"""What every MigDriver promises: on the simulated library, its reading part on a real one too."""
