"""What the other packages need from the operating system: locks, private files, cancellation."""
