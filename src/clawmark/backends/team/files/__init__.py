"""Files in shared spaces: what a workspace publishes, and copies of what others published."""
