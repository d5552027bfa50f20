"""What simulators cannot bundle and have to be downloaded, one list each."""
