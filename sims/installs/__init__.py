"""The exact lists of packages that simulators with environments of their own are made from."""
