"""How skills are born: candidates are made from failures and let in through a gate."""
