"""Builds the sandbox's signed apt repository from the declarations in ../packages."""
