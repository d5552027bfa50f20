"""Reports: what they consist of, their figures, and one self-contained page."""
