"""Turn texts into vectors: local models, services and batch jobs; and rerankers."""
