"""Other people's wire protocols: their codecs, their conventions, and clients for their servers."""
