"""Embedders that run in this process: a static table, a transformer, and GGUF and ONNX files."""
