"""Links between nodes: what the priors whose clusters are components of links share."""
