"""LIBERO and LIBERO-PRO behind the protocol of `runtime.core`."""
