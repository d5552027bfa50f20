"""The wire of deoxys: a Franka arm behind protobuf messages on ZMQ PUB/SUB sockets."""
