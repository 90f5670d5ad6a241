"""What `clawmark review` shows, and its dialogue on a terminal."""
