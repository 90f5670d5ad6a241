"""HTTP requests with a deadline, retries and a circuit breaker."""
