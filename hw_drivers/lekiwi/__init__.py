"""The wire of LeRobot's LeKiwi host: JSON and JPEGs on ZMQ PUSH/PULL sockets."""
