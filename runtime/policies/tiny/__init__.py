"""The embedded policy: small, trained here, served by ONNX Runtime."""
