"""The embedded policy: small, trained here, served by ONNX Runtime."""

import os

# Before its first import: else ONNX Runtime keeps a device id in the home folder and reports to
# its makers. Somebody who wants that can say so.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
