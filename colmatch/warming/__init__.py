"""Compiles all kernels that matchers may need: made-up calls, on small inputs."""
