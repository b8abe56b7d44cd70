"""The site: partitions, nodes, limits, shares and scheduler settings of a cluster."""
