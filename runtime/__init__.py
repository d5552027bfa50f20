"""The words, the loop and the services."""
