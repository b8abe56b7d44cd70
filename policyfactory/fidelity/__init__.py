"""How near the simulation of a site is to what the site recorded, and whether to trust it."""
