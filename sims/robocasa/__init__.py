"""RoboCasa365 behind the protocol of `runtime.core`, in a virtual environment of its own."""
