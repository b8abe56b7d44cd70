"""Five ways into Slurm: two scripts in Lua, nice values, weights, and a plugin in C."""
