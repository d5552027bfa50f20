"""The language critics are written in, and what runs them."""
