"""robosuite 1.5.2 behind the protocol of `runtime.core`, in a virtual environment of its own."""
